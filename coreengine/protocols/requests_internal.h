/* What the readers of requests share: members by their type, with errors that name the path of the member. */
#ifndef RV_REQUESTS_INTERNAL_H
#define RV_REQUESTS_INTERNAL_H

#include "coreengine/protocols/protocols.h"

/* A body that is being read. */
struct req {
    struct rv_request *out; /* borrowed */
    char *path;             /* RV_REQUEST_MAX_PATH bytes, of the caller; borrowed */
    size_t path_len;
    size_t text_left; /* bytes of text that the new message may still have */
    bool is_unsupported;
    rv_err **err; /* borrowed */
};

/* The path of the member that is looked at: enter it, and go back to what there was before. */
size_t req_enter(struct req *q, const char *key);
size_t req_enter_at(struct req *q, size_t index);
void req_back(struct req *q, size_t mark);
/** RV_E_INVALID, at the path: what is legal, and what is there. */
int req_wrong(struct req *q, const char *fmt, ...) RV_PRINTF(2, 3);
/** RV_E_INVALID: the request is well-formed, but asks for something that is not supported. */
int req_unsupported(struct req *q, const char *why);
int req_wrong_type(struct req *q, json_object *value, const char *legal);
int req_no_memory(struct req *q);

/* Members of an object; null counts as missing. Each returns 0, or fails at the member's path. */
json_object *req_member(json_object *obj, const char *key); /* NULL: it is missing */
RV_MUST_CHECK int req_text(struct req *q, json_object *obj, const char *key, const char **out);
/** A text in one line of 1 to RV_REQUEST_MAX_ID bytes. */
RV_MUST_CHECK int req_id(struct req *q, json_object *obj, const char *key, const char **out);
RV_MUST_CHECK int req_bool(struct req *q, json_object *obj, const char *key, bool *out);
/* The whole numbers that a member may have. */
struct req_int_range {
    int64_t min, max;
};
RV_MUST_CHECK int req_int(struct req *q, json_object *obj, const char *key, const struct req_int_range *range,
                          bool *has, int64_t *out);
/* The numbers that a member may have. */
struct req_range {
    double min, max;
};
RV_MUST_CHECK int req_number(struct req *q, json_object *obj, const char *key, const struct req_range *range, bool *has,
                             double *out);
RV_MUST_CHECK int req_typed(struct req *q, json_object *obj, const char *key, enum json_type type,
                            json_object **out); /* object or array; borrowed */
/** An array of at most `max` items. */
RV_MUST_CHECK int req_list(struct req *q, json_object *obj, const char *key, size_t max, json_object **out);
/** out->made: a new array or object, kept until the request goes; borrowed. */
RV_MUST_CHECK int req_make(struct req *q, json_object *value, json_object **out);

/* One message of a transcript, of whatever protocol. */
enum req_role { REQ_SYSTEM, REQ_USER, REQ_ASSISTANT, REQ_TOOL, REQ_OTHER };
/* What it points to is borrowed from the body. */
struct req_message {
    enum req_role role;
    json_object *content;             /* text, parts, or NULL */
    const char *id, *call_id, *error; /* call_id, error: of TOOL */
    json_object *calls;               /* of ASSISTANT: as the protocol has them */
    const char *name, *arguments;     /* of ASSISTANT: of one call that is an item of its own */
    size_t at;                        /* where it stands in its list */
};
struct req_messages {
    struct req_message *items; /* owned */
    size_t n;
    const char *key; /* of the list: "messages", "input"; static */
    bool is_string;  /* the list is one text */
};
enum req_take_how {
    REQ_WITH_HISTORY = 1, /* also what came before */
    REQ_ANY_END = 2,      /* the last message of the user counts, whatever follows it */
};
/** Take what is new from the end: results of tools, then a message of the user. how: of enum req_take_how. */
RV_MUST_CHECK int req_take(struct req *q, const struct req_messages *m, unsigned how);
RV_MUST_CHECK int req_tool(struct req *q, json_object *item, const char *name_path); /* a tool of the client */

RV_MUST_CHECK int req_read_agui(struct req *q, json_object *body);
RV_MUST_CHECK int req_read_openai(struct req *q, json_object *body);
RV_MUST_CHECK int req_read_responses(struct req *q, json_object *body);

#endif
