/* The queue of what a client has for its caller: each item owns its texts. */
#include "coreengine/mcp/client_internal.h"

#include <stdlib.h>

#define MAX_NOTES 50 /* of one connection: a server may send bad messages without end */

struct rv_mcp_item {
    struct rv_mcp_item *next;
    struct rv_mcp_out out;
    rv_buf body;                          /* of a message */
    char *text;                           /* owned; NULL: none */
    json_object *result, *headers, *kept; /* owned; kept: what the name is borrowed from */
};

static void item_free(struct rv_mcp_item *item)
{
    if (!item)
        return;
    rv_buf_fini(&item->body);
    free(item->text);
    json_object_put(item->result);
    json_object_put(item->headers);
    json_object_put(item->kept);
    free(item);
}

void mcp_queue_fini(rv_mcp_client *c)
{
    item_free(c->shown);
    while (c->first) {
        struct rv_mcp_item *item = c->first;
        c->first = item->next;
        item_free(item);
    }
}

static int item_new(enum rv_mcp_out_kind kind, struct rv_mcp_item **out, rv_err **err)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a connection to an MCP server");
    (*out)->out = (struct rv_mcp_out){.kind = kind, .text = ""};
    (*out)->body = RV_BUF_INIT(RV_MCP_MAX_MESSAGE);
    return 0;
}

static int put_take(rv_mcp_client *c, struct rv_mcp_item *item)
{
    *c->end = item;
    c->end = &item->next;
    return 0;
}

/* Into the queue, or away: rc is that of what was written into it. */
static int put_message(rv_mcp_client *c, struct rv_mcp_item *item, int rc)
{
    if (rc < 0) {
        item_free(item);
        return rc;
    }
    item->out.send.body = rv_buf_str(&item->body);
    return put_take(c, item);
}

/* What the header Mcp-Name says. */
static const char *name_of(json_object *params)
{
    const char *name = NULL;

    return rv_json_get_text(params, "name", &name) || rv_json_get_text(params, "uri", &name) ||
                   rv_json_get_text(params, "taskId", &name)
               ? name
               : NULL;
}

int mcp_put_request(rv_mcp_client *c, const struct mcp_request *r, rv_err **err)
{
    struct rv_mcp_item *item;

    int rc = item_new(RV_MCP_OUT_SEND, &item, err);
    if (rc < 0)
        return rc;
    item->kept = json_object_get(r->params);
    item->headers = json_object_get(r->headers);
    item->out.send = (struct rv_mcp_send){.id = r->id,
                                          .method = r->method,
                                          .name = name_of(r->params),
                                          .headers = r->headers,
                                          .version = rv_mcp_version_text(r->version),
                                          .is_modern = r->is_modern};
    return put_message(c, item, rv_mcp_write_request(r->id, r->method, r->params, &item->body, err));
}

int mcp_put_notification(rv_mcp_client *c, const char *method, json_object *params, rv_err **err)
{
    struct rv_mcp_item *item;

    int rc = item_new(RV_MCP_OUT_SEND, &item, err);
    if (rc < 0)
        return rc;
    item->out.send = (struct rv_mcp_send){
        .method = method, .version = rv_mcp_version_text(c->version), .is_modern = c->era == RV_MCP_ERA_MODERN};
    return put_message(c, item, rv_mcp_write_notification(method, params, &item->body, err));
}

int mcp_put_answer(rv_mcp_client *c, json_object *id, json_object *result, int code, const char *text, rv_err **err)
{
    struct rv_mcp_item *item;

    int rc = item_new(RV_MCP_OUT_SEND, &item, err);
    if (rc < 0)
        return rc;
    item->out.send = (struct rv_mcp_send){.version = rv_mcp_version_text(c->version)};
    return put_message(c, item,
                       text ? rv_mcp_write_error(id, code, text, NULL, &item->body, err)
                            : rv_mcp_write_result(id, result, &item->body, err));
}

