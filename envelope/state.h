/* The envelope: the state that is passed from stage to stage of a pipeline.
 *
 * The input, an output object per stage, counters, bounds, the position, an interrupt, goals, retry context, an audit
 * trail. One writer at a time: the run that owns it. Stages side by side write to forks, which read through to their
 * parent; merging copies their changes back by a fixed table. No I/O, no clock: times and randomness are arguments.
 * Values are shared by reference and never changed in place: replace, do not edit. */
#ifndef RV_ENVELOPE_STATE_H
#define RV_ENVELOPE_STATE_H

#include "envelope/merge.h"
#include "envelope/questions.h"
#include "envelope/usage.h"

typedef struct rv_envelope rv_envelope;

#define RV_STAGE_START "start" /* current_stage of an envelope that never ran */
#define RV_STAGE_END   "end"   /* pseudo stage: reaching it stops the run */

/* Limits for parsing a state dict: it wraps values that were themselves within the limits of JSON input. */
#define RV_STATE_MAX_BYTES ((size_t)64 << 20)
#define RV_STATE_MAX_KEYS  64                      /* top-level ones: the format has fewer */
#define RV_STATE_MAX_DEPTH (RV_JSON_MAX_DEPTH + 8) /* levels: a value of RV_JSON_MAX_DEPTH in its place in a state */

/* Values that a caller may give; empty views and NULLs keep the defaults (generated ids, user "anonymous"). */
#define RV_ENVELOPE_NOBODY "anonymous"
struct rv_envelope_seed {
    rv_str raw_input, user_id, session_id, request_id;
    json_object *metadata;    /* borrowed object or NULL; copied */
    json_object *stage_order; /* borrowed array of strings or NULL; copied */
    rv_str envelope_id;       /* empty: a new one */
};
/** A fresh envelope. rand makes env_/req_/sess_ ids. RV_E_INVALID (input is not UTF-8), RV_E_NOMEM. */
RV_MUST_CHECK int rv_envelope_new(const struct rv_envelope_seed *seed, struct rv_rand rand, int64_t now_us,
                                  rv_envelope **out, rv_err **err);
/** A fresh envelope for work below env: the same user, session and request, and an envelope_id that follows from env's
 * and `name`. */
RV_MUST_CHECK int rv_envelope_derive(const rv_envelope *env, rv_str raw_input, rv_str name, int64_t now_us,
                                     rv_envelope **out, rv_err **err);
/** The envelope of such work as its state dict has it; as rv_envelope_load(). */
RV_MUST_CHECK int rv_envelope_restore(json_object *state, int64_t now_us, rv_envelope **out, rv_err **err);
void rv_envelope_free(rv_envelope *env);
/** Deep copy, same ids, nothing shared. Not for forks. */
RV_MUST_CHECK int rv_envelope_dup(const rv_envelope *env, rv_envelope **out, rv_err **err);

/* --- Plain fields: read here, changed only by the verbs below. Strings are borrowed until the next change. --- */
struct rv_envelope_fields {
    const char *envelope_id, *request_id, *user_id, *session_id;
    const char *raw_input; /* NUL-terminated; raw_input_len counts embedded NULs too */
    size_t raw_input_len;
    const char *current_stage;
    int64_t iteration, max_iterations;
    int64_t llm_call_count, max_llm_calls;
    int64_t agent_hop_count, max_agent_hops;
    int64_t current_stage_number, max_stages; /* of the goals, not of the pipeline */
    int64_t received_at_us, created_at_us;
    int64_t completed_at_us; /* 0: not completed */
    bool parallel_mode, terminated, interrupt_pending;
    enum rv_reason terminal_reason; /* RV_REASON_NONE: none */
    const char *termination_reason; /* text or NULL */
    enum rv_run_status status;      /* of the last run or resume; RV_RUN_READY at first */
    struct rv_usage usage;          /* of all model calls so far */
};
const struct rv_envelope_fields *rv_envelope_fields(const rv_envelope *env);
/** The asking user, for models and tools: NULL where no user was named, whatever the state has in that place. */
const char *rv_envelope_user(const rv_envelope *env);

