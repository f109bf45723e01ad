/* The lists of all servers of a pipeline: asked for at once, or read from files that were written before. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "coreengine/tools/mcp/mcptools_internal.h"

#define MAX_KEPT    ((size_t)16 << 20)  /* bytes of a kept file: as one message of a server, RV_MCP_MAX_MESSAGE */
#define MAX_WAIT_US RV_US_PER_S         /* between two looks whether all have answered */
#define LOOK_US     (50 * RV_US_PER_MS) /* the same, when another thread may end it */

/* The question to one server. */
struct question {
    struct rv_mcp_call call;
    const struct rv_mcp_server_config *server;
    json_object *tools; /* the answer; owned */
    char *trouble;      /* why there is none; owned */
    const char *code;
    bool is_over, has_resources, has_prompts, is_nomem;
    bool is_without_tools; /* it refused the question for its tools; not the connection */
    bool is_kept;          /* it was not asked: its list is fresh */
    int64_t ttl_ms;        /* of the answer */
    int64_t n_changes;     /* of the kept lists, when it was asked */
};

static void on_listed(struct rv_mcp_call *c, const struct rv_mcp_out *out)
{
    struct question *q = (struct question *)((char *)c - offsetof(struct question, call));

    q->is_over = true;
    q->tools = json_object_get(out->result);
    q->ttl_ms = out->ttl_ms;
    if (q->tools)
        return;
    q->code = out->trouble.code;
    q->trouble = rv_str_dup(rv_str_of(out->trouble.text));
    q->is_nomem = !q->trouble;
    q->is_without_tools = out->trouble.rpc_code == RV_MCP_METHOD_NOT_FOUND && !out->trouble.is_unsent;
}

static int ask(rv_mcp_tools *t, struct question *q, rv_err **err)
{
    const struct rv_mcp_ask list = {
        .method = "tools/list", .list = "tools", .timeout_us = 2 * q->server->timeout_ms * RV_US_PER_MS};

    q->call = (struct rv_mcp_call){.done = on_listed};
    return rv_mcp_pool_ask(t->pool, q->server, &list, &q->call, err);
}

static int64_t now_us(void)
{
    return (int64_t)(uv_hrtime() / 1000);
}

/* Take the list that is kept, or ask. */
static int find_or_ask(rv_mcp_tools *t, const struct rv_mcp_tools_opts *o, struct question *q, rv_err **err)
{
    struct mcp_listed kept = {.tools = NULL};
    int rc = o->kept ? mcptools_lists_find(o->kept, q->server, now_us(), &kept, err) : 0;

    q->n_changes = kept.n_changes;
    if (rc < 0 || !kept.tools)
        return rc < 0 ? rc : ask(t, q, err);
    RV_LOG(o->log, DEBUG, "mcp.list_kept", RV_F_TEXT("server", q->server->name));
    q->is_over = q->is_kept = true;
    q->tools = kept.tools;
    q->has_resources = kept.has_resources;
    q->has_prompts = kept.has_prompts;
    return 0;
}

static int keep(const struct rv_mcp_tools_opts *o, const struct question *q, rv_err **err)
{
    const struct mcp_listed listed = {
        .tools = q->tools, .has_resources = q->has_resources, .has_prompts = q->has_prompts, .n_changes = q->n_changes};

    return o->kept && q->tools && !q->is_kept
               ? mcptools_lists_put(o->kept, q->server, q->ttl_ms, now_us(), &listed, err)
               : 0;
}

static bool is_any_open(const struct question *questions, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!questions[i].is_over)
            return true;
    return false;
}

static void look_at_offers(const rv_mcp_tools *t, struct question *q)
{
    const rv_mcp_client *client = rv_mcp_pool_client(t->pool, q->server);

    if (q->is_kept || !client || !rv_mcp_client_is_ready(client))
        return;
    q->has_resources = rv_mcp_client_offers(client, "resources");
    q->has_prompts = rv_mcp_client_offers(client, "prompts");
    q->is_without_tools = q->is_without_tools && !rv_mcp_client_offers(client, "tools");
}

