/* Plans of models: a direct answer, or tool calls in the order in which they run. Everything in a reply is hostile
 * until it was read here: size, depth and number of calls have caps, and a plan that breaks a rule is an outcome that
 * the model is told about. */
#ifndef RV_PLAN_CALLS_H
#define RV_PLAN_CALLS_H

#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"

/* --- What can be wrong with a plan: found when it is read, when a string of its arguments is read, or when it is
 * checked. --- */

enum rv_plan_error_type {
    RV_PLAN_ERROR_NONE,
    RV_PLAN_ERROR_PLAN_MALFORMED,
    RV_PLAN_ERROR_EMPTY_PLAN,
    RV_PLAN_ERROR_TOO_MANY_CALLS,
    RV_PLAN_ERROR_TOO_MANY_REFERENCES,
    RV_PLAN_ERROR_UNKNOWN_TOOL,
    RV_PLAN_ERROR_AMBIGUOUS_TOOL,
    RV_PLAN_ERROR_INVALID_CALL_OPTION,
    RV_PLAN_ERROR_ARGUMENTS_NOT_OBJECT,
    RV_PLAN_ERROR_MISSING_REQUIRED_ARGUMENT,
    RV_PLAN_ERROR_UNKNOWN_ARGUMENT,
    RV_PLAN_ERROR_INVALID_ARGUMENT,
    RV_PLAN_ERROR_INVALID_TEMPLATE_SYNTAX,
    RV_PLAN_ERROR_EMBEDDED_REFERENCE,
    RV_PLAN_ERROR_SELF_REFERENCE,
    RV_PLAN_ERROR_INDEX_OUT_OF_BOUNDS,
    RV_PLAN_ERROR_FORWARD_REFERENCE,
    RV_PLAN_ERROR_NO_OUTPUT_SCHEMA,
    RV_PLAN_ERROR_FIELD_NOT_FOUND,
    RV_PLAN_ERROR_UNRESOLVED_REFERENCE,
    RV_PLAN_ERROR_TYPE_MISMATCH,
    RV_PLAN_N_ERRORS
};
/** "plan_malformed"; "" of RV_PLAN_ERROR_NONE. Static. */
const char *rv_plan_error_text(enum rv_plan_error_type type);

#define RV_PLAN_TOOL      "__planning__"    /* the tool that a planner calls once */
#define RV_PLAN_MAX_BYTES ((size_t)1 << 20) /* of one plan as text: a model writes it */
#define RV_PLAN_MAX_DEPTH 64                /* of one plan: the reader calls itself */
#define RV_PLAN_MAX_CALLS 16                /* unless the caller says otherwise: a model fills it */

/* A reply of the planner, borrowed. */
struct rv_plan_reply {
    rv_str text;
    json_object *calls; /* NULL, or a list of {name: string, arguments: object | string of JSON} in order */
    bool truncated;     /* it was cut at the limit of tokens */
};

struct rv_plan_call {
    rv_str tool;             /* borrowed from the plan */
    json_object *arguments;  /* owned, an object; NULL: the model gave something else */
    const char *actual_type; /* static; what the model gave instead of an object, else NULL */
    /* As the model gave them, borrowed from the plan; NULL: not given. rv_plan_validate() reads them. */
    json_object *after;      /* indices of calls that have to run before this one */
    json_object *on_failure; /* "halt", which is the default, or "continue"; borrowed */
    bool continues;          /* on_failure is "continue": only calls that need this one are skipped when it fails */
};

struct rv_plan {
    bool direct;                /* content is the answer; else calls are to run */
    rv_str content;             /* of a direct answer; borrowed from the plan */
    rv_str reasoning;           /* "" if none */
    struct rv_plan_call *calls; /* owned */
    size_t n_calls;
    bool duplicate_keys;           /* an object had two equal keys: the last one counts */
    enum rv_plan_error_type fault; /* PLAN_MALFORMED, EMPTY_PLAN, TOO_MANY_CALLS or NONE */
    const char *reason;        /* of PLAN_MALFORMED: json, type, missing_field, multiple, truncated, empty; static */
    char *detail;              /* owned; for people */
    size_t n_given, max_calls; /* of too_many_calls */
    json_object *root;         /* owned; what the texts above are borrowed from */
};

/** Read a reply. A bad plan is not a failure: out->fault says what is wrong, and none of its calls may run.
 *  @param max_calls 0: RV_PLAN_MAX_CALLS
 *  @param out filled in any case; rv_plan_fini() it. It copies nothing of reply->text that is plain text: that has to
 *         outlive it
 *  @return 0, RV_E_NOMEM */
RV_MUST_CHECK int rv_plan_parse(const struct rv_plan_reply *reply, size_t max_calls, struct rv_plan *out, rv_err **err);
void rv_plan_fini(struct rv_plan *plan);

