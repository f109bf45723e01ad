/* The capability `guard` as it is built and loaded: it must see everything that the engine can hand to it. */
#include <check.h>
#include <stdio.h>
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
    load(g, "guard", "{\"blocked_words\": [\"swordfish\", \"L\u00f6hne\", \"\U0001F680 day\"]}");
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

/* Names, and texts behind a NUL, are searched. */
static const struct {
    const char *arguments;
    bool is_blocked;
} words[] = {
    {"{\"a\":\"a swordFISH\"}", true},
    {"{\"swordfish\":1}", true},
    {"{\"a\":{\"b\":[{\"my Swordfish\":null}]}}", true},
    {"{\"a\":\"x\\u0000swordfish\"}", true},
    {"{\"a\":\"sword fish, swordfis\"}", false},
    /* JSON in a text */
    {"{\"a\":\"{\\\"k\\\":\\\"a sword\\\\u0066ish\\\"}\"}", true},
    {"{\"a\":\"L\\\\u00F6hne\"}", true},
    {"{\"a\":\"L\\\\u00f6hn\"}", false},
    {"{\"a\":\"l\u00f6hne\"}", true},
    {"{\"a\":\"\\\\uD83D\\\\uDE80 day\"}", true},
    {"{\"a\":\"\\\\uD83D\\\\uDE81 day, \\\\ud83d, \\\\u12\"}", false},
};
START_TEST(a_word_is_found_in_texts_and_names)
{
    char text[256];
    struct guarded g;

    begin(&g);
    snprintf(text, sizeof text, "{\"hook\":\"before_tool\",\"arguments\":%s}", words[_i].arguments);
    rv_buf_puts(&g.args, text);
    ck_assert_int_eq(strstr(ask(&g, RV_NAME_HOOK, "guard.block_words"), "\"block\"") != NULL, words[_i].is_blocked);
    end(&g);
}
END_TEST

#define KEY_BODY "MIIEowIBAAKCAQEA" /* of no key */

/* What the hook makes of a text, and what the policy says is in it; NULL: both leave it. A text is the value of a
 * string of JSON, escaped as such. */
static const struct {
    const char *text, *becomes, *what;
} texts[] = {
    {"a\\n-----BEGIN PRIVATE KEY-----\\n" KEY_BODY "\\nAB+/=\\n-----END PRIVATE KEY-----\\nb",
     "a\\n[redacted: a private key]\\nb", "a private key"},
    {"-----BEGIN RSA PRIVATE KEY-----\\n" KEY_BODY "\\n-----END RSA PRIVATE KEY-----", "[redacted: a private key]",
     "a private key"},
    {"-----BEGIN EC PRIVATE KEY-----\\n" KEY_BODY "\\n-----END EC PRIVATE KEY-----.", "[redacted: a private key].",
     "a private key"},
    {"-----BEGIN OPENSSH PRIVATE KEY-----\\r\\n" KEY_BODY "\\r\\n-----END OPENSSH PRIVATE KEY-----\\r\\n",
     "[redacted: a private key]\\r\\n", "a private key"},
    {"-----BEGIN ENCRYPTED PRIVATE KEY-----\\n" KEY_BODY "\\n-----END ENCRYPTED PRIVATE KEY-----",
     "[redacted: a private key]", "a private key"},
    {"-----BEGIN PGP PRIVATE KEY BLOCK-----\\n\\n" KEY_BODY "\\n-----END PGP PRIVATE KEY BLOCK-----",
     "[redacted: a private key]", "a private key"},
    {"1 -----BEGIN PRIVATE KEY-----" KEY_BODY "-----END PRIVATE KEY----- 2 -----BEGIN PRIVATE KEY-----" KEY_BODY
     "-----END PRIVATE KEY----- 3",
     "1 [redacted: a private key] 2 [redacted: a private key] 3", "a private key"},
    /* without an end, and with that of something else */
    {"see -----BEGIN PRIVATE KEY-----\\n" KEY_BODY, "see [redacted: a private key]", "a private key"},
    {"-----BEGIN PRIVATE KEY", "[redacted: a private key]", "a private key"},
    {"-----BEGIN PRIVATE KEY-----\\n" KEY_BODY "\\n-----END CERTIFICATE-----\\n" KEY_BODY, "[redacted: a private key]",
     "a private key"},
    /* JSON in a string */
    {"{\\\"key\\\":\\\"-----BEGIN PRIVATE KEY-----\\\\n" KEY_BODY "\\\\n-----END PRIVATE KEY-----\\\\n\\\"}",
     "{\\\"key\\\":\\\"[redacted: a private key]\\\\n\\\"}", "a private key"},
    {"-----BEGIN CERTIFICATE-----\\n" KEY_BODY "\\n-----END CERTIFICATE-----", NULL, NULL},
    {"-----BEGIN PUBLIC KEY-----\\n" KEY_BODY "\\n-----END PUBLIC KEY-----", NULL, NULL},
    {"a PRIVATE KEY", NULL, NULL},

    {"sk-abcdefghijklmnopqrstuvwx", "[redacted: an API key]", "an API key"},
    {"key=sk-abcdefghijklmnopqrstuvwx;", "key=[redacted: an API key];", "an API key"},
    {"(xoxb-abcdefghijklmnopqrstuvwx) \u00fcAKIAABCDEFGHIJKLMNOP",
     "([redacted: a chat token]) \u00fc[redacted: an access key id]", "a chat token"},
    {"first\\nsk-abcdefghijklmnopqrstuvwx", "first\\n[redacted: an API key]", "an API key"},
    {"A=1\\\\nsk-abcdefghijklmnopqrstuvwx", "A=1\\\\n[redacted: an API key]", "an API key"},
    {"a\\\\u0026k=1\\\\u003Csk-abcdefghijklmnopqrstuvwx", "a\\\\u0026k=1\\\\u003C[redacted: an API key]", "an API key"},
    {"ri\\\\u0073sk-abcdefghijklmnopqrstuvwx", NULL, NULL},
    {"?k=%20sk-abcdefghijklmnopqrstuvwx", "?k=%20[redacted: an API key]", "an API key"},
    /* in the middle of a word */
    {"risk-assessment-framework", NULL, NULL},
    {"a task-management-and-planning tool", NULL, NULL},
    {"the disk-abcdefghijklmnopqrstuvwx of desk-abcdefghijklmnopqrstuvwx", NULL, NULL},
    {"_sk-abcdefghijklmnopqrstuvwx 9sk-abcdefghijklmnopqrstuvwx -sk-abcdefghijklmnopqrstuvwx", NULL, NULL},
    {"XAKIAABCDEFGHIJKLMNOP", NULL, NULL},
    {"sk-short", NULL, NULL},
};

