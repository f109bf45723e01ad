/* Each allocation of a turn fails once: of the core, with agents that ask agents, a chained tool and a cancel, and of a
 * chat with its store, history and bundle. No crash, no leak; RV_E_NOMEM, or a turn that is kept whole or not at all.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "tests/kit/catalog.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#define T0      INT64_C(1700000000000000)
#define SESSION "5a0f7c1e-0000-4000-8000-000000000001"
#define SAID    "I ask.\n\nIt is x." /* before and after the call */
#define PARENT  "type: object\nname: parent\ndescription: You ask.\ntools: [{name: ask_agent}]\n"
#define CHILD                                                                                                          \
    "type: object\nname: child\ndescription: You find.\nstructured_output: true\nchained_tool: save\n"                 \
    "properties: {name: {type: string}}\nrequired: [name]\n"

/* Check's own assertions allocate: what is wrong is kept until the allocator is disarmed. */
static int broken_line;
#define must(holds)                                                                                                    \
    do {                                                                                                               \
        if (!(holds) && broken_line == 0)                                                                              \
            broken_line = __LINE__;                                                                                    \
    } while (0)

typedef int (*scenario_fn)(void);

static void fail_each(scenario_fn scenario, size_t at_least)
{
    size_t n, n_lived = 0;

    rv_fault_arm(SIZE_MAX);
    ck_assert_int_eq(scenario(), 0); /* what libraries set up once */
    rv_fault_disarm();
    const size_t step = rv_kit_step(rv_fault_count() / 200 + 1);
    ck_assert_int_eq(broken_line, 0);
    for (n = rv_kit_first(step);; n += step) {
        rv_fault_arm(n);
        int rc = scenario();
        bool fired = rv_fault_disarm();
        ck_assert_msg(broken_line == 0, "allocation %zu: line %d", n, broken_line);
        if (!fired) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(rc == RV_E_NOMEM || rc == 0, "allocation %zu: %d", n, rc);
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu: %ld blocks", n, rv_fault_balance());
        n_lived += rc == 0;
    }
    ck_assert(n > at_least || !rv_fault_works());
    ck_assert_uint_le(n_lived, n / 10);
}

/* --- the core --- */

static const struct rv_tool_info tools[] = {
    {.name = "save", .risk = RV_RISK_WRITE, .effect = RV_EFFECT_IDEMPOTENT, .category = RV_UNSET},
    {.name = "look", .risk = RV_RISK_READ_ONLY, .effect = RV_EFFECT_SAFE, .category = RV_UNSET}};
static struct rv_kit_tools tool_list = {tools, RV_COUNT(tools)};
static const struct rv_catalog catalog = RV_KIT_CATALOG(&tool_list);
static struct rv_pipeline *pipeline;
static json_object *history;

static int find(void *self, const char *name, rv_str *text, const char **place, rv_err **err)
{
    (void)self;
    (void)err;
    *text = strcmp(name, "child") == 0 ? RV_STR_LIT(CHILD) : RV_STR_LIT(PARENT "context_token_budget: 1000\n");
    *place = "here";
    return 0;
}

static void load(const char *stage)
{
    char yaml[400];

    const struct rv_agent_source source = {find, NULL};
    rv_findings *f = rv_findings_new();

    snprintf(yaml, sizeof yaml, "name: t\nmodels: {default: scripted}\nagents:\n  - {%s}\n", stage);
    ck_assert_int_eq(rv_pipeline_parse(rv_str_of(yaml), "t.yaml", ".", f, &pipeline, NULL), 0);
    ck_assert_int_eq(rv_pipeline_bind_agents(pipeline, &source, f, NULL), 0);
    ck_assert_uint_eq(rv_findings_n_errors(f), 0);
    rv_findings_free(f);
    history = rv_kit_json("[{'role':'user','content':'before'},{'role':'assistant','content':'yes'}]");
}

static void unload(void)
{
    rv_pipeline_free(pipeline);
    json_object_put(history);
}

struct told {
    enum rv_event_kind kind;
    int64_t call_id;
    const char *reply, *calls;
    const char *fails; /* NULL: it does not */
};

