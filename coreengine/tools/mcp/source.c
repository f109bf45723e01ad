/* MCP tools as a source of tools: a call becomes a request to its server, the answer a reply to the run. */
#include <assert.h>
#include <stdlib.h>

#include "coreengine/tools/mcp/mcptools_internal.h"
#include "envelope/envelope.h"

struct mcp_tool_call {
    struct rv_mcp_call call;
    struct rv_tool_call *of;
    const struct rv_mcp_tool *tool;
    struct mcp_samples samples;
    rv_log *log;
};

static struct mcp_tool_call *of_call(struct rv_mcp_call *call)
{
    return (struct mcp_tool_call *)((char *)call - offsetof(struct mcp_tool_call, call));
}

static const struct rv_tool_info *find(void *self, rv_str name)
{
    const rv_mcp_tools *t = self;
    const struct rv_tool_info *info = NULL;

    return t && rv_mcp_catalog_find(t->catalog, name, &info) ? info : NULL;
}

static bool identity(void *self, rv_str name, char out[RV_HASH_MAX])
{
    const rv_mcp_tools *t = self;
    const struct rv_tool_info *info = NULL;
    const struct rv_mcp_tool *tool = t ? rv_mcp_catalog_find(t->catalog, name, &info) : NULL;

    return tool && mcptools_identity(tool->server, out,
                                     RV_CODE_ONLY("false: calls of the tool are not counted for its health")) == 0;
}

static const char *const *names(void *self, size_t *n)
{
    const rv_mcp_tools *t = self;

    *n = 0;
    return t ? rv_mcp_catalog_names(t->catalog, n) : NULL;
}

/* --- replies --- */

static const char *type_of_trouble(const struct rv_mcp_trouble *t)
{
    if (t->is_timeout)
        return rv_error_timeout;
    return t->rpc_code == RV_MCP_INVALID_PARAMS ? rv_error_validation : rv_error_tool;
}

static const char *type_of_output(const char *code)
{
    return rv_str_is(rv_str_of(code), "tool_error") ? rv_error_tool : rv_error_validation;
}

static void say_trouble(const struct rv_mcp_tool *tool, const struct rv_mcp_trouble *t, struct rv_tool_reply *reply)
{
    reply->failed = true;
    reply->error_type = type_of_trouble(t);
    reply->retryable = t->retryable;
    rv_buf_printf(&reply->text, "%s \"%s\": %s [%s]", rv_mcp_server_kind(tool->server), tool->server->name, t->text,
                  t->code);
}

/* The code stands beside the words of the failure. */
static void say_failure(const char *code, struct rv_tool_reply *reply)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    rv_jw w = rv_jw_on(&text);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "status", "error");
    rv_jw_key(&w, "error");
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "error_type", type_of_output(code));
    rv_jw_kv_str(&w, "message", rv_buf_str(&reply->text));
    rv_jw_kv_bool(&w, "recoverable", false);
    rv_jw_key(&w, "details");
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "code", code);
    rv_jw_obj_end(&w);
    rv_jw_obj_end(&w);
    rv_jw_obj_end(&w);
    rv_buf_fini(&reply->text);
    reply->text = text;
}

static void say_result(const struct mcp_tool_call *c, json_object *result, struct rv_tool_reply *reply)
{
    rv_buf note = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    struct rv_mcp_told told = {.as_called = c->of->wants_result, .text = &reply->text, .note = &note};
    rv_err *err = NULL;

    int rc = rv_mcp_tool_read_result(c->tool, result, &told, &err);
    if (rc < 0) {
        rv_buf_fini(&reply->text);
        reply->text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
        reply->failed = true;
        reply->error_type = rv_error_tool;
        rv_buf_puts(&reply->text, rc == RV_E_LIMIT ? "the result is larger than 8 MiB" : rv_err_text(err));
    } else if (told.code && c->of->wants_result) {
        say_failure(told.code, reply);
    } else if (told.code) {
        reply->failed = true;
        reply->error_type = type_of_output(told.code);
    } else if (note.len > 0) {
        RV_LOG(c->log, WARN, "mcp.output", RV_F_TEXT("tool", c->tool->qualified),
               RV_F_TEXT("text", rv_buf_cstr(&note)));
    }
    rv_err_free(err);
    rv_buf_fini(&note);
}

