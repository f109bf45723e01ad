/* Where requests go, with which headers, and who says so: options, then the environment, then the table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/model/provider/provider_internal.h"
#include "tests/unit/provider/suites.h"
#include "tests/unit/provider/world.h"

static const char *get_env(void *self, const char *name)
{
    const char *const *env = self;

    for (; *env; env += 2)
        if (strcmp(*env, name) == 0)
            return env[1];
    return NULL;
}

static const struct {
    const char *id, *provider, *options;
    const char *env[7];
    const char *url;
    const char *headers; /* all that have to be there, one a line; "!" before a name that must not be */
} cases[] = {
    {"openai",
     "openai",
     NULL,
     {"OPENAI_API_KEY", "k1"},
     "https://api.openai.com/v1/chat/completions",
     "Authorization: Bearer k1\nContent-Type: application/json\nAccept: text/event-stream\n!OpenAI-Project"},
    {"the key of the options wins",
     "openai",
     "{'api_key':'k2'}",
     {"OPENAI_API_KEY", "k1"},
     "https://api.openai.com/v1/chat/completions",
     "Authorization: Bearer k2"},
    {"an empty key is none",
     "openai",
     "{'api_key':''}",
     {"OPENAI_API_KEY", "k1"},
     "https://api.openai.com/v1/chat/completions",
     "Authorization: Bearer k1"},
    {"address of the environment",
     "openai",
     NULL,
     {"OPENAI_API_KEY", "k1", "OPENAI_BASE_URL", "http://gw:8/v2/"},
     "http://gw:8/v2/chat/completions",
     "Authorization: Bearer k1"},
    {"address of the options",
     "openai",
     "{'base_url':'http://me/v1'}",
     {"OPENAI_BASE_URL", "http://gw:8/v2/"},
     "http://me/v1/chat/completions",
     "!Authorization"},
    {"a query stays behind the path",
     "openai",
     "{'base_url':'http://me/v1?a=b'}",
     {NULL},
     "http://me/v1/chat/completions?a=b",
     "!Authorization"},
    {"organisation and project",
     "openai",
     "{'api_key':'k','organization':'o1','project':'p1'}",
     {NULL},
     "https://api.openai.com/v1/chat/completions",
     "OpenAI-Organization: o1\nOpenAI-Project: p1"},
    {"both from the environment",
     "openai",
     "{'api_key':'k'}",
     {"OPENAI_ORG_ID", "o2", "OPENAI_PROJECT_ID", "p2"},
     "https://api.openai.com/v1/chat/completions",
     "OpenAI-Organization: o2\nOpenAI-Project: p2"},
    {"but not for strangers",
     "openai",
     "{'base_url':'http://me/v1'}",
     {"OPENAI_ORG_ID", "o2"},
     "http://me/v1/chat/completions",
     "!OpenAI-Organization"},
    {"headers of one's own",
     "openai",
     "{'api_key':'k','headers':{'X-Title':'t','accept':'*/*'}}",
     {NULL},
     "https://api.openai.com/v1/chat/completions",
     "X-Title: t\naccept: */*\n!Accept"},
    {"a header in place of the key",
     "openai",
     "{'headers':{'Authorization':'Basic b'}}",
     {NULL},
     "https://api.openai.com/v1/chat/completions",
     "Authorization: Basic b"},
    {"a header over the key",
     "openai",
     "{'headers':{'authorization':'Basic b'}}",
     {"OPENAI_API_KEY", "k1"},
     "https://api.openai.com/v1/chat/completions",
     "authorization: Basic b\n!Authorization"},
    {"anthropic",
     "anthropic",
     NULL,
     {"ANTHROPIC_API_KEY", "k1"},
     "https://api.anthropic.com/v1/messages",
     "x-api-key: k1\nanthropic-version: 2023-06-01\nAccept: text/event-stream\n!Authorization"},
    {"anthropic with a version in its address",
     "anthropic",
     "{'api_key':'k','base_url':'http://gw/v1/'}",
     {NULL},
     "http://gw/v1/messages",
     "x-api-key: k"},
    {"another version of anthropic",
     "anthropic",
     "{'api_key':'k','headers':{'anthropic-version':'2030-01-01'}}",
     {NULL},
     "https://api.anthropic.com/v1/messages",
     "anthropic-version: 2030-01-01"},
    {"azure with a deployment",
     "azure",
     "{'api_key':'k','base_url':'https://n.openai.azure.com/openai/deployments/d','api_version':'2025-01-01'}",
     {NULL},
     "https://n.openai.azure.com/openai/deployments/d/chat/completions?api-version=2025-01-01",
     "api-key: k\n!Authorization"},
    {"azure by its host",
     "azure",
     NULL,
     {"AZURE_OPENAI_API_KEY", "k", "AZURE_OPENAI_ENDPOINT", "https://n.openai.azure.com/"},
     "https://n.openai.azure.com/openai/deployments/some%2Fmodel%201/chat/completions?api-version=2024-10-21",
     "api-key: k"},
    {"azure without versions",
     "azure",
     "{'api_key':'k','base_url':'https://n.openai.azure.com/openai/v1'}",
     {NULL},
     "https://n.openai.azure.com/openai/v1/chat/completions",
     "api-key: k"},
    {"ollama",
     "ollama",
     NULL,
     {NULL},
     "http://127.0.0.1:11434/api/chat",
     "Accept: application/x-ndjson\n!Authorization"},
    {"ollama's host", "ollama", NULL, {"OLLAMA_HOST", "box"}, "http://box:11434/api/chat", "!Authorization"},
    {"ollama's host and port", "ollama", NULL, {"OLLAMA_HOST", "0.0.0.0:99"}, "http://127.0.0.1:99/api/chat", ""},
    {"ollama's port", "ollama", NULL, {"OLLAMA_HOST", ":98"}, "http://127.0.0.1:98/api/chat", ""},
    {"ollama's address", "ollama", NULL, {"OLLAMA_HOST", "https://box/o/"}, "https://box/o/api/chat", ""},
    {"ollama over IPv6", "ollama", NULL, {"OLLAMA_HOST", "[::1]"}, "http://[::1]:11434/api/chat", ""},
    {"llama.cpp needs no key", "llamacpp", NULL, {NULL}, "http://127.0.0.1:8080/v1/chat/completions", "!Authorization"},
    {"vLLM",
     "vllm",
     NULL,
     {"VLLM_API_KEY", "k"},
     "http://127.0.0.1:8000/v1/chat/completions",
     "Authorization: Bearer k"},
    {"LM Studio", "lmstudio", NULL, {NULL}, "http://127.0.0.1:1234/v1/chat/completions", "!Authorization"},
    {"gemini",
     "gemini",
     NULL,
     {"GEMINI_API_KEY", "k"},
     "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
     "Authorization: Bearer k"},
};