/* What is kept is the same whatever allocation fails: as the first time. Compared without memory. */
static char kept[RV_HASH_MAX];

static bool is_as_ever(const struct rv_turn *t)
{
    char hex[RV_HASH_MAX];
    struct rv_hash hash;

    rv_hash_init(&hash);
    rv_hash_add(&hash, rv_str_of(t->session));
    for (size_t i = 0; i < t->n_rows; i++) {
        const struct rv_message *m = &t->rows[i];
        const rv_str parts[] = {rv_str_of(m->id),
                                rv_str_of(m->type),
                                rv_str_of(m->status),
                                rv_str_of(m->model),
                                rv_str_of(m->parent_call_id),
                                m->content,
                                m->tool_calls,
                                m->metadata};
        for (size_t k = 0; k < RV_COUNT(parts); k++) {
            rv_hash_add(&hash, parts[k]);
            rv_hash_add(&hash, RV_STR_LIT("|"));
        }
    }
    rv_hash_finish_hex(&hash, hex);
    if (!kept[0])
        memcpy(kept, hex, sizeof kept);
    return strcmp(kept, hex) == 0;
}

static int play(const struct told *events, size_t n)
{
    const struct rv_conversation c = {.context = {.user_id = "u", .tenant_id = "default", .session_id = SESSION},
                                      .keeps = true,
                                      .has_routing = true,
                                      .routing = RV_ROUTING_INIT,
                                      .history_opts = RV_HISTORY_OPTS_INIT,
                                      .history = history};
    const struct rv_envelope_seed seed = {
        .raw_input = RV_STR_LIT("ask"), .user_id = RV_STR_LIT("u"), .session_id = RV_STR_LIT(SESSION)};
    struct rv_run_opts opts = RV_RUN_OPTS_INIT;
    struct rv_effects fx = {0};
    struct rv_rand_state bits;
    rv_envelope *env = NULL;
    rv_run *run = NULL;
    rv_err *err = NULL;
    size_t n_keeps = 0;

    opts.conversation = &c;
    int rc = rv_envelope_new(&seed, rv_rand_seeded(&bits, 1), T0, &env, &err);
    if (rc == 0)
        rc = rv_run_new(pipeline, &catalog, &opts, env, &run, &err);
    for (size_t i = 0; i < n && rc == 0; i++) {
        struct rv_event ev = {.kind = events[i].kind,
                              .now_us = T0 + (int64_t)i,
                              .call_id = events[i].call_id,
                              .reply = rv_str_of(events[i].reply),
                              .llm = RV_LLM_ANSWER_NONE};
        ev.llm.tool_calls = rv_str_of(events[i].calls);
        ev.failed = events[i].fails != NULL;
        ev.error = rv_str_of(events[i].fails);
        rv_effects_clear(&fx);
        rc = rv_run_step(run, &ev, &fx, &err);
        for (size_t k = 0; k < fx.n && rc == 0; k++)
            n_keeps += fx.items[k].kind == RV_EFFECT_KEEP && is_as_ever(fx.items[k].turn);
    }
    must(rc < 0 || (rv_run_is_finished(run) && n_keeps == 1));
    must((rc < 0) == (err != NULL));
    rv_effects_fini(&fx);
    rv_run_free(run);
    rv_err_free(err);
    return rc;
}

#define ASK                                                                                                            \
    "[{\"id\":\"a\",\"name\":\"ask_agent\",\"arguments\":\"{\\\"agent_name\\\":\\\"child\\\",\\\"input_text\\\":\\\"x" \
    "\\\",\\\"input_data\\\":{\\\"k\\\":1}}\"},{\"id\":\"l\",\"name\":\"look\",\"arguments\":\"{oops\"}]"
#define FOUND "{\"agent\":\"child\",\"agent_document\":\"" DOCUMENT "\"}"
#define DOCUMENT                                                                                                       \
    "type: object\\nname: child\\ndescription: d\\nstructured_output: true\\nchained_tool: save\\nproperties: {name: " \
    "{type: string}}\\nrequired: [name]\\n"

