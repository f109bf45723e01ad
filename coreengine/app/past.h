/* Runs of a store, read again: replayed from their journals, performing nothing. Its steps and calls, the state behind
 * a step, and records of two runs made comparable. */
#ifndef RV_APP_PAST_H
#define RV_APP_PAST_H

#include "coreengine/app/workspace.h"

#define RV_APP_MAX_TEXT ((size_t)256 << 20) /* of what is told of one run: it is made in memory */

/* --- past.c: one run with what it was started with --- */
struct rv_app_past {
    struct rv_store_scope scope; /* it was found in; borrowed */
    struct rv_run_row row;
    rv_bundle *bundle; /* opened offline: no capability is loaded; owned */
    struct rv_catalog catalog;
};
/** word as rv_app_find_run() takes it. */
RV_MUST_CHECK int rv_app_past_open(rv_store *store, const struct rv_store_scope *scope, const char *word,
                                   struct rv_app_past *out, rv_err **err);
void rv_app_past_fini(struct rv_app_past *p);
const struct rv_pipeline *rv_app_past_pipeline(const struct rv_app_past *p);
typedef int (*rv_app_on_step)(void *self, const struct rv_record *record, const struct rv_event *ev,
                              const struct rv_effects *effects, const rv_run *run, rv_err **err);
struct rv_app_replay_opts {
    int64_t upto;           /* record; 0: all */
    rv_app_on_step on_step; /* may be NULL */
    void *self;             /* its first argument; borrowed */
};
/** Replay its journal. opts NULL: to the end, without a listener. */
RV_MUST_CHECK int rv_app_past_replay(rv_store *store, const struct rv_app_past *p,
                                     const struct rv_app_replay_opts *opts, struct rv_replayed *out, rv_err **err);

/* The position in the run's script while its journal is replayed. */
struct rv_app_script {
    rv_script *script;                  /* of the past's bundle; borrowed; NULL: the run has none */
    const struct rv_pipeline *pipeline; /* of the past's bundle; borrowed */
    struct rv_journal_begin begin;      /* of the run */
};
/** Where it stood when the run began. */
RV_MUST_CHECK int rv_app_script_open(rv_store *store, const struct rv_app_past *p, struct rv_app_script *out,
                                     rv_err **err);
/** An event of the journal that changes the position: an answer that the script gave. RV_E_NOMEM. */
RV_MUST_CHECK int rv_app_script_pass_event(struct rv_app_script *s, const struct rv_event *ev, const rv_run *run,
                                           rv_err **err);
/** The same for an effect: a call that the script answers. what rv_engine_pass_script() says. */
RV_MUST_CHECK int rv_app_script_pass_effect(struct rv_app_script *s, const struct rv_effect *e, rv_err **err);
/** As struct rv_journal_begin has it; yours. */
RV_MUST_CHECK int rv_app_script_build_position(const struct rv_app_script *s, json_object **out, rv_err **err);
void rv_app_script_fini(struct rv_app_script *s);

/* The kind of owner that a run has. */
enum rv_app_owner {
    RV_APP_OWNER_NONE,  /* the run has no owner */
    RV_APP_OWNER_LIVES, /* as far as its lease tells */
    RV_APP_OWNER_LATE,  /* its lease has ended */
    RV_APP_OWNER_DEAD,  /* a process of this machine that is gone */
    RV_N_APP_OWNERS
};
enum rv_app_owner rv_app_owner_of(const struct rv_run_row *row, int64_t now_us);
int64_t rv_app_now_us(void);

/* --- steps.c: the visits of a run, and their calls --- */
struct rv_app_spent {             /* what one model call took */
    bool is_told;                 /* the provider reported its tokens */
    struct rv_usage usage;        /* calls is 1 */
    int64_t latency_ms, first_ms; /* until the first piece; 0: not measured */
};
/** Read from the members of an llm_result event. */
void rv_app_spent_read(json_object *result, struct rv_app_spent *out);
/** A line of the event stream; it has whole outputs, so the limits are those of a state. */
RV_MUST_CHECK int rv_app_read_event(rv_str line, json_object **out, rv_err **err);

#define RV_APP_CALL_ENDS(X)                                                                                            \
    X(STARTED, "started") X(FINISHED, "finished") X(FAILED, "failed") X(UNKNOWN, "unknown") X(CANCELLED, "cancelled")