static bool has_line(const struct rv_endpoint *e, rv_str line)
{
    for (size_t i = 0; i < e->n_headers; i++) {
        rv_str h = rv_str_of(e->headers[i]);
        if (line.len && line.ptr[0] == '!' && h.len >= line.len && memcmp(h.ptr, line.ptr + 1, line.len - 1) == 0 &&
            h.ptr[line.len - 1] == ':')
            return true;
        if (rv_str_eq(h, line))
            return true;
    }
    return false;
}

/* Proves 12.3/table: Address and key follow the role, then the environment, then the table of providers */
START_TEST(address_and_headers_follow_options_then_environment_then_table)
{
    struct rv_endpoint_want want = {.provider = cases[_i].provider, .model = "some/model 1"};
    struct rv_endpoint e;
    json_object *options = cases[_i].options ? rv_kit_json(cases[_i].options) : NULL;
    const char *at = cases[_i].headers;

    want.options = options;
    ck_assert_int_eq(provider_endpoint_init(&e, (struct rv_provider_env){get_env, (void *)cases[_i].env}, &want, NULL),
                     0);
    ck_assert_str_eq(e.url, cases[_i].url);
    while (*at) {
        const char *end = strchr(at, '\n');
        rv_str line = {at, end ? (size_t)(end - at) : strlen(at)};
        ck_assert_msg(has_line(&e, line) == (at[0] != '!'), "%s: %.*s", cases[_i].id, RV_STR_ARG(line));
        at += line.len + (end != NULL);
    }
    provider_endpoint_fini(&e);
    json_object_put(options);
}
END_TEST

