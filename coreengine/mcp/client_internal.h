/* Shared by the files of the client only. */
#ifndef RV_MCP_CLIENT_INTERNAL_H
#define RV_MCP_CLIENT_INTERNAL_H

#include "coreengine/mcp/client.h"

enum rv_mcp_phase {
    RV_MCP_PROBING,      /* `server/discover` is on its way */
    RV_MCP_INITIALIZING, /* `initialize` is */
    RV_MCP_READY,
    RV_MCP_DEAD,
};

struct rv_mcp_item; /* of the queue */
/* A request that the caller made. */
struct rv_mcp_open {
    struct rv_mcp_open *next;
    int64_t ask, id;               /* id 0: not sent yet */
    const char *method, *list;     /* static */
    json_object *params, *headers; /* owned references; NULL: none */
    json_object *items, *cursors;  /* of a list: what came so far; the cursors that were used, as keys; owned */
    json_object *cursor;           /* of the next page; owned; NULL: the first */
    json_object *state;            /* requestState that the server wants back; owned; NULL: none */
    json_object *input;            /* owned; NULL: none */
    json_object *responses;        /* inputResponses that are known without a person; owned; NULL: none */
    json_object *samples;          /* {number: id of the server's request, or key of inputRequests}: completions that
                                      are waited for; owned; NULL: none */
    int n_pages, n_rounds;
    int64_t n_samples;  /* that were asked for */
    int64_t ttl_ms;     /* of a list: the shortest of its pages */
    json_object *task;  /* id of the task that the server made of the call; owned; NULL: none */
    int64_t token;      /* of the progress of a task: the id of the call that began it; 0: none */
    int64_t poll_us;    /* of a task: between two questions */
    int64_t poll_at_us; /* when it is asked for next; RV_MCP_POLL_SOON: poll_us from now on; RV_NEVER: not now */
    int64_t due_us;     /* RV_NEVER: none */
    bool wants_progress, has_progress, was_refused, is_repeatable;
    bool heard_misread;              /* since it was made, something came that is not a message: c->misread */
    bool needs_task, asked_for_task; /* asked: the request on its way has the parameter `task` */
    double progress;
};

struct rv_mcp_client {
    char *server; /* owned */
    bool is_http, elicits;
    int64_t max_samples;
    enum rv_mcp_phase phase;
    enum rv_mcp_era era;
    enum rv_mcp_version version;
    int64_t handshake_us, phase_due_us; /* when the handshake, or the probe, has taken too long */
    int64_t handshake_due_us;
    int64_t handshake_id; /* of the request on its way; 0: none */
    int64_t probe_id;     /* of a `server/discover` that was not answered in time: it may still be; 0: none */
    int64_t last_id, last_ask;
    struct rv_mcp_open *open, **open_end; /* in the order of asking; owned */
    size_t n_open;
    struct rv_mcp_item *first, **end, *shown; /* the queue, and the item that the caller looks at; owned */
    json_object *answer;                      /* to the handshake; owned */
    json_object *roots;                       /* owned; NULL: not declared */
    char *misread;                            /* why the last message that could not be read is not one; owned; NULL */
    int n_notes;
    bool is_retried;     /* the handshake: the server refused the revision that it speaks */
    bool is_change_told; /* a CHANGED waits in the queue */
};

/* --- client_queue.c: what waits for the caller --- */
/* A request that is sent. Borrowed for the call. */
struct mcp_request {
    int64_t id;
    const char *method;
    json_object *params, *headers; /* headers NULL: none besides those of every request */
    bool is_modern;                /* it follows the modern revisions */
    enum rv_mcp_version version;
};
RV_MUST_CHECK int mcp_put_request(rv_mcp_client *c, const struct mcp_request *r, rv_err **err);
RV_MUST_CHECK int mcp_put_notification(rv_mcp_client *c, const char *method, json_object *params, rv_err **err);
/** Answer a request of the server: with an error, or, text NULL, with a result (borrowed; NULL: {}). */
RV_MUST_CHECK int mcp_put_answer(rv_mcp_client *c, json_object *id, json_object *result, int code, const char *text,
                                 rv_err **err);
