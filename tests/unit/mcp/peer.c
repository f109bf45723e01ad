/* A peer that a test plays. */
#include "tests/unit/mcp/peer.h"

#include <stdio.h>

static void take(struct peer *p, const struct rv_mcp_out *o)
{
    rv_buf b = RV_BUF_INIT(sizeof p->result - 1);

    switch (o->kind) {
    case RV_MCP_OUT_SEND:
        p->n_sent++;
        p->sent_id = o->send.id ? o->send.id : p->sent_id;
        ck_assert_uint_lt(o->send.body.len, sizeof p->sent);
        snprintf(p->sent, sizeof p->sent, "%.*s", RV_STR_ARG(o->send.body));
        ck_assert_ptr_null(strchr(p->sent, '\n'));
        snprintf(p->method, sizeof p->method, "%s", o->send.method ? o->send.method : "");
        snprintf(p->version, sizeof p->version, "%s", o->send.version);
        p->is_modern = o->send.is_modern;
        break;
    case RV_MCP_OUT_DONE:
        p->n_done++;
        p->done_ask = o->ask;
        p->asks = o->asks;
        p->ttl_ms = o->ttl_ms;
        rv_json_write(o->result, &b);
        snprintf(p->result, sizeof p->result, "%s", o->result ? rv_buf_cstr(&b) : "");
        /* fallthrough */
    case RV_MCP_OUT_DEAD:
        p->n_dead += o->kind == RV_MCP_OUT_DEAD;
        snprintf(p->code, sizeof p->code, "%s", o->trouble.code ? o->trouble.code : "");
        snprintf(p->text, sizeof p->text, "%s", o->trouble.text ? o->trouble.text : "");
        p->is_unsent = o->trouble.is_unsent;
        p->is_timeout = o->trouble.is_timeout;
        break;
    case RV_MCP_OUT_PROGRESS:
        p->n_progress++;
        p->progress = o->progress;
        break;
    case RV_MCP_OUT_SAMPLE:
        p->n_samples++;
        p->sample_ask = o->ask;
        ck_assert_int_eq(o->id, p->n_samples);
        break;
    case RV_MCP_OUT_READY:
        p->n_ready++;
        break;
    case RV_MCP_OUT_CHANGED:
        p->n_changed++;
        break;
    case RV_MCP_OUT_NOTE:
        p->n_notes++;
        break;
    case RV_MCP_OUT_FORGET:
        p->n_forgotten++;
        break;
    }
    rv_buf_fini(&b);
}

void peer_drain(struct peer *p)
{
    const struct rv_mcp_out *o;

    while ((o = rv_mcp_client_next(p->client)) != NULL)
        take(p, o);
}

void peer_say(struct peer *p, const char *fmt, ...)
{
    rv_buf text = RV_BUF_INIT((size_t)1 << 20);
    va_list args;

    va_start(args, fmt);
    rv_buf_vprintf(&text, fmt, args);
    va_end(args);
    ck_assert_int_eq(rv_mcp_client_on_message(p->client, rv_buf_str(&text), NULL), 0);
    rv_buf_fini(&text);
    peer_drain(p);
}

/* With the id of the last request in the place of @. */
void peer_say_of(struct peer *p, const char *text)
{
    rv_buf b = RV_BUF_INIT(1000);

    for (; *text; text++) {
        if (*text == '@')
            rv_buf_printf(&b, "%lld", (long long)p->sent_id);
        else
            rv_buf_putc(&b, *text);
    }
    peer_say(p, "%s", rv_buf_cstr(&b));
    rv_buf_fini(&b);
}

void peer_answer(struct peer *p, const char *result)
{
    peer_say(p, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":%s}", (long long)p->sent_id, result);
}

void peer_wait_until(struct peer *p, int64_t now_us)
{
    p->now_us = now_us;
    ck_assert_int_eq(rv_mcp_client_tick(p->client, now_us, NULL), 0);
    peer_drain(p);
}

void peer_begin(struct peer *p, enum rv_mcp_era era, bool is_http)
{
    const struct rv_mcp_client_opts opts = {.server = "s", .era = era, .is_http = is_http};

    *p = (struct peer){.now_us = SECOND};
    ck_assert_int_eq(rv_mcp_client_new(&opts, p->now_us, &p->client, NULL), 0);
    peer_drain(p);
}

void peer_be_legacy(struct peer *p)
{
    peer_begin(p, RV_MCP_ERA_LEGACY, false);
    peer_answer(p, INITIALIZED);
    ck_assert_int_eq(p->n_ready, 1);
}

void peer_be_modern(struct peer *p)
{
    peer_begin(p, RV_MCP_ERA_UNKNOWN, false);
    peer_answer(p, DISCOVERED);
    ck_assert_int_eq(p->n_ready, 1);
}

int64_t peer_ask_for(struct peer *p, const char *method, const char *params, const char *list, int64_t timeout_us)
{
    json_object *value = NULL;
    int64_t ask = 0;

    if (params)
        ck_assert_int_eq(rv_json_parse(rv_str_of(params), NULL, &value, NULL), 0);
    const struct rv_mcp_ask a = {
        .method = method, .params = value, .list = list, .timeout_us = timeout_us, .wants_progress = !list};
    ck_assert_int_eq(rv_mcp_client_ask(p->client, &a, p->now_us, &ask, NULL), 0);
    json_object_put(value);
    peer_drain(p);
    return ask;
}

int64_t peer_call(struct peer *p)
{
    return peer_ask_for(p, "tools/call", "{\"name\":\"t\",\"arguments\":{\"a\":1}}", NULL, 10 * SECOND);
}

void peer_end(struct peer *p)
{
    rv_mcp_client_free(p->client);
}
