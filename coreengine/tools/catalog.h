/* Tools as data and rules: definitions, who may call what, schema validation, results, health. Pure: no I/O, no clock.
 *
 * Also the catalog: how the pure core sees what capabilities and scripts offer. */
#ifndef RV_TOOLS_CATALOG_H
#define RV_TOOLS_CATALOG_H

#include "config/config.h"

#define RV_TOOL_DEFAULT_CONFIDENCE 0.9 /* of evidence that states none */

/* --- JSON Schema ------------------------------------------------------------------------------------------------
 * Draft 2020-12 and what older drafts wrote in another way, within one document; docs/reference/schemas.md lists the
 * keywords. An unknown keyword is an error at compile: nothing is silently not checked. Keywords beside a $ref count.
 * Patterns are those of coreengine/lang/lang.h; the steps of a check bound them all together. A string has to be of
 * its format if that is date-time, date, time (RFC 3339), duration (ISO 8601, whole numbers), email, hostname, ipv4,
 * ipv6, uri, uri-reference (RFC 3986) or uuid; any other format is a note. A compiled schema is constant: any thread
 * may check with it, one thread (the document's) frees it. */
typedef struct rv_schema rv_schema;
/** schema: an object, true or false; a reference is kept. `what` names it in messages. RV_E_INVALID with a JSON
 * pointer. */
RV_MUST_CHECK int rv_schema_compile(json_object *schema, const char *what, rv_schema **out, rv_err **err);
/** The same of a schema that another program declares: an unknown keyword is a note, and a reference that leads out of
 * the document, to no schema or back to itself accepts anything. */
RV_MUST_CHECK int rv_schema_compile_foreign(json_object *schema, const char *what, rv_schema **out, rv_err **err);
void rv_schema_free(rv_schema *s);
/** Validate. RV_E_INVALID: the text lists every fault (at most 20) with its JSON pointer, what was found and what is
 * legal. */
RV_MUST_CHECK int rv_schema_check(const rv_schema *s, json_object *value, rv_err **err);
/* One fault of a value, for callers that do not want them as one text. What it points to is borrowed for the call that
 * gets it. */
struct rv_schema_step {
    const char *key; /* NULL: an item of a list */
    size_t i;
};
enum rv_schema_fault_kind { RV_SCHEMA_FAULT_VALUE, RV_SCHEMA_FAULT_MISSING, RV_SCHEMA_FAULT_UNKNOWN };
/* What it points to is borrowed for the call that gets it. */
struct rv_schema_fault {
    enum rv_schema_fault_kind kind;
    const struct rv_schema_step *steps; /* from the root to the value; of a missing or unknown property, its object */
    size_t n_steps;
    const char *name;        /* of that property */
    json_object *properties; /* of an unknown one: an object whose keys are the names that there are; NULL: none */
    const char *text;        /* what was expected and found */
};
/* What it points to is borrowed for the check. */
struct rv_schema_partial {
    json_object *hole; /* a value that is not known yet: wherever this very object is, it fits. NULL: there is none */
    size_t max_faults; /* that are reported; all borrowed until the call returns */
    void (*fault)(void *self, const struct rv_schema_fault *fault);
    void *self;
};
/** Validate a value, parts of which may not be known yet: a fault is one whatever those parts are.
 *  @param n_faults also those that were not reported
 *  @return 0 (also with faults), RV_E_LIMIT, RV_E_NOMEM */
RV_MUST_CHECK int rv_schema_check_partial(const rv_schema *s, json_object *value,
                                          const struct rv_schema_partial *partial, size_t *n_faults, rv_err **err);
/** Set absent top-level properties that have a default. value must be an object that the caller may change. */
RV_MUST_CHECK int rv_schema_fill_defaults(const rv_schema *s, json_object *value, rv_err **err);
/** Every output_schema of a pipeline must be such a schema: findings with the place of the key, and the JSON pointer in
 * it. Sets is_sound false on an error. RV_E_NOMEM. */
RV_MUST_CHECK int rv_schema_check_pipeline(struct rv_pipeline *p, rv_findings *findings, rv_err **err);

