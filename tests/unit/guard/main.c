/* The capability `guard` as it is built and loaded: it must see everything that the engine can hand to it. */
#include <check.h>
#include <string.h>

#include "coreengine/tools/plugin/plugin.h"
#include "tests/kit/suites.h"

#define SECRET "\"AKIAABCDEFGHIJKLMNOP\"" /* as long as an access key id, of no account */

struct guarded {
    rv_plugins *plugins;
    rv_buf args, reply;
    rv_err *err; /* of the last call */
};

static void load(struct guarded *g, const char *name, const char *config)
{
    struct rv_capability_config which = {.name = name};

    ck_assert_int_eq(rv_json_parse(rv_str_of(config), NULL, &which.config, NULL), 0);
    ck_assert_int_eq(rv_plugins_load(g->plugins, &which, NULL), 0);
    json_object_put(which.config);
}

static void begin(struct guarded *g)
{
    static const char *const dirs[] = {CAPABILITY_DIR};
    struct rv_plugins_opts opts = {dirs, 1, "/", NULL, NULL, NULL};

    *g = (struct guarded){NULL, RV_BUF_INIT((size_t)1 << 20), RV_BUF_INIT((size_t)1 << 20), NULL};
    ck_assert_int_eq(rv_plugins_new(&opts, &g->plugins, NULL), 0);
    load(g, "guard", "{\"blocked_words\": [\"swordfish\"]}");
    load(g, "files", "{\"roots\": [\"/\"]}");
}

static void end(struct guarded *g)
{
    rv_plugins_free(g->plugins);
    rv_buf_fini(&g->args);
    rv_buf_fini(&g->reply);
    rv_err_free(g->err);
}

/* The value inside so many objects, between two texts. */
static void nest(rv_buf *out, const char *before, int levels, const char *value, const char *after)
{
    rv_buf_clear(out);
    rv_buf_puts(out, before);
    for (int i = 0; i < levels; i++)
        rv_buf_puts(out, "{\"a\":");
    rv_buf_puts(out, value);
    for (int i = 0; i < levels; i++)
        rv_buf_putc(out, '}');
    rv_buf_puts(out, after);
}

static const char *ask(struct guarded *g, enum rv_name_kind kind, const char *name)
{
    const struct rv_plugin_call call = {.kind = kind, .name = name, .args = rv_buf_str(&g->args)};

    rv_err_free(g->err);
    g->err = NULL;
    rv_buf_clear(&g->reply);
    return rv_plugins_call(g->plugins, &call, &g->reply, &g->err) == 0 ? rv_buf_cstr(&g->reply) : NULL;
}

/* The last is all that an output of the engine may have; json-c by itself stops at 32. */
static const int depths[] = {0, 1, 30, 31, 32, 40, RV_JSON_MAX_DEPTH};

static void assert_has(const char *text, const char *part)
{
    ck_assert_msg(text && strstr(text, part), "no %s in: %s", part, text ? text : "a failure");
}

START_TEST(a_policy_finds_a_secret_at_each_depth)
{
    struct guarded g;
    const char *reply;

    begin(&g);
    nest(&g.args, "{\"stage\":\"s\",\"output\":", depths[_i], SECRET, "}");
    reply = ask(&g, RV_NAME_POLICY, "guard.no_secrets");
    assert_has(reply, "\"deny\"");
    nest(&g.args, "{\"stage\":\"s\",\"output\":", depths[_i], "1", "}");
    reply = ask(&g, RV_NAME_POLICY, "guard.no_secrets");
    assert_has(reply, "\"allow\"");
    end(&g);
}
END_TEST

START_TEST(a_command_is_confirmed_whatever_is_in_it)
{
    struct guarded g;
    const char *reply;

    begin(&g);
    nest(&g.args, "{\"output\":{\"command\":", depths[_i], "1", "}}");
    reply = ask(&g, RV_NAME_POLICY, "guard.confirm_commands");
    assert_has(reply, "\"confirm\"");
    end(&g);
}
END_TEST

START_TEST(hooks_look_at_each_depth)
{
    struct guarded g;
    const char *reply;

    begin(&g);
    nest(&g.args, "{\"hook\":\"after_tool\",\"result\":", depths[_i], SECRET, "}");
    reply = ask(&g, RV_NAME_HOOK, "guard.redact_secrets");
    if (depths[_i] < RV_JSON_MAX_DEPTH) { /* around that, a reply would be too deep: it fails */
        assert_has(reply, "[redacted: an access key id]");
        ck_assert_ptr_null(strstr(reply, "AKIA"));
    }
    nest(&g.args, "{\"hook\":\"before_tool\",\"arguments\":", depths[_i], "\"Swordfish\"", "}");
    reply = ask(&g, RV_NAME_HOOK, "guard.block_words");
    assert_has(reply, "\"block\"");
    end(&g);
}
END_TEST

START_TEST(what_cannot_be_read_is_not_allowed)
{
    static const char *const policies[] = {"guard.no_secrets", "guard.confirm_commands"};
    struct guarded g;

    begin(&g);
    for (size_t i = 0; i < RV_COUNT(policies); i++) {
        nest(&g.args, "{\"output\":", 600, "1", "}");
        ck_assert_ptr_null(ask(&g, RV_NAME_POLICY, policies[i]));
        assert_has(rv_err_text(g.err), "the output cannot be read");
        nest(&g.args, "{\"stage\":\"s\"}", 0, "", "");
        ck_assert_ptr_null(ask(&g, RV_NAME_POLICY, policies[i]));
    }
    end(&g);
}
END_TEST

START_TEST(a_tool_of_files_reads_deep_arguments)
{
    struct guarded g;

    begin(&g);
    nest(&g.args, "{\"envelope\":{\"raw_input\":\"What are errors?\",\"metadata\":", 40, "1", "}}");
    assert_has(ask(&g, RV_NAME_HOOK, "files.plan_search"), "search_files");
    end(&g);
}
END_TEST

static TCase *guard_case(void)
{
    TCase *tc = tcase_create("guard");

    tcase_add_loop_test(tc, a_policy_finds_a_secret_at_each_depth, 0, RV_COUNT(depths));
    tcase_add_loop_test(tc, a_command_is_confirmed_whatever_is_in_it, 0, RV_COUNT(depths));
    tcase_add_loop_test(tc, hooks_look_at_each_depth, 0, RV_COUNT(depths));
    tcase_add_test(tc, what_cannot_be_read_is_not_allowed);
    tcase_add_test(tc, a_tool_of_files_reads_deep_arguments);
    return tc;
}

int main(void)
{
    static TCase *(*const cases[])(void) = {guard_case};

    return rv_kit_run_cases("guard", cases, RV_COUNT(cases));
}