RV_MUST_CHECK int rv_envelope_set_stage(rv_envelope *env, rv_str stage, rv_err **err); /* current_stage */
RV_MUST_CHECK int rv_envelope_set_stage_order(rv_envelope *env, const char *const *names, size_t n, rv_err **err);
json_object *rv_envelope_stage_order(const rv_envelope *env); /* array of strings, borrowed */
void rv_envelope_set_bounds(rv_envelope *env, int64_t max_iterations, int64_t max_llm_calls, int64_t max_agent_hops);
void rv_envelope_set_parallel(rv_envelope *env, bool parallel);
void rv_envelope_set_status(rv_envelope *env, enum rv_run_status status);

/* --- Outputs, metadata, state: maps from key to value. Getters borrow; *found (may be NULL) tells null from absent.
 * --- */
json_object *rv_envelope_output(const rv_envelope *env, rv_str key, bool *found);
/** Replace. Adds a reference to value (NULL stores null). */
RV_MUST_CHECK int rv_envelope_set_output(rv_envelope *env, rv_str key, json_object *value, rv_err **err);
/** Afterwards there is none of that key; it need not exist. RV_E_NOMEM. */
RV_MUST_CHECK int rv_envelope_remove_output(rv_envelope *env, rv_str key, rv_err **err);
size_t rv_envelope_n_outputs(const rv_envelope *env);
/** All outputs as one object, insertion order; *out is the caller's. Costs O(outputs): not for hot paths. */
RV_MUST_CHECK int rv_envelope_build_outputs(const rv_envelope *env, json_object **out, rv_err **err);
/** The same as JSON text: for hot paths, where the object is not wanted. */
void rv_envelope_write_outputs(const rv_envelope *env, rv_jw *w);
void rv_envelope_write_metadata(const rv_envelope *env, rv_jw *w);
void rv_envelope_write_state_values(const rv_envelope *env, rv_jw *w);
json_object *rv_envelope_metadata(const rv_envelope *env, rv_str key, bool *found);
RV_MUST_CHECK int rv_envelope_set_metadata(rv_envelope *env, rv_str key, json_object *value, rv_err **err);
RV_MUST_CHECK int rv_envelope_build_metadata(const rv_envelope *env, json_object **out,
                                             rv_err **err); /* a new object */
/* `state` gathers outputs across loops by the pipeline's state schema. */
json_object *rv_envelope_state_value(const rv_envelope *env, rv_str key, bool *found);
/** replace; append (creates the list, wraps an old non-list value); merge_dict (shallow, a non-object replaces). */
RV_MUST_CHECK int rv_envelope_merge_state(rv_envelope *env, rv_str key, enum rv_merge_mode mode, json_object *value,
                                          rv_err **err);
RV_MUST_CHECK int rv_envelope_build_state(const rv_envelope *env, json_object **out, rv_err **err); /* a new object */

/* --- Stage sets --- */
/** A stage is in one set at most, active, completed or failed: each of these moves it there. text: why it failed, kept
 *  as valid UTF-8. RV_E_INVALID: the name; RV_E_LIMIT: too many stages; RV_E_NOMEM. Nothing changes on failure. */
RV_MUST_CHECK int rv_envelope_start_stage(rv_envelope *env, rv_str stage, rv_err **err);
RV_MUST_CHECK int rv_envelope_complete_stage(rv_envelope *env, rv_str stage, rv_err **err);
RV_MUST_CHECK int rv_envelope_fail_stage(rv_envelope *env, rv_str stage, rv_str text, rv_err **err);
/** No longer active, neither completed nor failed: it waits to be visited again. */
RV_MUST_CHECK int rv_envelope_pause_stage(rv_envelope *env, rv_str stage, rv_err **err);
bool rv_envelope_is_completed(const rv_envelope *env, rv_str stage);
bool rv_envelope_is_failed(const rv_envelope *env, rv_str stage);
bool rv_envelope_has_all_completed(const rv_envelope *env); /* every stage of stage_order; false when that is empty */

