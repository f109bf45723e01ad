/* Every allocation of a parse, a run and a dump fails once: no crash, no leak, RV_E_NOMEM. One scenario per way to run.
 */
#include <check.h>
#include <string.h>

#include "coreengine/run/run.h"
#include "tests/kit/catalog.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

static const char *const pipelines[] = {
    /* sequential: hooks, policies, a retry, a loop, a gate */
    "name: t\nmax_iterations: 2\nmodels: {r: scripted}\nprompts: {p: 'Do {{raw_input}} {{prior_plans}}'}\nstate: "
    "[{key: plan, merge: append}]\n"
    "agents:\n  - name: a\n    stage_order: 1\n    has_llm: true\n    model_role: r\n    prompt_key: p\n    "
    "output_key: plan\n    max_retries: 1\n"
    "    pre_process: x.pre\n    post_process: x.post\n    has_policies: true\n    policies: [x.p]\n    default_next: "
    "b\n"
    "  - name: b\n    stage_order: 2\n    has_tools: true\n    tool_access: all\n    routing_rules: [{when: "
    "'output.all_succeeded', target: end}]\n    default_next: a\n",
    /* parallel: siblings, a routed failure, a skipped stage, two gates */
    "name: t\ndefault_run_mode: parallel\nmodels: {r: scripted}\nagents:\n"
    "  - {name: a, stage_order: 1, has_llm: true, model_role: r, output_key: plan, pre_process: x.pre}\n"
    "  - {name: b, stage_order: 2, has_llm: true, model_role: r, error_next: f}\n"
    "  - {name: c, stage_order: 3, requires: [b]}\n  - {name: f, stage_order: 4, requires: [c], post_process: x.post}\n"
    "  - {name: g, stage_order: 5, requires: [a], has_tools: true, tool_access: all}\n"
    "  - {name: h, stage_order: 6, requires: [a], has_tools: true, tool_access: all}\n",
    /* a conversation with tools, a repair, a gate and a call that nobody knows about, with a budget */
    "name: t\nmodels: {r: {model: 'openai:x', price: {input: 1, output: 2}}}\nbudget: {usd: 1}\nagents:\n"
    "  - {name: a, stage_order: 1, has_llm: true, model_role: r, has_tools: true, tool_access: all, max_retries: 1, "
    "timeout_seconds: 9999, max_repairs: 2, "
    "output_schema: {type: object, required: [v], properties: {v: {type: integer}, w: {type: string}}}}\n",
    /* questions that routes ask, one of which leads back once too often */
    "name: t\nmodels: {r: scripted}\nexecution: {max_replan_iterations: 1, max_loop_back_rejections: 1, "
    "max_loop_iterations: 9}\nagents:\n"
    "  - {name: a, stage_order: 1, has_llm: true, model_role: r, routing_rules: [{when: 'true', target: "
    "confirmation}], default_next: b}\n"
    "  - {name: b, stage_order: 2, has_llm: true, model_role: r, default_next: a}\n",
    /* hooks around the model and around tools, one by one and side by side, within a bound of the context */
    "name: t\nmodels: {r: {model: 'openai:x', price: {input: 1, output: 2}}}\nbudget: {usd: 1}\nagents:\n"
    "  - {name: a, stage_order: 1, has_llm: true, model_role: r, has_tools: true, tool_access: all, allowed_tools: "
    "[read, wipe], max_retries: 1, "
    "timeout_seconds: 9999, output_mode: text, max_context_tokens: 100, before_model: [x.h, x.h], after_model: x.h, "
    "before_tool: [x.h, x.h], after_tool: x.h}\n",
};
#define TALK  2
#define ASK   3
#define HOOKS 4

static const struct rv_tool_info tools[] = {
    {.name = "read", .description = "", .risk = RV_RISK_READ_ONLY, .effect = RV_UNSET, .category = RV_UNSET},
    {.name = "wipe", .description = "", .risk = RV_RISK_DESTRUCTIVE, .effect = RV_UNSET, .category = RV_UNSET},
};

struct asked {
    int64_t id;
    enum rv_effect_kind kind;
    enum rv_name_kind entry;
    int stage;
    bool is_wipe;
    int place; /* of a hook around a call: index into around; -1: another call */
};
#define MAX_ASKED 64