RV_MUST_CHECK int mcp_put_simple(rv_mcp_client *c, enum rv_mcp_out_kind kind, int64_t id, rv_err **err);
/** result is taken. asks: it is what a person is asked. */
RV_MUST_CHECK int mcp_put_result(rv_mcp_client *c, const struct rv_mcp_open *o, json_object *result, bool asks,
                                 rv_err **err);
/** ask 0: the whole connection. */
RV_MUST_CHECK int mcp_put_trouble(rv_mcp_client *c, int64_t ask, const struct rv_mcp_trouble *t, rv_err **err);
RV_MUST_CHECK int mcp_put_progress(rv_mcp_client *c, int64_t ask, double progress, double total, rv_str text,
                                   rv_err **err);
RV_MUST_CHECK int mcp_put_note(rv_mcp_client *c, rv_err **err, const char *fmt, ...) RV_PRINTF(3, 4);
/** params is borrowed. */
RV_MUST_CHECK int mcp_put_sample(rv_mcp_client *c, int64_t ask, int64_t sample, json_object *params, rv_err **err);
void mcp_queue_fini(rv_mcp_client *c);

/* --- client.c: the functions that end or send an open request leave it open when they fail --- */

/** End it with its result, taken, or with trouble. */
RV_MUST_CHECK int mcp_end_ok(rv_mcp_client *c, struct rv_mcp_open *o, json_object *result, rv_err **err);
RV_MUST_CHECK int mcp_end_failed(rv_mcp_client *c, struct rv_mcp_open *o, const struct rv_mcp_trouble *t, rv_err **err);
RV_MUST_CHECK int mcp_die(rv_mcp_client *c, const struct rv_mcp_trouble *t, rv_err **err);
RV_MUST_CHECK int mcp_send_open(rv_mcp_client *c, struct rv_mcp_open *o, rv_err **err);

/** End it with what a person is asked; requests is taken. */
RV_MUST_CHECK int mcp_end_asks(rv_mcp_client *c, struct rv_mcp_open *o, json_object *requests, rv_err **err);
/** The server is told that a request is not waited for any more, and the link, too. */
RV_MUST_CHECK int mcp_withdraw(rv_mcp_client *c, const struct rv_mcp_open *o, const char *reason, rv_err **err);

/* --- client_roots.c: what a server may know of this side without asking a person --- */
/** What the client can do: an object, or NULL when memory is short. */
json_object *mcp_capabilities(const rv_mcp_client *c, bool is_modern);
/** The result of `roots/list`, the caller's. */
RV_MUST_CHECK int mcp_write_roots(const rv_mcp_client *c, json_object **out, rv_err **err);
/** Add it to inputResponses under each of keys, a list of texts. */
RV_MUST_CHECK int mcp_add_roots(const rv_mcp_client *c, json_object *keys, json_object *responses, rv_err **err);

/* --- client_sample.c: servers that ask a model --- */
/** A server of the old era asks. */
RV_MUST_CHECK int mcp_sample_asked(rv_mcp_client *c, const struct rv_mcp_message *m, rv_err **err);
/** A server of the new era wants these completions, {key: params}, in o->responses: the request is sent again with all
 * of them. */
RV_MUST_CHECK int mcp_ask_model(rv_mcp_client *c, struct rv_mcp_open *o, json_object *samples, rv_err **err);

/* --- client_elicit.c: servers that ask a person --- */
/* What `inputRequests` want. Zeroed: nothing. */
struct rv_mcp_wanted {
    json_object *forms;   /* [{key, message, schema}] for a person; owned */
    json_object *roots;   /* keys of requests for roots; owned */
    json_object *samples; /* {key: params}: completions of a model; owned */
    bool is_refused;      /* one of them is of another kind, was not declared, or there are too many */
};
/** *out is to be freed with mcp_wanted_fini() on every path. */
RV_MUST_CHECK int mcp_read_requests(const rv_mcp_client *c, json_object *requests, struct rv_mcp_wanted *out,
                                    rv_err **err);