#define RV_APP_CALL_CONST(n, t) RV_APP_CALL_##n,
enum rv_app_call_end { RV_APP_CALL_ENDS(RV_APP_CALL_CONST) };
const char *rv_app_call_end_text(enum rv_app_call_end end);

#define RV_APP_NO_CALL SIZE_MAX
struct rv_app_call {
    int64_t id, attempt, begun_us, ended_us;
    enum rv_effect_kind kind; /* CALL_LLM, CALL_TOOL, CALL_HOOK */
    enum rv_name_kind entry;  /* CALL_HOOK */
    char *name;               /* owned */
    int effect_class;         /* CALL_TOOL */
    enum rv_app_call_end end;
    size_t next;    /* index of the next call of its visit; RV_APP_NO_CALL: none */
    char *step_id;  /* CALL_TOOL, as the model named it; owned; NULL: not told */
    char *asked;    /* the agent that works on it; owned; NULL: not a call of ask_agent, or the agent did not begin */
    char *agent;    /* that made it, if one was asked; owned; NULL: the stage */
    size_t asker;   /* index of the call by which that agent was asked; RV_APP_NO_CALL: none */
    char *muted;    /* CALL_LLM: words that people were not shown; owned; NULL: none */
    bool has_spent; /* CALL_LLM: it came back */
    struct rv_app_spent spent; /* valid when has_spent */
};
struct rv_app_step {
    int64_t number; /* what `fork --at` takes; 0: it has not ended */
    int stage;
    char *path;    /* of its branch, element or inner run, as in events; owned; NULL: the main branch */
    char *label;   /* of a stage of an inner run: "sub/inner"; owned; NULL: the name of `stage` */
    int64_t index; /* of the element of a list; -1: not in a list */
    int64_t visit, begun_us, ended_us, seq; /* seq: of the record that ended it */
    size_t first_call, last_call;           /* RV_APP_NO_CALL: none */
    bool asks;                              /* the run stays there until a person has answered */
    bool can_fork;                          /* a state was saved right behind it */
    char *line;                             /* its stage_completed event, not read yet; owned */
    json_object *end;                       /* the same, read; NULL: under way, or left out; owned */
    bool is_left_out;                       /* the window is elsewhere */
};
/* Which steps are wanted, by their numbers; those under way are always. */
struct rv_app_window {
    bool all;
    int64_t first, last; /* so many from the beginning and the end */
    int64_t from, to;    /* and these */
};
struct rv_app_steps {
    struct rv_app_step *items; /* owned */
    size_t n, cap;
    struct rv_app_call *calls; /* in order of asking; owned */
    size_t n_calls, cap_calls;
    int64_t n_ended;
    struct rv_app_window window;
    size_t dropped_to; /* index: what ended before it and is not wanted has been left out */
    int64_t n_left_out;
    size_t batch_left; /* stages of the batch under way that have not ended */
};
/** Read a run's steps; of those outside the window little is kept. Gives what the replay gave, too. */
RV_MUST_CHECK int rv_app_steps_read(rv_store *store, const struct rv_app_past *p, const struct rv_app_window *window,
                                    struct rv_app_steps *out, struct rv_replayed *replayed, rv_err **err);
void rv_app_steps_fini(struct rv_app_steps *s);

/* --- interrupts.c: runs that wait with a question of a stage that no one answered in time: they go on by that --- */
struct rv_app_due {
    int64_t now_us;
    char **runs; /* owned, each once */
    size_t n, cap;
    rv_index found; /* the runs */
};
/** run NULL: of all runs of the scope. */
RV_MUST_CHECK int rv_app_find_due(rv_store *store, const struct rv_store_scope *scope, const char *run, int64_t now_us,
                                  struct rv_app_due *out, rv_err **err);
void rv_app_due_fini(struct rv_app_due *d);

/* --- diff.c: where two runs part --- */
/** Where two trees differ first, as a path ("value.outputs.plan"), and what stands there. False: they are equal. */
struct rv_difference {
    rv_buf path;
    json_object *a, *b; /* borrowed; NULL: JSON null, or absent */
    bool a_absent, b_absent;
};

#define RV_APP_DIFF_CONTEXT 2 /* equal records that are shown before the first difference */
/* One run, record by record. */
struct rv_app_side {
    struct rv_run_row row;
    struct rv_normal *normal; /* the ids that the run has named so far; owned */
    int64_t seq;              /* of the record at hand; above n_records: the end was passed */
    rv_buf line;              /* it as JSON */
    json_object *tree;        /* it, made comparable unless --exact; owned */
};

