/* Pipelines: YAML in, a validated, immutable pipeline out.
 *
 * `struct rv_pipeline` is plain data that any thread may read, in one arena (plus json-c values and expressions); every
 * part keeps its place in the file. agent.h: a stage, agent_planning.h: how it plans; mcp.h, test.h: other parts. */
#ifndef RV_CONFIG_H
#define RV_CONFIG_H

#include "config/agent.h"
#include "config/agent_pipeline.h"
#include "config/mcp.h"
#include "config/test.h"
#include "coreengine/lang/lang.h"
#include "envelope/envelope.h"

#define RV_MAX_STAGES             10000 /* agents of one pipeline */
#define RV_LLM_DEFAULT_MAX_TOKENS 2000  /* of a reply, where neither the file nor the document says it */
#define RV_LLM_CONTEXT_TOKENS     16384 /* that Ollama is asked for: its own number cuts long prompts */
#define RV_LLM_DEFAULT_ATTEMPTS   3     /* requests that are sent for one call: max_attempts of a model */

struct rv_edge_limit {
    const char *from_name, *to_name; /* in the pipeline's arena */
    int from, to;                    /* stage indices */
    int64_t max_count;
    struct rv_src src, from_src, to_src;
};

/* Prices of a million tokens, in micro-USD. */
struct rv_price {
    int64_t input, output;
    int64_t cached, cache_write; /* input that a cache had, or was given; RV_UNSET: as other input */
};

struct rv_model_config {                            /* owned by the pipeline, with all that it points to */
    const char *role;                               /* in the pipeline's arena, as all texts here */
    const char *provider, *model;                   /* "openai:gpt-4.1-mini" split at the first colon */
    bool has_temperature, has_max_tokens, optional; /* optional: the role vanishes when its ${env:} is unset */
    double temperature;
    int64_t max_tokens;
    json_object *options; /* everything else a provider takes (base_url, api_key, ...); may be NULL; holds secrets */
    bool has_price;       /* given here, or known from a table of prices */
    bool price_from_table;
    bool is_replaced; /* by the caller's choice */
    struct rv_price price;
    int64_t max_input_tokens;    /* the model's window, from the table; 0: not known */
    int64_t max_request_bytes;   /* longer requests are refused before they are sent; 0: no limit of its own */
    struct rv_str_list fallback; /* roles that are asked, in this order, when this role cannot answer */
    const struct rv_model_config **fallback_models; /* the same, found; n of fallback */
    struct rv_src src;
};

struct rv_prompt_config {
    const char *key;            /* in the arena of the pipeline, as all texts here */
    rv_template *compiled;      /* owned by the pipeline */
    const char *file;           /* NULL: inline */
    struct rv_src src, key_src; /* of the text; of its key in the pipeline */
    int indent; /* a block scalar: columns taken off each line; places in later lines do not count them */
};

#define RV_ISOLATED_MEMORY_MB  1024 /* where limits says nothing */
#define RV_ISOLATED_OPEN_FILES 64   /* descriptors of an isolated capability, unless its `limits` say otherwise */
enum rv_isolation { RV_ISOLATION_NONE, RV_ISOLATION_PROCESS, RV_N_ISOLATIONS };
struct rv_capability_config { /* texts: in the arena of the pipeline */
    const char *name;         /* a name to look up, or a path when it has a slash */
    json_object *config;      /* handed to the capability's open; may be NULL; owned by the pipeline */
    enum rv_isolation isolation;
    int64_t memory_mb, open_files; /* limits of a process of its own; 0: the above */
    struct rv_src src;
};

/* Global knobs (rule 4.6); defaults in config/execution.c. Times in milliseconds. */
struct rv_execution_config {
    int64_t max_plan_steps, max_tool_retries, max_llm_retries, max_loop_iterations, max_replan_iterations,
        max_loop_back_rejections, idempotency_ttl_ms;
    int64_t agent_request_limit, agent_token_limit; /* of a declared agent where neither its stage nor document says */
    int64_t llm_timeout_ms, executor_timeout_ms, tool_timeout_ms, agent_timeout_ms, meta_validation_delay_ms;
    double clarification_threshold, high_confidence_threshold;
    bool has_llm_seed;
    int64_t llm_seed;
    bool require_confirmation_for_destructive, replan_on_partial_success, strict_transition_validation,
        enable_idempotency, enforce_idempotency_for_tools, enforce_idempotency_for_agents, meta_validation_enabled,
        enable_loop_back, enable_arbiter, skip_arbiter_for_read_only;
    const char *log_level; /* in the arena of the pipeline */
    bool has_tool_timeout, has_llm_timeout, has_agent_timeout, has_executor_timeout, has_max_loop_iterations,
        has_max_replan_iterations, has_max_loop_back_rejections, has_log_level; /* given in the file */
};

