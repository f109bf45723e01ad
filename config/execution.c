/* The `execution` section (rule 4.6): global knobs. The file gives times in seconds; inside they are milliseconds. */
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "config/config_internal.h"

struct raw_execution {
    struct rv_execution_config c;
    double llm_timeout, executor_timeout, tool_timeout, agent_timeout, delegation_timeout,
        meta_validation_delay; /* seconds */
};
#define AT(member) offsetof(struct raw_execution, member)

#define QUOTED(x)  #x
#define TEXT_OF(x) QUOTED(x)

#define COUNT_KEY(key, value, text)                                                                                    \
    {                                                                                                                  \
        .name = #key, .type = RV_KEY_INT, .offset = AT(c.key), .min = 0, .max = 1e6, .default_text = value,            \
        .doc = text                                                                                                    \
    }
/* Without it, nothing but the pipeline's own bounds ends such loops. */
#define LIMIT_KEY(key, value, text)                                                                                    \
    {                                                                                                                  \
        .name = #key, .type = RV_KEY_INT, .offset = AT(c.key), .min = 0, .max = 1e6, .default_text = value,            \
        .is_set_offset = AT(c.has_##key), .doc = text                                                                  \
    }
#define FLAG_KEY(key, value, text)                                                                                     \
    {                                                                                                                  \
        .name = #key, .type = RV_KEY_BOOL, .offset = AT(c.key), .default_text = value, .doc = text                     \
    }
#define SHARE_KEY(key, value, text)                                                                                    \
    {                                                                                                                  \
        .name = #key, .type = RV_KEY_FLOAT, .offset = AT(c.key), .min = 0, .max = 1, .default_text = value,            \
        .doc = text                                                                                                    \
    }
#define SECONDS_KEY(key, flag, value, text)                                                                            \
    {                                                                                                                  \
        .name = #key, .type = RV_KEY_FLOAT, .offset = AT(key), .min = 0.001, .max = 31536000, .default_text = value,   \
        .is_set_offset = AT(c.flag), .doc = text                                                                       \
    }

/* Words of the log, in either case: the field has both habits. */
static const char *const log_levels[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "OFF"};
#define LOG_LEVEL_SCHEMA                                                                                               \
    "{\"enum\":[\"TRACE\",\"DEBUG\",\"INFO\",\"WARN\",\"ERROR\",\"OFF\",\"trace\",\"debug\",\"info\",\"warn\","        \
    "\"error\",\"off\"]}"

static bool is_one_case(const char *text)
{
    size_t lower = strspn(text, "abcdefghijklmnopqrstuvwxyz");
    size_t upper = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

    return text[lower] == 0 || text[upper] == 0;
}

static void read_log_level(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    if (node->kind != RV_NODE_STR) {
        rv_keys_add_wrong_type(r, node, "log_level", "a string");
        return;
    }
    for (size_t i = 0; i < RV_COUNT(log_levels); i++) {
        if (strcasecmp(node->text.ptr, log_levels[i]) == 0 && is_one_case(node->text.ptr)) {
            *(const char **)target = log_levels[i];
            return;
        }
    }
    rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, "legal: TRACE, DEBUG, INFO, WARN, ERROR, OFF",
                        "execution.log_level is \"%.*s\", which is not a log level",
                        RV_STR_ARG(rv_utf8_cut(node->text, 60)));
}

