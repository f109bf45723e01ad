/* Shared by the files of config only: what a pipeline owns behind its plain data, and the steps of loading one. */
#ifndef RV_CONFIG_INTERNAL_H
#define RV_CONFIG_INTERNAL_H

#include "config/config.h"

#define RV_MAX_MODELS           256   /* of a pipeline */
#define RV_MAX_PROMPTS          4096  /* of a pipeline */
#define RV_MAX_CAPABILITIES     256   /* of a pipeline */
#define RV_MAX_TEST_CONFIGS     10000 /* with one for each case */
#define RV_MAX_STATE_FIELDS     1024
#define RV_MAX_EDGE_LIMITS      10000
#define RV_MAX_PROMPT_BYTES     ((size_t)1 << 20)   /* one prompt file */
#define RV_MAX_FILE_TOTAL_BYTES ((size_t)16 << 20)  /* all prompt and schema files of a pipeline */
#define RV_MAX_SECRET_BYTES     ((size_t)64 << 10)  /* one ${file:} */
#define RV_PIPELINE_MAX_ARENA   ((size_t)256 << 20) /* far above what a file of RV_YAML_MAX_BYTES can need */

/* How a model or capability was written, so that explaining it never prints what an indirection gave. */
struct rv_written {
    const struct rv_node *node; /* the value in the file; borrowed from the file's tree */
    bool hides_name;            /* its provider and model come from an indirection */
};

/* The stages that wait for each stage: dependents of stage s are items[start[s] .. start[s + 1]), in stage order, no
 * stage twice. */
struct rv_links {
    int *items;    /* owned */
    size_t *start; /* owned; n_agents + 1 entries, NULL until linked */
};
/** Fill in p->internal->links. Indices that are out of range (unknown names) are left out. RV_E_NOMEM. */
RV_MUST_CHECK int rv_pipeline_link(struct rv_pipeline *p, rv_err **err);
void rv_links_fini(struct rv_links *links); /* fine on a zeroed one */

/* What a pipeline is made of that its users do not see. Arrays live in its arena; nodes are borrowed from doc. */
struct rv_pipeline_internal {
    rv_arena *arena;           /* texts and arrays of the pipeline; dies with it */
    rv_yaml *doc;              /* the file; inline scripts and written values point into it; owned */
    struct rv_links links;     /* dependents of each stage */
    rv_index edges;            /* key: two stage indices as bytes; value: index in edge_limits */
    rv_index output_index;     /* output key -> stage */
    struct rv_written *models; /* same order as the pipeline's */
    struct rv_written *capabilities;
    const struct rv_node **mcp_servers;    /* their values in the file */
    struct rv_chosen_model *chosen_models; /* dropped ones are optional and have a variable that is not set */
    size_t n_chosen_models;
    const char **target_names; /* every stage, then end, clarification, confirmation */
    size_t n_target_names;
    bool has_models; /* the key is there, even if every role was dropped */
    rv_str text;     /* the YAML, in the arena as the files are */
    struct rv_text_file *files;
    size_t n_files;                     /* room is there for one per prompt and agent */
    const struct rv_node **agent_nodes; /* as the pipeline's agents; NULL: the caller gave structs, not text */
    struct rv_bound_agent *bound;       /* declared agents, in the order in which stages name them */
    struct rv_agentdoc **docs;          /* of them, owned; NULL: it has faults */
    size_t n_bound;
    struct rv_chosen_model *given_models; /* prices and windows the pipeline was made with; NULL: look them up */
    size_t n_given_models;
    const char *model;   /* that the caller chose for all roles; NULL: none */
    bool borrows_models; /* their options are another pipeline's */
    struct rv_owned *owned;
    struct rv_pipeline **inner; /* of the outermost pipeline: those that stages run; owned */
    size_t n_inner, cap_files;
};

/* What the pipeline owns outside of its arena, in the order in which it was made. */
struct rv_owned {
    struct rv_owned *next;
    rv_expr *expr;
    rv_template *template;
    json_object *value;
};

/* A text of a stage whose names are checked once all stages are known (rv_check_names()). It lives in the arena of the
 * pipeline. */
struct rv_noted_text {
    const struct rv_noted_text *next;
    const char *what;    /* how findings about it begin: agent "a": rule 1: "when" */
    const char *owner;   /* the stage that it is of, whose output is `output`; NULL: none */
    struct rv_src src;   /* of the text's first byte */
    int indent;          /* as in struct rv_prompt_config */
    const rv_expr *expr; /* this, or a template */
    const rv_template *template;
};

