/* Shared by the files planned*.c: a visit with `strategy: planned`. Its
 * model is asked for a plan (PLAN), the calls of the plan become the steps of the tool machine (EXECUTE), and the model
 * is asked for the answer (RESPOND). Included by tools_internal.h. */
#ifndef RV_PLANNED_INTERNAL_H
#define RV_PLANNED_INTERNAL_H

#include "coreengine/agent/agent_internal.h"
#include "coreengine/plan/plan.h"

enum planned_part {
    PLANNED_PLAN,
    PLANNED_EXECUTE,
    PLANNED_RESPOND,
    PLANNED_OVER, /* the answer is there */
};

struct planned {
    enum planned_part part;
    rv_plan_catalog *catalog; /* owned; NULL: not made yet */
    json_object *offered;     /* the planning tool as a request has it; owned; NULL: not made yet */
    char *brief;              /* what the model is told about planning; owned; NULL: not written yet */
    size_t brief_len;
    json_object *plan;        /* {reasoning, calls}: the last one that was accepted; owned; NULL: none */
    json_object *errors;      /* of the last one that was refused; owned; NULL: none, or another was accepted */
    char *refusal;            /* the same as text; owned */
    char *draft;              /* a direct answer that does not fit output_schema; owned; NULL: none */
    int64_t repairs, replans; /* repairs: of the plan at hand */
    json_object *steps;       /* of earlier plans, and of all once they are over: array; owned */
    json_object *results;     /* of these, in their order; owned */
    int64_t until_us;         /* EXECUTE: when its time is up */
    bool halted;              /* no further call of the plan begins */
    bool degraded;            /* the answer is made of the results: the model gave none */
    size_t turns_at;          /* the first of the messages that requests have as turns; those before it are for rows */
};

/* Members of a step of a plan, beside those of any step. */
#define PLANNED_TEMPLATE   "template"   /* its arguments as the plan has them */
#define PLANNED_NEEDS      "needs"      /* indices of the calls of the same plan that it needs */
#define PLANNED_ON_FAILURE "on_failure" /* "continue": its failure halts nothing */
/* Member of the entry of a step: its output, if that is not the object under "data". */
#define PLANNED_OUTPUT "output"
/* Member of the entry of a step: its artifact: {id, title, type}, and the content until it is told. */
#define PLANNED_ARTIFACT "artifact"
/* Status of the entry of a step that was not made, and why. */
#define PLANNED_SKIPPED "skipped"
#define PLANNED_REASON  "reason"

#define PLANNED_RESPONSE    "response"         /* member of the output: the answer */
#define PLANNED_MAX_MESSAGE ((size_t)16 << 20) /* of results, as a model reads them */

/* A text of an entry or of its error; "": it has none. Borrowed. */
static inline const char *planned_text(json_object *obj, const char *key)
{
    const char *text = "";

    return rv_json_get_text(obj, key, &text) ? text : "";
}
static inline bool planned_is_good(json_object *entry)
{
    return strcmp(planned_text(entry, "status"), "success") == 0;
}

/* --- planned.c: PLAN --- */
RV_MUST_CHECK int planned_new(struct planned **out, rv_err **err);
void planned_free(struct planned *p);
void planned_forget_brief(struct planned *p); /* what was told about planning does not hold any more */
/** Does a visit plan its tool calls? Older rules know only what a file says itself. */
static inline bool agent_stage_plans(const struct rv_visit_shared *shared, const struct rv_agent *a)
{
    return shared->rules < RV_RULES_5 ? a->planning.strategy == RV_STRATEGY_PLANNED : rv_plans(&a->planning);
}

/** Is a model told that a person refused its call? A stage that plans does so unless its file says otherwise. */
static inline bool agent_tells_model(const struct rv_visit_shared *shared, const struct rv_agent *a)
{
    return a->on_denied == RV_DENIED_TELL_MODEL && (a->on_denied_src.line > 0 || agent_stage_plans(shared, a));
}

/** The tools of the next request; NULL in *offered: none. */
RV_MUST_CHECK int planned_offer(rv_visit *v, json_object **offered, rv_err **err);
/** A reply of the model that neither failed nor was refused. calls: NULL when there are none. */
RV_MUST_CHECK int planned_take(rv_visit *v, const struct rv_event *ev, json_object *calls, struct rv_effects *out,
                               rv_err **err);
/* --- planned_steps.c: EXECUTE --- */
/** Make the step ready: its references become values. *entry: what it comes to instead, the caller's; NULL: it is
 *  ready. */