static int whole_turn(void)
{
    static const struct told events[] = {
        {RV_EVENT_START, 0, NULL, NULL, NULL},
        {RV_EVENT_LLM_DONE, 1, "I ask.", ASK, NULL},
        {RV_EVENT_TOOL_DONE, 2, FOUND, NULL, NULL},
        {RV_EVENT_LLM_DONE, 3, "", "[{\"id\":\"a\",\"name\":\"final_result\",\"arguments\":\"{\\\"n\\\":1}\"}]", NULL},
        {RV_EVENT_LLM_DONE, 4, "",
         "[{\"id\":\"a\",\"name\":\"final_result\",\"arguments\":\"{\\\"name\\\":\\\"x\\\"}\"}]", NULL},
        {RV_EVENT_TOOL_DONE, 5, "{\"saved\":1}", NULL, NULL},
        {RV_EVENT_LLM_DONE, 6, "It is x.", NULL, NULL}};

    return play(events, RV_COUNT(events));
}

static int failed_turn(void)
{
    static const struct told events[] = {{RV_EVENT_START, 0, NULL, NULL, NULL},
                                         {RV_EVENT_LLM_DONE, 1, "I ask.", ASK, NULL},
                                         {RV_EVENT_TOOL_DONE, 2, FOUND, NULL, NULL},
                                         {RV_EVENT_LLM_DONE, 3, NULL, NULL, "the line is down"},
                                         {RV_EVENT_LLM_DONE, 4, "Nobody knows.", NULL, NULL}};

    return play(events, RV_COUNT(events));
}

/* Its first answer has no document that could be used, its second one an output whose chained tool fails. */
static int failed_chain(void)
{
    static const struct told events[] = {
        {RV_EVENT_START, 0, NULL, NULL, NULL},
        {RV_EVENT_LLM_DONE, 1, "I ask.", ASK, NULL},
        {RV_EVENT_TOOL_DONE, 2, "{\"agent\":\"child\",\"agent_document\":\"name: [\"}", NULL, NULL},
        {RV_EVENT_LLM_DONE, 3, "I ask again.", ASK, NULL},
        {RV_EVENT_TOOL_DONE, 4, FOUND, NULL, NULL},
        {RV_EVENT_LLM_DONE, 5, "{\"name\":\"x\"}", NULL, NULL},
        {RV_EVENT_TOOL_DONE, 6, NULL, NULL, "the line is down"},
        {RV_EVENT_LLM_DONE, 7, "It is x.", NULL, NULL}};

    return play(events, RV_COUNT(events));
}

static int cancelled_turn(void)
{
    static const struct told events[] = {{RV_EVENT_START, 0, NULL, NULL, NULL},
                                         {RV_EVENT_LLM_DONE, 1, "I ask.", ASK, NULL},
                                         {RV_EVENT_TOOL_DONE, 2, FOUND, NULL, NULL},
                                         {RV_EVENT_RECOVER, 0, NULL, NULL, NULL},
                                         {RV_EVENT_CANCEL, 0, "[{\"call_id\":3,\"text\":\"{\\\"na\"}]", NULL, NULL}};

    return play(events, RV_COUNT(events));
}

#define PARENT_STAGE "agent: parent, allowed_tools: [ask_agent, look]"

/* Hooks around the call that asks an agent, which has a chained tool of its own. */
static int hooked_turn(void)
{
    static const struct told events[] = {
        {RV_EVENT_START, 0, NULL, NULL, NULL},
        {RV_EVENT_LLM_DONE, 1, "I ask.", ASK, NULL},
        {RV_EVENT_HOOK_DONE, 2,
         "{\"action\":\"replace\",\"arguments\":{\"agent_name\":\"child\",\"input_text\":\"y\"}}", NULL, NULL},
        {RV_EVENT_TOOL_DONE, 3, FOUND, NULL, NULL},
        {RV_EVENT_LLM_DONE, 4, "{\"name\":\"x\"}", NULL, NULL},
        {RV_EVENT_TOOL_DONE, 5, "{\"saved\":1}", NULL, NULL},
        {RV_EVENT_HOOK_DONE, 6, "{\"action\":\"replace\",\"result\":{\"data\":{\"text_response\":\"z\"}}}", NULL, NULL},
        {RV_EVENT_LLM_DONE, 7, "It is x.", NULL, NULL}};

    return play(events, RV_COUNT(events));
}