/* One load. Readers of table rows reach it by rv_key_reader.user. What it points to is borrowed for the load, but for
 * what is said to be owned. */
struct rv_loader {
    struct rv_pipeline *p;
    rv_arena *arena; /* the pipeline's */
    rv_findings *findings;
    const struct rv_pipeline_opts *opts; /* never NULL */
    const struct rv_node *root;
    size_t n_file_bytes;      /* of text files so far */
    rv_index file_index;      /* path -> one of the pipeline's files */
    struct rv_prices *prices; /* NULL until a model is looked for in them; owned */
    const struct rv_noted_text *noted;
    struct rv_agent_planning planning; /* the defaults, from the first agent on */
    bool has_planning;
    int rc; /* RV_E_NOMEM; sticky */
};

/* The tables, in the order of the reference page. */
struct rv_key_table {
    const char *name;  /* of the map: "pipeline", "agent", ...; its schema is #/$defs/<name> */
    const char *title; /* one line for the reference page */
    const struct rv_key *keys;
    size_t n_keys;
    const char *more; /* further rules between keys, as members of a JSON Schema object; NULL: none */
};
/* What users of other tools write in the place of keys (words.c), for struct rv_key_reader.words. */
extern const struct rv_key_word rv_pipeline_words[], rv_agent_words[], rv_rule_words[], rv_budget_words[],
    rv_test_words[], rv_expect_words[], rv_server_words[], rv_model_words[];
extern const struct rv_key_table rv_agent_table, rv_budget_table, rv_capability_table, rv_edge_limit_table,
    rv_client_tool_table, rv_mcp_server_table, rv_mcp_tool_table, rv_example_table, rv_execution_table, rv_model_table,
    rv_pipeline_table, rv_price_table, rv_prompt_table, rv_rule_table, rv_state_field_table, rv_test_call_table,
    rv_test_error_table, rv_test_expect_table, rv_test_input_table, rv_test_judge_table, rv_test_near_table,
    rv_test_similar_table, rv_test_table;
extern const struct rv_term_list rv_child_text_list; /* agents.c */

/* Readers of the sections (rv_key.read). */
void rv_read_budget(struct rv_key_reader *r, const struct rv_node *node, void *target);
void rv_read_attachments(struct rv_key_reader *r, const struct rv_node *node, void *target);
void rv_read_client_tools(struct rv_key_reader *r, const struct rv_node *node, void *target);
void rv_read_examples(struct rv_key_reader *r, const struct rv_node *node, void *target);
void rv_read_rules(struct rv_key_reader *r, const struct rv_node *node, void *target);
void rv_read_output_schema(struct rv_key_reader *r, const struct rv_node *node, void *target);
void rv_read_models(struct rv_key_reader *r, const struct rv_node *node, void *target);
void rv_read_prompts(struct rv_key_reader *r, const struct rv_node *node, void *target);
void rv_read_mcp_servers(struct rv_key_reader *r, const struct rv_node *node, void *target);
void rv_read_capabilities(struct rv_key_reader *r, const struct rv_node *node, void *target);
void rv_read_execution(struct rv_key_reader *r, const struct rv_node *node, void *target);
void rv_read_tests(struct rv_key_reader *r, const struct rv_node *node, void *target);
/* Those of groups and of other kinds of work (graph_keys.c). */
#define RV_TARGET_LIST_SCHEMA                                                                                          \
    "{\"type\":\"array\",\"minItems\":1,\"maxItems\":256,\"items\":{\"anyOf\":[{\"type\":\"string\",\"minLength\":1}," \
    "{\"$ref\":\"#/$defs/branch\"}]}}"
void rv_read_default_next(struct rv_key_reader *r, const struct rv_node *node, void *target);
void rv_read_error_next(struct rv_key_reader *r, const struct rv_node *node, void *target);
/** A target or a list of them. name: what a single one is called; "" for a list. */
void rv_read_targets(struct rv_key_reader *r, const struct rv_node *node, const char *key, const char **name,
                     struct rv_branches *out);
