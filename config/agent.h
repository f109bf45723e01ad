/* The agent: all configuration of one stage of a pipeline.
 *
 * An *agent* is configuration, a *stage* is its place in a pipeline, a *visit* is one execution of that. An agent is
 * made when a pipeline is loaded and never changes during a run. Its parts come from the keys of a pipeline file, from
 * an agent document (`agent: NAME`), or from a program that starts a chat or asks another agent; all of them go through
 * the builder in config/build.c. docs/explanation/the-agent.md follows an agent from its configuration to a visit.
 * Plain data: texts and arrays live in the arena of the pipeline, and any thread may read them. Names of hooks and the
 * like are "capability.name". Texts are never NULL unless their comment says so; "" means: not given. */
#ifndef RV_CONFIG_AGENT_H
#define RV_CONFIG_AGENT_H

#include "config/agent_planning.h"
#include "config/agentdoc/agentdoc.h"
#include "coreengine/lang/lang.h"

#define RV_MAX_STAGE_NAME      128 /* bytes: names stand in one line of a terminal */
#define RV_MAX_RULES_PER_AGENT 256 /* rules: routing looks at them one by one */

/* --- The model --- */
#define RV_MAX_EXAMPLES    64 /* of a stage: they are sent with every request */
#define RV_MAX_ATTACHMENTS 32 /* expressions of a prompt: a request has no more attachments */
/* A question and the answer that the model is to take as an example. */
struct rv_example {
    rv_template *user, *assistant; /* owned by the pipeline */
};
enum rv_tool_choice { RV_CHOICE_OF_MODEL, RV_CHOICE_REQUIRED, RV_N_TOOL_CHOICES };
struct rv_agent_model {
    const char *role;       /* a role of the pipeline's models */
    const char *prompt_key; /* "": the input of the run */
    const char *system;     /* layer 1 of the prompt: the agent document as text; "": none */
    const char *system_key; /* in its place, without a document: a prompt that is the system text; "": none */
    struct rv_example *examples;
    size_t n_examples;
    rv_expr **attachments; /* expressions of images and files that belong to the prompt; owned by the pipeline */
    size_t n_attachments;
    bool has_temperature;
    bool no_temperature; /* the file says null: send no temperature, whatever the model or the document says */
    double temperature;
    bool has_max_tokens;
    int64_t max_tokens;
    enum rv_tool_choice tool_choice;
};

/* --- The output --- */
enum rv_output_mode { RV_OUTPUT_JSON, RV_OUTPUT_TEXT, RV_N_OUTPUT_MODES };
/* The way to make a model answer in the shape of the output's schema. */
enum rv_output_via { RV_OUTPUT_VIA_AUTO, RV_OUTPUT_VIA_NATIVE, RV_OUTPUT_VIA_TOOL, RV_OUTPUT_VIA_PROMPT, RV_N_VIAS };
extern const struct rv_term_list rv_output_vias; /* by enum rv_output_via */
struct rv_agent_output {
    const char *key; /* of the envelope's outputs; defaults to the name */
    enum rv_output_mode mode;
    json_object *schema;           /* JSON Schema; NULL: none. Owned by the pipeline */
    const struct rv_node *written; /* the schema as its file has it; NULL: not of a file */
    enum rv_output_via via;
    struct rv_str_list required_fields;
    int state_merge; /* enum rv_merge_mode for this key, or RV_UNSET */
};