static const struct {
    const char *id, *provider, *model, *options;
    const char *env[3];
    int rc;
    const char *text; /* a part of it */
} refusals[] = {
    {"no key", "openai", "m", NULL, {NULL}, RV_E_DENIED, "set OPENAI_API_KEY, or write api_key: ${env:NAME}"},
    {"no key of the other", "anthropic", "m", NULL, {NULL}, RV_E_DENIED, "set ANTHROPIC_API_KEY"},
    {"a key with a line end",
     "openai",
     "m",
     NULL,
     {"OPENAI_API_KEY", "k1\n"},
     RV_E_INVALID,
     "OPENAI_API_KEY cannot be sent"},
    {"a key that smuggles",
     "openai",
     "m",
     "{'api_key':'k\\r\\nX-A: b'}",
     {NULL},
     RV_E_INVALID,
     "api_key cannot be sent"},
    {"a header that smuggles",
     "ollama",
     "m",
     "{'headers':{'X-A':'1\\nX-B: 2'}}",
     {NULL},
     RV_E_INVALID,
     "X-A cannot be sent"},
    {"a name that smuggles",
     "ollama",
     "m",
     "{'headers':{'X-A: 1\\nX-B':'2'}}",
     {NULL},
     RV_E_INVALID,
     "is not the name of a header"},
    {"no name", "ollama", "m", "{'headers':{'':'2'}}", {NULL}, RV_E_INVALID, "is not the name of a header"},
    {"a NUL", "ollama", "m", "{'headers':{'X-A':'a\\u0000b'}}", {NULL}, RV_E_INVALID, "X-A cannot be sent"},
    {"an unknown provider", "anthropc", "m", NULL, {NULL}, RV_E_INVALID, "did you mean \"anthropic\"?"},
    {"nothing like it", "zzzzzzzzz", "m", NULL, {NULL}, RV_E_INVALID, "with a base_url"},
    {"a capability's", "hello.echo", "m", NULL, {NULL}, RV_E_INVALID, "is a capability's provider"},
    {"no provider", NULL, "m", NULL, {NULL}, RV_E_INVALID, "no provider is named"},
    {"no model", "ollama", NULL, NULL, {NULL}, RV_E_INVALID, "no model of provider \"ollama\" is named"},
    {"no address",
     "azure",
     "m",
     "{'api_key':'k'}",
     {NULL},
     RV_E_INVALID,
     "give the role a base_url, or set AZURE_OPENAI_ENDPOINT"},
    {"an address without a scheme",
     "openai",
     "m",
     "{'base_url':'localhost:80/v1'}",
     {NULL},
     RV_E_INVALID,
     "base_url is not an address"},
    {"another scheme",
     "openai",
     "m",
     "{'base_url':'file:///etc/passwd'}",
     {NULL},
     RV_E_INVALID,
     "base_url is not an address"},
    {"no host", "openai", "m", "{'base_url':'http:///v1'}", {NULL}, RV_E_INVALID, "base_url is not an address"},
    {"a port alone", "openai", "m", "{'base_url':'http://:80/v1'}", {NULL}, RV_E_INVALID, "base_url is not an address"},
    {"too many values",
     "openai",
     "m",
     "{'base_url':'http://h/v1?a=1&b=2&c=3&d=4&e=5&f=6&g=7&h=8&key=s3cr3t-of-mine'}",
     {NULL},
     RV_E_INVALID,
     "base_url has more than 8 values"},
    {"a blank", "openai", "m", "{'base_url':'http://h/ v1'}", {NULL}, RV_E_INVALID, "base_url has a blank"},
    {"a line end", "openai", "m", "{'base_url':'http://h/v1\\n'}", {NULL}, RV_E_INVALID, "base_url has a blank"},
};

