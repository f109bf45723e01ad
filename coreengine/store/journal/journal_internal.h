/* Shared by the files of the journal. */
#ifndef RV_JOURNAL_INTERNAL_H
#define RV_JOURNAL_INTERNAL_H

#include "coreengine/store/journal/journal.h"

#define RV_JOURNAL_VERSION 1                  /* of the records' format; a newer one is refused */
#define RV_JOURNAL_MAX_US  (INT64_C(1) << 60) /* a later time is invalid: sums of a few times must not overflow */

/* records.c, calls.c: bodies, appended; failures stick in the buffer. */
void journal_record_put_begin(const struct rv_journal_begin *b, const struct rv_pipeline *p, int64_t now_us,
                              rv_buf *body);
/** The value borrows from ev, or from `value` when it had to be written. */
rv_str journal_record_put_event(const struct rv_event *ev, rv_buf *body, rv_buf *value);
/** To the body of an event that ended the run: what a replay has to reach, and which engine reached it. A state that is
 * larger than a value of the store has none. */
void journal_put_end(const rv_envelope *env, rv_buf *body);
/** env: as it stood after the step that asked for the call. */
void journal_record_put_started(const struct rv_effect *e, const rv_envelope *env, rv_buf *body);
void journal_record_put_owner(const char *owner, int64_t fence, int64_t now_us, rv_buf *body);
bool journal_effect_is_call(const struct rv_effect *e); /* an effect that the shell performs and answers */

/* records.c: RV_E_INVALID names what is wrong; the caller adds which record. */
RV_MUST_CHECK int journal_record_get_body(const struct rv_record *r, json_object **body, rv_err **err);
/** ev borrows from r, from *own (yours in any case) and from scratch. */
RV_MUST_CHECK int journal_record_get_event(const struct rv_record *r, json_object **own, rv_buf *scratch,
                                           struct rv_event *ev, rv_err **err);
RV_MUST_CHECK int journal_record_get_begin(const struct rv_record *r, const struct rv_pipeline *p,
                                           struct rv_journal_begin *out, int64_t *now_us, rv_err **err);
RV_MUST_CHECK int journal_load_state(rv_str text, int64_t now_us, rv_envelope **out, rv_err **err);

/* calls.c: is the call that the core asks for the one that was journaled? RV_E_STATE says what was and what is. */
RV_MUST_CHECK int journal_record_check_started(const struct rv_record *r, const struct rv_effect *e,
                                               const rv_envelope *env, rv_buf *scratch, rv_err **err);
int journal_diverged(rv_err **err, int rc); /* adds the hint; gives rc */
/** A call as a message says it. */
void journal_call_describe(const struct rv_effect *e, const rv_envelope *env, rv_buf *out);

/* --- journal.c --- */
/* The stage of the run's row: a hook may have written any text there. */
#define RV_STAGE_LABEL_MAX 512 /* bytes: four times RV_MAX_STAGE_NAME; a longer one is cut, for lists show it */
const char *journal_stage_of(const rv_envelope *env, char room[RV_STAGE_LABEL_MAX + 1]);

/* begin.c: a run that is not in the store yet */
struct draft {
    struct rv_store_new_run run; /* of its own texts */
    struct rv_record begin;
    rv_buf body, state;
    char *texts[9]; /* owned */
};
/** owner NULL: the run has no owner. Copies what it needs. */
RV_MUST_CHECK int journal_draft_new(const struct rv_journal_start *s, const char *owner, int64_t lease_until_us,
                                    struct draft **out, rv_err **err);
void journal_draft_free(struct draft *d); /* NULL is fine */

/** Read the same messages again, as a run got them at that moment. RV_E_STATE: they have changed. */
RV_MUST_CHECK int journal_same_history(rv_store *store, const struct rv_store_scope *scope,
                                       const struct rv_conversation *c, int64_t told_us, json_object **out,
                                       rv_err **err);

/* snapshot.c */
#define RV_SNAPSHOT_EVERY 2048 /* records: replaying so many takes some 7 ms */
struct snapshot {
    int64_t seq; /* 0: there is none that can be used */
    struct rv_run_counters counters;
    int64_t last_us, n_events;
    rv_envelope *env; /* owned */
};
struct snapshot_new { /* of a run after record seq; borrowed */
    const char *run;
    int64_t fence, seq, last_us; /* time of the last event */
    const rv_run *state;
};
RV_MUST_CHECK int journal_snapshot_put(rv_store *store, const struct rv_store_scope *scope,
                                       const struct snapshot_new *of, rv_err **err);
/** The newest one, if it is whole, of this version and not after upto. Only RV_E_NOMEM fails. */
RV_MUST_CHECK int journal_snapshot_get(rv_store *store, const struct rv_store_scope *scope, const char *run,
                                       int64_t upto, struct snapshot *out, rv_err **err);
void journal_snapshot_fini(struct snapshot *s);
/** Seq of the newest one, usable or not; 0: none. */
int64_t journal_snapshot_seq(rv_store *store, const struct rv_store_scope *scope, const char *run);

#endif