#define WORD                                                                                                           \
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901"

/* What hooks around calls say, one after the other; the last of a place stays. */
static const struct {
    const char *mark, *replies[9];
} around[] = {
    {"\"hook\":\"before_model\"",
     {"{\"action\":\"replace\",\"request\":{\"system\":\"s\",\"options\":{\"seed\":1},\"history\":[{\"role\":\"user\","
      "\"content\":\"" WORD WORD WORD WORD "\"},"
      "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"h\",\"name\":\"n\",\"arguments\":\"{}\"}]},"
      "{\"role\":\"tool\",\"tool_call_id\":\"h\",\"name\":\"n\",\"content\":\"{}\"}]}}",
      "", "", "{}", "{\"action\":\"answer\",\"reply\":{\"output\":{\"v\":1}}}"}},
    {"\"hook\":\"after_model\"", {"{\"action\":\"replace\",\"reply\":{\"text\":\"ah\"}}", "{\"action\":\"continue\"}"}},
    {"\"hook\":\"before_tool\"",
     {"{\"action\":\"replace\",\"arguments\":{\"k\":1}}", "{\"action\":\"answer\",\"result\":{\"data\":{\"k\":2}}}", "",
      "{\"action\":\"replace\",\"arguments\":{\"k\":3}}", "", "{\"action\":\"replace\",\"arguments\":{\"k\":4}}", "",
      "{\"action\":\"block\",\"reason\":\"no\"}"}},
    {"\"hook\":\"after_tool\"",
     {"{\"action\":\"replace\",\"result\":{\"data\":{\"k\":5}}}", "", "{\"action\":\"block\",\"reason\":\"no\"}",
      "{}"}},
};
static size_t n_around[RV_COUNT(around)];

static int place_of(const struct rv_effect *e)
{
    for (size_t i = 0; e->kind == RV_EFFECT_CALL_HOOK && e->request && i < RV_COUNT(around); i++)
        if (strstr(e->request, around[i].mark))
            return (int)i;
    return -1;
}

static rv_str around_call(int place)
{
    size_t n = n_around[place];

    if (n + 1 < RV_COUNT(around[0].replies) && around[place].replies[n + 1])
        n_around[place]++;
    return rv_str_of(around[place].replies[n]);
}

static size_t take(const struct rv_effects *fx, struct asked *asked, size_t n)
{
    for (size_t i = 0; i < fx->n && n < MAX_ASKED; i++) {
        const struct rv_effect *e = &fx->items[i];
        if (e->kind <= RV_EFFECT_CALL_HOOK || e->kind == RV_EFFECT_ARM_TIMER)
            asked[n++] = (struct asked){
                e->call_id, e->kind, e->entry, e->stage, e->name && strcmp(e->name, "wipe") == 0, place_of(e)};
    }
    return n;
}

/* What the model of the conversation says: tools side by side, tools that are wrong, no output, and one. */
static void say(size_t n, struct rv_event *ev)
{
    static const char *const calls[] = {
        "[{\"id\":\"1\",\"name\":\"read\",\"arguments\":\"{}\"},{\"id\":\"2\",\"name\":\"read\",\"arguments\":"
        "\"\"},{\"id\":\"3\",\"name\":\"wipe\",\"arguments\":\"{\\\"a\\\":1}\"},{\"id\":\"4\",\"name\":\"none\","
        "\"arguments\":\"{\"},{\"id\":\"5\",\"name\":\"wipe\",\"arguments\":\"\"}]",
        "[{\"id\":\"1\",\"name\":\"final_result\",\"arguments\":\"{\\\"w\\\":7}\"},{\"id\":\"2\",\"name\":\"read\","
        "\"arguments\":\"\"}]",
    };

    ev->failed = false;
    ev->reply = n == 3 ? RV_STR_LIT("so {\"v\":1,\"w\":null}") : n == 2 ? RV_STR_LIT("no") : RV_STR_LIT("hm");
    ev->llm = RV_LLM_ANSWER_NONE;
    ev->llm.has_usage = n != 2;
    ev->llm.usage.input_tokens = 9;
    if (n == 0)
        ev->llm.opaque = RV_STR_LIT("{\"provider\":\"p\"}");
    if (n < RV_COUNT(calls))
        ev->llm.tool_calls = rv_str_of(calls[n]);
}

