/* Shared by the files of this folder. */
#ifndef RV_APP_DREAMING_INTERNAL_H
#define RV_APP_DREAMING_INTERNAL_H

#include "coreengine/app/memory.h"
#include "coreengine/store/store.h"

/* Sessions of the user, last touched first, without those in which dreamers work. */
struct dream_sessions {
    struct dream_session {
        char id[RV_STORE_MAX_ID + 1];
        char *name; /* owned */
    } * items;
    size_t n, cap, most;
    int64_t since_us; /* 0: whenever they were touched */
};
RV_MUST_CHECK int dream_sessions_read(rv_store *store, const struct rv_store_scope *own, size_t most, int64_t since_us,
                                      struct dream_sessions *out, rv_err **err);
void dream_sessions_fini(struct dream_sessions *s);
/** A text of a row; "" for none. */
const char *dream_text(json_object *row, const char *column);
/** Is the content of a row sealed? Texts of dreams are not sealed, so they must not copy from such a row. */
bool dream_is_sealed(json_object *row);
/** RV_E_INVALID: the scope names no user. */
RV_MUST_CHECK int dream_check_user(const struct rv_store_scope *scope, rv_err **err);

/* --- dream.c, also for the worker --- */
#define DREAM_MAX_ATTEMPTS 1000 /* runs of one dreaming that are looked at: each is read, and each has cost */
/** The id of the n-th attempt, from 1. */
RV_MUST_CHECK int app_dream_id(const struct rv_store_scope *scope, const struct rv_app_dream *dream, int n,
                               char out[RV_STORE_MAX_ID + 1], rv_err **err);
/** Load the pipeline of the dreamer and keep the run of that id, with its session, in one transaction. run: app, store
 *  and prepared; loaded: the caller's. It counts as one of the quota `dreams`. */
RV_MUST_CHECK int app_dream_keep(struct rv_app_run *run, const struct rv_app_dream *dream, const char *id,
                                 struct rv_app_loaded *loaded, rv_envelope **env, rv_err **err);
/** Did that run, which is completed, find nothing new? Then the day may be dreamt once more. */
RV_MUST_CHECK int app_dream_is_empty(rv_store *store, const struct rv_store_scope *scope, const char *id, bool *out,
                                     rv_err **err);
/** The result of a run that is over. */
void app_dream_result(const char *id, const struct rv_app_dream *dream, enum rv_run_status status,
                      const rv_envelope *env, rv_buf *out);

#endif