static const struct rv_key execution_keys[] = {
    {"max_plan_steps", RV_KEY_INT, AT(c.max_plan_steps), .min = 1, .max = 1e6, .default_text = "20",
     .doc = "A plan with more steps fails its stage before any runs."},
    COUNT_KEY(max_tool_retries, "2", "Further attempts of a tool call that may be repeated."),
    COUNT_KEY(max_llm_retries, "3", "Further attempts of a model call within one stage attempt."),
    LIMIT_KEY(max_loop_iterations, "10",
              "Loop-backs of a run, over all edges; one more ends it with max_loop_exceeded. Applies where the file "
              "gives it; max_iterations holds beside it."),
    LIMIT_KEY(max_replan_iterations, "3",
              "Loop-backs that follow outcome `replan`; one more ends the run with max_loop_exceeded. Applies where "
              "the file gives it."),
    LIMIT_KEY(max_loop_back_rejections, "2",
              "Loop-backs of one stage that follow its outcome or verdict `loop_back`; one more ends the run with "
              "max_loop_exceeded. Applies where the file gives it."),
    SECONDS_KEY(llm_timeout, has_llm_timeout, "120", "Seconds for one model call."),
    SECONDS_KEY(executor_timeout, has_executor_timeout, "60", "Seconds for all steps of a tool stage."),
    SECONDS_KEY(tool_timeout, has_tool_timeout, "30", "Seconds for one tool call."),
    SECONDS_KEY(agent_timeout, has_agent_timeout, "300", "Seconds for one visit of a stage."),
    {"delegation_timeout", RV_KEY_FLOAT, AT(delegation_timeout), .min = 0.001, .max = 31536000, .default_text = "300",
     .doc = "Seconds for one agent that another one asks, where the call does not say."},
    {"agent_request_limit", RV_KEY_INT, AT(c.agent_request_limit), .min = 1, .max = 1e6,
     .default_text = TEXT_OF(RV_AGENT_DEFAULT_REQUESTS),
     .doc = "`limits.request_limit` of declared agents, asked ones too, where neither stage nor document says."},
    {"agent_token_limit", RV_KEY_INT, AT(c.agent_token_limit), .min = 1, .max = 1e12,
     .default_text = TEXT_OF(RV_AGENT_DEFAULT_TOKENS), .doc = "`limits.total_tokens_limit` of the same agents."},
    SHARE_KEY(
        clarification_threshold, "0.7",
        "An output with a number `confidence` below it, a text `clarification_question` and no `outcome` asks that "
        "question, as outcome `clarify` does."),
    SHARE_KEY(
        high_confidence_threshold, "0.9",
        "A plan of tools that only read is reviewed by the arbiter all the same if its number `confidence` is below "
        "this."),
    {"llm_seed", RV_KEY_INT, AT(c.llm_seed), .is_set_offset = AT(c.has_llm_seed),
     .doc = "Handed to providers that take a seed."},
    FLAG_KEY(require_confirmation_for_destructive, "true", "Ask before a tool runs that may destroy something."),
    FLAG_KEY(
        replan_on_partial_success, "true",
        "false: a stage with outcome `partial`, or a tool stage of whose steps some failed, is never routed back: its "
        "default_next follows, or the end if that leads back too."),
    FLAG_KEY(strict_transition_validation, "true",
             "A routing function that names no target fails its stage; false: the default decides, with a warning."),
    FLAG_KEY(enable_idempotency, "true", "false: no call has an idempotency key."),
    {"idempotency_ttl_ms", RV_KEY_INT, AT(c.idempotency_ttl_ms), .min = 1, .max = 1e12, .default_text = "3600000",
     .doc = "Milliseconds an idempotency key is valid; an attempt of the same call after that has a new one."},
    FLAG_KEY(enforce_idempotency_for_tools, "true", "false: tool calls have no idempotency key."),
    FLAG_KEY(enforce_idempotency_for_agents, "false",
             "true: model calls have idempotency keys, the same for every attempt."),
    FLAG_KEY(
        meta_validation_enabled, "true",
        "An output that contradicts itself (verdict `proceed` or `advance`, outcome `replan` or `loop_back`) is asked "
        "for once more; then its stage fails. Not with a declared agent."),
    {"meta_validation_delay", RV_KEY_FLOAT, AT(meta_validation_delay), .min = 0, .max = 31536000, .default_text = "0.5",
     .doc = "Seconds before that second attempt."},
    FLAG_KEY(enable_loop_back, "true", "false: a loop-back ends the run with max_loop_exceeded."),
    FLAG_KEY(
        enable_arbiter, "true",
        "false: the stage with output_key `arbiter` does no work; its output is {outcome: skip, verdict: proceed}."),
    FLAG_KEY(skip_arbiter_for_read_only, "true",
             "The same when the plan has steps and each names a tool that only reads; see high_confidence_threshold."),
    {"log_level", RV_KEY_CUSTOM, AT(c.log_level), .is_set_offset = AT(c.has_log_level), .read = read_log_level,
     .schema = LOG_LEVEL_SCHEMA,
     .doc = "Least level of log lines, unless --log-level says it. Where the file does not give it, only errors are "
            "logged."},
};
const struct rv_key_table config_execution_table = {"execution", "Global knobs", execution_keys,
                                                    RV_COUNT(execution_keys), NULL};

static int64_t ms_of(double seconds)
{
    return (int64_t)(seconds * 1000 + 0.5);
}

static void read(struct rv_loader *l, struct rv_key_reader *r, const struct rv_node *map)
{
    struct raw_execution raw = {.c.log_level = "INFO"};

    rv_keys_read(r, map, execution_keys, RV_COUNT(execution_keys), &raw);
    raw.c.llm_timeout_ms = ms_of(raw.llm_timeout);
    raw.c.executor_timeout_ms = ms_of(raw.executor_timeout);
    raw.c.tool_timeout_ms = ms_of(raw.tool_timeout);
    raw.c.agent_timeout_ms = ms_of(raw.agent_timeout);
    raw.c.meta_validation_delay_ms = ms_of(raw.meta_validation_delay);
    l->p->delegation_timeout_ms = ms_of(raw.delegation_timeout);
    l->p->execution = raw.c;
}

void config_execution_defaults(struct rv_loader *l)
{
    static const struct rv_node empty = {.kind = RV_NODE_MAP};
    struct rv_key_reader r = {.arena = l->arena, .findings = l->findings, .owner_kind = "execution", .user = l};

    read(l, &r, &empty);
    if (r.rc < 0)
        l->rc = r.rc;
}

void config_read_execution(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    const char *outer = r->path;

    (void)target;
    if (node->kind != RV_NODE_MAP) {
        rv_keys_add_wrong_type(r, node, "execution", "a map");
        return;
    }
    r->path = "execution.";
    read(config_loader_of(r), r, node);
    r->path = outer;
}
