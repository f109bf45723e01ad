/* Keys of a model, told by an exchange with its provider: the request as it would be sent, and what happens when the
 * server refuses some, while other calls are under way. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/model/provider/provider.h"
#include "tests/unit/keys/rows.h"

#define START_US  INT64_C(1790000000000000)
#define MAX_TURNS 40
#define N_CALLS   3

#define SHAPE "{'type':'object','properties':{'n':{'type':'integer'}},'required':['n'],'additionalProperties':false}"
static const char request[] =
    "{'role':'r','provider':null,'model':null,"
    "'attachments':[{'type':'image','data':'AAAA','media_type':'image/png'},{'type':'file','data':'AAAA','media_type':'"
    "application/pdf'}],'turns':[{'role':'system','content':'be brief'},{'role':'user','content':"
    "'hi'}],'prompt':'hi','options':{'num_predict':50,'num_ctx':8192,'temperature':0.5,'seed':7},'output_mode':'text',"
    "'tools':[{'name':'read','description':'d','parameters':{'type':'object','properties':{}}}]}";
static const char shaped[] =
    "{'role':'r','provider':null,'model':null,'prompt':'hi','options':{'num_predict':50,'num_ctx':8192},"
    "'output_mode':'json','output':{'name':'a','via':'auto','schema':" SHAPE "}}";

static const char *no_variable(void *self, const char *name)
{
    (void)self;
    (void)name;
    return NULL;
}

static void note_request(rv_buf *out, const struct rv_http_request *r, int64_t now_us)
{
    rv_buf_printf(out, "at %lld %s\n", (long long)(now_us - START_US), r->url);
    for (size_t i = 0; i < r->n_headers; i++)
        rv_buf_printf(out, "  %s\n", r->headers[i]);
    rv_buf_printf(out, "  times %lld %lld %lld ca %s proxy %s\n  ", (long long)r->connect_us,
                  (long long)r->first_byte_us, (long long)r->idle_us, r->ca_file ? r->ca_file : "",
                  r->proxy ? r->proxy : "");
    rv_buf_add_str(out, r->body);
    rv_buf_putc(out, '\n');
}

/* A server that is overloaded and wants a second's patience. */
static void refuse(rv_exchange *x, int64_t now_us)
{
    struct rv_http_head head = {.status = 503, .content_type = RV_STR_LIT("application/json"), .n_headers = 1};
    const struct rv_http_end end = {.was_sent = true, .text = ""};

    head.headers[0].name = RV_STR_LIT("retry-after");
    head.headers[0].value = RV_STR_LIT("5");
    ck_assert_int_eq(rv_exchange_on_head(x, &head, now_us, NULL), 0);
    ck_assert_int_eq(rv_exchange_on_body(x, RV_STR_LIT("{}"), now_us, NULL), 0);
    ck_assert_int_eq(rv_exchange_on_end(x, &end, now_us, NULL), 0);
}

/* Calls that hold their places, then one that is refused until it ends. */
static void tell_exchanges(struct rv_pipeline *p, const char *body, rv_buf *out)
{
    const struct rv_provider_env env = {.get = no_variable};
    rv_providers *all = rv_providers_new(env);
    rv_exchange *calls[N_CALLS] = {NULL};
    json_object *json = rv_kit_json(body);
    int64_t now_us = START_US, at_us = 0;

    for (int i = 0; i < N_CALLS; i++) {
        const struct rv_exchange_opts opts = {
            .pipeline = p, .role = "r", .request = json, .now_us = now_us, .random = 42};
        ck_assert_int_eq(rv_exchange_new(all, &opts, &calls[i], NULL), 0);
        enum rv_exchange_want want = rv_exchange_next(calls[i], now_us, &at_us);
        rv_buf_printf(out, "call %d: %d\n", i, (int)want);
        if (want == RV_EXCHANGE_SEND)
            note_request(out, rv_exchange_request(calls[i]), now_us);
    }
    for (int turn = 0; turn < MAX_TURNS && rv_exchange_next(calls[0], now_us, &at_us) != RV_EXCHANGE_DONE; turn++) {
        switch (rv_exchange_next(calls[0], now_us, &at_us)) {
        case RV_EXCHANGE_SEND:
            note_request(out, rv_exchange_request(calls[0]), now_us);
            refuse(calls[0], now_us);
            break;
        case RV_EXCHANGE_WAIT:
            if (at_us == INT64_MAX || turn == 0)
                refuse(calls[0], now_us);
            else
                now_us = at_us;
            break;
        case RV_EXCHANGE_DONE:
            break;
        }
    }
    if (rv_exchange_next(calls[0], now_us, &at_us) == RV_EXCHANGE_DONE)
        rv_buf_printf(out, "by %s: %s\n", rv_exchange_role(calls[0]),
                      rv_exchange_reply(calls[0])->failed ? "failed" : "answered");
    for (int i = 0; i < N_CALLS; i++)
        rv_exchange_free(calls[i]);
    rv_providers_free(all);
    json_object_put(json);
}