struct rv_app_comparison {
    rv_store *store; /* borrowed */
    struct rv_store_scope scope;
    bool exact;
    struct rv_app_side a, b;
    int64_t n_same;
    char *context[RV_APP_DIFF_CONTEXT]; /* the last equal ones; owned */
    bool same, same_bundle;
    struct rv_difference at;
    rv_buf bundle; /* what differs between the bundles, a name a line */
};
bool rv_app_is_at_end(const struct rv_app_side *s);
/** words as rv_app_find_run() takes them. exact: bytes are compared, ids, times and owners count. Finish out on
 * failure, too. */
RV_MUST_CHECK int rv_app_diff(rv_store *store, const struct rv_store_scope *scope, const char *const words[2],
                              bool exact, struct rv_app_comparison *out, rv_err **err);
void rv_app_comparison_write(const struct rv_app_comparison *c, rv_jw *w); /* an object: `reeve diff --json` */
void rv_app_comparison_fini(struct rv_app_comparison *c);

/* --- story.c: what a run did, as lines --- */
/** Append its input, route, visits, requests to models and their answers, calls of tools, outputs and costs, without
 * ids and moments, so that two runs can be compared line by line. */
RV_MUST_CHECK int rv_app_transcript_write(rv_store *store, const struct rv_app_past *p, rv_buf *b, rv_err **err);

/* --- verdict.c: a run again from its journal alone --- */
struct rv_app_verified {
    int64_t records, n_events, n_open; /* n_open: calls without an end */
    enum rv_run_status status;
    char events_hash[RV_HASH_MAX], state_hash[RV_HASH_MAX];
    char other_engine[32]; /* version that ended the run with another state, perhaps by its wording; "": the same */
};
struct rv_app_verify_opts {
    int64_t upto;                              /* record; 0: all */
    void (*on_event)(void *self, rv_str line); /* gets each event; may be NULL */
    void *self;                                /* borrowed */
};
/** Replay it and compare it with what is kept: an error says where it differs. opts NULL: all. Finish replayed at 0. */
RV_MUST_CHECK int rv_app_verify(rv_store *store, const struct rv_app_past *p, const struct rv_app_verify_opts *opts,
                                struct rv_app_verified *out, struct rv_replayed *replayed, rv_err **err);
/** Does it say how the run differs, or that its journal is damaged? Else it could not be read: nothing is known. */
bool rv_app_is_difference(const rv_err *fault);
/** An object: `reeve replay --json`. fault: why it is not identical; NULL: it is. */
void rv_app_verified_write(const struct rv_app_past *p, const struct rv_app_verified *v, const rv_err *fault, rv_jw *w);

/* --- questions.c: which question of a run an answer means --- */
struct rv_app_question {
    char id[RV_STORE_MAX_ID + 1];
    enum rv_interrupt_kind kind;
    json_object *data; /* of the interrupt; owned; NULL: none */
    rv_buf text;       /* what is asked */
    int64_t expires_us;
    size_t n;                     /* questions that the run waits with */
    bool is_damaged, is_given_up; /* its data cannot be read; the run is to be cancelled: it takes no answer */
};
/** wanted: its id, which may also be one of a run that takes the answer to another of its questions; ptr NULL: the only
 *  one. Finish out on failure, too. RV_E_STATE: the run does not wait, or that question was answered; RV_E_NOT_FOUND:
 * it has no such question; RV_E_INVALID: it has several; RV_E_TIMEOUT: the question has expired. */
RV_MUST_CHECK int rv_app_find_question(rv_store *store, const struct rv_store_scope *scope,
                                       const struct rv_run_row *row, rv_str wanted, struct rv_app_question *out,
                                       rv_err **err);
/** Does the answer fit the question, with its form if it has one? RV_E_INVALID; RV_E_STATE: its run is given up. */
RV_MUST_CHECK int rv_app_check_answer(const struct rv_app_question *q, const struct rv_response *r, rv_err **err);
/** The arguments that an answer changes, by the schema of their tool as the run knows it: what does not fit is refused
 *  before the answer is queued. RV_E_INVALID. */
RV_MUST_CHECK int rv_app_check_arguments(rv_store *store, const struct rv_store_scope *scope,
                                         const struct rv_run_row *row, const struct rv_app_question *q,
                                         const struct rv_response *r, rv_err **err);
