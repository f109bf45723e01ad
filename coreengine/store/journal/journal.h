/* The journal of a run: the one truth from which its state, events and messages are derived.
 *
 * A run is made of what it was started with (bundle, state, options) and what it was told since (events). The core is
 * pure, so replaying the events gives the same state, events and calls, byte for byte. The journal also notes each call
 * before it is made, so that after a crash it is known which ones may have happened.
 *
 * One rule: a step's records are durable before anything of that step is acted on. */
#ifndef RV_STORE_JOURNAL_JOURNAL_H
#define RV_STORE_JOURNAL_JOURNAL_H

#include "coreengine/run/run.h"
#include "coreengine/store/store.h"
#include "coreengine/tools/script/script.h"

/* The records, as kinds of struct rv_record. Bodies are JSON, formats in docs/reference/journal.md. */
#define RV_RECORDS(X)                                                                                                  \
    X(BEGIN, "begin", "what the run was started with; its value is the state dict it began from")                      \
    X(EVENT, "event", "what the core was told; its value is the reply or the text of the failure")                     \
    X(STARTED, "started", "a call about to be made; for a tool its value is the arguments as sent")                    \
    X(ARTIFACT, "artifact", "what a call made for people; its value is the content")                                   \
    X(OWNER, "owner", "another process went on with the run")
#define RV_RECORD_CONST(n, t, m) RV_RECORD_##n,
enum rv_record_kind { RV_RECORD_NONE, RV_RECORDS(RV_RECORD_CONST) RV_N_RECORD_KINDS };
const char *rv_record_kind_text(int kind); /* "begin", ...; "unknown" */

/* What the record of the event that ended a run says of its end. */
struct rv_journal_end {
    char engine[32];              /* version of the one that wrote it */
    char state_hash[RV_HASH_MAX]; /* sha256 of the state; "": not said, as in all other records and older ones */
};
RV_MUST_CHECK int rv_record_get_end(const struct rv_record *r, struct rv_journal_end *out, rv_err **err);

/* --- Owners: who runs a run. "host/boot/pid/start/mark": unique as long as the machine is not cloned. Older versions
 * wrote no mark. --- */
#define RV_OWNER_MAX        192
#define RV_OWNER_ENDS_US    (2 * RV_US_PER_S)    /* from the end of a process to that of its threads and children */
#define RV_LEASE_DEFAULT_US (15 * RV_US_PER_S)   /* without a sign of life for so long, a process may be replaced */
void rv_owner_make_name(char out[RV_OWNER_MAX]); /* this process */
/** Tells whether that process is known to be gone, with all its threads and isolated children. False for one of another
 * machine or an earlier boot: only its lease tells. */
bool rv_owner_is_dead(const char *owner);
/** The same, but waits while the process itself has ended and one of its threads or children has not: a kill reaches
 * them one after the other. *patience_us is the longest wait; the function subtracts the time it waited. */
bool rv_owner_wait_dead(const char *owner, int64_t *patience_us);

/* --- Writing: one process at a time. Used by one thread. --- */
typedef struct rv_journal rv_journal;

/* The inputs that determine a run, besides its bundle and its state. */
struct rv_journal_begin {
    enum rv_rules rules; /* NEWEST: those of this engine */
    int mode;            /* enum rv_run_mode or RV_UNSET */
    bool continues;      /* begins where its state stands: of a fork */
    bool use_mocks;
    bool has_script;          /* the bundle's script answers calls */
    bool answers_from_script; /* and interrupts */
    bool is_script_blind;     /* rv_script_is_blind() */
    size_t max_parallel;
    const bool *scripted;        /* per stage of the pipeline: the script plays it; NULL: none; borrowed */
    bool *own;                   /* what scripted points to when it was read from a journal; owned */
    json_object *scripted_inner; /* names of stages inside of stages, "sub/inner": the same; owned; NULL: none */
    json_object *script_at;      /* where the script stood then (rv_script_build_position()); owned */
    const struct rv_conversation *conversation; /* that the run belongs to; borrowed, or own_conversation; NULL: none */
    const char *task; /* what the run is as a task of an MCP client, for lists; not read back; borrowed; NULL: none */
    const char *request; /* hash of the request that the run answers; not read back; borrowed; NULL: none */
    struct rv_conversation *own_conversation; /* the same when it was read from a journal, with its history; owned */
};
void rv_journal_begin_fini(struct rv_journal_begin *b);
/** Set the options of a run that are kept, so that it goes as it went; the options borrow from b. */
void rv_journal_begin_set_opts(const struct rv_journal_begin *b, struct rv_run_opts *opts);

