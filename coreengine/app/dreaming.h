/* Dreaming: looking back over what a user did lately, while no one waits. Phase 1 makes chunks of the user's sessions
 * (coreengine/store/sessions.h), without a model. Phase 2 tells a dreamer, a declared agent, what is new; it answers
 * with moments and what they are connected with, which its chained tool keeps.
 *
 * One dreaming is one run of a pipeline of one dreamer, for one user and one day, and its id follows from these. So a
 * day is dreamt once, however often it is asked for; and a process that dies leaves a run that the next one goes on
 * with. */
#ifndef RV_APP_DREAMING_H
#define RV_APP_DREAMING_H

#include "coreengine/app/app.h"
#include "coreengine/store/tasks.h"

#define RV_DREAM_TASK       "dreaming"       /* type of its tasks */
#define RV_DREAM_AGENT      "dreaming-agent" /* where the tenant names none */
#define RV_DREAM_MODE       "dreaming"       /* of the sessions in which dreamers work */
#define RV_DREAM_DAYS       1                /* that are looked back over */
#define RV_DREAM_MAX_DAYS   366              /* a year */
#define RV_DREAM_TOKENS     38400            /* of what a dreamer is told: 30 % of a window of 128,000 */
#define RV_DREAM_THRESHOLD  6000             /* tokens of a session that no chunk covers, for a new one */
#define RV_DREAM_SESSIONS   10               /* last touched, that get chunks */
#define RV_DREAM_MAX_AGENTS 16               /* dreamers of a tenant */

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

/* --- one dreaming --- */
/* What it points to is borrowed for the call. */
struct rv_app_dream {
    const char *agent;  /* the dreamer; NULL: RV_DREAM_AGENT */
    const char *script; /* file that answers for its models; NULL: none */
    const char *salt;   /* makes it another dreaming of the same day; NULL: it is the day's */
    int64_t day_us;     /* a time of the day (UTC) that it stands for */
    int64_t days;       /* that are looked back over; 0: RV_DREAM_DAYS */
    bool again;         /* another one, when the day was dreamt */
};
/** The dreamers of the scope's tenant: metadata.dreamer_agents of its row in `tenants`, else RV_DREAM_AGENT. *out: an
 *  array of texts, the caller's. RV_E_INVALID: the row has something else there. */
RV_MUST_CHECK int rv_app_dream_agents(rv_store *store, const struct rv_store_scope *scope, json_object **out,
                                      rv_err **err);
/** Append the pipeline of a dreamer. RV_E_INVALID: that is not the name of an agent. */
RV_MUST_CHECK int rv_app_dream_pipeline(const char *agent, rv_buf *out, rv_err **err);
struct rv_app_dreamt {
    char run[RV_STORE_MAX_ID + 1];
    bool is_old;               /* it was completed before */
    enum rv_run_status status; /* of the run */
    rv_buf result; /* {status, run, agent, io_tokens, phase1, phase2}; fini it. status: "ok", or why the run ended */
};
/** Dream, or say what an earlier call has come to: drives the run until it is over. app: its scope names the user. A
 *  run that fails is a success of this call. RV_E_STATE: another process is at it; RV_E_QUOTA; what rv_app_load() and
 *  rv_app_run_keep() say. Thread: blocks the caller. */
RV_MUST_CHECK int rv_app_dream(const struct rv_app *app, const struct rv_app_dream *dream, struct rv_app_dreamt *out,
                               rv_err **err);

/* --- queued --- */
struct rv_dream_queued {
    int64_t n_new, n_old; /* tasks that were added, and that were in the queue already */
};
/** Add a task for each dreamer of the scope's user; user NULL: of each user who did something in the last days. */
RV_MUST_CHECK int rv_app_dream_enqueue(rv_store *store, const struct rv_store_scope *scope,
                                       const struct rv_app_dream *dream, int64_t now_us, struct rv_dream_queued *out,
                                       rv_err **err);

#endif