void rv_app_question_fini(struct rv_app_question *q);
/** Has no one answered that question in time, so that its run goes on without an answer when it is opened? */
RV_MUST_CHECK int rv_app_is_due(const struct rv_pending *p, int64_t now_us, bool *out, rv_err **err);
/** Does the response have what that kind of question needs? */
bool rv_app_answers(enum rv_interrupt_kind kind, json_object *data, const struct rv_response *response);

/* --- list.c: the runs of a store. Texts are borrowed from the list --- */
struct rv_app_listed {
    const char *id, *pipeline, *session, *user, *bundle, *parent, *stage, *owner; /* NULL as in the row */
    struct rv_run_row row;           /* its numbers; the texts are those above */
    size_t first_waiting, n_pending; /* those of `waiting` that are its own */
    int64_t crashes;                 /* processes that took the run over and ended without making a step */
};
struct rv_app_waiting {
    size_t entry, nth;   /* nth: as the store gave them, the oldest first */
    struct rv_pending p; /* texts in the arena */
};
struct rv_app_runs {
    rv_arena *arena; /* owned; dies with the list */
    rv_index by_id;
    struct rv_app_listed *items; /* in the arena */
    size_t n, max;
    struct rv_app_waiting *waiting; /* in the arena */
    size_t n_waiting, max_waiting;
    bool more; /* than the limit */
};
/** With filter.limit the newest ones, and out->more tells whether there are others. RV_E_LIMIT: too many at once. */
RV_MUST_CHECK int rv_app_runs_find(rv_store *store, const struct rv_store_scope *scope, struct rv_run_filter filter,
                                   struct rv_app_runs *out, rv_err **err);
void rv_app_runs_write(const struct rv_app_runs *l, rv_jw *w); /* an array of objects: `reeve runs --json` */
void rv_app_runs_fini(struct rv_app_runs *l);

/* --- fork.c: another run, from the state behind a step --- */
struct rv_app_fork {
    int64_t step; /* its number in struct rv_app_step; 0: the beginning */
    /** Change the state before the new run gets it; may be NULL. */
    int (*change)(void *self, json_object *state, rv_err **err);
    void *self;         /* borrowed for the call */
    char id[RV_ID_MAX]; /* out: of the new run */
};
/** The new run is kept in the store; rv_app_continue() with RV_APP_RECOVER runs it. RV_E_NOT_FOUND: there is no such
 *  step; RV_E_STATE: other stages of its batch or its group were still running; RV_E_DENIED: the changed state is
 * another user's; RV_E_QUOTA: its user may begin no run now. */
RV_MUST_CHECK int rv_app_fork(const struct rv_app *app, rv_store *store, const char *word, struct rv_app_fork *fork,
                              rv_err **err);
/** Check that a state with that user_id belongs to the user of the scope. RV_E_DENIED: it does not. */
RV_MUST_CHECK int rv_app_check_user(const struct rv_store_scope *scope, const char *user_id, rv_err **err);

/* --- rows.c: one run as JSON --- */
struct rv_app_queued; /* work.h */
struct rv_app_view {  /* all borrowed */
    const struct rv_app_past *past;
    const struct rv_app_steps *steps;
    const struct rv_replayed *replayed;
    json_object *pending;               /* array of the interrupts that it waits for */
    const struct rv_app_queued *queued; /* its task; NULL: it is not queued */
    rv_str artifacts;                   /* JSON text: an array; ptr NULL: it has none */
    int64_t now_us;
};
/** An object, appended: `reeve runs show --json`. */
void rv_app_view_write(const struct rv_app_view *v, rv_buf *b);
const char *rv_app_owner_text(enum rv_app_owner owner);    /* "alive" */
const char *rv_app_call_kind(const struct rv_app_call *c); /* "model", "tool", "hook", ... */

/* --- timeline.c: the same for pictures, as objects --- */
/** When its steps and their calls were, in milliseconds since the run was made, and what they took. */
void rv_app_timeline_write(const struct rv_app_view *v, rv_jw *w);
/** An object: the drawing of its pipeline, the state of each stage ("pending", "running", "waits", "completed",
 * "failed", "skipped", "cancelled"), the moves from stage to stage, and the number of the event that comes next. */
RV_MUST_CHECK int rv_app_progress_write(const struct rv_app_view *v, rv_jw *w, rv_err **err);

#endif
