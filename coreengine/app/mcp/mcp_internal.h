/* Shared by the files of this folder. */
#ifndef RV_APP_MCP_INTERNAL_H
#define RV_APP_MCP_INTERNAL_H

#include "coreengine/app/mcp.h"
#include "coreengine/app/past.h"
#include "coreengine/app/work.h"

#define MCP_MAX_NAME   RV_MCP_MAX_TOOL_NAME
#define MCP_MAX_OFFERS 10000       /* tools of one server: more than any model can be offered; they are in memory */
#define OUTER_STAGE    "reeve_mcp" /* runs a pipeline that declares inputs */
#define MCP_OUTPUT     "result"    /* output key of the stage that calls a capability's tool */
#define MCP_MAX_RESULT ((size_t)12 << 20) /* bytes of a result as JSON: with its message it fits RV_MCP_MAX_MESSAGE */

/* --- offers.c: the tools --- */
enum offer_kind { OFFER_QUERY, OFFER_ANSWER, OFFER_PIPELINE, OFFER_TOOL, OFFER_AGENT, N_OFFERS };
/* Its texts are owned. */
struct offer {
    char *name;
    enum offer_kind kind;
    char *target;              /* PIPELINE: its file; TOOL: "capability:tool"; AGENT: its name; else NULL */
    enum rv_mcp_offer_kind as; /* PIPELINE: what the client takes it for */
};
struct offers {
    struct offer *items; /* owned; by name */
    size_t n, cap;
};
/** All that the client may use. */
RV_MUST_CHECK int app_mcp_offers_list(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at,
                                      struct offers *out, rv_err **err);
void app_mcp_offers_fini(struct offers *offers);
void app_mcp_offer_fini(struct offer *o);
struct offer *app_mcp_offers_find(const struct offers *offers, rv_str name);
/** Load what a PIPELINE, TOOL or AGENT runs. connects: a run begins, and its MCP servers are asked for their tools. out
 *  as of rv_app_load(): look at its findings. */
RV_MUST_CHECK int app_mcp_offer_load(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at,
                                     const struct offer *o, bool connects, struct rv_app_loaded *out, rv_err **err);

/** The pipeline that clients are told of: inside of the one that is run, if that has it as a stage. */
const struct rv_pipeline *app_mcp_offered(const struct rv_pipeline *p);

/* --- describe.c: a tool as tools/list has it --- */
/** Entries from `first` on, at most RV_MCP_PAGE. */
RV_MUST_CHECK int app_mcp_tools_list(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, int64_t first,
                                     json_object *list, bool *has_more, rv_err **err);
/** The schema of its arguments, for a check; l: what app_mcp_offer_load() gave, NULL for built-in ones. The caller's.
 */
RV_MUST_CHECK int app_mcp_input_schema(const struct offer *o, const struct rv_app_loaded *l, json_object **out,
                                       rv_err **err);

/* --- result.c: results of tools/call --- */
/* What it points to is borrowed for the call. */
struct mcp_about { /* what is told with a result */
    const char *tool, *run;
    const struct rv_store_scope *scope;
    const char *session, *request; /* NULL: none */
    int64_t now_us;
};
/** {content: [text], isError: true} of an error value; its chain becomes the text. */
RV_MUST_CHECK int app_mcp_failure_of(const rv_err *why, json_object **out, rv_err **err);
/** A result with data: text NULL: the data as JSON. data: the artifact, an object; borrowed. */
RV_MUST_CHECK int app_mcp_success(const struct mcp_about *about, const rv_str *text, json_object *data,
                                  json_object **out, rv_err **err);
bool app_mcp_is_block(json_object *block); /* of content, in the words of the protocol */
/* A run that is over; what it points to is borrowed. */
struct mcp_ended {
    enum offer_kind kind; /* what the client called */
    enum rv_run_status status;
    const struct rv_pipeline *pipeline;
    const rv_envelope *env;
};
RV_MUST_CHECK int app_mcp_result_of_run(const struct mcp_about *about, const struct mcp_ended *run, json_object **out,
                                        rv_err **err);