void rv_read_join(struct rv_key_reader *r, const struct rv_node *node, void *target);
void rv_read_for_each(struct rv_key_reader *r, const struct rv_node *node, void *target);
void rv_read_set(struct rv_key_reader *r, const struct rv_node *node, void *target);
void rv_read_inner_inputs(struct rv_key_reader *r, const struct rv_node *node, void *target);
void rv_read_inner_outputs(struct rv_key_reader *r, const struct rv_node *node, void *target);
void rv_read_ask(struct rv_key_reader *r, const struct rv_node *node, void *target);
void rv_read_on_answer(struct rv_key_reader *r, const struct rv_node *node, void *target);
extern const struct rv_key_table rv_ask_table, rv_branch_table, rv_join_table;
extern const struct rv_term_list rv_item_error_list, rv_merge_list, rv_on_denied_list;
/* --- Expressions and templates of stages (texts.c): the pipeline owns them, and their names are checked with those of
 * prompts. NULL: the text is none, which is a finding, or memory is short. what: for the finding, `rule 2: "when"`. ---
 */
enum rv_text_place {
    RV_TEXT_OF_STAGE,
    RV_TEXT_BEFORE_OUTPUT, /* without the variable `output`: the stage has none yet */
    RV_TEXT_INSIDE,        /* over the outputs of an inner pipeline: their names are not checked here */
    RV_TEXT_OF_TEST,       /* over the end of a test: docs/reference/tests.md */
};
rv_expr *rv_loader_expr(struct rv_key_reader *r, const struct rv_node *node, const char *what,
                        enum rv_text_place place);
/** One that is true or false. */
rv_expr *rv_loader_condition(struct rv_key_reader *r, const struct rv_node *node, const char *what,
                             enum rv_text_place place);
/** what NULL: its names are not checked. */
rv_template *rv_loader_template(struct rv_key_reader *r, const struct rv_node *node, const char *what);
struct rv_owned *rv_loader_own(struct rv_loader *l); /* a place for one more value that the pipeline owns */

/** Have the names in an expression or a template (the other is NULL) of a stage checked with those of prompts. label:
 *  what it is of the stage, `rule 1: "when"`. */
void rv_note_text(struct rv_key_reader *r, const struct rv_node *node, const char *label, const rv_expr *expr,
                  const rv_template *template);
/** Warns of keys about requests to a model in a stage that makes none. */
void rv_check_request_keys(struct rv_loader *l, const struct rv_agent *a);
void rv_check_client_tools(struct rv_loader *l, const struct rv_agent *a);
/* Planning (planning.c). */
#define RV_N_PLAN_KEYS    5
#define RV_N_EXECUTE_KEYS 5
#define RV_N_RESPOND_KEYS 2
extern const struct rv_key rv_plan_keys[RV_N_PLAN_KEYS], rv_execute_keys[RV_N_EXECUTE_KEYS],
    rv_respond_keys[RV_N_RESPOND_KEYS];
extern const struct rv_term_list rv_strategy_list;
/** The defaults, below the keys of the stage. */
void rv_planning_defaults(struct rv_loader *l, struct rv_key_reader *r, struct rv_agent *a);
void rv_decide_planning(struct rv_loader *l); /* once agents and servers were read */
void rv_check_planning(struct rv_loader *l, const struct rv_agent *a);
void rv_planning_explain(const struct rv_agent *a, rv_jw *w);
/** The defaults of rule 4.6. */
void rv_execution_defaults(struct rv_loader *l);

/* --- The builder of agents (build.c) --- */
/** An agent of the keys of its stage: a map of a file, or one that a program made. What is wrong are findings. */
void rv_agent_build(struct rv_loader *l, const struct rv_node *keys, struct rv_agent *out);
/** What its document says is added, below its keys (NULL: there are none to look at). default_role: of an agent whose
 *  keys and document name no model. There is room for one more model. */
void rv_agent_add_document(struct rv_loader *l, struct rv_agent *a, const struct rv_agentdoc *doc,
                           const struct rv_node *keys, const char *default_role);

/** Set on_failure_only of all stages; their targets are resolved. A run begins with the first stage, so it never is
 * one. */
void rv_pipeline_mark_fallbacks(struct rv_pipeline *p);

/* Steps after reading, in this order; each adds findings. */
void rv_resolve_fallbacks(struct rv_loader *l); /* roles of models to models; without circles */
void rv_finish_agents(struct rv_loader *l);     /* sort, index, resolve names, compile nothing */
void rv_check_stages(struct rv_loader *l);      /* each of them, and what spans them */
void rv_check_groups(struct rv_loader *l);      /* lists and joins; finds the level of each stage */
void rv_check_work(struct rv_loader *l);        /* kinds of work; pipelines that stages run are loaded */
void rv_check_budget(struct rv_loader *l);      /* a budget needs prices */
/** Models that stages of p ask have a price where p, or a pipeline that runs it, has a budget. known: those that were
 * looked at before; NULL: none was. */