/* --- files --- */

/* *is_there false: there is no such file, or the server names none. */
static int read_kept(rv_mcp_tools *t, const struct rv_mcp_server_config *s, rv_findings *f, bool *is_there,
                     rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = MAX_KEPT, .what = "kept list of MCP tools"};
    rv_buf text = RV_BUF_INIT(MAX_KEPT);
    json_object *lists = NULL;
    rv_err *why = NULL;

    *is_there = false;
    if (!s->catalog[0] || access(s->catalog, F_OK) != 0)
        return 0;
    int rc = rv_file_read(s->catalog, &text, &why);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&text), &opts, &lists, &why);
    if (rc == 0)
        rc = rv_mcp_catalog_read(t->catalog, lists, f, &why);
    if (rc < 0 && !rv_err_is(why, RV_E_NOMEM)) {
        rv_findings_add_err(f, RV_SEVERITY_ERROR, &s->src, why);
        rc = 0;
    } else if (rc < 0) {
        rc = RV_FAIL(err, RV_E_NOMEM, "read a kept list of MCP tools");
    }
    *is_there = rv_mcp_catalog_has_server(t->catalog, s->name);
    rv_err_free(why);
    json_object_put(lists);
    rv_buf_fini(&text);
    return rc;
}

static int read_all_kept(rv_mcp_tools *t, const struct rv_mcp_tools_opts *o, rv_err **err)
{
    bool is_there;
    int rc = 0;

    for (size_t i = 0; i < o->pipeline->n_mcp_servers && rc == 0; i++)
        rc = read_kept(t, &o->pipeline->mcp_servers[i], o->findings, &is_there, err);
    return rc;
}

/* --- servers --- */

static int report(rv_mcp_tools *t, const struct rv_mcp_tools_opts *o, const struct question *q, rv_err **err)
{
    bool is_kept = false;
    int rc = q->server->required ? 0 : read_kept(t, q->server, o->findings, &is_kept, err);

    if (rc < 0)
        return rc;
    t->failed[q->server - t->servers] = true;
    rv_findings_add_as(o->findings, q->server->required ? RV_SEVERITY_ERROR : RV_SEVERITY_WARNING, "mcp_server",
                       &q->server->src,
                       q->server->required ? "the pipeline says that it is required"
                       : is_kept           ? "its tools are known by the kept file, and their calls try again"
                                           : "a run goes on without its tools; required: true makes this an error",
                       "%s \"%s\": %s [%s]", rv_mcp_server_kind(q->server), q->server->name,
                       q->trouble ? q->trouble : "no memory", q->code);
    return 0;
}

/* A document that is a file is the author's, like the pipeline: a change in it needs no approval, unless the pipeline
 * says so. */
static bool needs_approval(const struct rv_mcp_server_config *s)
{
    return !s->has_openapi || s->pin == RV_MCP_PINS_STRICT || strncmp(s->openapi, "http://", 7) == 0 ||
           strncmp(s->openapi, "https://", 8) == 0;
}

/* An answer counts as far as it is approved. */
static int take(rv_mcp_tools *t, const struct rv_mcp_tools_opts *o, struct question *q, rv_err **err)
{
    json_object *unique = NULL, *approved = NULL;
    int rc = keep(o, q, err);

    if (rc == 0 && q->tools)
        rc = rv_mcp_catalog_build_unique(q->server, q->tools, o->findings, &unique, err);
    if (rc < 0)
        return rc;
    if (q->tools) {
        json_object_put(q->tools);
        q->tools = unique;
    }
    if (q->tools && o->state && needs_approval(q->server)) {
        rc = mcptools_mcp_pins_filter(o, q->server, q->tools, &approved, err);
        if (rc < 0)
            return RV_WRAP(err, rc, "MCP server \"%s\"", q->server->name);
        json_object_put(q->tools);
        q->tools = approved;
    }
    return rv_mcp_catalog_add(t->catalog, q->server, &(struct rv_mcp_offer){q->tools, q->has_resources, q->has_prompts},
                              o->findings, err);
}

