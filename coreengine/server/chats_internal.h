/* What requests of chats bring beside their message: tools of the client, parameters, quotas, pipelines as models. */
#ifndef RV_SERVER_CHATS_INTERNAL_H
#define RV_SERVER_CHATS_INTERNAL_H

#include "coreengine/server/follow_internal.h"

/* --- chats.c --- */
void srv_turn_ask_free(struct srv_turn_ask *ask);

/* --- transcript.c --- */
/** A client that keeps the conversation itself sends the whole conversation: it becomes the beginning of the session,
 * which is new. */
RV_MUST_CHECK int srv_chat_keep_history(struct srv_call *c, const struct srv_turn_ask *a, rv_err **err);

/* --- client_tools.c: tools that clients call themselves --- */
/** The request brings results: of a question that waits for them they become its answer, and of a client that names no
 * session the session becomes that of the run. RV_E_STATE: nothing waits for them, and there is no message either. */
RV_MUST_CHECK int srv_client_results(struct srv_call *c, struct srv_turn_ask *a, bool has_session, rv_err **err);

/* --- keep.c --- */
RV_MUST_CHECK int srv_fail_busy(rv_err **err); /* RV_E_STATE: the session has a turn under way */

/* --- handed.c: an answer to a turn that is not in this process --- */
/** The run of the store gets the answer, and a worker takes it. question: that it is for. RV_E_STATE: one waits
 * already, or the run is to be cancelled; and as rv_app_find_question() and rv_app_check_answer(). */
RV_MUST_CHECK int srv_answer_hand_over(rv_store *store, const struct rv_store_scope *scope,
                                       const struct srv_turn_ask *ask, char question[RV_STORE_MAX_ID + 1],
                                       rv_err **err);

/* --- chat_request.c --- */
/** Read what the request asks of its model. doc: of the agent that is asked for; NULL: it is not known yet. On failure
 *  the call's param says where. */
RV_MUST_CHECK int srv_chat_request(struct srv_call *c, struct srv_turn_ask *a, const struct rv_agentdoc *doc,
                                   rv_err **err);

/* --- chat_quota.c --- */
/** Does a quota leave room for a turn? If not, the call is refused (429). */
RV_MUST_CHECK int srv_chat_quota(struct srv_call *c, rv_err **err);

/* --- runs.c --- */
#define SRV_PIPELINE "pipeline:" /* before the name of a pipeline that is a model */
/** Start a run of the pipeline that a model stands for, with that input, and say how to stream it; *out is the
 * caller's.
 *
 * @param model  "pipeline:NAME", as the client wrote it */
RV_MUST_CHECK int srv_run_of_model(struct srv_call *c, const char *model, rv_str input,
                                   const struct rv_protocol_opts *opts, struct srv_follow_ask **out, rv_err **err);

/* --- reason.c --- */
/** The encoder's stream breaks off: append an error as its protocol has it. False: it cannot be told. */
bool srv_tell_break(rv_protocol *encoder, const char *run, int code, rv_buf *out);

/* --- follow_chat.c: runs in the protocols of chats --- */
RV_MUST_CHECK int srv_told_new(const struct rv_protocol_opts *opts, const char *run, const char *model,
                               struct srv_told **out, rv_err **err);
void srv_told_free(struct srv_told *t);
/** The run's next event, appended as its client reads it. */
RV_MUST_CHECK int srv_told_event(struct srv_told *t, rv_str line, rv_buf *out, rv_err **err);
RV_MUST_CHECK int srv_told_end(struct srv_told *t, enum rv_run_status status, const struct rv_pipeline *p,
                               const rv_envelope *env, rv_buf *out, rv_err **err);
bool srv_told_is_whole(const struct srv_told *t);
/** The status of a whole answer, behind srv_told_end(). */
int srv_told_http(const struct srv_told *t, enum rv_run_status status);
/** As srv_view_break(). */
bool srv_told_break(struct srv_told *t, int code, rv_buf *out);

#endif