/* --- History and errors --- */
/** Append a running record and count one hop. */
RV_MUST_CHECK int rv_envelope_record_start(rv_envelope *env, rv_str agent, int64_t stage_order, int64_t now_us,
                                           rv_err **err);
/** The same for an element of a list that a visit of the agent works through: it counts a hop, not a visit. */
RV_MUST_CHECK int rv_envelope_record_part(rv_envelope *env, rv_str agent, int64_t stage_order, int64_t now_us,
                                          rv_err **err);
struct rv_record_end {
    enum rv_history_status status;
    rv_str error; /* ptr NULL: none */
    int64_t llm_calls;
    int64_t duration_ms; /* > 0, or 0: now minus started */
};
/** Fill in the last running record of that agent; llm_call_count grows in every case. */
RV_MUST_CHECK int rv_envelope_record_complete(rv_envelope *env, rv_str agent, const struct rv_record_end *end,
                                              int64_t now_us, rv_err **err);
/** A record `skipped` for a stage that never ran: no hop. */
RV_MUST_CHECK int rv_envelope_record_skipped(rv_envelope *env, rv_str agent, int64_t stage_order, int64_t now_us,
                                             rv_err **err);
size_t rv_envelope_n_records(const rv_envelope *env);
/** The stage of the i-th record where that says `skipped`, else ptr NULL; borrowed. */
rv_str rv_envelope_skipped_at(const rv_envelope *env, size_t i);
int64_t rv_envelope_processing_ms(const rv_envelope *env); /* sum over the history, with that of kept branches */
struct rv_error_entry {
    rv_str agent, text;     /* borrowed */
    const char *error_type; /* borrowed */
    enum rv_failure code;   /* NONE: not written */
};
/** Append {agent, error, error_type, code?, timestamp} to errors. */
RV_MUST_CHECK int rv_envelope_add_error(rv_envelope *env, const struct rv_error_entry *entry, int64_t now_us,
                                        rv_err **err);
size_t rv_envelope_n_errors(const rv_envelope *env);
/** The code of the error that terminated the run; NONE: no error did, or a bound of the run, which the terminal reason
 * names, or the run has no codes. *stage (may be NULL): whose error, or where a bound was met, else NULL; borrowed. */
enum rv_failure rv_envelope_failure(const rv_envelope *env, const char **stage);

/** Counts a model call's usage. */
void rv_envelope_add_usage(rv_envelope *env, const struct rv_usage *usage);

/* --- Visits and edges, kept across resumes --- */
int64_t rv_envelope_visits(const rv_envelope *env, rv_str stage); /* counted by record_start */
int64_t rv_envelope_passages(const rv_envelope *env, rv_str from, rv_str to);
/** Count one more passage; *out_count, which may be NULL, is how many there are then. RV_E_INVALID, RV_E_LIMIT,
 *  RV_E_NOMEM: nothing was counted. */
RV_MUST_CHECK int rv_envelope_note_passage(rv_envelope *env, rv_str from, rv_str to, int64_t *out_count, rv_err **err);

/* --- Bounds and termination --- */
/** In this order: terminated, interrupt pending, iteration > max, llm calls >= max, hops >= max. *reason (may be NULL)
 * is RV_REASON_NONE for the first two. count_llm false leaves the fourth test out (the next stage calls no model). */
bool rv_envelope_can_continue(const rv_envelope *env, bool count_llm, enum rv_reason *reason);
struct rv_envelope_left { /* max minus count, never below 0 */
    int64_t iterations, llm_calls, hops;
};
struct rv_envelope_left rv_envelope_left(const rv_envelope *env);
/** The first termination wins; a later one changes nothing. reason may be RV_REASON_NONE. */
RV_MUST_CHECK int rv_envelope_terminate(rv_envelope *env, rv_str text, enum rv_reason reason, int64_t now_us,
                                        rv_err **err);
