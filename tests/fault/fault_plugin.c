/* Every allocation of loading, inspecting and calling capabilities fails once: no crash, no leak, and an error. Inside
 * a plugin a failed allocation is the plugin's failure, so that calls may also end in RV_E_TOOL or RV_E_PLUGIN. */
#define rv_capability rv_capability_part /* the one that this program has in itself */
#include "capabilities/sdk/capability.h" /* first: Check has a macro fail() */

#include <check.h>
#include <json-c/json_tokener.h>
#include <string.h>

#include "coreengine/model/llm/llm.h"
#include "coreengine/tools/plugin/plugin.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

static int canned(void *self, struct rv_cap_call *call)
{
    (void)self;
    return call->reply(call, "{}");
}

static const struct rv_cap_entry entries[] = {
    {RV_CAP_MOCK, "canned", RV_CAP_JSON({"description" : "Answers.", "sees" : []}), canned},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "part", .version = "1.0.0", .entries = entries)

const struct rv_capability_linked rv_capabilities_linked[] = {{"part", rv_capability}, {NULL, NULL}};

static const char *const dirs[] = {HOSTILE_DIR, CAPABILITY_DIR};
static const struct rv_plugins_opts opts = {dirs, 2, RV_SOURCE_DIR "/tests", NULL, REEVE_PROGRAM, NULL};

static int load_inspect_call(void)
{
    const struct rv_capability_config which[] = {
        {.name = "hello"}, {.name = "needs_config"}, {.name = "heloo"}, {.name = "probes"}, {.name = "agents"}};
    const struct rv_plugin_call probe = {.kind = RV_NAME_PROBE, .name = "happened", .args = RV_STR_LIT("{}")};
    const struct rv_plugin_call greet = {
        .kind = RV_NAME_TOOL, .name = "greet", .args = RV_STR_LIT("{\"name\": \"x\"}")};
    rv_plugins *p = NULL;
    rv_buf out = RV_BUF_INIT((size_t)1 << 20);
    rv_jw w = rv_jw_on(&out);
    rv_err *err = NULL;
    int rc = rv_plugins_new(&opts, &p, &err);

    if (rc == 0)
        rc = rv_plugins_load(p, &which[0], &err);
    for (size_t i = 1; i < 3 && rc == 0; i++) { /* both are refused for a reason of their own */
        int expected = i == 1 ? RV_E_INVALID : RV_E_NOT_FOUND;
        rc = rv_plugins_load(p, &which[i], &err);
        rc = rc == expected ? 0 : rc ? rc : RV_E_INTERNAL;
        rv_err_free(err);
        err = NULL;
    }
    if (rc == 0)
        rc = rv_plugins_call(p, &greet, &out, &err);
    if (rc == RV_E_TOOL && strstr(rv_err_text(err), "there is no memory for the answer"))
        rc = RV_E_NOMEM; /* one of the capability's own, which it tells in its words */
    if (rc == 0)
        rc = rv_plugins_load(p, &which[3], &err);
    if (rc == 0)
        rc = rv_plugins_call(p, &probe, &out, &err);
    if (rc == 0)
        rc = rv_plugins_load(p, &which[4], &err);
    if (rc == 0) {
        rv_plugins_write_json(p, &w);
        rc = rv_buf_check(&out, "inspect", &err);
    }
    rv_buf_fini(&out);
    rv_plugins_free(p);
    rv_err_free(err);
    return rc;
}

static int load_part_of_the_program(void)
{
    const struct rv_capability_config which = {.name = "part"};
    char **names = NULL;
    size_t n = 0;
    rv_plugins *p = NULL;
    rv_err *err = NULL;
    int rc = rv_plugins_new(&opts, &p, &err);

    if (rc == 0)
        rc = rv_plugins_load(p, &which, &err);
    if (rc == 0)
        rc = rv_plugins_find_available(NULL, 0, &names, &n, &err);
    rv_plugins_path_free(names);
    rv_plugins_free(p);
    rv_err_free(err);
    return rc;
}

/* Twice by a pool: opened, and shared. The first time, when nothing fails, it is also loaded for good: what dlopen()
 * does without memory is seen above. */
static int load_by_pool(void)
{
    static rv_plugins *held;
    const struct rv_capability_config which = {.name = "hello"};
    struct rv_plugins_opts shared = opts;

    if (!held && (rv_plugins_new(&opts, &held, NULL) < 0 || rv_plugins_load(held, &which, NULL) < 0))
        return RV_E_INTERNAL;
    rv_plugins *sets[2] = {NULL, NULL};
    rv_err *err = NULL;

    int rc = rv_plugin_pool_new(&shared.pool, &err);

    for (size_t i = 0; i < RV_COUNT(sets) && rc == 0; i++) {
        rc = rv_plugins_new(&shared, &sets[i], &err);
        if (rc == 0)
            rc = rv_plugins_load(sets[i], &which, &err);
    }
    rv_plugins_free(sets[0]);
    rv_plugins_free(sets[1]);
    rv_plugin_pool_free(shared.pool);
    rv_err_free(err);
    return rc;
}

