/* Shared by the files of this capability. */
#ifndef P8_INTERNAL_H
#define P8_INTERNAL_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <reeve/capability.h>

#define MAX_DEPTH        256  /* nesting of arguments: the engine's own limit */
#define MAX_URL          1000 /* bytes of the configured address: a person writes it; a longer one is refused at load */
#define MAX_ARG_BYTES    (256 << 10) /* one text among the arguments of a tool that works with data: a model wrote it */
#define MAX_PATH_BYTES   1000        /* of the file of records: chosen, a person writes it; below PATH_MAX */
#define MAX_RECORD_BYTES ((size_t)256 << 10) /* one line of the file of records: as MAX_ARG_BYTES of a text in it */
#define MAX_FILE_BYTES   ((size_t)64 << 20) /* the whole file: it is read to find out whether a record exists already */

/* The state of the capability, constant after open. Its texts are owned. */
struct p8 {        /* constant after open */
    int base;      /* the folder of the pipeline */
    char *records; /* path below it; NULL: none is configured */
    char *web_key; /* of the search engine; NULL: none is configured */
    char *web_url; /* where it is, without a slash at the end */
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

/* --- tool.c: the tools that work with data --- */
/* Why such a tool could not do what it was asked to. */
#define BAD_ARGUMENTS "bad_arguments"
#define NOT_FOUND     "not_found"
#define DENIED        "denied"
#define QUOTA         "quota"
#define TIMEOUT       "timeout"
#define PROVIDER      "provider"
#define CONFLICT      "conflict"
#define INTERNAL      "internal"

/* A call under way. All but args is borrowed for the call. */
struct tool {
    struct rv_cap_call *call;
    json_object *args;  /* an object; owned */
    const char *echo;   /* the argument that an error repeats; NULL: none */
    const char *code;   /* it failed; NULL: not yet */
    const char *action; /* type of the action that its failure is as well; NULL: none */
    char error[2048];
    bool no_memory;
};
/** Do it. The result is the caller's; NULL after tool_fail(). */
typedef json_object *(*tool_fn)(struct tool *t, const void *self);
/** One call, from arguments to reply: the function of an entry returns this. */
int tool_call(void *self, struct rv_cap_call *call, const char *echo, tool_fn fn);

/** Fail; the first failure counts. Gives NULL. */
__attribute__((format(printf, 3, 4))) void *tool_fail(struct tool *t, const char *code, const char *fmt, ...);
/** Did it fail with that code? Then it is as if it had not. */
bool tool_forgive(struct tool *t, const char *code);

json_object *text(const char *s);
/** Mark obj as an action, which the engine turns into an event. payload is taken; NULL: none. */
void mark_action(struct tool *t, json_object *obj, const char *type, json_object *payload);
/** Add a member; value is taken, NULL is null. Failure sets t->no_memory. */
void add(struct tool *t, json_object *obj, const char *key, json_object *value);
void push(struct tool *t, json_object *list, json_object *value);
json_object *success(struct tool *t, const char *status); /* {status} */
size_t length(json_object *list);                         /* 0: no list */
json_object *item(json_object *list, size_t i);           /* borrowed; NULL: there is none */

/** A member of an object; NULL: it is not there, is null, or obj is something else. Borrowed. */
json_object *member(json_object *obj, const char *key);
const char *text_in(json_object *obj, const char *key); /* NULL: no text */
/* Arguments, borrowed; wrong ones fail the tool. null is as left out. */
const char *arg_text(struct tool *t, const char *key, bool needed);
json_object *arg_list(struct tool *t, const char *key, bool needed, size_t most, enum json_type of);
int64_t arg_int(struct tool *t, const char *key, int64_t otherwise);
const char *user_of(const struct tool *t); /* NULL: not known */
const char *session_of(const struct tool *t);

/** Ask a service; args is taken. The answer is the caller's; NULL: the tool has failed as the service did. */
json_object *ask_take(struct tool *t, const char *service, json_object *args);
/** A row by its id, the caller's. */
json_object *row_of(struct tool *t, const char *kind, const char *id);
/** The same as {row, version}, for a change that follows from what the row says. */
json_object *versioned_row(struct tool *t, const char *kind, const char *id);
/** Do something that reads rows and changes what it has read; again, from the beginning, when another has changed them
 * in between. */
json_object *tool_repeat(struct tool *t, tool_fn once, const void *what);
/** Write a row, which is taken. Gives its id, the caller's. */
json_object *put_take(struct tool *t, const char *kind, json_object *row);
bool is_utf8(const char *s, size_t len);

/* --- profile.c --- */
json_object *user_profile(struct tool *t, const void *self); /* what get_user_profile replies */

/* --- tools --- */
int act(void *self, struct rv_cap_call *call);
int keep_record(void *self, struct rv_cap_call *call);
int save_moments(void *self, struct rv_cap_call *call);
int get_moments(void *self, struct rv_cap_call *call);
int gather_activity(void *self, struct rv_cap_call *call);
int get_user_profile(void *self, struct rv_cap_call *call);
int update_user_metadata(void *self, struct rv_cap_call *call);
int search(void *self, struct rv_cap_call *call);
int remind_me(void *self, struct rv_cap_call *call);
int list_reminders(void *self, struct rv_cap_call *call);
int cancel_reminder(void *self, struct rv_cap_call *call);
int save_plot(void *self, struct rv_cap_call *call);
int remove_plot(void *self, struct rv_cap_call *call);
int get_file(void *self, struct rv_cap_call *call);
int read_resource(void *self, struct rv_cap_call *call);
int web_search(void *self, struct rv_cap_call *call);
int save_agent(void *self, struct rv_cap_call *call);
int analyze_pages(void *self, struct rv_cap_call *call);
int parse_file(void *self, struct rv_cap_call *call);

#endif