/* --- References in the arguments of planned calls: "$0.output.items[0].id" as a whole string, "${0.output.id}" inside
 * one. A malformed reference is an error: it never reaches a tool as text. --- */

#define RV_PLAN_MAX_REFS 256 /* in the arguments of one call: a model fills it */

enum rv_plan_accessor_kind {
    RV_ACCESSOR_NAME,  /* .name: a key; of digits also a place in a list */
    RV_ACCESSOR_INDEX, /* [3]: a place in a list */
    RV_ACCESSOR_KEY,   /* ["a key"]: a key */
};
struct rv_plan_accessor {
    enum rv_plan_accessor_kind kind;
    rv_str key;                    /* of NAME and KEY; ends with NUL */
    size_t index;                  /* of INDEX, and of a NAME of digits; SIZE_MAX: none, or too large for any list */
    struct rv_plan_accessor *next; /* in the arena */
};

struct rv_plan_ref {
    size_t call;                   /* index of the call in the plan, at most 2^31 - 1 */
    struct rv_plan_accessor *path; /* in the arena */
};

struct rv_plan_piece {
    rv_str text;                   /* as it is, borrowed from the string; unless there is a ref */
    const struct rv_plan_ref *ref; /* NULL: text; in the arena */
    struct rv_plan_piece *next;    /* in the arena */
};

struct rv_plan_argument {
    enum rv_plan_error_type fault; /* INVALID_TEMPLATE_SYNTAX, EMBEDDED_REFERENCE, TOO_MANY_REFERENCES or NONE */
    bool whole;                    /* one reference and nothing else: the value keeps its type */
    size_t n_refs;
    struct rv_plan_piece *first; /* NULL: the empty string, or a fault; in the arena */
};

/** Read one string.
 *  @param arena owns what out points to
 *  @return 0 (also for a fault), RV_E_NOMEM */
RV_MUST_CHECK int rv_plan_argument_read(rv_str text, rv_arena *arena, struct rv_plan_argument *out, rv_err **err);

/* --- The arguments of a planned call, with its references replaced by the outputs of earlier calls. Each string is
 * read once: what an output holds is never read as a template. --- */

/* An earlier call. */
struct rv_plan_step_output {
    bool usable;        /* it succeeded */
    json_object *value; /* borrowed; NULL: null */
    /* Borrowed: the id of its artifact, which is found as artifact_id where the value has no such member. NULL: none */
    json_object *artifact_id; /* borrowed */
};

struct rv_plan_resolution {
    json_object
        *arguments;   /* owned, an object; it shares values with the outputs: read only. NULL: the call must not run */
    const char *code; /* static; why not: unresolved_reference, invalid_template_syntax, embedded_reference,
                         too_many_references, too_large */
    char *argument;   /* owned; where, like "list[0].id" */
    char *text;       /* owned; the string as the plan has it */
    char *reason;     /* owned; for people and models: what is missing, or how it is written */
};

/** Resolve the arguments of the call behind outputs[0..n).
 *  @param arguments an object of at most 64 levels
 *  @param out filled in any case; rv_plan_resolution_fini() it
 *  @return 0 (also when a reference has no value), RV_E_NOMEM */
RV_MUST_CHECK int rv_plan_resolve(json_object *arguments, const struct rv_plan_step_output *outputs, size_t n,
                                  struct rv_plan_resolution *out, rv_err **err);
/** The value that a reference has, borrowed.
 *  @param reason why it has none, for people and models
 *  @return whether it has one */
bool rv_plan_step_look_up(const struct rv_plan_step_output *outputs, size_t n, const struct rv_plan_ref *ref,
                          json_object **out, rv_buf *reason);
static inline void rv_plan_resolution_fini(struct rv_plan_resolution *r)
{
    json_object_put(r->arguments);
    free(r->argument);
    free(r->text);
    free(r->reason);
    memset(r, 0, sizeof *r);
}

/* --- Results of tools as text: for the model that goes on, for one that sums up, for people, and as the answer when no
 * model gives one. --- */

enum rv_plan_result_format {
    RV_RESULT_MODEL,     /* a line each, at most 500 bytes of text */
    RV_RESULT_SYNTHESIS, /* a section each with summary and details, at most 1,000 bytes of text */
    RV_RESULT_DISPLAY,   /* a numbered line each, at most 200 bytes of text */
    RV_RESULT_FALLBACK,  /* the whole texts of those that succeeded */
    RV_N_RESULT_FORMATS
};

struct rv_plan_result {
    rv_str tool;
    json_object *result; /* borrowed; of `tools/call`. What is not formed as one has no text */
};

/** Append the results.
 *  @param limit bytes of each text; 0: that of the format. A longer text ends with "...", at a whole character */
void rv_plan_results_write(enum rv_plan_result_format format, const struct rv_plan_result *results, size_t n,
                           size_t limit, rv_buf *out);

#endif