/** For a new run from its first stage: the stage is `start` again; stage sets, suspended work, the termination and the
 * interrupts that wait are gone. Outputs, metadata, history, errors, goals and counters stay. Not for a fork. */
RV_MUST_CHECK int rv_envelope_restart(rv_envelope *env, rv_err **err);
/** The end was reached: terminal_reason completed, completed_at now, terminated stays false. */
void rv_envelope_complete(rv_envelope *env, int64_t now_us);

/* --- Interrupts --- */
struct rv_interrupt_spec {
    enum rv_interrupt_kind kind;
    rv_str id;         /* required */
    rv_str question;   /* ptr NULL: none */
    rv_str message;    /* ptr NULL: none */
    json_object *data; /* borrowed object or NULL; a reference is added */
    int64_t ttl_us;    /* > 0: expires after that; 0: never; < 0: the kind's own time to live */
    rv_str stage;      /* that raised it, when others run beside it; ptr NULL: the current one */
    bool replace;      /* else raising over a pending one is RV_E_STATE */
};
/** Ask: the run waits until it is resolved. Texts are copied, data gets a reference. RV_E_INVALID (kind, id, data, a
 *  text), RV_E_STATE (one is pending and replace is false), RV_E_NOMEM; nothing changed then. */
RV_MUST_CHECK int rv_envelope_raise(rv_envelope *env, const struct rv_interrupt_spec *spec, int64_t now_us,
                                    rv_err **err);
/** Store the answer, stamped. Checks nothing but that an interrupt exists: pending becomes false either way. */
RV_MUST_CHECK int rv_envelope_resolve(rv_envelope *env, const struct rv_response *response, int64_t now_us,
                                      rv_err **err);
/** Check whether this answer may be accepted now. RV_E_STATE (nothing pending, or answered already), RV_E_NOT_FOUND (no
 *  interrupt of that id waits; lists those that do), RV_E_TIMEOUT (expired), RV_E_INVALID (the kind needs a field that
 *  is missing, or the decision is not a word of its list). Changes nothing. */
RV_MUST_CHECK int rv_envelope_check_response(const rv_envelope *env, const struct rv_response *response, int64_t now_us,
                                             rv_err **err);
/* Interrupts of stages that ran side by side wait in metadata.queued_interrupts behind the pending one. */
/** Make the one of that id the pending one; the pending one takes its place in the queue. id ptr NULL: nothing to do.
 *  RV_E_NOT_FOUND. */
RV_MUST_CHECK int rv_envelope_select_interrupt(rv_envelope *env, rv_str id, rv_err **err);
/** Make the first of the queue the pending one; its time to live begins now. *promoted false: the queue is empty. */
RV_MUST_CHECK int rv_envelope_promote_interrupt(rv_envelope *env, int64_t now_us, bool *promoted, rv_err **err);
size_t rv_envelope_n_queued(const rv_envelope *env);
/** The i-th interrupt of the queue: an object like the state dict's `interrupt`, with `stage`; borrowed. NULL: the
 * entry is not an object. */
json_object *rv_envelope_queued_at(const rv_envelope *env, size_t i);
/** The data of the interrupt that waits with that id; id ptr NULL: the pending one. Borrowed; NULL: there is none. */
json_object *rv_envelope_question_data(const rv_envelope *env, rv_str id, enum rv_interrupt_kind *kind);
/** The stage whose question waits with that id (ptr NULL: the pending one): as the question says, else as its data
 * says, else, of the pending one, asked_by. Borrowed; NULL: unknown. */