/* --- offered.c: pipelines that are prompts and resources --- */
#define MCP_FOUND 1 /* of a callback: the walk ends */
typedef int (*mcp_each_pipeline)(void *self, const char *name, const char *path, const struct rv_pipeline *p,
                                 rv_err **err);
/** Each pipeline that the client may run, loaded without its plugins. It stops when a callback returns not 0, and
 * returns that. */
RV_MUST_CHECK int app_mcp_pipelines_each(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at,
                                         mcp_each_pipeline each, void *self, rv_err **err);
/** A pipeline as an offer, which is the caller's. */
RV_MUST_CHECK int app_mcp_offer_of(const char *name, const char *path, enum rv_mcp_offer_kind kind, struct offer *out,
                                   rv_err **err);
/* A document that a client asked for: it is there, or a run makes it. Zeroed: neither. */
struct mcp_document {
    json_object *result;    /* owned */
    struct offer offer;     /* name NULL: no run; owned */
    json_object *arguments; /* of the run; owned */
};
void app_mcp_document_fini(struct mcp_document *d);
/** The pipeline whose address that is; the name of out->offer stays NULL where there is none. */
RV_MUST_CHECK int app_mcp_find_resource(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, rv_str uri,
                                        struct mcp_document *out, rv_err **err);
/* What it points to is borrowed for the call. */
struct mcp_shown {
    enum rv_mcp_want want;                     /* READ_RESOURCE or GET_PROMPT */
    const char *uri, *mime_type, *description; /* description: "" none */
};
/** The result of a run, as a tool has it, as contents of a resource or messages of a prompt. */
RV_MUST_CHECK int app_mcp_show(const struct mcp_shown *shown, json_object *result, json_object **out, rv_err **err);

/* --- question.c: questions of runs as forms --- */
/** The schema of the form for a question. *out NULL: a form cannot answer it. */
RV_MUST_CHECK int app_mcp_form_of(const struct rv_app_question *q, json_object **out, rv_err **err);
/** What was filled in, as a response; borrows from content. RV_E_INVALID: it does not fit the question. */
RV_MUST_CHECK int app_mcp_response_of(const struct rv_app_question *q, enum rv_mcp_action action, json_object *content,
                                      struct rv_response *out, rv_err **err);
/** How a modern client comes back to the run: an opaque text, and what it says. RV_E_INVALID: it was changed. */
void app_mcp_state_write(const char *tool, const char *run, const char *interrupt, rv_buf *out);
RV_MUST_CHECK int app_mcp_state_read(rv_str text, const char *tool, char run[RV_STORE_MAX_ID + 1],
                                     char interrupt[RV_STORE_MAX_ID + 1], rv_err **err);
/** Find the first question of a run, or the one with that id. As rv_app_find_question(). */
RV_MUST_CHECK int app_mcp_question_of(const struct rv_app_mcp_at *at, const struct rv_run_row *row, const char *id,
                                      struct rv_app_question *out, rv_err **err);

/** By what a client of 2026-07-28 gives the answer: the stage that asks; "answer" for one of a pipeline with inputs.
 * key gets RV_STORE_MAX_ID + 1 bytes. */
RV_MUST_CHECK int app_mcp_question_key(const struct rv_app_mcp_at *at, const char *run, const char *id, rv_buf *key,
                                       rv_err **err);
/** Is the answer to that question on its way to the run? */
RV_MUST_CHECK int app_mcp_question_is_answered(const struct rv_app_mcp_at *at, const struct rv_run_row *row,
                                               const char *id, bool *out, rv_err **err);
/** The result of a call whose run waits, for a client that cannot ask a person: how the model behind it may do so. */
RV_MUST_CHECK int app_mcp_waiting(const struct mcp_about *about, const struct rv_app_question *q, json_object **out,
                                  rv_err **err);