void rv_check_prices(struct rv_loader *l, const struct rv_pipeline *p, bool is_in_budget, const bool *known);
/** is_in_budget[i] becomes true where a pipeline that runs the inner pipeline i, or one around that, has a budget. */
void rv_mark_in_budget(const struct rv_pipeline *p, bool *is_in_budget);
void rv_check_names(struct rv_loader *l); /* what placeholders and expressions name */
void rv_check_tests(struct rv_loader *l); /* stage names in expectations */

/* --- Groups (groups.c, group_regions.c) --- */
enum rv_way_kind { RV_WAY_ONE, RV_WAY_BY_ERROR, RV_WAY_BY_ANSWER, RV_WAY_BRANCH };
/* One way that a stage names in its file, whether or not it can be taken. */
struct rv_group_way {
    int from, to; /* to: any target but LIST */
    enum rv_way_kind kind;
    struct rv_src src;
};
/** The ways of a stage, one after another; `at` begins with 0. False: there is no further one. */
struct rv_way_cursor {
    size_t rule, branch, answer;
    int step;
};
bool rv_next_way(const struct rv_agent *a, struct rv_way_cursor *at, struct rv_group_way *out);
/** What needs no levels: the names in lists, the words of joins, and keys that do not go with them. */
void rv_check_lists(struct rv_loader *l);
/** What needs the levels of all stages: which branches can join, and which of them write the same output. */
void rv_check_regions(struct rv_loader *l);

/* --- Money: US dollars as written, to integers --- */
#define RV_MAX_USD 1e6

/* --- Declared agents --- */
/** Room for more models behind those that are there (of `from`, which may be the pipeline itself). */
void rv_reserve_models(struct rv_loader *l, const struct rv_pipeline *from, size_t n_more);
/** The role for the model of a document; there is room for one more. NULL: out of memory, recorded. */
const char *rv_declare_model(struct rv_loader *l, const char *agent, const struct rv_agentdoc *doc);
/** Is it a role that is left out, since a variable is not set? */
bool rv_is_dropped_role(const struct rv_pipeline *p, const char *role);
/** A pipeline without anything in it. NULL: out of memory. */
struct rv_pipeline *rv_pipeline_blank(rv_str text, const char *name, const char *dir);

/* Small things that several sections need. */
struct rv_loader *rv_loader_of(struct rv_key_reader *r);
/** Room for the items of a list or a map, at most max of them; what: "a list ..." or "a map ...", for messages: zeroed
 * arena memory, *n of size each. NULL, and *n is 0: the node is of another kind or too long, which is a finding, or
 * memory is short. */
void *rv_loader_items(struct rv_key_reader *r, const struct rv_node *node, const char *what, const char *key,
                      size_t max, size_t size, size_t *n);
/** Zeroed arena memory for n items (n may be 0); NULL is out of memory and recorded in the loader. */
void *rv_loader_array(struct rv_loader *l, size_t n, size_t size);
/** path relative to the pipeline's folder, in the arena; NULL is out of memory, recorded. */
const char *rv_loader_path(struct rv_loader *l, rv_str path);
/** The text of a prompt or schema file; a path is read once and then remembered. what and src:
 *  for the finding. false: it cannot be read, which is a finding or recorded in the loader. */
bool rv_loader_text_file(struct rv_loader *l, const char *what, const char *path, const struct rv_src *src,
                         rv_str *out);
/** `did you mean "x"? stages: a, b, c` into out; what: "stages". Empty when findings are not kept any more. */
#define RV_HINT_MAX 1024
void rv_name_hint(const rv_findings *f, rv_str name, const char *what, const char *const *names, size_t n,
                  char out[RV_HINT_MAX]);

/** Replace ${env:NAME} and ${file:path} in every string of a JSON value. *replaced becomes true when there was one.
 *  @param missing_ok a variable that is not set does not become a finding: *is_missing becomes true instead
 *  @return the new value (owned), NULL after a failure or for null */
struct rv_indirection {
    bool missing_ok;
    bool replaced, is_missing, is_wrong; /* out; is_wrong: a finding says why */
    const char *missing;                 /* out: the first variable that is not set, in the arena; NULL: none */
};
json_object *rv_resolve_indirections(struct rv_loader *l, const struct rv_node *node, struct rv_indirection *how);

/* --- asks.c --- */
/** Questions of a stage, and what follows when a person refuses a call. */
void rv_check_asks(struct rv_loader *l, const struct rv_agent *a);

#endif
