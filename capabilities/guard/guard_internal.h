/* Shared by the files of this capability. */
#ifndef GUARD_INTERNAL_H
#define GUARD_INTERNAL_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stddef.h>

/* --- guard.c --- */
/** Takes value; NULL: there was no memory for it. What could not be looked at, or said, must not pass. */
void guard_put(json_object *obj, const char *key, json_object *value, int *failed);

/* --- attachments.c --- */
/** What can be read of an attachment, an object of texts, the caller's: its address and its name, and its data where
 *  they are a text. *failed: memory is short. */
json_object *guard_read_attachment(json_object *item, int *failed);
/** The list as a hook gives it back, the caller's, without secrets: attachments without any are their numbers. *changed
 *  counts; *failed: memory is short. */
json_object *guard_redact_attachments(json_object *list, int *changed, int *failed);

/* --- secrets.c --- */
/** The character, or half of one, that an escape of JSON like \u00e9 at c stands for; -1: there is none. */
int guard_read_escape(const char *c, const char *end);
/** What the first secret below v is, in its texts or in the names of members, or NULL. */
const char *guard_find_secret(json_object *v);
/** Redacts all texts and names of members below v. Returns what is to stand in its place, or NULL to leave it; *changed
 *  counts; *failed: memory is short. */
json_object *guard_redact(json_object *v, int *changed, int *failed);

#endif