static char *tell(const struct key_row *row, const char *variant)
{
    rv_buf out = RV_BUF_INIT((size_t)4 << 20);
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;
    char *yaml = key_text(row->text, variant);

    ck_assert_int_eq(rv_pipeline_parse(rv_str_of(yaml), "t.yaml", ".", findings, &p, NULL), 0);
    rv_findings_write_text(findings, false, &out);
    if (p && p->is_sound) {
        tell_exchanges(p, request, &out);
        tell_exchanges(p, shaped, &out);
    }
    rv_pipeline_free(p);
    rv_findings_free(findings);
    free(yaml);
    return rv_buf_steal(&out, NULL);
}

#define ALL(models) "name: t\nmodels: " models "\nagents: [{name: a, stage_order: 1, has_llm: true, model_role: r}]\n"
#define HERE        "base_url: 'http://here/v1'"
#define MODEL(keys) ALL("{r: {model: 'openai:gpt-4.1', " HERE ", " keys "}}")
#define AZURE(keys) ALL("{r: {model: 'azure:gpt-4.1', base_url: 'http://here', api_key: k, " keys "}}")
#define QUIRK(name)                                                                                                    \
    {                                                                                                                  \
        "model.quirks." name, "true", "false", MODEL("quirks: {" name ": @}")                                          \
    }

static const struct key_row rows[] = {
    {"pipeline.models", "openai:gpt-4.1", "anthropic:claude-sonnet-4-5", ALL("{r: {model: '@', " HERE "}}")},
    {"model.model", "openai:gpt-4.1", "openai:gpt-4.1-mini", ALL("{r: {model: '@', " HERE "}}")},
    {"model.provider", "openai", "anthropic", ALL("{r: {provider: '@', model: x, " HERE "}}")},
    {"model.fallback", "[]", "[s]",
     ALL("{r: {model: 'openai:x', " HERE ", fallback: @}, s: {model: 'openai:y', base_url: 'http://there/v1'}}")},
    {"model.max_request_bytes", "10", "100000", MODEL("max_request_bytes: @")},
    {"model.options", "{quirky: 1}", "{api_key: x}", MODEL("options: @")},
    {"model.base_url", "http://here/v1", "http://there/v1", ALL("{r: {model: 'openai:x', base_url: '@'}}")},
    {"model.api_key", "one", "two", MODEL("api_key: @")},
    {"model.organization", "one", "two", MODEL("organization: @")},
    {"model.project", "one", "two", MODEL("project: @")},
    {"model.api_version", "'2024-10-21'", "'2025-01-01'", AZURE("api_version: @")},
    {"model.headers", "{x-a: b}", "{x-a: c}", MODEL("headers: @")},
    {"model.extra_body", "{top_k: 1}", "{top_k: 2}", MODEL("extra_body: @")},
    {"model.quirks", "{no_tools: true}", "{}", MODEL("quirks: @")},
    QUIRK("old_max_tokens"),
    QUIRK("developer_role"),
    QUIRK("no_stream_usage"),
    QUIRK("no_parallel_calls"),
    QUIRK("no_sampling"),
    QUIRK("no_tools"),
    QUIRK("no_native_output"),
    QUIRK("no_strict_output"),
    QUIRK("no_images"),
    QUIRK("no_files"),
    {"model.connect_timeout_ms", "5", "6", MODEL("connect_timeout_ms: @")},
    {"model.first_byte_timeout_ms", "5", "6", MODEL("first_byte_timeout_ms: @")},
    {"model.idle_timeout_ms", "5", "6", MODEL("idle_timeout_ms: @")},
    {"model.max_attempts", "1", "2", MODEL("max_attempts: @")},
    {"model.max_retry_wait_ms", "100", "9000", MODEL("max_attempts: 3, max_retry_wait_ms: @")},
    {"model.max_concurrent", "1", "2", MODEL("max_concurrent: @")},
    {"model.requests_per_minute", "1", "1000", MODEL("requests_per_minute: @")},
    {"model.tokens_per_minute", "100", "100000", MODEL("tokens_per_minute: @")},
    {"model.ca_file", "/one.pem", "/two.pem", MODEL("ca_file: @")},
    {"model.proxy", "http://one:1", "http://two:1", MODEL("proxy: '@'")},
};

const struct key_rows key_rows_models = {rows, RV_COUNT(rows), tell};