/* The same in a process of its own; what fails here must leave no process behind that would fail the next attempt. */
static int load_and_call_isolated(void)
{
    const struct rv_capability_config which = {.name = "hello", .isolation = RV_ISOLATION_PROCESS};
    const struct rv_plugin_call greet = {
        .kind = RV_NAME_TOOL, .name = "greet", .args = RV_STR_LIT("{\"name\": \"x\"}")};
    rv_plugins *p = NULL;
    rv_buf out = RV_BUF_INIT((size_t)1 << 20);
    rv_err *err = NULL;
    int rc = rv_plugins_new(&opts, &p, &err);

    if (rc == 0)
        rc = rv_plugins_load(p, &which, &err);
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = rv_plugins_call(p, &greet, &out, &err);
    rv_buf_fini(&out);
    rv_plugins_free(p);
    rv_err_free(err);
    return rc;
}

static int answer(void *self, const struct rv_service_ask *ask, rv_buf *out, rv_err **err)
{
    (void)self;
    if (!ask->is_declared)
        return RV_FAIL(err, RV_E_DENIED, "not declared");
    rv_buf_puts(out, "{\"a\":1}");
    return rv_buf_check(out, "answer", err);
}

static int ask_services(int isolation)
{
    const struct rv_capability_config which[] = {{.name = "hello"}, {.name = "asker", .isolation = isolation}};
    const struct rv_plugin_call two = {
        .kind = RV_NAME_TOOL, .name = "ask_two", .args = RV_STR_LIT("{}"), .on_ask = answer};
    const struct rv_plugin_call bad = {
        .kind = RV_NAME_TOOL, .name = "tell_failure", .args = RV_STR_LIT("{}"), .on_ask = answer};
    rv_plugins *p = NULL;
    rv_buf out = RV_BUF_INIT((size_t)1 << 20);
    rv_err *err = NULL;
    int rc = rv_plugins_new(&opts, &p, &err);

    /* two here: the C library sets something up for the second */
    for (size_t i = isolation == RV_ISOLATION_PROCESS; i < RV_COUNT(which) && rc == 0; i++)
        rc = rv_plugins_load(p, &which[i], &err);
    if (rc == 0)
        rc = rv_plugins_call(p, &two, &out, &err);
    if (rc == 0)
        rc = rv_plugins_call(p, &bad, &out, &err);
    if (rc == RV_E_TOOL || rc == RV_E_PLUGIN || (rc == 0 && strstr(rv_buf_cstr(&out), "no memory")))
        rc = RV_E_NOMEM; /* the plugin tells what it was told */
    rv_buf_fini(&out);
    rv_plugins_free(p);
    rv_err_free(err);
    return rc;
}

static int ask_here(void)
{
    return ask_services(RV_ISOLATION_NONE);
}

static int ask_isolated(void)
{
    return ask_services(RV_ISOLATION_PROCESS);
}

static int find_path(void)
{
    char **list = NULL;
    size_t n = 0;
    int rc = rv_plugins_path_new(dirs, 2, "base", &list, &n, NULL);

    rv_plugins_path_free(list);
    list = NULL;
    if (rc == 0)
        rc = rv_plugins_find_available(dirs, 2, &list, &n, NULL);
    rv_plugins_path_free(list);
    return rc;
}

static int take_piece(void *self, rv_str json)
{
    (void)self;
    return json.len == 0;
}

/* A provider that hands out pieces, and its answer as a reply. */
static int ask_provider(void)
{
    const struct rv_capability_config which[] = {{.name = "hello"}, {.name = "models"}};
    const struct rv_plugin_call good = {.kind = RV_NAME_PROVIDER, .name = "models.good", .on_emit = take_piece};
    const struct rv_plugin_call bad = {.kind = RV_NAME_PROVIDER, .name = "models.both", .on_emit = take_piece};
    rv_plugins *p = NULL;
    rv_buf out = RV_BUF_INIT((size_t)1 << 20);
    struct rv_llm_reply reply;
    rv_err *err = NULL;
    int rc = rv_plugins_new(&opts, &p, &err);

    rv_llm_reply_init(&reply);
    for (size_t i = 0; i < RV_COUNT(which) && rc == 0; i++) /* two: the C library sets something up for the second */
        rc = rv_plugins_load(p, &which[i], &err);
    if (rc == 0)
        rc = rv_plugins_call(p, &good, &out, &err);
    if (rc == 0)
        rc = rv_plugin_read_llm_reply(rv_buf_str(&out), &reply, &err);
    if (rc == 0) {
        rc = rv_plugins_call(p, &bad, &out, &err); /* it has to be refused, and has an error then */
        rc = rc == RV_E_PLUGIN ? 0 : rc ? rc : RV_E_INTERNAL;
        rv_llm_reply_fini(&reply);
        rv_plugin_make_llm_failure(err, &reply);
    }
    rv_llm_reply_fini(&reply);
    rv_buf_fini(&out);
    rv_plugins_free(p);
    rv_err_free(err);
    return rc;
}