/* --- start.c: a call becomes a run --- */
struct mcp_started {
    char run[RV_STORE_MAX_ID + 1];      /* "": there is a result at once */
    char answered[RV_STORE_MAX_ID + 1]; /* the question of that run whose answer is queued; "": none */
    json_object *result;                /* owned */
    bool waits;                         /* the call was not begun, because it would have to wait for other servers */
    bool is_mismatch;                   /* nor was it, because its headers are not its arguments */
    bool is_unknown;                    /* or because the pipeline is not offered as that */
    bool needs_task;                    /* or because the client would have to take a task */
};
/** RV_E_NOT_FOUND: nothing that is offered has the name. */
RV_MUST_CHECK int app_mcp_find_offer(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at,
                                     json_object *params, struct offer *out, rv_err **err);
/* A call of a tool that is offered. */
struct mcp_call {
    json_object *params;    /* as the client sent them; borrowed */
    json_object *arguments; /* of the tool; app_mcp_start() reads them from params */
    bool may_wait;          /* for other servers; else out->waits says that it would have to */
    bool is_task;           /* the client wants a task at once: its run is one that app_mcp_tasks_list() finds */
    bool takes_tasks;       /* what needs one may be called */
};
/** Failures of the call are results; RV_E_NOMEM, RV_E_INVALID (its state was changed). */
RV_MUST_CHECK int app_mcp_start(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at,
                                const struct offer *o, struct mcp_call call, struct mcp_started *out, rv_err **err);
/** A client does not wait for that run any more: it is asked to end. */
void app_mcp_cancel_run(const struct rv_app_mcp_at *at, const char *run);
/* An answer of a client to a question of a run. Borrowed for the call. */
struct mcp_reply {
    const char *run, *interrupt;
    enum rv_mcp_action action;
    json_object *content;
};
/** Have the answer to a question of a run queued. */
RV_MUST_CHECK int app_mcp_enqueue_answer(const struct rv_app_mcp_at *at, const struct mcp_reply *answer,
                                         struct mcp_started *out, rv_err **err);

/* --- tasks.c: calls that their clients ask for later --- */
struct mcp_task {
    enum offer_kind kind;
    char tool[MCP_MAX_NAME + 1];
    char run[RV_STORE_MAX_ID + 1];
};
/** RV_E_NOT_FOUND: it is not the id of a task. */
RV_MUST_CHECK int app_mcp_task_read(rv_str id, struct mcp_task *out, rv_err **err);
#define MCP_TASK_RUNS "env_mcp_" /* ids of runs that began as tasks */
/** What a run is as a task, without its id: how its journal keeps it. out holds MCP_MAX_NAME + 2 bytes. */
void app_mcp_task_kind(enum offer_kind kind, const char *tool, char *out);
/** The tasks of the scope that began as such, newest first. *next: `first` of the next page; 0: there is none. */
RV_MUST_CHECK int app_mcp_tasks_list(const struct rv_app_mcp_at *at, int64_t first, json_object *list, int64_t *next,
                                     rv_err **err);
/** What a client wants: CALL_TOOL: the task begins; LIST_TASKS, GET_TASK: how it is, without its end and with it;
 *  UPDATE_TASK, CANCEL_TASK. *out: the result, as rv_mcp_server_give() takes it, the caller's. can_ask: the client may
 *  see the forms of its questions.
 *  RV_E_NOT_FOUND: the client has no such task; RV_E_INVALID: an answer does not fit its question; RV_E_STATE. */
RV_MUST_CHECK int app_mcp_task_do(const struct rv_app_mcp_at *at, const struct rv_mcp_order *o,
                                  const struct mcp_task *t, bool can_ask, json_object **out, rv_err **err);