struct rv_state_field {
    const char *key; /* in the arena of the pipeline */
    int merge;       /* enum rv_merge_mode */
    struct rv_src src;
};

/* A loaded pipeline. All texts and arrays are in its arena, and die with it. */
struct rv_pipeline {
    const char *name, *description, *file, *dir; /* file: as given; dir: its folder, "." at least */
    struct rv_agent *agents;                     /* sorted by stage_order, stable */
    size_t n_agents;
    const char **stage_names; /* the same order */
    rv_index stage_index;
    int default_run_mode;      /* enum rv_run_mode or RV_UNSET */
    bool has_groups;           /* some stage has a list of targets */
    struct rv_str_list inputs; /* what a stage that runs this pipeline must give it */
    int64_t max_iterations, max_llm_calls, max_agent_hops, default_timeout_seconds;
    struct rv_edge_limit *edge_limits; /* in its arena, as all arrays and texts */
    size_t n_edge_limits;
    const char *clarification_resume_stage, *confirmation_resume_stage, *agent_review_resume_stage,
        *agent_review_reject_stage;            /* "" unset */
    struct rv_capability_config *capabilities; /* in the order of the file */
    size_t n_capabilities;
    struct rv_mcp_server_config *mcp_servers; /* in the order of the file */
    size_t n_mcp_servers;
    struct rv_mcp_offer_config mcp; /* to clients of reeve as an MCP server */
    struct rv_model_config *models;
    size_t n_models;
    struct rv_prompt_config *prompts;
    size_t n_prompts;
    struct rv_test_config *tests;
    size_t n_tests;
    struct rv_state_field *state_fields;
    size_t n_state_fields;
    bool has_budget;
    int64_t budget_micro_usd; /* of one run, with everything it starts */
    struct rv_src budget_src;
    struct rv_execution_config execution;
    struct rv_str_list retry_archive, retry_clear, stage_reset; /* is_set false: the defaults */
    struct rv_response_place response;                          /* final response */
    const char *provenance_key; /* in _meta of results of tools: what is known of an artifact; NULL: the default */
    bool mock;
    const char *schema_dir;                /* folder of agent documents, as resolved against `dir`; "": none */
    int64_t max_delegation_depth;          /* agents that may be asked, one by the other, below a stage */
    int64_t max_delegation_repeats;        /* times that one agent may stand in such a chain */
    int child_text;                        /* enum rv_child_text of agents that say none; RV_UNSET: the engine's */
    int64_t delegation_timeout_ms;         /* of one delegated agent, where the call does not say */
    bool is_sound;                         /* no error was found: may be run */
    struct rv_pipeline_internal *internal; /* owned: arena, documents, dependents */
};

/** Load and validate a file. Everything wrong with the content is a finding; a pipeline with error findings still comes
 *  out (is_sound false) so that further checks can add theirs, or *out is NULL when nothing could be read.
 *  @return 0, or what kept the file from being read at all: RV_E_NOT_FOUND, RV_E_IO, RV_E_LIMIT, RV_E_NOMEM */
RV_MUST_CHECK int rv_pipeline_load(const char *path, rv_findings *findings, struct rv_pipeline **out, rv_err **err);
/** The same from text; `name` stands for the file in messages, `dir` is what relative paths start from. */
RV_MUST_CHECK int rv_pipeline_parse(rv_str text, const char *name, const char *dir, rv_findings *findings,
                                    struct rv_pipeline **out, rv_err **err);