/* --- Definitions --- */
/* What it points to is borrowed from the catalog. */
struct rv_tool_info {
    const char *name, *description;
    int category;                          /* enum rv_tool_category or RV_UNSET */
    int risk;                              /* enum rv_risk; RV_UNSET counts as write */
    int effect;                            /* enum rv_effect_class; RV_UNSET: from the risk */
    bool may_ask;                          /* a person, in the middle of a call: it does not run beside others */
    bool has_probe;                        /* its capability can say whether a call with a key happened */
    int64_t timeout_ms;                    /* 0: the pipeline's tool timeout */
    const rv_schema *input, *output;       /* NULL: anything */
    json_object *input_json, *output_json; /* the schemas as given; may be NULL */
    json_object *confirm;                  /* requires_confirmation as given: true, or {question?, show?}; NULL: no */
};
/** Read that key; value is borrowed for the life of info. RV_E_INVALID. */
RV_MUST_CHECK int rv_tool_read_confirm(struct rv_tool_info *info, json_object *value, rv_err **err);
/** Fill in category, risk and effect from their words; NULL: not given. RV_E_INVALID: not such a word. */
RV_MUST_CHECK int rv_tool_read_words(struct rv_tool_info *info, const char *category, const char *risk,
                                     const char *effect, rv_err **err);
enum rv_risk rv_tool_risk(const struct rv_tool_info *info);
enum rv_effect_class rv_tool_effect(const struct rv_tool_info *info);
/** The tool as a prompt shows it, no line feed: "- name(path: string, limit?: int): description". From input_json. */
void rv_tool_write_line(const struct rv_tool_info *info, rv_buf *b);

/* ask_agent; every pipeline has it, and an agent has to list it to use it. */
extern const struct rv_tool_info rv_tool_ask_agent;
extern const char rv_tool_ask_agent_schema[]; /* of its parameters, JSON text */

/* The declared inputs of a hook, policy, mock or routing function, and prompts by key. What it points to is borrowed
 * from the catalog. */
struct rv_entry_info {
    const char *name; /* "capability.name" */
    enum rv_name_kind kind;
    struct rv_str_list sees; /* "raw_input", "outputs", "outputs.plan", "metadata", ...; is_set false: everything */
    int64_t timeout_ms;      /* 0: the stage's */
    bool takes_attachments;  /* a provider that sends images and files on */
};
/* Everything the core may ask about; all answers are borrowed and constant while a run lives. NULL: unknown. */
struct rv_catalog {
    const struct rv_tool_info *(*tool)(void *self, rv_str name);
    const struct rv_entry_info *(*entry)(void *self, enum rv_name_kind kind, rv_str name);
    const rv_template *(*prompt)(void *self, rv_str key);
    void *self;
    /** The name of the tool with that number, in any order, perhaps twice; NULL: there are no more. The function may be
     * NULL: then the names cannot be listed. */
    const char *(*tool_name)(void *self, size_t i);
};
extern const struct rv_catalog rv_catalog_empty; /* knows nothing */
/** The output of an agent with a chained tool must fit it, as far as both schemas tell: members that the tool needs are
 * there, and it takes those that there are. Findings at `chained_tool`; sets is_sound false. */
void rv_tools_check_chains(struct rv_pipeline *p, const struct rv_catalog *catalog, rv_findings *findings);

/* --- Access (rule 6.2, deny by default) --- */
/** Tells whether an agent with this access and whitelist may call the tool. info NULL: an unknown tool (judged by
 *  whitelist only). *why (may be NULL): static text for a denial. */
bool rv_tool_is_allowed(int access, const struct rv_str_list *whitelist, rv_str name, const struct rv_tool_info *info,
                        const char **why);

/* --- Results (rules 6.4 to 6.6) --- */
/** Standard result from any raw one; *out is the caller's {status, data?, content?, error?, message?}. RV_E_INVALID:
 * not an object. An object counts as standard already, and passes, if it has these keys only, "status" is "success"
 * with an object under "data" and, if at all, content, or "error" with whole error details. *out shares what it holds
 * with raw.
 */
RV_MUST_CHECK int rv_tool_result_normalize(json_object *raw, json_object **out, rv_err **err);
/** Check that it is such an object: status, "error" exactly with status error, the types of both. RV_E_INVALID says
 * what is wrong. */
RV_MUST_CHECK int rv_tool_result_validate(json_object *result, rv_err **err);
/** The standard result of a reply that reports an error; the caller's. NULL: it reports no error, or is not such a JSON
 * object. */
json_object *rv_tool_build_reported_error(rv_str reply);
/** Tells whether a reply reports an error that counts against the health of the tool. */
bool rv_tool_reply_reports_error(rv_str reply);
/** Tells whether an error of that type is a mistake of the caller ("there is no such file"): the tool itself works. */
bool rv_tool_is_callers_fault(const char *type);
/** {items_explored, items_pending, discoveries, evidence, raw}; *n_dropped counts every entry of raw's lists that did
 * not make it (may be NULL). Shares what it holds with raw. */
