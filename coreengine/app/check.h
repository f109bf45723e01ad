/* What can be known of a pipeline and of a capability without a run: proofs, the requests that models would get, a
 * subject for simulations, the rules of the SDK; and each pure rule of the engine as a function by name. */
#ifndef RV_APP_CHECK_H
#define RV_APP_CHECK_H

#include "config/analysis/analysis.h"
#include "coreengine/app/workspace.h"
#include "coreengine/model/llm/llm.h"
#include "coreengine/sim/sim.h"
#include "coreengine/tools/plugin/plugin.h"

/* --- Proofs about a pipeline that need no run --- */
/* The proofs of a pipeline: for one part of a run, and for the run with its answers. */
struct rv_app_proved {
    struct rv_proof part;
    struct rv_whole_run whole;
    int64_t answers;
    struct rv_llm_bound cost;
};
/** answers: at most so many are counted; INT64_MAX: as many as the bounds allow. Finish with rv_proof_fini(&out->part).
 */
RV_MUST_CHECK int rv_app_prove(const struct rv_pipeline *p, int64_t answers, struct rv_app_proved *out, rv_err **err);
void rv_app_proved_write(const struct rv_pipeline *p, const struct rv_app_proved *proved, rv_jw *w); /* "bounds" */
/** A line of text; nothing when no stage asks a model that could cost something. */
void rv_app_write_cost(const struct rv_llm_bound *bound, rv_buf *b);
/** A finding when a run can cost more than that, or when it is not known what it can cost. limit: what the
 *  finding calls it. True: there is one. */
bool rv_app_cost_check(const struct rv_pipeline *p, const struct rv_llm_bound *bound, double max_usd, const char *limit,
                       rv_findings *findings);

/* --- What a run would send to models, known before anything is run --- */
/* The first request of a stage that asks a model. What it points to is borrowed for the call. */
struct rv_app_dry_stage {
    const struct rv_pipeline *pipeline; /* that it is in: of an inner one, too */
    const struct rv_agent *agent;
    json_object *request;     /* borrowed for the call; NULL: not known */
    const char *why;          /* NULL: it is known; else why not */
    bool has_unknown;         /* outputs of other stages are in it, as {{outputs.KEY.FIELD}} */
    const char *const *hooks; /* that may change it before it is sent */
    size_t n_hooks;
};
/** Calls each for every stage that asks a model, in the order of the file, inner pipelines last. The core builds the
 *  requests from the state and, for outputs that stages will make, from marks in their place. Nothing is performed and
 *  nothing is kept. state: as of struct rv_app_job; borrowed. */
RV_MUST_CHECK int rv_app_dry_run(struct rv_app_loaded *l, json_object *state,
                                 int (*each)(void *self, const struct rv_app_dry_stage *stage, rv_err **err),
                                 void *self, rv_err **err);

/* --- Pipelines as a simulation needs them: with the tools and agents that a run would find --- */
/* A pipeline as one thread has it: nothing is shared. */
struct rv_app_subject {
    struct rv_app_loaded loaded;
    struct rv_catalog plugins, *scripts; /* each script's tools on top of those before */
    const char **tools;                  /* all that are known; owned */
    struct rv_sim_agent *agents;         /* that may be asked; their texts are owned */
    size_t n_agents;
    bool is_loaded;
};
/** Without a script of its own the tools of the pipeline's tests are known, so that their schemas are. A pipeline with
 *  errors gives no subject: look at o->loaded. Zero o before, finish it in any case. */
RV_MUST_CHECK int rv_app_subject_load(const struct rv_app *app, const char *path, const char *script,
                                      struct rv_app_subject *o, struct rv_sim_subject *subject, rv_err **err);
void rv_app_subject_fini(struct rv_app_subject *o);

/* --- Functions of the engine by name: each pure rule as a filter from one JSON value to another --- */
#define RV_FN_MAX_BYTES RV_STATE_MAX_BYTES       /* of one input */
#define RV_FN_MAX_DEPTH (RV_STATE_MAX_DEPTH + 4) /* levels: states may be wrapped */
#define RV_FN_MAX_REPLY ((size_t)256 << 20)      /* of one answer: it is made in memory */
#define RV_FN_MAX_WORDS 10000                    /* of a list of words: all are in memory */