/* --- Tools --- */
#define RV_TOOL_ASK_AGENT        "ask_agent"        /* a tool of every pipeline: a model asks another agent */
#define RV_TOOL_READ_RESOURCE    "read_resource"    /* what tools of a document call that have a uri */
#define RV_MAX_CLIENT_TOOLS      128                /* of a stage: they are sent with every request */
#define RV_MAX_CLIENT_TOOL_NAME  64                 /* characters: providers refuse longer names */
#define RV_MAX_CLIENT_TOOL_WORDS ((size_t)16 << 10) /* bytes of a description: it is sent with every request */
/* A tool that the client of the run calls itself: the run waits for the result. */
struct rv_client_tool {
    const char *name, *description; /* "": none */
    json_object *parameters;        /* JSON Schema of an object; NULL: any. Owned by the pipeline */
    const struct rv_node *written;  /* the parameters as the file has them */
    struct rv_src src;
};
struct rv_agent_tools {
    struct rv_client_tool *client;
    size_t n_client;
    struct rv_src client_src;
    int access;                 /* enum rv_tool_access or RV_UNSET */
    struct rv_str_list allowed; /* is_set false: no allow list; entries with `false` are left out */
    const char *plan_from;      /* without a model: output key of the plan whose steps are called; default "plan" */
    const char *chained;        /* tool that gets the output of the model */
    json_object *chained_map;   /* member of the output -> parameter of that tool; NULL: none */
};

/* --- Code of capabilities that runs during a visit --- */
struct rv_agent_hooks {
    const char *pre_process, *post_process;
    struct rv_str_list before_model, after_model, before_tool, after_tool; /* asked in this order around each call */
    struct rv_str_list policies;
    const char *mock_handler;
    bool mock; /* the mock handler does the work; set for the stage or the whole pipeline */
};

/* --- Routing: where the run goes after a visit --- */
/* A stage index >= 0, or one of these. */
enum rv_target {
    RV_TARGET_END = -1,
    RV_TARGET_CLARIFICATION = -2,
    RV_TARGET_CONFIRMATION = -3,
    RV_TARGET_NONE = -4,    /* the key is empty */
    RV_TARGET_UNKNOWN = -5, /* only in a pipeline that has errors */
    RV_TARGET_LIST = -6,    /* several stages at once: see the branches beside it */
};
/* A list of targets: the run goes on at each of them, one branch for each. */
struct rv_branch_target {
    const char *name; /* in the arena of the pipeline */
    int target;
    rv_expr *when; /* NULL: always. Owned by the pipeline, as all expressions and templates of this file */
    struct rv_src src;
};
struct rv_branches {
    struct rv_branch_target *items;
    size_t n;
    bool is_list; /* false: a single target, or none */
    struct rv_src src;
};
/* Owned by the pipeline, as all values and expressions of an agent. */
struct rv_rule {
    const char *condition;   /* output key; NULL when `when` is used */
    json_object *value;      /* compared with the output's value; NULL is null */
    rv_expr *when;           /* NULL when `condition` is used */
    const char *target_name; /* "" when it is a list */
    int target;              /* LIST: branches */
    struct rv_branches branches;
    struct rv_src src, target_src;
};
struct rv_agent_routing {
    struct rv_rule *rules; /* the first that matches decides */
    size_t n_rules;
    const char *default_next, *error_next;
    int default_target, error_target; /* RV_TARGET_NONE when not given; default_target LIST: branches */
    struct rv_branches branches;      /* of default_next */
    const char *function;             /* routing function of a capability */
    int join_of;                      /* the join where the branches of its lists meet; NONE: nowhere, or no lists */
    bool on_failure_only;             /* parallel mode: it waits for nothing, and only an error_next leads to it */
};

/* --- Limits --- */
#define RV_LLM_DEFAULT_ROUNDS    10 /* replies of a visit that call tools */
#define RV_LLM_DEFAULT_REPAIRS   1  /* replies that do not fit the output's schema and are asked for again */
#define RV_LLM_DEFAULT_BAD_CALLS 3  /* tool calls of a visit that cannot be made: unknown, malformed, invalid */
/* Defaults of a declared agent's limits in one visit, where neither its stage nor its document sets them. */
#define RV_AGENT_DEFAULT_REQUESTS 15
#define RV_AGENT_DEFAULT_TOKENS   80000
/* Limits of one visit with a model; 0: none. The request limit is checked before each request, the tool call limit
 * before the calls of a reply are made, the token limits after each reply and before the next request. */