/* The server asks a person: its name goes with what it asks. */
static void say_asks(const struct mcp_tool_call *c, json_object *asks, struct rv_tool_reply *reply)
{
    rv_err *err = NULL;

    reply->asks = true;
    int rc = rv_json_set_text(asks, "server", c->tool->server->name, &err);
    if (rc == 0) {
        rv_json_write(asks, &reply->text);
        rc = rv_buf_check(&reply->text, "what an MCP server asks", &err);
    }
    if (rc < 0)
        say_trouble(c->tool, &(struct rv_mcp_trouble){.code = "local_failure", .text = rv_err_text(err)}, reply);
    rv_err_free(err);
}

static void on_done(struct rv_mcp_call *call, const struct rv_mcp_out *out)
{
    struct mcp_tool_call *c = of_call(call);
    struct rv_tool_reply reply = {.text = RV_BUF_INIT(RV_JSON_MAX_BYTES)};
    json_object *list = NULL;

    if (!out->result) {
        say_trouble(c->tool, &out->trouble, &reply);
    } else if (out->asks) {
        say_asks(c, out->result, &reply);
    } else if (json_object_is_type(out->result, json_type_array)) { /* of a list in pages */
        list = json_object_new_object();
        if (list && rv_json_set_ref(list, "items", out->result,
                                    RV_CODE_ONLY("it fails without memory only, which the reply says")) == 0)
            say_result(c, list, &reply);
        else
            say_trouble(c->tool, &(struct rv_mcp_trouble){.code = "local_failure", .text = "no memory"}, &reply);
    } else {
        say_result(c, out->result, &reply);
    }
    json_object_put(list);
    struct rv_tool_call *of = c->of;
    mcptools_samples_end(&c->samples);
    free(c);
    rv_tool_call_finish(of, &reply);
}

static void on_progress(struct rv_mcp_call *call, const struct rv_mcp_out *out)
{
    const struct mcp_tool_call *c = of_call(call);

    const struct rv_tool_progress p = {.progress = out->progress, .total = out->total, .text = rv_str_of(out->text)};

    if (c->of->progress)
        c->of->progress(c->of, &p);
}

static void on_sample(struct rv_mcp_call *call, const struct rv_mcp_out *out)
{
    mcptools_samples_add(&of_call(call)->samples, out->id, out->result);
}

/* --- calls --- */

/* The trace of the run: in _meta as the protocol has it, and its id as a header. */
static int add_trace(const struct rv_tool_call *of, struct rv_mcp_request *r, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    const size_t id = 3, id_len = 32; /* "00-" stands before it */

    if (!of->traceparent || strlen(of->traceparent) < id + id_len)
        return 0;
    json_object *meta = rv_json_get_obj(r->params, "_meta");
    if (!meta)
        meta = rv_json_build(&b, r->params, "_meta", json_object_new_object());
    rv_json_build_text(&b, meta, "traceparent", of->traceparent);
    if (of->tracestate)
        rv_json_build_text(&b, meta, "tracestate", of->tracestate);
    return b.rc < 0 ? b.rc : rv_json_set_str(r->headers, "x-trace-id", (rv_str){of->traceparent + id, id_len}, err);
}

/* Who asks, for the author's own servers. rv_mcp_is_context_header() knows these names. */
static int add_context(const struct rv_tool_call *of, struct rv_mcp_request *r, rv_err **err)
{
    const char *context = of->session_id && of->session_id[0] ? of->session_id : of->run_id;
    const char *const fields[][2] = {{"x-context-id", context},        {"x-agent-name", of->agent},
                                     {"x-session-id", of->session_id}, {"x-user-id", of->user_id},
                                     {"x-task-id", of->run_id},        {"x-ai-tool-call-id", of->key}};
    int rc = 0;

    if (!r->headers)
        r->headers = json_object_new_object();
    if (!r->headers)
        return RV_FAIL(err, RV_E_NOMEM, "call an MCP tool");
    for (size_t i = 0; i < RV_COUNT(fields) && rc == 0; i++) {
        assert(rv_mcp_is_context_header(rv_str_of(fields[i][0])));
        if (fields[i][1] && fields[i][1][0])
            rc = rv_json_set_text(r->headers, fields[i][0], fields[i][1], err);
    }
    return rc == 0 ? add_trace(of, r, err) : rc;
}