const char *rv_envelope_asker(const rv_envelope *env, rv_str id, const char *asked_by);
/** Tells whether the answer may change the arguments of a call: a confirmation that a tool stage raised for a tool. */
bool rv_interrupt_is_tool_call(enum rv_interrupt_kind kind, json_object *data);
/** The id and the time of the question with choices that has expired first; false: none has. id is borrowed. */
bool rv_envelope_find_due_ask(const rv_envelope *env, int64_t now_us, rv_str *id, int64_t *expired_us);
/** When the next such question expires; 0: none does. */
int64_t rv_envelope_next_expiry(const rv_envelope *env);
/* Questions that were withdrawn, as their branch was cancelled or their run ended: a later answer is told so. */
bool rv_envelope_was_withdrawn(const rv_envelope *env, rv_str id);
/** ids: a list of strings, borrowed; NULL: none. */
RV_MUST_CHECK int rv_envelope_add_withdrawn(rv_envelope *env, json_object *ids, rv_err **err);
void rv_envelope_clear_interrupt(rv_envelope *env);
bool rv_envelope_has_interrupt(const rv_envelope *env); /* pending and an object exists */
struct rv_interrupt {                                   /* borrowed view of the stored one, resolved or not */
    bool exists;
    enum rv_interrupt_kind kind;
    const char *id, *question, *message;  /* NULL: none */
    const char *stage;                    /* that raised it; NULL: the current one */
    const char *path;                     /* of its branch; NULL: the main branch */
    json_object *data, *response;         /* borrowed; response NULL until resolved */
    int64_t created_at_us, expires_at_us; /* 0: never */
};
struct rv_interrupt rv_envelope_interrupt(const rv_envelope *env);

/* What a stage failed with, per stage that handles it, until the handler's visit is over: {stage, code, text, attempt}.
 * A fork has its own. */
json_object *rv_envelope_caught(const rv_envelope *env, rv_str handler);
/** Borrows value; NULL removes it. */
RV_MUST_CHECK int rv_envelope_set_caught(rv_envelope *env, rv_str handler, json_object *value, rv_err **err);
/* Work that a stage had done when it was suspended (results so far, attempts), per stage; opaque here. */
json_object *rv_envelope_suspended(const rv_envelope *env, rv_str stage);
/** value NULL removes; else adds a reference. */
RV_MUST_CHECK int rv_envelope_set_suspended(rv_envelope *env, rv_str stage, json_object *value, rv_err **err);

/* --- JSON --- */
/* Where the final response is looked for; borrowed; NULL members: outputs.integration.final_response. */
struct rv_response_place {
    const char *output_key, *field;
};
/** Tells whether a person ended the run with a refusal (denied confirmation, rejected review). The refused output does
 * not count as the run's answer. */
bool rv_envelope_was_denied(const rv_envelope *env);
/** Rule 3.9; borrowed; false: none. */
bool rv_envelope_find_final_response(const rv_envelope *env, const struct rv_response_place *place, rv_str *out);
/** Result dict (rule 3.10), appended to b. */
void rv_envelope_write_result(const rv_envelope *env, const struct rv_response_place *place, rv_buf *b);
/** State dict (rule 3.11, version 1), appended to b; load(dump(x)) = x. */
void rv_envelope_write_state(const rv_envelope *env, rv_buf *b);
/** The same without keys whose value is what their absence means: empty, null, false or 0. For what is kept often. */
void rv_envelope_write_lean_state(const rv_envelope *env, rv_buf *b);
/** The keys of a state dict, for messages about one that is unknown; the names are static. Returns their number. */
size_t rv_envelope_collect_state_keys(const char *keys[RV_STATE_MAX_KEYS]);
/** A fresh envelope whose present keys are overwritten; unknown keys are ignored; a wrong type or a newer
 *  state_version is an error that names the key. json is borrowed. */
RV_MUST_CHECK int rv_envelope_load(json_object *state, struct rv_rand rand, int64_t now_us, rv_envelope **out,
                                   rv_err **err);
/** Apply a partial state to an existing envelope or fork by the same rule, except that outputs, metadata and state
 * merge key by key (this is how a hook "returns an envelope"). Identity (envelope_id, request_id, user_id, session_id),
 * history and counters cannot be changed this way: RV_E_INVALID. On failure env is unchanged. */
RV_MUST_CHECK int rv_envelope_patch(rv_envelope *env, json_object *partial, rv_err **err);

#endif
