/* Shared by the files of this capability. */
#ifndef ECHO_INTERNAL_H
#define ECHO_INTERNAL_H

#include <json-c/json_object.h>
#include <stddef.h>

/* Bytes that are borrowed. */
struct text {
    const char *ptr;
    size_t len;
};

/* shape.c */
/** The simplest value that a schema asks for, with `text` wherever a string may be anything; the caller's. NULL: a JSON
 * null. */
json_object *simplest(json_object *schema, struct text text);

#endif
