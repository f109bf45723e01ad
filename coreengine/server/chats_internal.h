/* What requests of chats bring beside their message: tools of the client, parameters, quotas, pipelines as models. */
#ifndef RV_SERVER_CHATS_INTERNAL_H
#define RV_SERVER_CHATS_INTERNAL_H

#include "coreengine/server/server_internal.h"

/* --- client_tools.c: tools that clients call themselves --- */
struct srv_client_tools {
    json_object *tools; /* owned; NULL: none */
    const char **names; /* of these, borrowed from them; the list is owned */
    size_t n;
    char *message;      /* of the turn; owned */
    json_object *asked; /* the data of the question that waits for the client; owned; NULL: none does */
};
RV_MUST_CHECK int srv_client_tools_init(struct srv_client_tools *t, const struct rv_request *req, rv_err **err);
void srv_client_tools_fini(struct srv_client_tools *t);
/** The turn waits, for an answer to that question. */
void srv_client_tools_wait(struct srv_client_tools *t, const struct rv_interrupt *in);
/** Does the request have a result that is waited for? */
bool srv_client_tools_answered(const struct srv_client_tools *t, const struct rv_request *req);
/** The same of a client that names no session: the message before its results has to be that of the turn. */
bool srv_client_tools_same(const struct srv_client_tools *t, const struct rv_request *req);
/** The answer; it borrows from the request and from *data, which is the caller's. */
RV_MUST_CHECK int srv_client_tools_answer(const struct srv_client_tools *t, const struct rv_request *req,
                                          json_object **data, struct rv_response *out, rv_err **err);

/* --- chat_request.c --- */
/** Read what the request asks of its model. doc: of the agent that is asked for; NULL: it is not known yet. On failure
 *  the call's param says where. */
RV_MUST_CHECK int srv_chat_request(struct srv_call *c, struct srv_turn_ask *a, const struct rv_agentdoc *doc,
                                   rv_err **err);
/** The answer among those of the request, which has one at least, to that question; else its first one. */
struct rv_response srv_chat_answer(const struct rv_request *req, const char *interrupt_id);

/* --- chat_quota.c --- */
/** Does a quota leave room for a turn? If not, the call is refused (429). */
RV_MUST_CHECK int srv_chat_quota(struct srv_call *c, rv_err **err);

/* --- runs.c --- */
#define SRV_PIPELINE "pipeline:" /* before the name of a pipeline that is a model */
/** Start a run of that pipeline with that input, and say how it is to be told; *out is the caller's. */
RV_MUST_CHECK int srv_run_of_model(struct srv_call *c, const char *pipeline, rv_str input,
                                   const struct rv_protocol_opts *opts, struct srv_follow_ask **out, rv_err **err);

/* --- follow_chat.c: runs in the protocols of chats --- */
RV_MUST_CHECK int srv_told_new(const struct rv_protocol_opts *opts, const char *run, const char *model,
                               struct srv_told **out, rv_err **err);
void srv_told_free(struct srv_told *t);
/** The run's next event, appended as its client reads it. */
RV_MUST_CHECK int srv_told_event(struct srv_told *t, rv_str line, rv_buf *out, rv_err **err);
RV_MUST_CHECK int srv_told_end(struct srv_told *t, enum rv_run_status status, const struct rv_pipeline *p,
                               const rv_envelope *env, rv_buf *out, rv_err **err);
bool srv_told_is_whole(const struct srv_told *t);

#endif