/* Each part of a reply. */
static int read_reply(void)
{
    static const char json[] =
        "{\"text\": \"hi\", \"finish_reason\": \"stop\", \"usage\": {\"input_tokens\": 1, \"output_tokens\": 2}, "
        "\"tool_calls\": [{\"name\": \"f\", \"arguments\": {\"a\": 1}}, {\"id\": \"x\", \"name\": \"g\", "
        "\"arguments\": \"{}\"}]}";
    struct rv_llm_reply reply;
    rv_err *err = NULL;
    int rc = rv_plugin_read_llm_reply(rv_str_of(json), &reply, &err);

    if (rc == 0)
        rv_llm_reply_fini(&reply);
    rv_err_free(err);
    return rc;
}

static const struct {
    const char *name;
    int (*run)(void);
} scenarios[] = {{"load, inspect, call", load_inspect_call},
                 {"load a part of the program", load_part_of_the_program},
                 {"load by a pool", load_by_pool},
                 {"load and call in a process of its own", load_and_call_isolated},
                 {"ask a provider", ask_provider},
                 {"read a provider's reply", read_reply},
                 {"ask services", ask_here},
                 {"ask services in a process of its own", ask_isolated},
                 {"path", find_path}};

START_TEST(every_allocation_of_the_loader_may_fail)
{
    /* each try starts a process */
    const size_t step = strstr(scenarios[_i].name, "process") ? rv_kit_step(5) : 1;

    ck_assert_int_eq(scenarios[_i].run(), 0);
    for (size_t n = rv_kit_first(step);; n += step) {
        int rc;
        rv_fault_arm(n);
        rc = scenarios[_i].run();
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        /* 0: dlopen() can do without one of its own */
        ck_assert_msg(rc == RV_E_NOMEM || rc == 0, "%s, allocation %zu: %s", scenarios[_i].name, n, rv_code_text(rc));
        ck_assert_msg(rv_fault_balance() == 0, "%s, allocation %zu: %ld blocks left", scenarios[_i].name, n,
                      rv_fault_balance());
    }
}
END_TEST

#define ENV                                                                                                            \
    "{\"envelope\": {\"raw_input\": \"error codes\", \"iteration\": 1, \"outputs\": {\"search\": {\"results\": "       \
    "[{\"data\": "                                                                                                     \
    "{\"hits\": [{\"path\": \"expr/a.md\", \"line\": 1, \"end_line\": 2, \"snippet\": \"an error has a code\"}]}}]}, " \
    "\"read\": "                                                                                                       \
    "{\"results\": [{\"data\": {\"path\": \"a.md\", \"lines\": [{\"line\": 1, \"text\": \"an error has a "             \
    "code.\"}]}}]}}}}"

static const struct {
    enum rv_name_kind kind;
    const char *name, *args;
} calls[] = {
    {RV_NAME_TOOL, "list_files", "{}"},
    {RV_NAME_TOOL, "read_file", "{\"path\": \"fault/plugin.cmake\"}"},
    {RV_NAME_TOOL, "search_files", "{\"query\": \"hostile plugins and faults\"}"},
    {RV_NAME_TOOL, "write_file", "{\"path\": \"nowhere/x\", \"text\": \"y\"}"},
    {RV_NAME_TOOL, "action", "{\"type\": \"observation\", \"payload\": {\"confidence\": 0.5, \"sources\": [\"a\"]}}"},
    {RV_NAME_TOOL, "action", "{\"type\": \"observation\", \"payload\": {\"confidance\": 0.5}}"},
    {RV_NAME_TOOL, "keep_record", "{\"name\": \"n\", \"fields\": {\"a\": 1}}"},
    {RV_NAME_PROVIDER, "echo.model", "{\"prompt\": \"one two\", \"options\": {\"num_predict\": 9}}"},
    {RV_NAME_PROVIDER, "echo.model", "{\"prompt\": \"call: f {}\", \"tools\": [{\"name\": \"f\"}]}"},
    {RV_NAME_PROVIDER, "echo.model",
     "{\"prompt\": \"x\", \"output\": {\"schema\": {\"required\": [\"a\", \"b\"], \"properties\": {\"a\": "
     "{\"type\": \"array\", \"minItems\": 2}, \"b\": {\"enum\": [1]}}}}}"},
    {RV_NAME_HOOK, "files.plan_search", ENV},
    {RV_NAME_HOOK, "files.judge_coverage", ENV},
    {RV_NAME_HOOK, "files.write_answer", ENV},
};