/* --- client.c, calls.c: a client and the runs that its calls wait for --- */
struct rv_app_mcp_job;
struct watched;
struct rv_app_mcp {
    const struct rv_app_mcp_opts *opts; /* borrowed; outlives the client */
    rv_mcp_server *session;             /* owned */
    struct watched *first;              /* owned */
    struct rv_app_mcp_job *jobs;        /* under way, in no order; owned by those who do them */
    struct rv_mcp_orders *out;          /* while something happens; borrowed */
    struct watched *now;                /* borrowed, one of first: whose events are read */
};
/** A failure of this side, as the client is told: what is not its business stays in the log. */
RV_MUST_CHECK int app_mcp_fail(rv_app_mcp *m, const struct rv_app_mcp_at *at, int64_t call, const rv_err *why,
                               rv_err **err);
RV_MUST_CHECK int app_mcp_give_and_put(rv_app_mcp *m, int64_t call, json_object *result, rv_err **err);
/** A call waits for the run t->run. */
RV_MUST_CHECK int app_mcp_watch(rv_app_mcp *m, const struct rv_mcp_order *o, const struct mcp_task *t,
                                const char *answered, rv_err **err);
/** tools/call */
RV_MUST_CHECK int app_mcp_call_tool(rv_app_mcp *m, const struct rv_app_mcp_at *at, const struct rv_mcp_order *o,
                                    rv_err **err);
/** What is wanted of a task, or that the call has become one. */
RV_MUST_CHECK int app_mcp_give_task(rv_app_mcp *m, const struct rv_app_mcp_at *at, const struct rv_mcp_order *o,
                                    const struct mcp_task *task, rv_err **err);
/** A client asks for a task by its id. */
RV_MUST_CHECK int app_mcp_on_task(rv_app_mcp *m, const struct rv_app_mcp_at *at, const struct rv_mcp_order *o,
                                  rv_err **err);
/** A document that a run makes. arguments: of the run. */
RV_MUST_CHECK int app_mcp_run_document(rv_app_mcp *m, const struct rv_app_mcp_at *at, const struct rv_mcp_order *o,
                                       struct mcp_document *d, rv_err **err);
/** What failed is told as an error of the request: the text of a failure as a tool has it. result is taken. */
RV_MUST_CHECK int app_mcp_refuse(rv_app_mcp *m, int64_t call, int code, json_object *result, rv_err **err);
void app_mcp_stop_jobs(rv_app_mcp *m, int64_t call); /* of that call; 0: all */
/* Of a job: what aside.c needs while it has it. */
struct app_mcp_job_place {
    struct rv_app_mcp_job *next; /* in the queue that it is in; borrowed */
    const struct rv_app *app;    /* borrowed; outlives the job */
    void *owner;                 /* borrowed; handed back with the job */
};
struct app_mcp_job_place *app_mcp_job_place(struct rv_app_mcp_job *job);
void app_mcp_job_stop(struct rv_app_mcp_job *job); /* from any thread */

/* --- resources.c, prompts.c --- */
/** Entries from `first` on, at most RV_MCP_PAGE. */
RV_MUST_CHECK int app_mcp_resources_list(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at,
                                         int64_t first, json_object *list, bool *has_more, rv_err **err);
RV_MUST_CHECK int app_mcp_templates_list(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at,
                                         json_object *list, rv_err **err);
char *app_mcp_uri_decode(rv_str part); /* one part of a path; NULL: it is empty, or not such a part; free() it */
/** {contents: [...]}, or the run that makes them. RV_E_NOT_FOUND. */
RV_MUST_CHECK int app_mcp_resource_read(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, rv_str uri,
                                        struct mcp_document *out, rv_err **err);
RV_MUST_CHECK int app_mcp_prompts_list(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at,
                                       int64_t first, json_object *list, bool *has_more, rv_err **err);
/** RV_E_NOT_FOUND, RV_E_INVALID (an argument is missing). */
RV_MUST_CHECK int app_mcp_prompt_get(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at,
                                     json_object *params, struct mcp_document *out, rv_err **err);
RV_MUST_CHECK int app_mcp_complete(const struct rv_app_mcp_at *at, json_object *params, json_object **out,
                                   rv_err **err);

static inline bool app_mcp_may(const struct rv_app_mcp_at *at, enum rv_app_mcp_right right)
{
    return !at->may || at->may(at->self, right);
}

#endif