/* What it points to is static. */
struct rv_fn {
    const char *name, *takes, *gives, *doc;
    int (*call)(json_object *in, rv_jw *out, rv_err **err); /* writes exactly one value */
};
/** All of them, in the order of the list. */
#define RV_FN_MAX 128
size_t rv_fn_collect(const struct rv_fn *out[RV_FN_MAX]);
/** RV_E_INVALID, with a hint: there is none of that name. */
RV_MUST_CHECK int rv_fn_find(const char *name, const struct rv_fn **out, rv_err **err);
/** The result for an input, appended to body as JSON text. RV_E_PARSE, RV_E_INVALID (the input does not have the shape
 *  that `takes` describes), and what the function says. */
RV_MUST_CHECK int rv_fn_call(const struct rv_fn *f, rv_str input, rv_buf *body, rv_err **err);
void rv_fn_write_reference(rv_buf *b); /* docs/reference/functions.md */

/* --- How well a capability keeps the rules of the SDK: each rule has a name, a count of what it was looked at for and
 * of what kept it, and a hint. The code of the capability runs in a process of its own. --- */
/* Rules that are errors break a capability; the others are advice. */
#define RV_CONFORM_RULES(X)                                                                                            \
    X(LOAD_FILE, "load.file", true, "it is a shared object, and all its symbols are found",                            \
      "build it with -shared -fPIC and link what it uses; `ldd -r` names what is missing")                             \
    X(LOAD_SYMBOL, "load.symbol", true, "it exports rv_capability()",                                                  \
      "define it with RV_CAPABILITY(), in C++ with RV_CAPABILITY_SET()")                                               \
    X(LOAD_LIVE, "load.live", true, "loading and opening it neither ends nor hangs its process",                       \
      "do no work in constructors; let open() return nonzero instead of exit(), and wait for nothing in it")           \
    X(DESC_GIVEN, "desc.given", true, "rv_capability() gives a descriptor", "return the address of a constant")        \
    X(DESC_ABI, "desc.abi", true, "it was built for the ABI of this engine",                                           \
      "build it again with this version's <reeve/capability.h>")                                                       \
    X(DESC_SIZE, "desc.size", true, "its structures are as long as they say",                                          \
      "let RV_CAPABILITY() set size, abi and entry_size")                                                              \
    X(DESC_NAME, "desc.name", true, "its name is one: [a-z][a-z0-9_-]*, at most 64 bytes", "rename it")                \
    X(DESC_FILE, "desc.file", true, "its file has its name", "rename the file or the capability")                      \
    X(DESC_TEXT, "desc.text", true, "version and description are UTF-8 of at most 4 KiB", "correct the text")          \
    X(DESC_CONFIG, "desc.config", true, "config_schema is a JSON Schema", "correct the schema")                        \
    X(DESC_VERSION, "desc.version", false, "it has a version", "set .version: runs record it")                         \
    X(DESC_ABOUT, "desc.about", false, "it has a description", "say in .description what it is for")                   \
    X(CONFIG_CLOSED, "config.closed", false, "config_schema refuses members that it does not know",                    \
      "add \"additionalProperties\": false, so that a misspelt key is an error")                                       \
    X(OPEN_WORKS, "open.works", true, "open() succeeds", "see the message")                                            \
    X(OPEN_SAYS, "open.says", true, "an open() that fails says why", "write the reason into `error`")                  \
    X(OPEN_CONFIG, "open.config", true, "it opens without a configuration",                                            \
      "give what it needs a default in config_schema; or check it by a test of a pipeline")                            \
    X(ENTRIES_SIZE, "entries.size", true, "its entries are as long as they say", "let RV_CAPABILITY() set entry_size") \
    X(ENTRIES_END, "entries.end", true, "the list of entries is there and ends", "end it with RV_CAP_END")             \
    X(ENTRY_KIND, "entry.kind", true, "each entry has a kind that there is", "use a word of enum rv_cap_kind")         \
    X(ENTRY_NAME, "entry.name", true, "each entry has a name: [a-z][a-z0-9_]*, at most 64 bytes", "rename it")         \
    X(ENTRY_FUNCTION, "entry.function", true, "what is called has a function, prompts and agents have none",           \
      "give it its function, or NULL")                                                                                 \
    X(ENTRY_ONCE, "entry.once", true, "no two entries of a kind have one name", "rename one, or remove it")            \
    X(ENTRY_ABOUT, "entry.about", false, "each entry has a description",                                               \
      "say in one sentence what it does; of a tool, it is what a model chooses by")                                    \
    X(SPEC_JSON, "spec.json", true, "each specification is a JSON object", "write it with RV_CAP_JSON({...})")         \
    X(SPEC_KEYS, "spec.keys", true, "a specification has no key that its kind does not know",                          \
      "docs/reference/sdk.md lists the keys of each kind")                                                             \
    X(SPEC_WORDS, "spec.words", true, "risk, category and effect are words that there are",                            \
      "docs/reference/words.md lists them")                                                                            \
    X(SPEC_TIMEOUT, "spec.timeout", true, "timeout_ms is a whole number, at most a day", "correct it")                 \
    X(SPEC_TYPES, "spec.types", true, "each key of a specification has a value of its type", "see the message")        \
    X(SPEC_SCHEMA, "spec.schema", true, "input_schema and output_schema are JSON Schemas", "correct the schema")       \
    X(SPEC_SERVICES, "spec.services", true, "the services are there, and fit the effect of the entry",                 \
      "docs/reference/sdk.md lists the services and their effects")                                                    \
    X(PROMPT_TEXT, "prompt.text", true, "a prompt has a text that is a template", "close each {{name}}")               \
    X(AGENT_DOCUMENT, "agent.document", true, "an agent has a document of its name", "correct the document")           \
    X(PROBE_TOOL, "probe.tool", true, "a probe has the name of a tool of the same capability", "make the names equal") \
    X(TOOL_INPUT, "tool.input", false, "a tool has an input_schema",                                                   \
      "declare the arguments: the engine checks them before the call, and a model reads them")                         \
    X(TOOL_CLOSED, "tool.closed", false, "the input_schema refuses arguments that it does not know",                   \
      "add \"additionalProperties\": false")                                                                           \
    X(TOOL_BOUNDED, "tool.bounded", false, "texts and lists among the arguments have a greatest length",               \
      "add maxLength, or maxItems: a model may send megabytes")                                                        \
    X(TOOL_OUTPUT, "tool.output", false, "a tool has an output_schema",                                                \
      "declare the answer: plans refer to its members")                                                                \
    X(HOOK_SEES, "hook.sees", false, "a hook, policy or routing function says what it sees",                           \
      "add \"sees\": [...]: otherwise each call copies the whole envelope")                                            \
    X(CALL_LIVE, "call.live", true, "a call does not end its process", "run it under a debugger with these arguments") \
    X(CALL_TIME, "call.time", true, "a call answers within five seconds", "poll call->cancelled(call)")                \
    X(CALL_ONCE, "call.once", true, "a call replies or fails, once", "return the value of reply() or fail() at once")  \
    X(CALL_SAYS, "call.says", true, "a call that has no reply fails with a text",                                      \
      "return call->fail(call, type, text)")                                                                           \
    X(CALL_JSON, "call.json", true, "a reply is one JSON object, in UTF-8, of at most 8 MiB",                          \
      "write it with rv_cap_put_str() and the like")                                                                   \
    X(CALL_SCHEMA, "call.schema", true, "a reply fits the output_schema", "correct the reply or the schema")

enum rv_conform_rule {
#define X(name, id, is_error, text, hint) RV_CONFORM_##name,
    RV_CONFORM_RULES(X)
#undef X
        RV_N_CONFORM_RULES
};

/** Look at the capability of that name or path, and append {capability, version, ok, score, rules: [{rule, is_error,
 *  checked, kept, text, hint, findings: [{entry, text}]}]}: a rule is there if something was looked at. *ok: no rule
 * that is an error is broken. `opts` is as for a set of capabilities, and names what reeve to start. Tools whose effect
 * is `safe` are called, with arguments made up from their schemas; nothing else is. */
RV_MUST_CHECK int rv_app_conform(const struct rv_plugins_opts *opts, const char *name, rv_jw *w, bool *ok,
                                 rv_err **err);

void rv_conform_write_reference(rv_buf *b); /* the page docs/reference/capability-rules.md */

#endif