static int open_all(rv_plugins **p)
{
    const struct rv_capability_config echo = {.name = "echo"};
    struct rv_capability_config which = {.name = "files"}, p8 = {.name = "p8"};
    int rc = rv_json_parse(RV_STR_LIT("{\"roots\": [\"fault\", \"plugins\"]}"), NULL, &which.config, NULL);

    *p = NULL;
    if (rc == 0)
        rc = rv_json_parse(RV_STR_LIT("{\"records\": \"nowhere/records.jsonl\"}"), NULL, &p8.config, NULL);
    if (rc == 0)
        rc = rv_plugins_new(&opts, p, NULL);
    if (rc == 0)
        rc = rv_plugins_load(*p, &which, NULL);
    if (rc == 0)
        rc = rv_plugins_load(*p, &echo, NULL);
    if (rc == 0)
        rc = rv_plugins_load(*p, &p8, NULL);
    json_object_put(p8.config);
    json_object_put(which.config);
    return rc;
}

/* json-c's own tokener dies when it can not copy a key. The engine does not use it; a plugin that does can not be tried
 * from its first allocation, but from the one after its arguments were read. */
static size_t n_of_tokener(const char *args)
{
    size_t n;

    json_object_put(json_tokener_parse(args));
    rv_fault_arm((size_t)-1);
    json_object_put(json_tokener_parse(args));
    n = rv_fault_count();
    rv_fault_disarm();
    return n;
}

START_TEST(every_allocation_of_a_call_may_fail)
{
    const size_t before = 2; /* the copy of the arguments, and what a plugin makes first */
    const size_t skipped = n_of_tokener(calls[_i].args);
    const struct rv_plugin_call call = {
        .kind = calls[_i].kind, .name = calls[_i].name, .args = rv_str_of(calls[_i].args)};
    rv_plugins *p;

    ck_assert_int_eq(open_all(&p), 0);
    for (size_t n = 0;; n = n == 0 ? before + skipped : n + 1) {
        rv_buf out = RV_BUF_INIT((size_t)1 << 20);
        rv_err *err = NULL;
        bool fired;
        int rc;
        rv_fault_arm(n);
        rc = rv_plugins_call(p, &call, &out, &err);
        rv_buf_fini(&out);
        rv_err_free(err);
        fired = rv_fault_disarm();
        ck_assert_msg(rc == 0 || rc == RV_E_NOMEM || rc == RV_E_TOOL || rc == RV_E_PLUGIN, "%s, allocation %zu: %s",
                      call.name, n, rv_code_text(rc));
        ck_assert_msg(rv_fault_balance() == 0, "%s, allocation %zu: %ld blocks left", call.name, n, rv_fault_balance());
        if (!fired)
            break;
    }
    rv_plugins_free(p);
}
END_TEST

static int n_over;

static void count_over(struct rv_tool_work *w)
{
    (void)w;
    n_over++;
}

static void take_it(struct rv_plugin_work *w)
{
    (void)w;
}

/* The answer comes before the function has returned, so that one thread does it all. */
START_TEST(every_allocation_of_a_late_answer_may_fail)
{
    const struct rv_capability_config which = {.name = "late"};
    const struct rv_plugin_call call = {.kind = RV_NAME_TOOL, .name = "early", .args = RV_STR_LIT("{}")};
    rv_plugins *p = NULL;
    bool fired = true;

    ck_assert_int_eq(rv_plugins_new(&opts, &p, NULL), 0);
    ck_assert_int_eq(rv_plugins_load(p, &which, NULL), 0);
    for (size_t n = 0; fired; n++) {
        bool is_over = false, has_ended = true;
        n_over = 0;
        rv_fault_arm(n);
        struct rv_plugin_work *w = rv_plugin_work_new(p, &call, take_it, NULL);
        if (w) {
            w->work.finished = count_over;
            is_over = w->work.run(&w->work);
            w->work.done(&w->work);
            has_ended = w->failure || n_over == 1;
            w->work.free(&w->work);
        }
        fired = rv_fault_disarm();
        ck_assert(has_ended && (!w || n_over == !is_over)); /* once, and in one way */
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu: %ld blocks left", n, rv_fault_balance());
        ck_assert(fired || n_over == 1);
    }
    rv_plugins_free(p);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fault plugin");
    TCase *tc = tcase_create("fault");

    tcase_add_loop_test(tc, every_allocation_of_the_loader_may_fail, 0, RV_COUNT(scenarios));
    tcase_add_loop_test(tc, every_allocation_of_a_call_may_fail, 0, RV_COUNT(calls));
    tcase_add_test(tc, every_allocation_of_a_late_answer_may_fail);
    suite_add_tcase(s, tc);
    return rv_kit_run(s);
}
