/* Shared by the files of this capability. */
#ifndef P8_INTERNAL_H
#define P8_INTERNAL_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stddef.h>

#include <reeve/capability.h>

#define MAX_DEPTH        256                 /* nesting of arguments: the engine's own limit */
#define MAX_PATH_BYTES   1000                /* of the file of records */
#define MAX_RECORD_BYTES ((size_t)256 << 10) /* one line of the file of records */
#define MAX_FILE_BYTES   ((size_t)64 << 20) /* the whole file: it is read to find out whether a record exists already */

struct p8 {        /* constant after open */
    int base;      /* the folder of the pipeline */
    char *records; /* path below it; NULL: none is configured */
};

/* --- json.c --- */
/** The arguments of a call, an object; NULL: the call has been failed. */
json_object *args_of(struct rv_cap_call *call);
json_object *json_of(const char *text); /* NULL: no memory, or no JSON */
/** Add a member; value is taken. */
void put(bool *failed, json_object *obj, const char *key, json_object *value);
/** One line of text; obj is taken. NULL: no memory. */
char *text_take(json_object *obj, bool failed);
/** Answer with obj, which is taken; failed: out of memory. */
int reply_take(struct rv_cap_call *call, json_object *obj, bool failed);

/* --- payload.c --- */
/** Check what goes with an action of a type that has rules; 0, or the call has been failed and this is to be returned.
 *  payload may be NULL. */
int check_payload(struct rv_cap_call *call, const char *type, json_object *payload);

/* --- tools --- */
int act(void *self, struct rv_cap_call *call);
int keep_record(void *self, struct rv_cap_call *call);

#endif