/* The hook makes `becomes` of a result, and the policy denies it for `what`; NULL: both leave it. */
static void assert_judged(struct guarded *g, const char *value, const char *becomes, const char *what)
{
    char result[600] = "{\"action\": \"continue\"}";

    nest(&g->args, "{\"output\":", 1, value, "}");
    assert_has(ask(g, RV_NAME_POLICY, "guard.no_secrets"), what ? what : "\"allow\"");
    nest(&g->args, "{\"hook\":\"after_tool\",\"result\":", 0, value, "}");
    if (becomes)
        ck_assert_uint_lt(snprintf(result, sizeof result, "\"result\":%s}", becomes), sizeof result);
    assert_has(ask(g, RV_NAME_HOOK, "guard.redact_secrets"), result);
}

START_TEST(secrets_are_found_where_they_begin_and_redacted_to_their_end)
{
    struct guarded g;
    char value[600], becomes[600];

    begin(&g);
    snprintf(value, sizeof value, "\"%s\"", texts[_i].text);
    snprintf(becomes, sizeof becomes, "\"%s\"", texts[_i].becomes ? texts[_i].becomes : "");
    assert_judged(&g, value, texts[_i].becomes ? becomes : NULL, texts[_i].what);
    end(&g);
}
END_TEST

START_TEST(names_of_members_have_secrets_too)
{
    struct guarded g;

    begin(&g);
    assert_judged(&g, "{\"a\":1,\"AKIAABCDEFGHIJKLMNOP\":{\"sk-abcdefghijklmnopqrstuvwx\":" SECRET "},\"z\":null}",
                  "{\"a\":1,\"[redacted: an access key id]\":{\"[redacted: an API key]\":"
                  "\"[redacted: an access key id]\"},\"z\":null}",
                  "an access key id");
    /* no member is lost */
    assert_judged(&g, "[{\"AKIAABCDEFGHIJKLMNOP\":1,\"AKIAABCDEFGHIJKLMNOQ\":2,\"AKIAABCDEFGHIJKLMNOR\":3}]",
                  "[{\"[redacted: an access key id]\":1,\"[redacted: an access key id] (2)\":2,"
                  "\"[redacted: an access key id] (3)\":3}]",
                  "an access key id");
    assert_judged(&g, "{\"risk-assessment-framework\":1}", NULL, NULL);
    end(&g);
}
END_TEST

