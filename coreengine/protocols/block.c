/* What encoders append: blocks of a stream, values of JSON, and what is said of the end of a turn. */
#include "coreengine/protocols/protocols_internal.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- blocks --- */

void proto_block(rv_protocol *p, const char *event)
{
    if (event)
        rv_buf_printf(p->out, "event: %s\n", event);
    rv_buf_puts(p->out, "data: ");
    p->w = rv_jw_on(p->out);
}

void proto_block_end(rv_protocol *p)
{
    rv_buf_puts(p->out, "\n\n");
    p->has_block = true;
}

void proto_line(rv_protocol *p, const char *data)
{
    proto_block(p, NULL);
    rv_buf_puts(p->out, data);
    proto_block_end(p);
}

void proto_kv_opt(rv_protocol *p, const char *key, const char *text)
{
    if (text)
        rv_jw_kv_text(&p->w, key, text);
}

void proto_keep(rv_protocol *p, const rv_buf *b)
{
    if (p->rc == 0 && b->rc < 0)
        p->rc = b->rc;
}

const char *proto_member(json_object *event, const char *key)
{
    const char *text = NULL;

    return rv_json_get_text(event, key, &text) ? text : NULL;
}

void proto_value_text(rv_str json, rv_buf *out)
{
    const struct rv_json_opts opts = {.max_bytes = RV_PROTOCOL_MAX_OUT, .what = "result"};
    json_object *value = NULL;

    int rc = json.len > 0 && json.ptr[0] == '"'
                 ? rv_json_parse(json, &opts, &value,
                                 RV_CODE_ONLY("other text is told as it is; want of memory fails the block"))
                 : RV_E_PARSE;
    if (rc == RV_E_NOMEM && out->rc == 0)
        out->rc = rc;
    if (rc == 0)
        rv_buf_add_str(out, rv_json_str(value));
    else
        rv_buf_add_str(out, json);
    json_object_put(value);
}

/* --- ends --- */

struct rv_usage proto_usage_sum(const rv_protocol *p, const struct rv_protocol_end *end)
{
    struct rv_usage sum = {0};

    if (!rv_usage_is_zero(&end->usage))
        return end->usage;
    for (size_t i = 0; i < p->n_usage; i++)
        rv_usage_add(&sum, &p->usage[i].usage);
    return sum;
}

bool proto_end_is_error(const struct rv_protocol_end *end)
{
    return end->status != RV_RUN_COMPLETED && end->status != RV_RUN_INTERRUPTED;
}

const char *proto_end_code(const struct rv_protocol_end *end)
{
    if (end->code)
        return end->code;
    return end->status == RV_RUN_CANCELLED    ? "cancelled"
           : end->status == RV_RUN_TERMINATED ? "terminated"
                                              : rv_code_text(RV_E_INTERNAL);
}

const char *proto_end_message(const struct rv_protocol_end *end)
{
    if (end->error)
        return end->error;
    return end->status == RV_RUN_CANCELLED    ? "the run was cancelled"
           : end->status == RV_RUN_TERMINATED ? "the run was stopped before its end"
                                              : "the run failed";
}