/* The first model call of stage b fails for good, the first of all fails for now. */
static struct rv_event answer_to(const struct asked *a, bool sequential)
{
    struct rv_event ev = {.now_us = 5000000 * a->id, .call_id = a->id, .reply = RV_STR_LIT("{}")};

    if (a->kind == RV_EFFECT_ARM_TIMER) {
        ev.kind = RV_EVENT_TIMER;
    } else if (a->kind == RV_EFFECT_CALL_TOOL) {
        ev.kind = RV_EVENT_TOOL_DONE;
        ev.reply = RV_STR_LIT("{\"data\":[1],\"status\":\"ok\"}");
    } else if (a->kind == RV_EFFECT_CALL_LLM) {
        ev.kind = RV_EVENT_LLM_DONE;
        ev.failed = (sequential && a->id < 4) || (!sequential && a->stage == 1);
        ev.retryable = sequential;
        ev.error = RV_STR_LIT("busy \xff");
        ev.reply = RV_STR_LIT("so: {\"steps\":[{\"tool\":\"read\"},{\"tool\":\"wipe\"},7]}");
    } else {
        ev.kind = RV_EVENT_HOOK_DONE;
        if (a->place >= 0)
            ev.reply = around_call(a->place);
        else if (a->entry == RV_NAME_POLICY)
            ev.reply = RV_STR_LIT("{\"decision\":\"confirm\"}");
        else
            ev.reply = RV_STR_LIT("{\"envelope\":{\"metadata\":{\"k\":1},\"outputs\":{\"o\":{}}}}");
    }
    return ev;
}

/* What the model between hooks says. */
static void say_between(size_t n, struct rv_event *ev)
{
    say(n, ev);
    ev->reply = RV_STR_LIT("hm");
    if (n == 1)
        ev->llm.tool_calls = RV_STR_LIT("[{\"id\":\"1\",\"name\":\"read\",\"arguments\":\"\"}]");
}

static int which;        /* of the pipelines */
static size_t n_asked;   /* how often the model of the conversation answered */
static size_t n_unknown; /* how often nobody knew whether the destructive tool ran */

static int run_part(rv_run *run, const struct rv_event *first, bool sequential, rv_err **err)
{
    const struct rv_event recover = {.kind = RV_EVENT_RECOVER, .now_us = 3000000};
    struct rv_effects fx = {0};
    struct asked asked[MAX_ASKED];
    size_t n = 0, next = 0;
    int rc = rv_run_step(run, first, &fx, err);

    if (rc == 0)
        rc = rv_run_step(run, &recover, &fx, err);

    n = take(&fx, asked, 0);
    while (rc == 0 && !rv_run_is_finished(run) && next < n) {
        struct rv_event ev = answer_to(&asked[next++], sequential);
        if (which == TALK && ev.kind == RV_EVENT_LLM_DONE)
            say(n_asked++, &ev);
        if (which == HOOKS && ev.kind == RV_EVENT_LLM_DONE)
            say_between(n_asked++, &ev);
        if (which == TALK && ev.kind == RV_EVENT_TOOL_DONE && !asked[next - 1].is_wipe && ev.call_id == 2) {
            ev.failed = ev.retryable = true;
            ev.error = RV_STR_LIT("busy");
        }
        if (ev.kind == RV_EVENT_TOOL_DONE && asked[next - 1].is_wipe && n_unknown < 2) {
            ev.unknown = true;
            n_unknown++;
        }
        if (which == ASK)
            ev.failed = false;
        if (which == ASK && asked[next - 1].stage == 1)
            ev.reply = RV_STR_LIT("{\"outcome\":\"replan\",\"verdict\":\"loop_back\",\"feedback\":\"again\"}");
        rv_effects_clear(&fx);
        rc = rv_run_step(run, &ev, &fx, err);
        n = take(&fx, asked, n);
    }
    rv_effects_fini(&fx);
    return rc;
}

static size_t n_parts; /* run parts of the last scenario: proves that pauses were reached */
static enum rv_run_status last_status;