#define KEY "sk-abcdefghijklmnopqrstuvwx" /* of no account */

/* What hooks after a model make of a reply that calls tools. */
static const struct {
    const char *text, *tool, *arguments; /* as they stand in JSON */
    const char *redacts, *blocks;        /* NULL: it goes on */
} replies[] = {
    {"", "final_result", "{\\\"a\\\":[\\\"my " KEY "\\\"]}",
     "\"reply\":{\"output\":{\"a\":[\"my [redacted: an API key]\"]}}", NULL},
    {KEY, "final_result", " {\\\"\\\\u0073k-abcdefghijklmnopqrstuvwx\\\":1}",
     "\"reply\":{\"output\":{\"[redacted: an API key]\":1}}", NULL},
    {KEY, "final_result", "{\\\"a\\\":1}", "\"reply\":{\"text\":\"[redacted: an API key]\"}", NULL},
    {"", "final_result", "{\\\"a\\\":\\\"sword\\\\u0066ish\\\"}", NULL, "\"block\""},
    {"swordfish", "final_result", "{}", NULL, "\"block\""},
    /* the engine asks for it again */
    {"", "final_result", "{\\\"a\\\":\\\"swordfish " KEY, NULL, NULL},
    {"", "final_result", "swordfish " KEY, NULL, NULL},
    /* before_tool looks at these */
    {"", "save", "{\\\"a\\\":\\\"swordfish " KEY "\\\"}", NULL, NULL},
};
START_TEST(an_output_that_is_handed_over_is_looked_at)
{
    static const char goes_on[] = "{\"action\": \"continue\"}";
    struct guarded g;

    begin(&g);
    rv_buf_printf(&g.args,
                  "{\"hook\":\"after_model\",\"reply\":{\"text\":\"%s\",\"tool_calls\":[{\"id\":\"c\",\"name\":\"%s\","
                  "\"arguments\":\"%s\"}]}}",
                  replies[_i].text, replies[_i].tool, replies[_i].arguments);
    assert_has(ask(&g, RV_NAME_HOOK, "guard.redact_secrets"), replies[_i].redacts ? replies[_i].redacts : goes_on);
    assert_has(ask(&g, RV_NAME_HOOK, "guard.block_words"), replies[_i].blocks ? replies[_i].blocks : goes_on);
    end(&g);
}
END_TEST

/* What hooks around a tool make of what they are shown. */
static const struct {
    const char *hook, *shown;
    const char *redacts, *blocks; /* NULL: it goes on */
} called[] = {
    {"after_tool", "\"error\":{\"type\":\"ToolError\",\"message\":\"401: " KEY "\"}",
     "{\"action\":\"block\",\"reason\":\"401: [redacted: an API key]\"}", NULL},
    {"after_tool", "\"error\":{\"type\":\"" KEY "\",\"message\":\"\"}",
     "{\"action\":\"block\",\"reason\":\"its error has a secret\"}", NULL},
    {"after_tool", "\"error\":{\"type\":\"ToolError\",\"message\":\"a Swordfish\"}", NULL, "\"block\""},
    {"after_tool", "\"error\":{\"type\":\"ToolError\",\"message\":\"busy\"}", NULL, NULL},
    /* the model reads the content */
    {"after_tool", "\"result\":{\"a\":1},\"content\":[{\"type\":\"text\",\"text\":\"" KEY "\"}]",
     "\"result\":{\"status\":\"success\",\"data\":{\"a\":1},\"content\":[{\"type\":\"text\",\"text\":\"[redacted: an "
     "API key]\"}]}}",
     NULL},
    {"after_tool", "\"result\":null,\"content\":[{\"type\":\"text\",\"text\":\"" KEY "\"}]",
     "\"result\":{\"status\":\"success\",\"data\":{},\"content\":[{\"type\":\"text\",\"text\":\"[redacted: an API "
     "key]\"}]}}",
     NULL},
    {"after_tool", "\"result\":\"" KEY "\",\"content\":[{\"type\":\"text\",\"text\":\"a swordfish\"}]",
     "\"result\":{\"status\":\"success\",\"data\":{\"value\":\"[redacted: an API key]\"},\"content\":[{\"type\":"
     "\"text\",\"text\":\"a swordfish\"}]}}",
     "\"block\""},
    {"after_tool", "\"result\":{},\"content\":[{\"type\":\"text\",\"text\":\"fine\"}]", NULL, NULL},
    /* a member by the name of a part of a reply is one like any other */
    {"after_tool", "\"result\":{\"output\":\"" KEY "\",\"text\":1}",
     "\"result\":{\"output\":\"[redacted: an API key]\",\"text\":1}}", NULL},
    {"before_tool", "\"arguments\":{\"output\":1,\"text\":\"" KEY "\"}",
     "\"arguments\":{\"output\":1,\"text\":\"[redacted: an API key]\"}}", NULL},
};
START_TEST(all_that_is_told_of_a_tool_is_looked_at)
{
    static const char goes_on[] = "{\"action\": \"continue\"}";
    struct guarded g;

    begin(&g);
    rv_buf_printf(&g.args, "{\"hook\":\"%s\",%s}", called[_i].hook, called[_i].shown);
    assert_has(ask(&g, RV_NAME_HOOK, "guard.redact_secrets"), called[_i].redacts ? called[_i].redacts : goes_on);
    assert_has(ask(&g, RV_NAME_HOOK, "guard.block_words"), called[_i].blocks ? called[_i].blocks : goes_on);
    end(&g);
}
END_TEST