/* The environment's choices for a model role; names of models are not secret. Texts are borrowed from the pipeline. */
struct rv_chosen_model {
    const char *role, *missing;   /* missing: of a role that was left out, the variable that is not set; or NULL */
    const char *provider, *model; /* provider NULL: the role was left out */
    bool has_price;               /* the price a table gave it */
    struct rv_price price;
    int64_t max_input_tokens;
    bool replaces; /* the caller chose it: what the file says of the provider, the price and fallbacks is not for it */
};
/* The same for the roles of a file that stages run. What it points to is borrowed for the call. */
struct rv_inner_models {
    const char *file; /* as rv_pipeline.file of the inner pipeline */
    struct rv_chosen_model *models;
    size_t n_models;
};
/* The parts of a pipeline that are not in its text; zeroed: files and the environment. Borrowed for the call. */
struct rv_pipeline_opts {
    /** The text of a prompt file, by the path that was made for it; borrowed until parsing ends. False: it is not
     *  there, which is a finding. With it no prompt file is read, and scripts of tests are not looked for. */
    bool (*file)(void *self, const char *path, rv_str *out);
    void *self;
    const struct rv_chosen_model *models; /* instead of what the environment says now; NULL: it says */
    size_t n_models;
    const struct rv_inner_models *inner; /* for files that stages run; of one that is not there the environment says */
    size_t n_inner;
    const char *model; /* "provider:model" in the place of each model, also of inner files and agents; NULL: none */
    const struct rv_test_place *place; /* prompts that a test's matrix has in the place of the file's; NULL: none */
    const struct rv_within *within;    /* of a pipeline that is a stage of another one: for loading itself */
    bool has_other_outputs; /* the text lacks stages: an expression may name an output that it does not make */
    bool offline;           /* a ${env:} that is not set, and each ${file:}, is the empty text */
};
/** rv_pipeline_load() and rv_pipeline_parse() with options. */
RV_MUST_CHECK int rv_pipeline_load_with(const char *path, const struct rv_pipeline_opts *opts, rv_findings *findings,
                                        struct rv_pipeline **out, rv_err **err);
RV_MUST_CHECK int rv_pipeline_parse_with(rv_str text, const char *name, const char *dir,
                                         const struct rv_pipeline_opts *opts, rv_findings *findings,
                                         struct rv_pipeline **out, rv_err **err);
/** Load a pipeline that a program makes: a JSON object with the keys of a pipeline file. The same tables and checks
 *  apply as for a file; findings have the place name:1:1. rv_pipeline_text() returns the object as text; loading that
 *  text makes the same pipeline. Relative paths start from the working directory. */
RV_MUST_CHECK int rv_pipeline_of_value(json_object *keys, const char *name, rv_findings *findings,
                                       struct rv_pipeline **out, rv_err **err);
void rv_pipeline_free(struct rv_pipeline *p);
/** The pipelines that stages of p, and stages of those, run: each file once, inner ones first. Owned by p. */
struct rv_pipeline *const *rv_pipeline_inner(const struct rv_pipeline *p, size_t *n);

/* --- Declared agents: documents that stages are made from --- */
struct rv_agent_source {
    /** The document of that name: text and place (path or other words for where it is from) are borrowed until the next
     *  call. RV_E_NOT_FOUND, RV_E_INVALID. */
    int (*find)(void *self, const char *name, rv_str *text, const char **place, rv_err **err);
    void *self; /* borrowed */
};
/** The value for an agent: the stage sets it, else its document, else the pipeline; RV_UNSET: none of them does. */
int rv_agent_child_text(const struct rv_pipeline *p, const struct rv_agent *a);
/** Make every stage, also of inner pipelines, that has `agent` what its document says; keys of the stage win over it.
 * Prompt, output schema, mode, tools (allowed_tools, tool_access all), temperature, max_tokens, limits (max_iterations
 * caps requests), chained tool. A model of the document becomes a role of its own unless the stage names one. Mistakes
 * become findings, at the `agent` key or in the document. Then the checks run that need the complete pipeline; is_sound
 * may become false. */
RV_MUST_CHECK int rv_pipeline_bind_agents(struct rv_pipeline *p, const struct rv_agent_source *source,
                                          rv_findings *findings, rv_err **err);
/* A document that was bound; a caller that makes the same pipeline again needs it. Texts are in its arena. */
struct rv_bound_agent {
    const char *name, *place;
    rv_str text;
};
const struct rv_bound_agent *rv_pipeline_bound_agents(const struct rv_pipeline *p, size_t *n);

/* --- For analysis --- */
/** used[i] becomes true for each of the pipeline's models that a stage can ask, by its role or as a fallback. */
void rv_pipeline_mark_used_models(const struct rv_pipeline *p, bool *used);
/** Tells whether the file has the key `models`, even if every role in it was left out. */
bool rv_pipeline_has_models(const struct rv_pipeline *p);
/** The value of a model in the file, with its indirections as they are written; NULL: no file has it. */
const struct rv_node *rv_pipeline_written_model(const struct rv_pipeline *p, size_t model);
/** Tells whether a text has a ${env:NAME} or ${file:path} in it. */
bool rv_has_indirection(rv_str text);
/** Tells whether the agent names a document that is not bound: what depends on the document is not known. */
bool rv_agent_is_unbound(const struct rv_agent *a);

