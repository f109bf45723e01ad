/* Agent documents: a JSON-Schema document that declares an agent, and what it comes to: prompt, output schema, tools,
 * limits. Pure: text in, data out.
 *
 * A document is YAML or JSON and has one of three forms: flat (everything at the top), nested (agent keys in
 * `json_schema_extra`, which win over the outer ones), or a legacy row (`json_schema` with `response_schema` and
 * `model_name`, the prompt in `content`). All become the same flat document. What is not understood is an error or a
 * warning at its place, never dropped in silence. */
#ifndef RV_AGENTDOC_H
#define RV_AGENTDOC_H

#include "coreengine/lang/lang.h"

/* --- How an agent is shown the history of its session --- */
#define RV_REPLAY_POLICIES(X)                                                                                          \
    X(SYNTHESISE, "synthesise", "calls of tools and their results are shown again")                                    \
    X(SKIP, "skip", "only what people and agents said is shown again")
#define RV_REPLAY_CONST(n, t, m) RV_REPLAY_##n,
enum rv_replay_policy { RV_REPLAY_POLICIES(RV_REPLAY_CONST) RV_N_REPLAY_POLICIES };

#define RV_COMPACTIONS(X)                                                                                              \
    X(SHORTEN, "shorten", "of a long answer both ends are shown, with a key that finds the whole again")               \
    X(MOMENTS, "moments", "an answer becomes a hint at the moment that covers it")                                     \
    X(NONE, "none", "all answers are shown whole")
#define RV_COMPACTION_CONST(n, t, m) RV_COMPACTION_##n,
/* How older answers are shown. */
enum rv_compaction { RV_COMPACTIONS(RV_COMPACTION_CONST) RV_N_COMPACTIONS };

#define RV_MOMENT_MAX_INJECT 50      /* moments in one history: they go into each request */
#define RV_MOMENT_MAX_TOKENS 1048576 /* of all moments that a turn is told: no common model reads more */

#define RV_AGENTDOC_MAX_BYTES ((size_t)256 << 10) /* of a document: its text goes to a model with each request */
#define RV_AGENTDOC_FALLBACK  "general"           /* who answers where a router names no fallback */
#define RV_AGENTDOC_MAX_NAME  128                 /* bytes; names are a word: letters, digits, '-', '_', '.' */
#define RV_AGENTDOC_MAX_WORD  127                 /* bytes of a word in the braces of a uri: the name of a parameter */
#define RV_AGENTDOC_MAX_TOOLS 128                 /* of one agent: models mistake tools when there are more */

/* Texts are borrowed from the document. */
struct rv_agentdoc_tool {
    const char *name;
    const char *server;      /* NULL: in process, which "local" and "rem" say, too */
    const char *server_text; /* as it was written; NULL: it was not */
    const char *description; /* a hint for this agent: goes into Tool Notes only; NULL: none */
    const char *uri;         /* makes it a resource that is read; NULL: none */
    struct rv_src src;
};
/* 0: no limit of its own. */
struct rv_agentdoc_limits {
    int64_t request_limit, tool_calls_limit, input_tokens_limit, output_tokens_limit, total_tokens_limit;
};
/* The text that people are shown, and that is kept as the answer, when an agent asks another one. */
#define RV_CHILD_TEXTS(X)                                                                                              \
    X(CHILD, "child", "once the asked agent has spoken, the asking one is not shown any more")                         \
    X(PARENT, "parent", "only the words of the asking agent are shown and kept")                                       \
    X(BOTH, "both", "the words of both are shown and kept")                                                            \
    X(FINAL, "final",                                                                                                  \
      "both are shown, without text that repeats what was shown; those of the asking agent are the answer")
#define RV_CHILD_TEXT_CONST(n, t, m) RV_CHILD_TEXT_##n,
enum rv_child_text { RV_CHILD_TEXTS(RV_CHILD_TEXT_CONST) RV_N_CHILD_TEXTS };
const char *rv_child_text_text(enum rv_child_text child_text);
int rv_child_text_of(rv_str word); /* RV_UNSET: unknown word */

enum rv_agentdoc_form { RV_AGENTDOC_FLAT, RV_AGENTDOC_NESTED, RV_AGENTDOC_LEGACY };
enum rv_observation_mode { RV_OBSERVATION_SYNC, RV_OBSERVATION_DISABLED, RV_N_OBSERVATION_MODES };