START_TEST(what_can_not_be_sent_is_refused_and_says_what_to_do)
{
    struct rv_endpoint_want want = {.provider = refusals[_i].provider, .model = refusals[_i].model};
    struct rv_endpoint e;
    rv_err *err = NULL;
    char *text;

    want.options = refusals[_i].options ? rv_kit_json(refusals[_i].options) : NULL;
    int rc = provider_endpoint_init(&e, (struct rv_provider_env){get_env, (void *)refusals[_i].env}, &want, &err);
    ck_assert_msg(rc == refusals[_i].rc, "%s", refusals[_i].id);
    text = rv_kit_err_take(err);
    ck_assert_msg(strstr(text, refusals[_i].text), "%s: %s", refusals[_i].id, text);
    free(text);
    provider_endpoint_fini(&e);
    json_object_put(want.options);
}
END_TEST

START_TEST(too_many_headers_are_refused)
{
    struct rv_endpoint_want want = {.provider = "ollama", .model = "m"};
    struct rv_endpoint e;
    json_object *headers = json_object_new_object();

    for (int i = 0; i < 100; i++) {
        char name[20];
        snprintf(name, sizeof name, "X-%d", i);
        json_object_object_add(headers, name, json_object_new_string("v"));
    }
    want.options = json_object_new_object();
    json_object_object_add(want.options, "headers", headers);
    ck_assert_int_eq(provider_endpoint_init(&e, (struct rv_provider_env){NULL, NULL}, &want, NULL), RV_E_INVALID);
    provider_endpoint_fini(&e);
    json_object_put(want.options);
}
END_TEST

/* The texts are borrowed from the options. */
static struct rv_call_options call_options(json_object *options)
{
    struct rv_endpoint_want want = {.provider = "ollama", .model = "m", .options = options};
    struct rv_endpoint e;

    ck_assert_int_eq(provider_endpoint_init(&e, (struct rv_provider_env){NULL, NULL}, &want, NULL), 0);
    struct rv_call_options call = e.call;
    provider_endpoint_fini(&e);
    return call;
}

START_TEST(options_of_wrong_types_count_as_not_given)
{
    struct rv_call_options none = call_options(NULL), o;
    json_object *odd = rv_kit_json("{'connect_timeout_ms':'x','first_byte_timeout_ms':-1,'idle_timeout_ms':null,"
                                   "'max_attempts':0,'max_retry_wait_ms':1.5,'max_concurrent':[],'ca_file':7}");
    json_object *own = rv_kit_json("{'connect_timeout_ms':1,'first_byte_timeout_ms':2,'idle_timeout_ms':3,"
                                   "'max_attempts':4,'max_retry_wait_ms':5,'max_concurrent':6,"
                                   "'requests_per_minute':7,'tokens_per_minute':8,'ca_file':'c','proxy':''}");

    o = call_options(odd);
    ck_assert_int_eq(none.connect_us, 10 * S);
    ck_assert_int_eq(none.first_byte_us, 300 * S);
    ck_assert_int_eq(none.idle_us, 120 * S);
    ck_assert_int_eq(none.max_attempts, 3);
    ck_assert_int_eq(none.max_retry_wait_us, 60 * S);
    ck_assert(!none.max_concurrent && !none.requests_per_minute && !none.tokens_per_minute && !none.ca_file);
    ck_assert_int_eq(o.connect_us, none.connect_us);
    ck_assert_int_eq(o.first_byte_us, none.first_byte_us);
    ck_assert_int_eq(o.idle_us, none.idle_us);
    ck_assert_int_eq(o.max_attempts, none.max_attempts);
    ck_assert_int_eq(o.max_retry_wait_us, none.max_retry_wait_us);
    ck_assert(!o.max_concurrent && !o.ca_file);
    o = call_options(own);
    ck_assert(o.connect_us == MS && o.first_byte_us == 2 * MS && o.idle_us == 3 * MS && o.max_attempts == 4);
    ck_assert(o.max_retry_wait_us == 5 * MS && o.max_concurrent == 6 && o.requests_per_minute == 7);
    ck_assert(o.tokens_per_minute == 8 && strcmp(o.ca_file, "c") == 0 && strcmp(o.proxy, "") == 0);
    json_object_put(odd);
    json_object_put(own);
}
END_TEST