struct rv_llm_limits {
    int64_t request_limit, tool_calls_limit, input_tokens_limit, output_tokens_limit, total_tokens_limit;
};
struct rv_agent_limits {
    int64_t timeout_seconds; /* of a visit; effective: its own, else the default of the pipeline */
    int64_t max_visits;      /* of one run; 0: no limit of its own */
    int64_t max_retries, max_rounds, max_repairs, max_bad_calls;
    int64_t max_context_tokens; /* of the messages of one request; 0: no limit */
    struct rv_llm_limits llm;
};

/* --- Its stage: when it runs --- */
struct rv_agent_order {
    int64_t stage_order; /* lower first */
    struct rv_str_list required, after;
    int *required_index, *after_index; /* stage indices, same order; -1 unknown */
    enum rv_join join;
};

/* --- Groups: a list of targets opens one, a stage with `join` goes on when it is settled --- */
#define RV_ARBITER "arbiter" /* the output key by which the rules know the arbiter */

enum rv_join_wait { RV_WAIT_NOT, RV_WAIT_ALL, RV_WAIT_ANY, RV_WAIT_COUNT };
enum rv_join_failures { RV_FAILURES_DRAIN, RV_FAILURES_FAST, RV_FAILURES_COLLECT, RV_N_JOIN_FAILURES };
struct rv_join_merge {
    const char *key; /* of the outputs */
    int how;         /* enum rv_merge_mode */
    struct rv_src src;
};
struct rv_agent_join {
    enum rv_join_wait wait;         /* NOT: the key is not given */
    int64_t count;                  /* COUNT: so many branches have to arrive; `first` is 1 */
    enum rv_join_failures failures; /* other than DRAIN only with ALL */
    struct rv_join_merge *merges;
    size_t n_merges;
    struct rv_src src, wait_src, failures_src;
};

/* Where a stage stands among the groups of its pipeline; found when that is loaded. In a sound pipeline a stage always
 * is visited with the same groups open: those of `fork`, of the stage where `fork` itself stands, and so on. */
#define RV_MAX_GROUP_DEPTH 64 /* groups within each other: more is generated by mistake */
struct rv_agent_level {
    int fork;        /* the stage whose group is open there, the innermost of them; -1: none is */
    int depth;       /* so many groups are open */
    bool is_reached; /* false: no route leads there from the first stage, and the rest is a guess */
    bool can_join;   /* from here the branch can reach the join of its group */
};

/* --- Other kinds of work --- */
#define RV_EACH_MAX_ITEMS    100000 /* elements: the result of each is in memory until the last one has ended */
#define RV_EACH_MAX_PARALLEL 1000   /* elements at once: each can hold a thread or a connection */
enum rv_item_error { RV_ITEM_FAIL, RV_ITEM_SKIP, RV_ITEM_COLLECT, RV_N_ITEM_ERRORS };
/* `for_each`: the work of the stage is done for each element of a list. */
struct rv_agent_each {
    rv_expr *list;                   /* NULL: the stage has no for_each */
    int64_t max_items, max_parallel; /* max_items 0: not given */
    enum rv_item_error on_error;
    struct rv_src src, max_items_src, max_parallel_src, on_error_src;
};
/* A value that is built when it is needed: texts of the file are expressions, other scalars constants. */
enum rv_built_kind { RV_BUILT_EXPR, RV_BUILT_CONST, RV_BUILT_LIST, RV_BUILT_MAP };
struct rv_built {
    enum rv_built_kind kind;
    rv_expr *expr;          /* EXPR */
    json_object *value;     /* CONST; NULL is null. Owned by the pipeline */
    const char **keys;      /* MAP */
    struct rv_built *items; /* MAP, LIST */
    size_t n;
    const struct rv_node *node; /* as it was written */
};
/* `pipeline`: another pipeline runs inside the visit. */
struct rv_agent_inner {
    const char *file;                  /* "": the stage has no pipeline */
    struct rv_pipeline *pipeline;      /* owned by the outermost pipeline; NULL: none, or it could not be loaded */
    struct rv_built *inputs, *outputs; /* NULL: not given */
    struct rv_src src, inputs_src, outputs_src;
};