static int ask(const rv_mcp_tools *t, struct mcp_tool_call *c, json_object *args, rv_err **err)
{
    const struct rv_json_opts opts = {.what = "answers for a tool"};
    struct rv_mcp_request r = {0};
    json_object *input = NULL;
    int64_t timeout_ms = c->of->timeout_ms > 0 ? c->of->timeout_ms : c->tool->info.timeout_ms;

    int rc = rv_mcp_tool_build_request(c->tool, args, c->of->key, &r, err);
    if (rc == 0 && c->tool->server->own)
        rc = add_context(c->of, &r, err);
    if (rc == 0 && c->of->input.len > 0)
        rc = rv_json_parse(c->of->input, &opts, &input, err);
    if (rc < 0) {
        rv_mcp_request_fini(&r);
        return rc;
    }
    const struct rv_mcp_ask ask = {.method = r.method,
                                   .list = r.list,
                                   .params = r.params,
                                   .headers = r.headers,
                                   .input = input,
                                   .is_repeatable = rv_tool_effect(&c->tool->info) != RV_EFFECT_NON_IDEMPOTENT,
                                   .needs_task = r.needs_task,
                                   .timeout_us = timeout_ms * RV_US_PER_MS,
                                   .wants_progress = c->tool->kind == RV_MCP_CALL_TOOL};
    rc = rv_mcp_pool_ask(t->pool, c->tool->server, &ask, &c->call, err);
    rv_mcp_request_fini(&r);
    json_object_put(input);
    return rc;
}

static int call(void *self, struct rv_tool_call *of, rv_err **err)
{
    rv_mcp_tools *t = self;
    const struct rv_json_opts opts = {.what = "arguments"};
    const struct rv_tool_info *info = NULL;
    const struct rv_mcp_tool *tool = t ? rv_mcp_catalog_find(t->catalog, rv_str_of(of->tool), &info) : NULL;
    json_object *args = NULL;

    if (!tool)
        return RV_FAIL(err, RV_E_NOT_FOUND, "no MCP server has tool \"%s\"", of->tool);
    if (!t->pool)
        return RV_FAIL(err, RV_E_NOT_FOUND, "MCP tool \"%s\" cannot be called here: a script can play it", of->tool);
    struct mcp_tool_call *c = malloc(sizeof *c);
    if (!c)
        return RV_FAIL(err, RV_E_NOMEM, "call MCP tool \"%s\"", of->tool);
    *c = (struct mcp_tool_call){
        .call = {.done = on_done, .progress = on_progress, .sample = t->workers.begin ? on_sample : NULL},
        .samples = {.workers = &t->workers, .of = of, .call = &c->call},
        .of = of,
        .tool = tool,
        .log = t->log};
    of->state = c;
    int rc = mcptools_samples_init(&c->samples, tool, err);
    if (rc == 0)
        rc = rv_json_parse(of->args, &opts, &args, err);
    if (rc == 0)
        rc = ask(t, c, args, err);
    json_object_put(args);
    if (rc < 0) {
        mcptools_samples_end(&c->samples);
        free(c);
    }
    return rc;
}

static void cancel(void *self, struct rv_tool_call *of)
{
    struct mcp_tool_call *c = of->state;

    (void)self;
    rv_mcp_pool_cancel(&c->call);
    mcptools_samples_end(&c->samples);
    free(c);
}

static void close_source(void *self)
{
    (void)self; /* connections outlive runs */
}

static const struct rv_tool_source_ops ops = {.name = "mcp",
                                              .find = find,
                                              .identity = identity,
                                              .names = names,
                                              .call = call,
                                              .cancel = cancel,
                                              .close = close_source};

struct rv_tool_source rv_mcp_tools_source(rv_mcp_tools *t, const struct rv_tool_workers *workers)
{
    if (t && workers)
        t->workers = *workers;
    return (struct rv_tool_source){.ops = &ops, .self = t};
}