int mcp_put_simple(rv_mcp_client *c, enum rv_mcp_out_kind kind, int64_t id, rv_err **err)
{
    struct rv_mcp_item *item;

    int rc = item_new(kind, &item, err);
    if (rc < 0)
        return rc;
    item->out.id = id;
    return put_take(c, item);
}

int mcp_put_result(rv_mcp_client *c, const struct rv_mcp_open *o, json_object *result, bool asks, rv_err **err)
{
    struct rv_mcp_item *item;

    int rc = item_new(RV_MCP_OUT_DONE, &item, err);
    if (rc < 0) {
        json_object_put(result);
        return rc;
    }
    item->out.ask = o->ask;
    item->out.ttl_ms = o->ttl_ms;
    item->out.result = item->result = result;
    item->out.asks = asks;
    return put_take(c, item);
}

/* Gives the item a text of its own. */
static int set_text(struct rv_mcp_item *item, rv_str text, rv_err **err)
{
    item->text = rv_str_dup(rv_utf8_cut(text, RV_MCP_MAX_WORDS));
    if (!item->text)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a connection to an MCP server");
    item->out.text = item->text;
    return 0;
}

int mcp_put_trouble(rv_mcp_client *c, int64_t ask, const struct rv_mcp_trouble *t, rv_err **err)
{
    struct rv_mcp_item *item;

    int rc = item_new(ask ? RV_MCP_OUT_DONE : RV_MCP_OUT_DEAD, &item, err);
    if (rc == 0 && (rc = set_text(item, rv_str_of(t->text), err)) < 0)
        item_free(item);
    if (rc < 0)
        return rc;
    item->out.ask = ask;
    item->out.trouble = *t;
    item->out.trouble.text = item->text;
    return put_take(c, item);
}

int mcp_put_progress(rv_mcp_client *c, int64_t ask, double progress, double total, rv_str text, rv_err **err)
{
    struct rv_mcp_item *item;

    int rc = item_new(RV_MCP_OUT_PROGRESS, &item, err);
    if (rc == 0 && (rc = set_text(item, text, err)) < 0)
        item_free(item);
    if (rc < 0)
        return rc;
    item->out.ask = ask;
    item->out.progress = progress;
    item->out.total = total;
    return put_take(c, item);
}

int mcp_put_sample(rv_mcp_client *c, int64_t ask, int64_t sample, json_object *params, rv_err **err)
{
    struct rv_mcp_item *item;

    int rc = item_new(RV_MCP_OUT_SAMPLE, &item, err);
    if (rc < 0)
        return rc;
    item->out.ask = ask;
    item->out.id = sample;
    item->out.result = item->result = json_object_get(params);
    return put_take(c, item);
}

int mcp_put_note(rv_mcp_client *c, rv_err **err, const char *fmt, ...)
{
    rv_buf text = RV_BUF_INIT(RV_MCP_MAX_WORDS);
    struct rv_mcp_item *item = NULL;
    va_list args;

    if (c->n_notes >= MAX_NOTES)
        return 0;
    va_start(args, fmt);
    rv_buf_vprintf(&text, fmt, args);
    va_end(args);
    if (++c->n_notes == MAX_NOTES)
        rv_buf_puts(&text, " (further notes about this connection are left out)");
    int rc = text.rc == RV_E_NOMEM ? rv_buf_check(&text, "note", err) : item_new(RV_MCP_OUT_NOTE, &item, err);
    if (rc == 0 && (rc = set_text(item, rv_buf_str(&text), err)) < 0)
        item_free(item);
    rv_buf_fini(&text);
    return rc < 0 ? rc : put_take(c, item);
}

const struct rv_mcp_out *rv_mcp_client_next(rv_mcp_client *c)
{
    item_free(c->shown);
    c->shown = c->first;
    if (!c->shown)
        return NULL;
    c->first = c->shown->next;
    if (!c->first)
        c->end = &c->first;
    if (c->shown->out.kind == RV_MCP_OUT_CHANGED)
        c->is_change_told = false;
    return &c->shown->out;
}