RV_MUST_CHECK int planned_prepare(rv_visit *v, size_t index, json_object **entry, rv_err **err);
/** The step will not be made; *entry is the caller's, NULL: it will, or it has to wait (*waits). */
RV_MUST_CHECK int planned_skip(const rv_visit *v, size_t index, bool *waits, json_object **entry, rv_err **err);
/** The entry of a step whose confirmation was denied, or could not be asked for. */
RV_MUST_CHECK int planned_deny(rv_visit *v, size_t index, const char *why, json_object **entry, rv_err **err);
/** The entry of a step whose outcome is unknown. */
RV_MUST_CHECK int planned_unknown(rv_visit *v, size_t index, int64_t ms, json_object **entry, rv_err **err);
/** A step has its entry, which is final. */
void planned_ended(rv_visit *v, size_t index, json_object *entry);
/** How many steps from the one at hand on may overlap; 0 or 1: none. */
size_t planned_overlap(const rv_visit *v);
/** Every step has its entry: another plan, or the answer. */
RV_MUST_CHECK int planned_executed(rv_visit *v, rv_err **err);

/* --- planned_call.c: what its calls differ in --- */
/** Has a call of that tool to be confirmed? */
bool planned_confirms(const rv_visit *v, const struct rv_tool_info *info);
/** Give the entry of a failed step its code. code NULL: it follows from the error and from whether the call was made.
 */
RV_MUST_CHECK int planned_set_code(const rv_visit *v, json_object *entry, const char *code, bool was_called,
                                   rv_err **err);
/** The same for an entry that another part made, of a call that was made if code is NULL; nothing where there is no
 * plan, and in runs of older rules. */
RV_MUST_CHECK int planned_code(const rv_visit *v, json_object *entry, const char *code, rv_err **err);
/** Read a result of `tools/call`: *standard is the caller's, *value is its output if that is not an object, *code of a
 * failure. */
RV_MUST_CHECK int planned_read_result(const struct rv_tool_info *info, json_object *raw, json_object **standard,
                                      json_object **value, const char **code, rv_err **err);
/** The output of a successful step, borrowed: NULL is null. */
json_object *planned_output_of(json_object *entry);

/* --- planned_artifact.c: what a call made for people --- */
/** Find the artifact of a call that has its entry. raw: the result; is_result: it has the form of `tools/call`. */
RV_MUST_CHECK int planned_find_artifact(rv_visit *v, size_t index, json_object *raw, bool is_result, json_object *entry,
                                        rv_err **err);
/** The entry is final: tell its artifact and keep it. */
RV_MUST_CHECK int planned_tell_artifact(rv_visit *v, size_t index, json_object *entry, int64_t call_id,
                                        struct rv_effects *out, rv_err **err);
/** A string, borrowed; NULL: the call made none. */
json_object *planned_artifact_id(json_object *entry);

/* --- planned_say.c: what its model is told --- */
/** The next request has this message behind the prompt, and none of those before. */
RV_MUST_CHECK int agent_planned_say(rv_visit *v, rv_str text, rv_err **err);
/** Append the results as a person reads them. */
RV_MUST_CHECK int planned_sum_up(const rv_visit *v, rv_buf *out, rv_err **err);
/** Append the results as a model reads them. */
RV_MUST_CHECK int planned_write_results(const rv_visit *v, rv_buf *out, rv_err **err);

/* --- planned_respond.c: RESPOND --- */
/** The answer in the output of a stage: what its model said last. Borrowed. */
static inline json_object *visit_answer(const rv_visit *v)
{
    json_object *response = NULL;

    if (!v->planned || !json_object_is_type(v->output, json_type_object) ||
        !json_object_object_get_ex(v->output, PLANNED_RESPONSE, &response))
        return v->output;
    return response;
}
/** Ask for the answer. */
RV_MUST_CHECK int planned_ask_response(rv_visit *v, rv_err **err);
/** v->output is the answer: the output is made around it. */
RV_MUST_CHECK int planned_end(rv_visit *v, rv_err **err);
/** That text is the answer. */
RV_MUST_CHECK int planned_answer(rv_visit *v, rv_str text, rv_err **err);
/** The visit has failed: is there an answer for want of one of the model? Then the visit goes on with that. */
RV_MUST_CHECK int planned_degrade(rv_visit *v, struct rv_effects *out, rv_err **err);

/* --- planned_keep.c: while it waits for a person --- */
RV_MUST_CHECK int agent_planned_keep(const rv_visit *v, json_object *kept, rv_err **err);
/** False: what was kept is not whole, and the stage begins again. */
RV_MUST_CHECK int planned_resume(rv_visit *v, json_object *kept, bool *is_whole, rv_err **err);

#endif