/* --- What a pipeline was made from, borrowed: with it rv_pipeline_parse_with() makes the same one --- */
struct rv_text_file {
    const char *path; /* as resolved against the pipeline's folder */
    rv_str text;
};
rv_str rv_pipeline_text(const struct rv_pipeline *p);                                 /* the YAML, byte for byte */
const struct rv_text_file *rv_pipeline_files(const struct rv_pipeline *p, size_t *n); /* prompt files, each once */
/** Roles left out, and those whose names come from a ${env:} or ${file:}; in the order of the text. */
const struct rv_chosen_model *rv_pipeline_chosen_models(const struct rv_pipeline *p, size_t *n);

/* --- Names that only capabilities know --- */
enum rv_name_kind {
    RV_NAME_TOOL,
    RV_NAME_HOOK,
    RV_NAME_POLICY,
    RV_NAME_MOCK,
    RV_NAME_ROUTE,
    RV_NAME_PROMPT,
    RV_NAME_PROVIDER,
    RV_NAME_PROBE, /* of a tool, and named like it */
    RV_NAME_SUBSCRIBER,
    RV_N_NAME_KINDS
};
const char *rv_name_kind_text(enum rv_name_kind kind); /* "tool", "hook", ... */
/* The registered names; lists are sorted and borrowed. */
struct rv_known_names {
    const char *const *(*list)(void *self, enum rv_name_kind kind, size_t *n);
    void *self;
    bool is_partial; /* a capability is reported as missing: names that may be its own are not reported as well */
};
/** Every tool, hook, policy, mock, routing function, prompt and provider the pipeline names must be known: findings
 *  with place, kind, name, the stage that names it, and the nearest known name. Sets is_sound false on an error. */
void rv_pipeline_check_names(struct rv_pipeline *p, const struct rv_known_names *known, rv_findings *findings);

/* --- Queries (valid on a sound pipeline) --- */
/** Index of a stage, or -1. */
int rv_pipeline_find_stage(const struct rv_pipeline *p, rv_str name);
/** Target of a name: an index, or RV_TARGET_END/CLARIFICATION/CONFIRMATION, _NONE for "", _UNKNOWN. */
int rv_pipeline_find_target(const struct rv_pipeline *p, rv_str name);
const char *rv_pipeline_target_name(const struct rv_pipeline *p, int target); /* "end", "clarification", stage name */
/** Where a person's yes leads after a route of the stage asked for confirmation: its default_next; the end where that
 * is empty or asks for the same confirmation. A stage, RV_TARGET_END or RV_TARGET_CLARIFICATION. */
int rv_agent_approved_target(const struct rv_agent *a);
/** Its name; confirmation_resume_stage, where that is set, wins. */
const char *rv_pipeline_approved_name(const struct rv_pipeline *p, const struct rv_agent *a);
/** max_count of the edge, 0: unlimited. O(1). */
int64_t rv_pipeline_edge_limit(const struct rv_pipeline *p, int from, int to);
/** Where that limit stands in edge_limits; -1: the edge has none. O(1). */
int rv_pipeline_edge_limit_at(const struct rv_pipeline *p, int from, int to);
/** Stages that name `stage` in requires or after, in stage order; borrowed. */
const int *rv_pipeline_dependents(const struct rv_pipeline *p, int stage, size_t *n);
const struct rv_model_config *rv_pipeline_find_model(const struct rv_pipeline *p, rv_str role);  /* NULL: none */
const struct rv_prompt_config *rv_pipeline_find_prompt(const struct rv_pipeline *p, rv_str key); /* NULL: none */
struct rv_reset_rules rv_pipeline_reset_rules(const struct rv_pipeline *p);

/* Progress of a stage as readiness sees it (rule 4.5). */
enum rv_stage_state {
    RV_STAGE_WAITING,
    RV_STAGE_ACTIVE,
    RV_STAGE_COMPLETED,
    RV_STAGE_FAILED,
    RV_STAGE_SKIPPED,
};
/** Tells whether the stage waits, its requires are met (all completed; with join any: one of them) and all stages of
 * its after have ended. false: also for an index of no stage. */
bool rv_stage_has_what_it_needs(const struct rv_pipeline *p, const enum rv_stage_state *states, int stage);
/** All ready stages in stage order into out[0..n_agents); the number. A stage that only an error_next names is ready
 * when one of the stages that name it so has failed. */
size_t rv_pipeline_ready(const struct rv_pipeline *p, const enum rv_stage_state *states, int *out);

/* --- Views --- */
void rv_pipeline_write_json(const struct rv_pipeline *p, rv_jw *w); /* normalised, defaults filled in, secrets hidden */
void rv_pipeline_write_schema(rv_jw *w);                            /* JSON Schema of the file format (2020-12) */
void rv_pipeline_write_reference(rv_buf *b);                        /* the keys as Markdown tables */
#endif