/* Hooks around the model of a structured agent and around its chained tool. */
static int hooked_chain(void)
{
    static const struct told events[] = {
        {RV_EVENT_START, 0, NULL, NULL, NULL},
        {RV_EVENT_HOOK_DONE, 1, "{\"action\":\"replace\",\"request\":{\"prompt\":\"p\"}}", NULL, NULL},
        {RV_EVENT_LLM_DONE, 2, "", "[{\"id\":\"a\",\"name\":\"final_result\",\"arguments\":\"{}\"}]", NULL},
        {RV_EVENT_HOOK_DONE, 3, "{\"action\":\"replace\",\"reply\":{\"output\":{\"name\":\"x\"}}}", NULL, NULL},
        {RV_EVENT_HOOK_DONE, 4, "{\"action\":\"replace\",\"arguments\":{\"name\":\"y\"}}", NULL, NULL},
        {RV_EVENT_TOOL_DONE, 5, "{\"saved\":1}", NULL, NULL},
        {RV_EVENT_HOOK_DONE, 6, "{\"action\":\"block\",\"reason\":\"private\"}", NULL, NULL}};

    return play(events, RV_COUNT(events));
}

START_TEST(a_turn_of_the_core)
{
    static const struct {
        scenario_fn play;
        const char *stage;
    } turns[] = {
        {whole_turn, PARENT_STAGE},
        {failed_turn, PARENT_STAGE},
        {failed_chain, PARENT_STAGE},
        {cancelled_turn, PARENT_STAGE},
        {hooked_turn, PARENT_STAGE ", before_tool: x.h, after_tool: x.h"},
        {hooked_chain, "agent: child, before_model: x.h, after_model: x.h, before_tool: x.h, after_tool: x.h"},
    };

    load(turns[_i].stage);
    kept[0] = 0;
    fail_each(turns[_i].play, 300);
    unload();
}
END_TEST

/* --- a chat --- */

static char *dir;
static rv_plugins *plugins;
static rv_script *script;

struct rows {
    int n_user, n_answers;
};

static int look(void *self, const struct rv_message *m, rv_err **err)
{
    struct rows *r = self;

    (void)err;
    r->n_user += strcmp(m->type, "user") == 0;
    r->n_answers += strcmp(m->type, "assistant") == 0 && !m->parent_call_id;
    return 0;
}

/* A turn is in the store as a whole, or not at all. The first one has words before its call, too. */
static void check_rows(rv_store *store, int n_kept)
{
    const struct rv_store_scope all = {0};
    const struct rv_message_filter filter = {.with_children = true};
    struct rows r = {0};
    rv_err *err = NULL;

    int rc = rv_store_read_messages(store, &all, &(const struct rv_messages_of){SESSION, &filter}, look, &r, &err);
    must(rc == 0 || rc == RV_E_NOMEM || rc == RV_E_NOT_FOUND);
    must(rc < 0 || (r.n_answers == r.n_user + (r.n_user > 0) && r.n_user >= n_kept && r.n_user <= 2));
    rv_err_free(err);
}

static int two_turns(rv_engine *engine, rv_store *store, rv_agents *agents, rv_err **err)
{
    const struct rv_chat_opts o = {
        .engine = engine,
        .store = store,
        .owner = "test/0/1/1",
        .plugins = plugins,
        .agents = agents,
        .script = script,
        .context = {.user_id = "u", .session_id = SESSION},
        .agent = "parent",
        .settings = {.default_model = "openai:gpt-x", .max_tokens = 100, .history = RV_HISTORY_OPTS_INIT}};
    struct rv_chat_turn t;
    rv_chat *chat = NULL;
    int n_kept = 0;

    int rc = rv_chat_new(&o, &chat, err);
    for (int i = 0; i < 2 && rc == 0; i++) {
        rc = rv_chat_send(chat, RV_STR_LIT("ask"), NULL, &t, err);
        n_kept += rc == 0 && t.was_kept;
        must(rc < 0 || !t.was_kept || t.status != RV_RUN_COMPLETED || t.text.len > 0);
        must(rc < 0 || i > 0 || !t.was_kept || t.status != RV_RUN_COMPLETED || rv_str_is(t.text, SAID));
        must(rc < 0 || t.was_kept || t.store_error);
    }
    rv_chat_free(chat);
    check_rows(store, n_kept);
    return rc;
}

