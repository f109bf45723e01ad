/* Dreaming: looking back over what a user did lately, while no one waits. Phase 1 makes chunks of the user's sessions
 * (coreengine/store/moments.h), without a model. Phase 2 tells a dreamer, a declared agent, what is new; it answers with
 * moments and what they are connected with, which its chained tool keeps.
 *
 * One dreaming is one run of a pipeline of one dreamer, for one user and one day, and its id follows from these. So a
 * day is dreamt once, whoever asks how often; and a process that dies leaves a run that the next one goes on with. */
#ifndef RV_APP_DREAMING_H
#define RV_APP_DREAMING_H

#include "coreengine/app/app.h"
#include "coreengine/store/tasks.h"

#define RV_DREAM_TASK      "dreaming"       /* type of its tasks */
#define RV_DREAM_AGENT     "dreaming-agent" /* where the tenant names none */
#define RV_DREAM_MODE      "dreaming"       /* of the sessions in which dreamers work */
#define RV_DREAM_DAYS      1                /* that are looked back over */
#define RV_DREAM_MAX_DAYS  366
#define RV_DREAM_TOKENS    38400 /* of what a dreamer is told: 30 % of a window of 128,000 */
#define RV_DREAM_THRESHOLD 6000  /* tokens of a session that no chunk covers, for a new one */
#define RV_DREAM_SESSIONS  10    /* last touched, that get chunks */
#define RV_DREAM_MAX_AGENTS 16   /* dreamers of a tenant */

/* --- what there is to dream about --- */
struct rv_dream_chunks {
    int64_t n_checked, n_built;
};
/** Phase 1: chunks of the sessions that the user touched last, each one transaction. A chunk of a session with uploads
 *  says what they begin with. RV_E_INVALID: the scope names no user. */
RV_MUST_CHECK int rv_app_dream_chunks(rv_store *store, const struct rv_store_scope *scope, int64_t now_us,
                                      struct rv_dream_chunks *out, rv_err **err);
struct rv_dream_context {
    int64_t since_us;
    int64_t n_moments, n_sessions, n_files; /* that are in the text */
    int64_t tokens;                         /* of the text, estimated */
    rv_buf text;                            /* for the dreamer; empty: nothing happened */
};
/** Phase 2: what the user did in the last days: moments, conversations, files. Each section is whole or left out, so
 *  that all are within max_tokens. Fini with rv_buf_fini(&out->text). */
RV_MUST_CHECK int rv_app_dream_context(rv_store *store, const struct rv_store_scope *scope, int64_t days,
                                       int64_t max_tokens, int64_t now_us, struct rv_dream_context *out, rv_err **err);

#endif