/* What hooks before a model make of an attachment behind a picture. */
static const struct {
    const char *item, *redacts; /* NULL: it goes on */
    bool is_blocked;
} attached[] = {
    {"{\"type\":\"file\",\"data\":\"bXkgc2stYWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4Lg==\",\"media_type\":\"text/"
     "plain\",\"name\":\"a.txt\"}",
     "[0,{\"name\":\"a.txt\",\"media_type\":\"text/plain\",\"data\":\"bXkgW3JlZGFjdGVkOiBhbiBBUEkga2V5XS4=\"}]", false},
    {"{\"type\":\"file\",\"data\":\"eyJrIjoic3dvcmRmaXNoIn0=\",\"media_type\":\"application/json\"}", NULL, true},
    {"{\"type\":\"file\",\"data\":\"bXkgc2stYWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4IHN3b3JkZmlzaA==\",\"media_type\":"
     "\"application/pdf\"}",
     NULL, false},
    {"{\"type\":\"image\",\"url\":\"https://a.test/?k=sk-abcdefghijklmnopqrstuvwx\"}",
     "[0,{\"url\":\"https://a.test/?k=[redacted: an API key]\",\"type\":\"image\"}]", false},
    {"{\"type\":\"file\",\"data\":\"AAECAw==\",\"media_type\":\"application/"
     "pdf\",\"name\":\"sk-abcdefghijklmnopqrstuvwx\"}",
     "[0,{\"name\":\"[redacted: an API key]\",\"media_type\":\"application/pdf\",\"data\":\"AAECAw==\"}]", false},
};
START_TEST(attachments_are_looked_at)
{
    struct guarded g;

    begin(&g);
    rv_buf_printf(
        &g.args,
        "{\"hook\":\"before_model\",\"request\":{\"prompt\":\"hi\",\"attachments\":[{\"type\":\"image\",\"data\":"
        "\"AAAA\",\"media_type\":\"image/png\"},%s]}}",
        attached[_i].item);
    const char *redacted = ask(&g, RV_NAME_HOOK, "guard.redact_secrets");
    if (attached[_i].redacts) {
        assert_has(redacted, "\"action\":\"replace\"");
        assert_has(redacted, "\"prompt\":\"hi\"");
        assert_has(redacted, attached[_i].redacts);
    } else {
        assert_has(redacted, "\"continue\"");
    }
    assert_has(ask(&g, RV_NAME_HOOK, "guard.block_words"), attached[_i].is_blocked ? "\"block\"" : "\"continue\"");
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
    tcase_add_loop_test(tc, a_word_is_found_in_texts_and_names, 0, RV_COUNT(words));
    tcase_add_loop_test(tc, secrets_are_found_where_they_begin_and_redacted_to_their_end, 0, RV_COUNT(texts));
    tcase_add_test(tc, names_of_members_have_secrets_too);
    tcase_add_loop_test(tc, an_output_that_is_handed_over_is_looked_at, 0, RV_COUNT(replies));
    tcase_add_loop_test(tc, all_that_is_told_of_a_tool_is_looked_at, 0, RV_COUNT(called));
    tcase_add_loop_test(tc, attachments_are_looked_at, 0, RV_COUNT(attached));
    tcase_add_test(tc, what_cannot_be_read_is_not_allowed);
    tcase_add_test(tc, a_tool_of_files_reads_deep_arguments);
    return tc;
}

int main(void)
{
    static TCase *(*const cases[])(void) = {guard_case};

    return rv_kit_run_cases("guard", cases, RV_COUNT(cases));
}
