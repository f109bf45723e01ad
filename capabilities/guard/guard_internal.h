/* Shared by the files of this capability. */
#ifndef GUARD_INTERNAL_H
#define GUARD_INTERNAL_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stddef.h>

/* --- secrets.c --- */
/** What the first secret below v is, in its texts or in the names of members, or NULL. */
const char *guard_find_secret(json_object *v);
/** Redacts all texts and names of members below v. Returns what is to stand in its place, or NULL to leave it; *changed
 *  counts; *failed: memory is short. */
json_object *guard_redact(json_object *v, int *changed, int *failed);

#endif
