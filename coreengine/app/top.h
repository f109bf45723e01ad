/* The runs of a store that are under way or wait, looked at again and again: what each waits for, what it has taken,
 * and how much the store does in a minute.
 *
 * A look reads lists that the store has indexes for and records that it has not read yet, never all runs: what it reads
 * is bounded by the constants below. A run whose records are not read yet has is_read false, and later looks read it.
 *
 * Used by one thread; a look and its texts live until the next one. */
#ifndef RV_APP_TOP_H
#define RV_APP_TOP_H

#include "coreengine/app/workspace.h"

#define RV_APP_TOP_MAX_ROWS    200           /* runs of one status in a look: more than a screen shows */
#define RV_APP_TOP_MAX_RECORDS 20000         /* records that one look reads: a fraction of a second */
#define RV_APP_TOP_MAX_RECENT  2000          /* runs begun lately whose rows one look reads: a fraction of a second */
#define RV_APP_TOP_SPAN_US     RV_US_PER_MIN /* rates are of the last minute */
#define RV_APP_TOP_MAX_TEXT    ((size_t)200) /* bytes of what a run waits for: it is one line */

enum rv_app_top_sort {
    RV_APP_TOP_BY_STATE, /* waiting for an answer, running, ready; the oldest first */
    RV_APP_TOP_BY_AGE,   /* the oldest first */
    RV_APP_TOP_BY_COST,
    RV_APP_TOP_BY_TOKENS,
    RV_APP_TOP_BY_CALLS,
    RV_APP_TOP_BY_PIPELINE,
    RV_N_APP_TOP_SORTS
};
const char *rv_app_top_sort_text(enum rv_app_top_sort sort); /* "state" */

enum rv_app_top_wait {
    RV_APP_TOP_NOTHING, /* it decides, or that is not known yet */
    RV_APP_TOP_WORKER,  /* to take it from the queue */
    RV_APP_TOP_MODEL,
    RV_APP_TOP_TOOL,
    RV_APP_TOP_HOOK,   /* code of a capability */
    RV_APP_TOP_ANSWER, /* of a person */
    RV_APP_TOP_OWNER,  /* no process runs it */
    RV_N_APP_TOP_WAITS
};

/* Texts are borrowed from the snapshot. */
struct rv_app_top_row {
    const char *id, *pipeline, *stage, *user, *session;
    enum rv_run_status status;
    bool cancel_requested;
    int64_t created_us, updated_us;
    enum rv_app_top_wait waits;
    const char *name;   /* of the model, tool or hook; the kind of the question; how the owner is; "" */
    const char *text;   /* of the question; "" */
    size_t n;           /* calls under way, or questions */
    int64_t since_us;   /* when the oldest of them began; 0: not known */
    int64_t expires_us; /* of the question; 0: never */
    bool is_read;       /* what follows is known */
    bool is_damaged;    /* its journal cannot be read */
    int64_t llm_calls;
    struct rv_usage used;
};
struct rv_app_top_rates {
    int64_t span_us; /* that they are of */
    int64_t n_ended, tokens, cost_micro_usd;
    bool is_partial; /* runs ended of which it is not known what they took */
};
/* What it points to is borrowed until the next look. */
struct rv_app_top_snapshot {
    int64_t now_us;
    const struct rv_app_top_row *rows;
    size_t n, n_running, n_ready, n_waiting;
    bool more; /* runs than a look has rows for */
    int64_t llm_calls;
    struct rv_usage used; /* of the rows */
    struct rv_app_top_rates rates;
};

typedef struct rv_app_top rv_app_top;
/** store and the texts of scope are borrowed. */
RV_MUST_CHECK int rv_app_top_new(rv_store *store, const struct rv_store_scope *scope, rv_app_top **out, rv_err **err);
void rv_app_top_free(rv_app_top *top); /* NULL is fine */
/** Look at the store as it is at now_us. *out is borrowed until the next look. A run that cannot be read is a row that
 * says so. RV_E_NOMEM, and what the store says. */
RV_MUST_CHECK int rv_app_top_read(rv_app_top *top, int64_t now_us, enum rv_app_top_sort sort,
                                  const struct rv_app_top_snapshot **out, rv_err **err);
void rv_app_top_write(const struct rv_app_top_snapshot *look, rv_jw *w); /* an object: `reeve top --json` */

#endif