/* --- A question of the stage: put to a person when its output is stored --- */
struct rv_answer_route {
    const char *choice, *target_name;
    int target;
    struct rv_src src, choice_src;
};
#define RV_ASK_MAX_OPTIONS 64 /* of a question: a person reads all of them */
struct rv_agent_ask {
    rv_template *question;          /* NULL: the stage does not ask */
    rv_expr *show;                  /* NULL: the output */
    struct rv_str_list options;     /* is_set false: yes and no */
    bool any_text;                  /* `options: text`: any text is taken, as the choice `text` */
    int64_t expires_seconds;        /* 0: it never expires */
    struct rv_answer_route *routes; /* on_answer */
    size_t n_routes;
    struct rv_src src, on_answer_src;
};
/** The i-th choice of a question without `options: text`; NULL: there are no more. */
const char *rv_ask_option_at(const struct rv_agent_ask *ask, size_t i);
/* A person refused a tool call that the model asked for. */
enum rv_on_denied { RV_DENIED_END_RUN, RV_DENIED_TELL_MODEL, RV_N_ON_DENIED };

/* --- The agent document that it is made from: `agent: NAME` --- */
struct rv_agent_declared {
    const char *name;              /* "": it is made from the keys of its stage alone */
    const struct rv_agentdoc *doc; /* NULL: none, or not bound yet (rv_pipeline_bind_agents()) */
    int structured;                /* `structured_output`, in place of the document's: RV_UNSET, 0 or 1 */
};

/* --- The conversation --- */
struct rv_agent_session {
    bool joins;             /* the history is sent to the model, and the rows of the turn are kept */
    int child_text;         /* enum rv_child_text, or RV_UNSET: see rv_agent_child_text_kind() */
    bool child_text_resets; /* the text of the asking agent is visible again after each delegation */
};

/* --- Where it was written: file, line and column of each key; line 0: not given --- */
struct rv_agent_places {
    struct rv_src stage; /* the map of all its keys */
    struct rv_src name, agent, error_next, default_next, output_key, prompt_key, system_key, examples, attachments,
        model_role, output_schema, output_via, allowed_tools, pre_process, post_process, mock_handler, routing_function,
        plan_from, has_policies;
};

struct rv_agent {
    const char *name; /* of its stage: unique in the pipeline */
    int index;        /* of its stage: position in stage order */
    /* What a visit does: has_llm asks a model (which may call tools if has_tools, too); else has_tools calls the steps
     * of a plan; else the stage is a service and its hooks do the work. */
    bool has_llm, has_tools, has_policies;
    struct rv_agent_order order;
    struct rv_agent_declared declared;
    struct rv_agent_model model;
    struct rv_agent_output output;
    struct rv_agent_tools tools;
    struct rv_agent_hooks hooks;
    struct rv_agent_routing routing;
    struct rv_agent_limits limits;
    struct rv_agent_planning planning;
    struct rv_agent_session session;
    struct rv_agent_join join;
    struct rv_agent_level level;
    struct rv_agent_each each;
    struct rv_agent_inner inner;
    struct rv_built *set; /* `set`: the output is built from expressions; NULL: not given */
    struct rv_src set_src;
    struct rv_agent_ask ask;
    enum rv_on_denied on_denied;
    struct rv_src on_denied_src;
    struct rv_agent_places places;
};

/** Is that tool of a client called like one that the agent or the engine has? */
bool rv_client_tool_collides(const struct rv_agent *a, const char *name);
/** The tool that a call of that name goes to: read_resource for one that the document gives a uri, else itself. */
const char *rv_agent_callee(const struct rv_agent *a, const char *tool);

#endif
