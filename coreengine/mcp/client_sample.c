/* Servers that ask a model. The caller gets the completion from wherever it likes, and the request that the server
 * works on stays open meanwhile, with its time limit:
 *
 * - Since 2026-07-28 the server has answered with `input_required`, and the request is sent again when all completions
 *   that it wanted are there.
 * - An earlier server sends `sampling/createMessage` while the request is under way, and waits for the answer.
 *
 * Each request has a number of completions that it may cause, whatever the server says. */
#include "coreengine/mcp/client_internal.h"

#include <json-c/linkhash.h>

#define MAX_KEY 24 /* bytes of a number: 19 digits, a sign and a NUL */

/* name: by which the server knows it; borrowed. */
static int ask_model(rv_mcp_client *c, struct rv_mcp_open *o, json_object *params, json_object *name, rv_err **err)
{
    rv_buf key = RV_BUF_INIT(MAX_KEY);

    if (!o->samples && !(o->samples = json_object_new_object()))
        return RV_FAIL(err, RV_E_NOMEM, "ask a model for an MCP server");
    rv_buf_printf(&key, "%lld", (long long)++o->n_samples);
    int rc = rv_buf_check(&key, "number of a completion", err);
    if (rc == 0)
        rc = rv_json_set_ref(o->samples, rv_buf_cstr(&key), name, err);
    rv_buf_fini(&key);
    return rc < 0 ? rc : mcp_put_sample(c, o->ask, o->n_samples, params, err);
}

int mcp_sample_asked(rv_mcp_client *c, const struct rv_mcp_message *m, rv_err **err)
{
    struct rv_mcp_open *o = mcp_call_under_way(c, m->params);

    if (!m->params)
        return mcp_put_answer(c, m->id, NULL, RV_MCP_INVALID_PARAMS, "the request has no params", err);
    if (!o)
        return mcp_put_answer(c, m->id, NULL, RV_MCP_INVALID_REQUEST,
                              "no call is under way, or several are: it is not known which one asks", err);
    if (o->n_samples >= c->max_samples)
        return mcp_put_answer(c, m->id, NULL, RV_MCP_NO_COMPLETION,
                              "this call has asked for as many completions as it may", err);
    return ask_model(c, o, m->params, m->id, err);
}

int mcp_ask_model(rv_mcp_client *c, struct rv_mcp_open *o, json_object *samples, rv_err **err)
{
    int rc = 0;

    o->id = 0; /* the server waits for nothing but the request that is sent again */
    json_object_object_foreach (samples, key, params) {
        json_object *name = rc < 0 ? NULL : json_object_new_string(key);
        if (rc == 0)
            rc = name ? ask_model(c, o, params, name, err) : RV_FAIL(err, RV_E_NOMEM, "ask a model for an MCP server");
        json_object_put(name);
    }
    return rc;
}

/* By what the server knows the completion, which is waited for no longer. *out NULL: it was not; else the caller's. */
static int take_name(struct rv_mcp_open *o, int64_t sample, json_object **out, rv_err **err)
{
    rv_buf key = RV_BUF_INIT(MAX_KEY);

    rv_buf_printf(&key, "%lld", (long long)sample);
    int rc = rv_buf_check(&key, "number of a completion", err);
    *out = NULL;
    if (rc == 0 && json_object_object_get_ex(o->samples, rv_buf_cstr(&key), out)) {
        json_object_get(*out);
        json_object_object_del(o->samples, rv_buf_cstr(&key));
    }
    rv_buf_fini(&key);
    return rc;
}

static int fail_call(rv_mcp_client *c, struct rv_mcp_open *o, const char *why, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_MCP_MAX_WORDS + 128);
    rv_str said = rv_utf8_cut(rv_str_of(why), RV_MCP_MAX_WORDS);

    rv_buf_printf(&text, "the tool asks a model, and gets no answer: %.*s", RV_STR_ARG(said));
    int rc = rv_buf_check(&text, "reason", err);
    if (rc == 0)
        rc = mcp_end_failed(c, o, &(struct rv_mcp_trouble){.code = "input_required", .text = rv_buf_cstr(&text)}, err);
    rv_buf_fini(&text);
    return rc;
}

int rv_mcp_client_answer_sample(rv_mcp_client *c, int64_t ask, int64_t sample, json_object *result, const char *why,
                                rv_err **err)
{
    struct rv_mcp_open *o = c->open;
    json_object *name = NULL;

    while (o && o->ask != ask)
        o = o->next;
    int rc = o && o->samples ? take_name(o, sample, &name, err) : 0;
    if (!name)
        return rc;
    if (c->era == RV_MCP_ERA_LEGACY) {
        rc = result ? mcp_relate_task(o, result, err) : 0;
        if (rc == 0)
            rc = mcp_put_answer(c, name, result, RV_MCP_NO_COMPLETION, result ? NULL : why, err);
    } else if (!result) {
        rc = fail_call(c, o, why, err);
    } else {
        rc = rv_json_set_ref(o->responses, json_object_get_string(name), result, err);
        if (rc == 0 && json_object_object_length(o->samples) == 0)
            rc = mcp_send_open(c, o, err);
    }
    json_object_put(name);
    return rc;
}