/* What it points to is borrowed for the call. */
struct rv_journal_start {
    const char *tenant;                 /* NULL: the default one */
    const char *bundle;                 /* hash, see below; its blob is in the store */
    const struct rv_pipeline *pipeline; /* borrowed for the call */
    struct rv_journal_begin begin;
    const rv_envelope *env; /* gives the run's id (envelope_id), user and session; borrowed for the call */
    const char *parent;     /* a fork's; NULL: none */
    int64_t parent_seq;
    const char *owner;        /* NULL: the run has no owner yet */
    int64_t now_us, lease_us; /* lease 0: RV_LEASE_DEFAULT_US */
};
/** A new run whose BEGIN record is durable. out NULL: only make it. RV_E_EXISTS and what rv_store_create_run() says. */
RV_MUST_CHECK int rv_journal_create(rv_store *store, const struct rv_journal_start *start, rv_journal **out,
                                    rv_err **err);
/** A new run that is made with its first step, in the same transaction: nothing is written before. */
RV_MUST_CHECK int rv_journal_new(rv_store *store, const struct rv_journal_start *start, rv_journal **out, rv_err **err);
/* A process that becomes the owner of a run. */
struct rv_journal_claim {
    const char *owner;        /* borrowed for the call */
    int64_t now_us, lease_us; /* lease 0: RV_LEASE_DEFAULT_US */
};
/** Become the owner of an existing run. The lease of an owner that is known to be dead is ignored. RV_E_STATE: another
 * process runs it (the text says which and until when). Writes an OWNER record unless the run was interrupted (an
 * answer follows). */
RV_MUST_CHECK int rv_journal_open(rv_store *store, const struct rv_store_scope *scope, const char *run,
                                  const struct rv_journal_claim *claim, rv_journal **out, rv_err **err);
/** Gives the lease up if the run is not over, once: as rv_store_release(). Nothing can be kept afterwards. */
RV_MUST_CHECK int rv_journal_release(rv_journal *j, rv_err **err);
void rv_journal_free(rv_journal *j); /* gives the lease up if the run is not over; NULL is fine */
/** From now on it uses that handle of its store, and belongs to the thread of the handle. */
void rv_journal_move(rv_journal *j, rv_store *store);
const char *rv_journal_run(const rv_journal *j);
int64_t rv_journal_seq(const rv_journal *j);              /* of the last record */
bool rv_journal_is_kept(const rv_journal *j);             /* the run is in the store: at least its making is */
int64_t rv_journal_fence(const rv_journal *j);            /* of this owner; a later owner has a greater one */
int64_t rv_journal_lease_until_us(const rv_journal *j);   /* as far as this process knows */
const char *rv_journal_owner_before(const rv_journal *j); /* before rv_journal_open(); "" when it had none */
/** The run was taken from an owner that is not known to be dead: one of its calls may still be under way. */
bool rv_journal_owner_may_live(const rv_journal *j);
/** One step: what the core was told and what it wants done. Durable on return, or within the store's group. Adds the
 * run's status, stage and pending interrupts to its row; when it is finished, the lease ends. RV_E_STATE when the run
 * was taken over meanwhile: then nothing may be performed. */
RV_MUST_CHECK int rv_journal_step(rv_journal *j, const struct rv_event *ev, const struct rv_effects *effects,
                                  const rv_run *run, rv_err **err);
/* The same in parts, so that another thread may write: prepare and written on the journal's own thread; between them,
 * on whichever thread has the handle, write and, when that is durable, rest. What effects and run have must stay as it
 * is until written; ev need not. */
RV_MUST_CHECK int rv_journal_prepare(rv_journal *j, const struct rv_event *ev, const struct rv_effects *effects,
                                     const rv_run *run, rv_err **err);