START_TEST(quirks_come_from_table_address_model_and_options)
{
    static const char *const env[] = {"OPENAI_API_KEY", "k", NULL};
    static const struct {
        const char *provider, *model, *options;
        bool old_max_tokens, developer, no_strict, no_sampling, no_tools;
    } rows[] = {
        {"openai", "gpt-4.1", NULL, false, false, false, false, false},
        {"openai", "gpt-4.1", "{'base_url':'http://h/v1'}", true, false, true, false, false},
        {"openai", "gpt-4.1", "{'base_url':'http://h/v1','quirks':{'old_max_tokens':false}}", false, false, true, false,
         false},
        {"openai", "o3", NULL, false, true, false, true, false},
        {"openai", "o3", "{'quirks':{'no_sampling':false,'no_tools':true,'odd':true}}", false, true, false, false,
         true},
        {"openai", "m", "{'base_url':'https://API.openai.com/v1'}", false, false, false, false, false},
        {"vllm", "m", NULL, true, false, true, false, false},
    };
    for (size_t i = 0; i < RV_COUNT(rows); i++) {
        struct rv_endpoint_want want = {.provider = rows[i].provider, .model = rows[i].model};
        struct rv_endpoint e;
        want.options = rows[i].options ? rv_kit_json(rows[i].options) : NULL;
        ck_assert_int_eq(provider_endpoint_init(&e, (struct rv_provider_env){get_env, (void *)env}, &want, NULL), 0);
        ck_assert_int_eq(e.target.old_max_tokens, rows[i].old_max_tokens);
        ck_assert_int_eq(e.target.developer_role, rows[i].developer);
        ck_assert_int_eq(e.target.no_strict_output, rows[i].no_strict);
        ck_assert_int_eq(e.target.no_sampling, rows[i].no_sampling);
        ck_assert_int_eq(e.target.no_tools, rows[i].no_tools);
        provider_endpoint_fini(&e);
        json_object_put(want.options);
    }
}
END_TEST

START_TEST(embeddings_have_their_own_path_and_no_stream)
{
    static const char *const env[] = {"OPENAI_API_KEY", "k", NULL};
    struct rv_provider_env e = {get_env, (void *)env};
    struct rv_embed_target t;
    rv_err *err = NULL;
    char *text;

    ck_assert_int_eq(rv_provider_find_embed_target(e, "openai", "small", NULL, &t, NULL), 0);
    ck_assert_str_eq(t.url, "https://api.openai.com/v1/embeddings");
    ck_assert_str_eq(t.wire.model, "small");
    bool has_key = false;
    for (size_t i = 0; i < t.n_headers; i++) {
        has_key |= strcmp(t.headers[i], "Authorization: Bearer k") == 0;
        ck_assert_ptr_null(strstr(t.headers[i], "event-stream"));
    }
    ck_assert(has_key);
    rv_embed_target_fini(&t);
    ck_assert_int_eq(rv_provider_find_embed_target(e, "ollama", "nomic", NULL, &t, NULL), 0);
    ck_assert_str_eq(t.url, "http://127.0.0.1:11434/api/embed");
    rv_embed_target_fini(&t);
    ck_assert_int_eq(rv_provider_find_embed_target(e, "anthropic", "m", NULL, &t, NULL), RV_E_INVALID);
    ck_assert_int_eq(rv_provider_find_embed_target(e, "nobody", "m", NULL, &t, NULL), RV_E_INVALID);
    ck_assert_int_eq(rv_provider_find_embed_target(e, "mistral", "m", NULL, &t, &err), RV_E_INVALID);
    text = rv_kit_err_take(err);
    ck_assert_ptr_nonnull(strstr(text, "MISTRAL_API_KEY"));
    free(text);
}
END_TEST

TCase *endpoint_case(void)
{
    TCase *tc = tcase_create("endpoint");

    tcase_add_loop_test(tc, address_and_headers_follow_options_then_environment_then_table, 0, (int)RV_COUNT(cases));
    tcase_add_loop_test(tc, what_can_not_be_sent_is_refused_and_says_what_to_do, 0, (int)RV_COUNT(refusals));
    tcase_add_test(tc, too_many_headers_are_refused);
    tcase_add_test(tc, options_of_wrong_types_count_as_not_given);
    tcase_add_test(tc, quirks_come_from_table_address_model_and_options);
    tcase_add_test(tc, embeddings_have_their_own_path_and_no_stream);
    return tc;
}