static int chat(void)
{
    const char *folders[] = {dir};
    rv_store *store = NULL;
    rv_agents *agents = NULL;
    rv_engine *engine = NULL;
    rv_err *err = NULL;

    rv_script_rewind(script);
    int rc = rv_store_open("memory:", NULL, &store, &err);
    const struct rv_agents_opts ao = {.store = store, .plugins = plugins, .dirs = folders, .n_dirs = 1};
    if (rc == 0)
        rc = rv_agents_new(&ao, &agents, &err);
    const struct rv_engine_opts eo = {
        .store = store, .owner = "test/0/1/1", .virtual_time = true, .virtual_start_us = T0, .workers = 1};
    if (rc == 0)
        rc = rv_engine_new(&eo, &engine, &err);
    if (rc == 0)
        rc = two_turns(engine, store, agents, &err);
    must(rc == 0 || rv_err_is(err, RV_E_NOMEM));
    rv_engine_free(engine);
    rv_agents_free(agents);
    rv_store_close(store);
    rv_err_free(err);
    return rc;
}

/* Of both agents; that no capability has the child's tool is found. */
static int check_agents(void)
{
    static const char *const names[] = {"parent", "child"};
    const char *folders[] = {dir};
    const struct rv_agents_opts ao = {.plugins = plugins, .dirs = folders, .n_dirs = 1};
    const struct rv_store_scope all = {0};
    rv_findings *f = rv_findings_new();
    rv_agents *agents = NULL;
    rv_err *err = NULL;

    int rc = f ? rv_agents_new(&ao, &agents, &err) : RV_E_NOMEM;
    for (size_t i = 0; i < RV_COUNT(names) && rc == 0; i++) {
        struct rv_agents_found found;
        rc = rv_agents_find(agents, &all, names[i], &found, &err);
        if (rc == 0)
            rc = rv_chat_check_agent(plugins, &found, f, &err);
        if (rc == 0)
            rc = rv_findings_check(f, &err);
        must(rc < 0 || rv_findings_n_errors(f) == i);
    }
    rv_agents_free(agents);
    rv_findings_free(f);
    rv_err_free(err);
    return rc;
}

START_TEST(a_chat_of_two_turns)
{
    rv_findings *f = rv_findings_new();
    const struct rv_plugins_opts po = {.base_dir = "."};
    const char *files[] = {"parent.yaml", PARENT, "child.yaml", CHILD};

    dir = rv_kit_tmpdir();
    for (size_t i = 0; i < RV_COUNT(files); i += 2) {
        char *path = rv_kit_path(dir, files[i]);
        rv_kit_write(path, files[i + 1]);
        free(path);
    }
    ck_assert_int_eq(rv_plugins_new(&po, &plugins, NULL), 0);
    ck_assert_int_eq(
        rv_script_parse(RV_STR_LIT("models:\n"
                                   "  parent:\n"
                                   "    - text: I ask.\n"
                                   "      tool_calls: [{id: a, name: ask_agent, arguments: {agent_name: child, "
                                   "input_text: x}}]\n"
                                   "    - {chunks: [It, ' is x.']}\n"
                                   "    - {text: As I said.}\n"
                                   "  child: [{json: {name: x}}]\n"
                                   "tools:\n"
                                   "  save: [{result: {saved: 1}}]\n"),
                        "s.yaml", f, &script, NULL),
        0);
    ck_assert_uint_eq(rv_findings_n_errors(f), 0);
    fail_each(chat, 1000);
    fail_each(check_agents, 100);
    rv_script_free(script);
    rv_plugins_free(plugins);
    rv_kit_tmpdir_remove(dir);
    rv_findings_free(f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_turns");
    TCase *tc = tcase_create("turns");

    tcase_add_loop_test(tc, a_turn_of_the_core, 0, 6);
    tcase_add_test(tc, a_chat_of_two_turns);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