static int take_answers(rv_mcp_tools *t, const struct rv_mcp_tools_opts *o, struct question *questions, size_t n,
                        rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        struct question *q = &questions[i];
        look_at_offers(t, q);
        if (q->is_nomem)
            rc = RV_FAIL(err, RV_E_NOMEM, "no memory for the tools of MCP servers");
        else if (q->tools || q->is_without_tools)
            rc = take(t, o, q, err);
        else
            rc = report(t, o, q, err);
    }
    return rc;
}

static int list_all(rv_mcp_tools *t, const struct rv_mcp_tools_opts *o, rv_err **err)
{
    size_t n = o->pipeline->n_mcp_servers;
    struct question *questions = calloc(n + 1, sizeof *questions);
    int rc = questions ? 0 : RV_FAIL(err, RV_E_NOMEM, "no memory for the tools of MCP servers");

    for (size_t i = 0; i < n && rc == 0; i++) {
        questions[i].server = &o->pipeline->mcp_servers[i];
        rc = find_or_ask(t, o, &questions[i], err);
    }
    while (rc == 0 && is_any_open(questions, n))
        if (o->until.is_over && o->until.is_over(o->until.self))
            rc = RV_FAIL(err, RV_E_CANCELLED, "the call ended before its MCP servers had answered");
        else
            rv_mcp_pool_wait(t->pool, o->until.is_over ? LOOK_US : MAX_WAIT_US);
    if (rc == 0)
        rc = take_answers(t, o, questions, n, err);
    for (size_t i = 0; questions && i < n; i++) {
        rv_mcp_pool_cancel(&questions[i].call);
        json_object_put(questions[i].tools);
        free(questions[i].trouble);
    }
    free(questions);
    return rc;
}

int rv_mcp_tools_new(const struct rv_mcp_tools_opts *o, rv_mcp_tools **out, rv_err **err)
{
    const struct rv_mcp_pool_opts pool = {.servers = o->pipeline->mcp_servers,
                                          .n_servers = o->pipeline->n_mcp_servers,
                                          .http = o->http,
                                          .kept = o->kept,
                                          .log = o->log};
    rv_mcp_tools *t = calloc(1, sizeof *t);

    if (!t)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for the tools of MCP servers");
    t->log = o->log;
    t->servers = pool.servers;
    t->failed = calloc(pool.n_servers + 1, sizeof *t->failed);
    if (!t->failed) {
        free(t);
        return RV_FAIL(err, RV_E_NOMEM, "no memory for the tools of MCP servers");
    }
    int rc = rv_mcp_catalog_new(pool.servers, pool.n_servers, &t->catalog, err);
    if (rc == 0 && (o->connects || o->is_called))
        rc = rv_mcp_pool_new(&pool, &t->pool, err);
    if (rc == 0 && o->lists)
        rc = rv_mcp_catalog_read(t->catalog, o->lists, o->findings, err);
    else if (rc == 0)
        rc = o->connects ? list_all(t, o, err) : read_all_kept(t, o, err);
    if (rc == 0)
        rc = rv_mcp_catalog_finish(t->catalog, err);
    if (rc < 0) {
        rv_mcp_tools_free(t);
        return rc;
    }
    *out = t;
    return 0;
}

void rv_mcp_tools_free(rv_mcp_tools *t)
{
    if (!t)
        return;
    rv_mcp_pool_free(t->pool);
    rv_mcp_catalog_free(t->catalog);
    free(t->failed);
    free(t);
}

const rv_mcp_catalog *rv_mcp_tools_catalog(const rv_mcp_tools *t)
{
    return t->catalog;
}

bool rv_mcp_tools_has_failed(const rv_mcp_tools *t, const struct rv_mcp_server_config *server)
{
    return t->failed[server - t->servers];
}

rv_mcp_pool *rv_mcp_tools_pool(const rv_mcp_tools *t)
{
    return t->pool;
}