void mcp_wanted_fini(struct rv_mcp_wanted *w);
/** The call that a server of the old era means: only messages about tasks say it. NULL: none, or more than one. */
struct rv_mcp_open *mcp_call_under_way(const rv_mcp_client *c, json_object *params);
/** An answer about a task says so. */
RV_MUST_CHECK int mcp_relate_task(const struct rv_mcp_open *o, json_object *answer, rv_err **err);
/** End the request with what a person is asked. */
RV_MUST_CHECK int mcp_ask_person(rv_mcp_client *c, struct rv_mcp_open *o, const struct rv_mcp_wanted *w,
                                 json_object *state, rv_err **err);
/** Add what a person answered to the params of a request of the new era. */
RV_MUST_CHECK int mcp_add_input(const rv_mcp_client *c, const struct rv_mcp_open *o, json_object *params, rv_err **err);
/** A server of the old era sends `elicitation/create`. */
RV_MUST_CHECK int mcp_elicited(rv_mcp_client *c, const struct rv_mcp_message *m, rv_err **err);

/* --- client_handshake.c --- */
RV_MUST_CHECK int mcp_handshake_begin(rv_mcp_client *c, int64_t now_us, rv_err **err);
/** Of `server/discover`: its answer did not come in time, or says that the server is of the old era. */
RV_MUST_CHECK int mcp_handshake_initialize(rv_mcp_client *c, rv_err **err);
RV_MUST_CHECK int mcp_handshake_answer(rv_mcp_client *c, const struct rv_mcp_message *m, rv_err **err);
/** An answer to the probe after its time: that of a server of the new era, which started slowly, still decides. */
RV_MUST_CHECK int mcp_handshake_probed(rv_mcp_client *c, const struct rv_mcp_message *m, rv_err **err);
RV_MUST_CHECK int mcp_handshake_failed(rv_mcp_client *c, const struct rv_mcp_failure *f, rv_err **err);
/** Sets params._meta of a request of the new era. */
RV_MUST_CHECK int mcp_add_meta(const rv_mcp_client *c, json_object *meta, enum rv_mcp_version version, rv_err **err);

/* --- client_task.c: calls that the server made tasks of --- */
#define RV_MCP_POLL_SOON ((int64_t)-1)                          /* a message has no time: the next tick knows it */
#define RV_MCP_META_TASK "io.modelcontextprotocol/related-task" /* in 2025-11-25: the task that a message is about */
/** A call of 2025-11-25 asks for a task, if its tool needs one and the server has tasks. */
RV_MUST_CHECK int mcp_task_wish(const rv_mcp_client *c, struct rv_mcp_open *o, json_object *params, rv_err **err);
/** A call that is made again because its task, of 2026-07-28, asked a person: it becomes the answer for that task. */
RV_MUST_CHECK int mcp_task_resume(const rv_mcp_client *c, struct rv_mcp_open *o, rv_err **err);
/** The answer to a call says that it is a task now; result has the task's members. */
RV_MUST_CHECK int mcp_task_begun(rv_mcp_client *c, struct rv_mcp_open *o, json_object *result, rv_err **err);
/** The answer to a question for it. */
RV_MUST_CHECK int mcp_task_told(rv_mcp_client *c, struct rv_mcp_open *o, json_object *result, rv_err **err);
RV_MUST_CHECK int mcp_task_tick(rv_mcp_client *c, struct rv_mcp_open *o, int64_t now_us, rv_err **err);
/** Nothing waits for it any more. */
RV_MUST_CHECK int mcp_task_cancel(rv_mcp_client *c, const struct rv_mcp_open *o, rv_err **err);

/* --- client_answer.c: answers to open requests --- */
/** The request ends with an error of the server's. */
RV_MUST_CHECK int mcp_refused(rv_mcp_client *c, struct rv_mcp_open *o, int code, const char *said, rv_err **err);
/** What came is not a message: of a known request, or of the only one, it is the answer, and a bad one. m: as far as it
 * was read. */
RV_MUST_CHECK int mcp_misread(rv_mcp_client *c, const struct rv_mcp_message *m, rv_str json, const char *why,
                              rv_err **err);
RV_MUST_CHECK int mcp_answered(rv_mcp_client *c, struct rv_mcp_open *o, const struct rv_mcp_message *m, rv_err **err);

#endif