/** Into any handle of the run's store; may be part of its group, and be repeated. */
RV_MUST_CHECK int rv_journal_write(const rv_journal *j, rv_store *store, rv_err **err);
void rv_journal_write_rest(rv_journal *j, rv_store *store); /* writes values that the journal is complete without */
/** Report the result of the write; returns rc. After a failure nothing more can be written. */
RV_MUST_CHECK int rv_journal_on_written(rv_journal *j, int rc, rv_err **err);
/** The last step was refused for what it was, so that nothing was written: another step may follow after all. */
void rv_journal_forgive(rv_journal *j);
/** The owner also answers the run's interrupts: a pause does not end the lease, rv_journal_free() does. */
void rv_journal_hold(rv_journal *j, bool holds);
/** The lease was extended until then (rv_store_renew() does it for all runs of an owner). */
void rv_journal_on_renewed(rv_journal *j, int64_t until_us);

/** The number of times that the run was taken over since a record other than a take-over was written: how many owners
 * in a row got no further. A present owner counts. */
RV_MUST_CHECK int rv_journal_count_takeovers(rv_store *store, const struct rv_store_scope *scope,
                                             const struct rv_run_row *row, int64_t *out, rv_err **err);

/* --- Conversations --- */
/** The messages of c's session up to c->upto_seq, by its rules, and their hash ("" and NULL: there are none); *out is
 * the caller's. Needed to begin a run with these messages. Where c->moments is NULL it becomes notes of the session's
 * moments (the caller's, too), which the messages begin with. */
RV_MUST_CHECK int rv_journal_read_history(rv_store *store, const struct rv_store_scope *scope,
                                          struct rv_conversation *c, json_object **out, char hash[RV_HASH_MAX],
                                          rv_err **err);
/** For another run of a conversation that was read from a journal: the same messages without those that were deleted
 * since. A run that is made now reads these again, and not the ones that an earlier run was told. */
RV_MUST_CHECK int rv_journal_tell_again(rv_store *store, const struct rv_store_scope *scope, struct rv_conversation *c,
                                        rv_err **err);

/* --- Questions --- */
struct rv_pendings {
    struct rv_pending *items; /* owned; its texts are borrowed from the envelope and from `bodies` */
    size_t n;
    rv_buf bodies;
};
/** The questions that an envelope waits for. stage: for those that name none. */
RV_MUST_CHECK int rv_pendings_build(const rv_envelope *env, const char *stage, struct rv_pendings *out, rv_err **err);
void rv_pendings_fini(struct rv_pendings *p);

/* --- Reading --- */
struct rv_replay_opts {
    const struct rv_pipeline *pipeline; /* of the run's bundle; borrowed, outlives the run that comes out */
    const struct rv_catalog *catalog;   /* borrowed, outlives the run, too */
    int64_t upto;                       /* last record to look at; 0: all */
    int64_t n_records;                  /* how many there are, if the caller owns the run; 0: the store is asked */
    bool without_events;                /* on_step is not shown the observable events: a fifth faster */
    bool from_snapshot;                 /* begin with the newest snapshot at or before upto, if there is one */
    /** After each step; borrowed for the call. ev NULL: the BEGIN record was read. A code ends the replay. May be NULL
     */
    int (*on_step)(void *self, const struct rv_record *record, const struct rv_event *ev,
                   const struct rv_effects *effects, const rv_run *run, rv_err **err);
    /** Before the run is made: how it began, borrowed for the call. A code ends the replay. May be NULL. */
    int (*on_begin)(void *self, const struct rv_journal_begin *begin, rv_err **err);
    void *self; /* borrowed for the call */
};
struct rv_replayed {
    rv_run *run; /* owned; positioned at the end of the journal; has not begun when the journal has no events */
    struct rv_journal_begin begin; /* run borrows begin.scripted */
    struct rv_effects open; /* CALL_* and ARM_TIMER effects whose answer is not in the journal, in order of asking; a
                               call's at_us says when it was journaled */
    int64_t seq;            /* of the last record */
    int64_t last_us;        /* latest time in the journal: the next event must not be older */
    int64_t n_events;
};
/** Feed the journal to a new run, performing nothing. Each STARTED record is compared with the call the core asks for.
 *  @return RV_E_STATE: the core now asks for something else than it did (names record, then and now): another engine
 *  or pipeline; RV_E_INVALID: damaged journal (names the record); RV_E_VERSION: a newer format; RV_E_NOT_FOUND;
 *  RV_E_NOMEM */
RV_MUST_CHECK int rv_journal_replay(rv_store *store, const struct rv_store_scope *scope, const char *run,
                                    const struct rv_replay_opts *opts, struct rv_replayed *out, rv_err **err);