/* What is said to the last of the questions that wait, by its id. Texts are the envelope's. */
static struct rv_event answer_last(const rv_envelope *env)
{
    struct rv_event ev = {
        .kind = RV_EVENT_ANSWER, .now_us = 4000000, .response = {.has_approved = true, .approved = true}};
    size_t n = rv_envelope_n_queued(env);
    struct rv_interrupt in = rv_envelope_interrupt(env);
    json_object *queued = n > 0 ? rv_envelope_queued(env, n - 1) : NULL;
    const char *id = in.id;

    if (queued)
        (void)rv_json_get_text(queued, "id", &id);
    ev.response.interrupt_id = rv_str_of(id);
    if (rv_interrupt_asks_outcome(in.kind, queued ? rv_json_get_obj(queued, "data") : in.data))
        ev.response.decision = n_unknown < 2 ? RV_STR_LIT("not_happened") : RV_STR_LIT("happened");
    return ev;
}

/* Pauses are answered in the same run and in one made from its envelope, by turns. */
static int run_all(const struct rv_pipeline *p, const struct rv_catalog *catalog, rv_envelope *env, bool sequential,
                   rv_err **err)
{
    struct rv_run_opts opts = RV_RUN_OPTS_INIT;
    struct rv_event ev = {.kind = RV_EVENT_START, .now_us = 1000000};
    rv_run *run = NULL;
    bool goes_on = true;

    opts.saves = RV_SAVES_EACH;
    n_unknown = 0;
    int rc = rv_run_new(p, catalog, &opts, env, &run, err);
    for (n_parts = 0; rc == 0 && goes_on && n_parts < 12; n_parts++) {
        rc = run_part(run, &ev, sequential, err);
        last_status = rv_run_status(run);
        goes_on = rc == 0 && last_status == RV_RUN_INTERRUPTED;
        if (goes_on && n_parts % 2) {
            env = rv_run_steal_envelope(run);
            opts.first = rv_run_counters(run);
            rv_run_free(run);
            run = NULL;
            rc = rv_run_new(p, catalog, &opts, env, &run, err);
        }
        if (rc == 0 && goes_on)
            ev = answer_last(rv_run_envelope(run));
    }
    rv_run_free(run);
    return rc;
}

static int parse_and_run(int i)
{
    struct rv_rand_state state;

    struct rv_kit_tools tool_list = {tools, RV_COUNT(tools)};
    const struct rv_catalog catalog = RV_KIT_CATALOG(&tool_list);
    const struct rv_envelope_seed seed = {.raw_input = RV_STR_LIT("hi")};
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;
    rv_envelope *env = NULL;
    rv_err *err = NULL;
    int rc = findings ? 0 : RV_E_NOMEM;

    which = i;
    n_asked = 0;
    memset(n_around, 0, sizeof n_around);
    if (rc == 0)
        rc = rv_pipeline_parse(rv_str_of(pipelines[which]), "t.yaml", ".", findings, &p, &err);
    if (rc == 0)
        rc = rv_envelope_new(&seed, rv_rand_seeded(&state, 3), 1000000, &env, &err);
    if (rc == 0)
        rc = run_all(p, &catalog, env, which != 1, &err);
    rv_pipeline_free(p);
    rv_findings_free(findings);
    rv_err_free(err);
    return rc;
}

START_TEST(every_allocation_may_fail_once)
{
    ck_assert_int_eq(parse_and_run(_i), 0);
    ck_assert_uint_ge(n_parts, _i == ASK ? 3 : 5); /* it paused and was resumed */
    ck_assert(_i != ASK || last_status == RV_RUN_TERMINATED);
    ck_assert(_i != TALK || (n_asked == 4 && last_status == RV_RUN_COMPLETED));
    ck_assert(_i != HOOKS || (n_asked == 2 && last_status == RV_RUN_COMPLETED));
    ck_assert_uint_eq(n_unknown, _i == ASK ? 0 : 2);
    for (size_t n = 0;; n++) {
        rv_fault_arm(n);
        int rc = parse_and_run(_i);
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(rc == RV_E_NOMEM, "allocation %zu: %d", n, rc);
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu leaks %ld", n, rv_fault_balance());
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fault_run");
    TCase *tc = tcase_create("run");

    tcase_add_loop_test(tc, every_allocation_may_fail_once, 0, RV_COUNT(pipelines));
    suite_add_tcase(s, tc);
    return rv_kit_run(s);
}