/* Everything is borrowed from the document; texts are never NULL unless said. */
struct rv_agentdoc {
    enum rv_agentdoc_form form;
    const char *name, *kind, *version, *description;
    const char *short_description, *system_prompt, *author; /* NULL: none */
    bool structured_output;
    const char *chained_tool; /* NULL: none */
    json_object *chained_map; /* member of the output -> parameter of chained_tool; NULL: none */
    const struct rv_agentdoc_tool *tools;
    size_t n_tools;
    const char *model;      /* "provider:model" ("openai:" is put before a bare name); NULL: none */
    const char *model_text; /* as it was written; NULL: none */
    bool model_overrides;   /* it was given as override_model: wins over what is asked for */
    bool has_temperature;
    double temperature;
    int64_t max_tokens;     /* 0: not given */
    int64_t max_iterations; /* a cap on model requests; 0: not given */
    struct rv_agentdoc_limits limits;
    bool routing_enabled; /* may be routed to */
    int64_t routing_max_turns;
    struct rv_str_list routes;    /* `routing: {agents: [...]}`: it is a router, and these are where it leads */
    const char *routing_fallback; /* NULL: RV_AGENTDOC_FALLBACK */
    enum rv_observation_mode observation_mode;
    int64_t context_token_budget; /* of history; 0: not given, -1: none is given to it */
    int64_t always_include_last;  /* messages that are never shortened; -1: not given */
    int replay;                   /* enum rv_replay_policy; RV_UNSET: not given */
    int compaction;               /* enum rv_compaction; RV_UNSET: not given */
    int64_t moment_token_threshold, moment_max_inject, moment_max_tokens; /* conversation.h; RV_UNSET: not given */
    const char *moment_summariser; /* agent that writes the summaries of its sessions' chunks; NULL: not given */
    bool client_tools;             /* clients may bring tools of their own, which they call themselves */
    int child_text;                /* enum rv_child_text; RV_UNSET: not given */
    struct rv_str_list tags;
    json_object *properties, *required, *defs; /* NULL: none */
    json_object *flat; /* the whole flat document, keys in the order of docs/reference/agent-schemas.md */
    struct rv_src src, name_src, tools_src, chained_src, model_src, properties_src, limits_src;
};

/** Read one. name stands for the file in messages. What is wrong are findings; *out is NULL when there was an error
 *  among them (return 0). RV_E_NOMEM, RV_E_LIMIT. */
RV_MUST_CHECK int rv_agentdoc_parse(rv_str text, const char *name, rv_findings *findings, struct rv_agentdoc **out,
                                    rv_err **err);
/** The same where a finding is just an error: RV_E_INVALID with the first one's text, place and hint. */
RV_MUST_CHECK int rv_agentdoc_read(rv_str text, const char *name, struct rv_agentdoc **out, rv_err **err);
void rv_agentdoc_free(struct rv_agentdoc *d);
bool rv_agentdoc_is_name(rv_str name);
/** Tells whether the document declares that tool. */
bool rv_agentdoc_names_tool(const struct rv_agentdoc *d, const char *name);

/** The tool of that name, if it reads a resource: the first of the name, with a uri, of no server. NULL. */
const struct rv_agentdoc_tool *rv_agentdoc_find_resource(const struct rv_agentdoc *d, const char *name);

/** Layer 1: description, system_prompt, Tool Notes, Thinking Structure, as docs/explanation/three-layers.md has it.
 *  structured: instead of the document's own (which it is with RV_UNSET; else 0 or 1). Appended to out. */
RV_MUST_CHECK int rv_agentdoc_write_prompt(const struct rv_agentdoc *d, int structured, rv_buf *out, rv_err **err);
/** Tells whether its output is structured: the switch is on, and there are properties. */
bool rv_agentdoc_is_structured(const struct rv_agentdoc *d, int structured);
/** The JSON Schema of its output: properties, required and $defs as they stand, nested descriptions too; no top-level
 *  description. *out is the caller's; NULL: it is not structured. */
RV_MUST_CHECK int rv_agentdoc_build_output_schema(const struct rv_agentdoc *d, int structured, json_object **out,
                                                  rv_err **err);
/** As text: flat, the keys of the table first and in its order, then the others; what is not set is left out. */
void rv_agentdoc_write_json(const struct rv_agentdoc *d, rv_jw *w);
void rv_agentdoc_write_yaml(const struct rv_agentdoc *d, rv_buf *out);
/** JSON Schema of the document, and the keys as a Markdown table: for `reeve schema --agent` and the reference. */
void rv_agentdoc_write_schema(rv_jw *w);
void rv_agentdoc_write_reference(rv_buf *out);

/** A copy with what the environment says in place of the document: AGENT_MODEL (for override_model, too),
 *  AGENT_TEMPERATURE, AGENT_MAX_ITERATIONS, AGENT_REQUEST_LIMIT, AGENT_TOTAL_TOKENS_LIMIT, AGENT_TOOL_CALLS_LIMIT. Its
 *  src.file says so. *out NULL: none of them is set. RV_E_INVALID names a variable with a wrong value. */
RV_MUST_CHECK int rv_agentdoc_dup_with_env(const struct rv_agentdoc *d,
                                           const char *(*env)(void *self, const char *name), void *self,
                                           struct rv_agentdoc **out, rv_err **err);

#endif