RV_MUST_CHECK int rv_tool_result_build_data(json_object *raw, json_object **out, size_t *n_dropped, rv_err **err);

/* --- Content: parts of an answer that are meant for the model, apart from its data (rule 10). A successful standard
 * result may have such a list under "content":
 *
 *     {type: "text", text} | {type: "reference", uri, name?, description?, media_type?}
 *     | {type: "image" | "file", data (base64), media_type, name?}
 */
#define RV_TOOL_MAX_PARTS 1000 /* of one answer: a message for a model, not a table */
/** Is the value a list of 1 to RV_TOOL_MAX_PARTS such parts, with no member that is not named above? */
bool rv_tool_is_content(json_object *list);
bool rv_tool_is_base64(rv_str s); /* on one line, padded, not empty */
/** The parts as the text that a model gets: texts as they are, a line for anything else. */
void rv_tool_write_content(json_object *list, rv_buf *out);

/* Of tools that ask a person before they can answer. */
#define RV_TOOL_MAX_REQUESTS 8 /* questions of a tool at once: a person reads them one after the other */
#define RV_TOOL_MAX_ROUNDS   8 /* times that one call may ask: a tool may ask without end */

/* One entry of a tool stage's `results` (rule 6.1, engine shape), from a standard result or an error. What it points to
 * is borrowed for the call. */
struct rv_step_result {
    rv_str step_id, tool;
    json_object *parameters; /* borrowed; NULL: an empty object */
    int64_t execution_ms;
    json_object *standard;  /* borrowed standard result; NULL when `error_type` is set */
    bool has_content;       /* the entry gets the content of the standard result, too */
    const char *error_type; /* AccessDenied, InvalidStep, NotFoundError, ExecutionError, TimeoutError, ValidationError,
                               ToolError */
    rv_str error_message;
    bool recoverable;
};
/** The step as an object, which is yours; shares what s refers to. RV_E_NOMEM. */
RV_MUST_CHECK int rv_tool_build_step_result(const struct rv_step_result *s, json_object **out, rv_err **err);

/* --- Health and circuit breaker of one tool. Caller's storage; times are arguments. --- */
#define RV_HEALTH_WINDOW     100                 /* calls that count */
#define RV_HEALTH_MIN_CALLS  5                   /* below: unknown */
#define RV_BREAKER_ERRORS    5                   /* errors ... */
#define RV_BREAKER_WINDOW_US (5 * RV_US_PER_MIN) /* ... within this time block the tool */
#define RV_HEALTH_ERRORS     16 /* kinds of errors that are told apart; the one not seen for longest gives way */
#define RV_HEALTH_TYPE_MAX   48 /* bytes of a type: each tool keeps some of them */
#define RV_HEALTH_HEAD_MAX   96 /* bytes of the head of a message: the same */
struct rv_tool_error_kind {
    char type[RV_HEALTH_TYPE_MAX + 1];
    char head[RV_HEALTH_HEAD_MAX + 1]; /* the message's first line: numbers are "#", what is quoted is "..." */
    int64_t count;
    uint64_t last; /* number of the last error of this kind */
};
struct rv_tool_health {
    struct {
        int64_t at_us, latency_ms;
        bool ok;
    } calls[RV_HEALTH_WINDOW];
    size_t n, next;
    struct rv_tool_error_kind errors[RV_HEALTH_ERRORS];
    size_t n_errors;
    uint64_t n_noted;
};
void rv_tool_health_note(struct rv_tool_health *h, int64_t now_us, bool ok, int64_t latency_ms);
enum rv_health rv_tool_health_status(const struct rv_tool_health *h);
double rv_tool_health_success_rate(const struct rv_tool_health *h); /* 1.0 when there are no calls */
bool rv_tool_breaker_open(const struct rv_tool_health *h, int64_t now_us);
/** Count an error; errors that differ in numbers and quoted parts only are of one kind. Any bytes. */
void rv_tool_health_note_error(struct rv_tool_health *h, rv_str type, rv_str message);
/** Array of {error_type, message, count}: the most frequent first, and of equal ones the latest. */
void rv_tool_health_write_errors(const struct rv_tool_health *h, rv_jw *w);

#endif