void rv_replayed_fini(struct rv_replayed *r);
/* A replay that goes on while the run does. Used by one thread. */
typedef struct rv_follower rv_follower;
/** Replays what there is, as rv_journal_replay() with opts->upto 0. store, the texts of scope, and what opts points to
 * are borrowed for the follower's life. */
RV_MUST_CHECK int rv_journal_follow(rv_store *store, const struct rv_store_scope *scope, const char *run,
                                    const struct rv_replay_opts *opts, rv_follower **out, rv_err **err);
/** Feeds what was added since; 0 also when nothing was. After a failure it can only be freed. */
RV_MUST_CHECK int rv_follower_feed(rv_follower *f, rv_err **err);
const rv_run *rv_follower_run(const rv_follower *f); /* stands where the journal was read to; borrowed */
void rv_follower_free(rv_follower *f);
/** The BEGIN record alone. pipeline: to read the stage names by. */
RV_MUST_CHECK int rv_journal_read_begin(rv_store *store, const struct rv_store_scope *scope, const char *run,
                                        const struct rv_pipeline *pipeline, struct rv_journal_begin *out, rv_err **err);
/** One record as a line of JSON {seq, record, ...body, value?}: for people and `diff`. */
void rv_record_write_json(const struct rv_record *r, rv_jw *w);

/* Bundles: everything that decides what a run does, kept by the hash of its content.
 *
 * {reeve_bundle: 1, pipeline: {file, dir, text, models}, files: {path: text}, agents: {name: {place, text}}?, script:
 * {file, text}?, catalog: {tools, entries, prompts}, mcp: {server: {tools, resources?, prompts?}}?}. A run keeps the
 * bundle it was started with; changing a file makes another bundle. The same files and capabilities give the same
 * bytes. What ${env:} and ${file:} give is never in it, with one exception that decides a run: `models` says which
 * optional roles were left out (null), which provider and model a role got by them, and what a table of prices knew of
 * a model. */

typedef struct rv_bundle rv_bundle;

/* What it points to is borrowed for the call. */
struct rv_bundle_source {
    const struct rv_pipeline *pipeline;
    const struct rv_catalog *catalog;   /* tools, entries and prompts are asked for by the names below */
    const struct rv_known_names *names; /* of the capabilities; tools of the script are found by the script's */
    rv_script *script;                  /* NULL: none */
    const char
        *base; /* absolute path of the pipeline's folder, for another process that continues the run; NULL: as given */
    json_object *mcp; /* lists of the tools of MCP servers, as they were when the run began; borrowed; NULL: none */
};
/** Append the bundle's JSON text to out; hash (may be NULL) receives the name of the bundle. RV_E_NOMEM, RV_E_LIMIT
 * (too large), RV_E_STATE (the pipeline is not sound, or its agents are not bound), RV_E_INVALID (a path is not UTF-8).
 * After a failure out is unchanged. */
RV_MUST_CHECK int rv_bundle_write(const struct rv_bundle_source *from, rv_buf *out, char hash[RV_HASH_MAX],
                                  rv_err **err);

struct rv_bundle_opts {
    bool offline; /* for replay: a missing secret is not an error (it decides nothing), no file is read */
};
/** The pipeline and catalog as they were. No capability is loaded. RV_E_INVALID, RV_E_VERSION, RV_E_LIMIT; findings in
 * the pipeline's text (an engine that has become stricter) are RV_E_INVALID with the first one's text and place. */
RV_MUST_CHECK int rv_bundle_open(rv_str json, const struct rv_bundle_opts *opts, rv_bundle **out, rv_err **err);
void rv_bundle_free(rv_bundle *b);
const struct rv_pipeline *rv_bundle_pipeline(const rv_bundle *b);
struct rv_catalog rv_bundle_catalog(const rv_bundle *b); /* borrows b */
const char *rv_bundle_base(const rv_bundle *b);          /* the pipeline's folder, absolute; NULL: not kept */
json_object *rv_bundle_mcp(const rv_bundle *b);          /* borrowed; NULL: none */
rv_script *rv_bundle_script(rv_bundle *b);               /* borrowed, at its first entries; NULL: none */

/** Check whether a run that stands at `env` can go on with another pipeline. Its stages, active and completed ones,
 * interrupt and suspended work must exist there, and its bounds must not be passed. RV_E_STATE lists every reason why
 * not. */
RV_MUST_CHECK int rv_bundle_fits(const struct rv_pipeline *next, const rv_envelope *env, rv_err **err);

#endif
