/* The tools of a server: pipelines of a folder, tools of capabilities that the operator named, agents, and two that
 * reeve brings. Names are unique: of two with one name the first kind of this list counts. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coreengine/app/mcp/mcp_internal.h"

#define NO_FILE      "mcp.yaml" /* stands for the file of a pipeline that was made here */
#define AGENT_PREFIX "ask_"     /* of the tools that are agents: agents may be called like pipelines */

/* 1 to 128 of the characters that clients and models accept in the name of a tool. */
static bool is_name(const char *text)
{
    size_t n = strlen(text);

    for (size_t i = 0; i < n; i++)
        if (!rv_is_letter(text[i]) && !rv_is_digit(text[i]) && !strchr("_.-", text[i]))
            return false;
    return n > 0 && n <= MCP_MAX_NAME;
}

struct listing {
    struct offers *out;
    const struct rv_app_mcp_opts *opts;
    const struct rv_app_mcp_at *at;
};

static void warn(const struct listing *l, const char *name, const char *why)
{
    RV_LOG(l->at->app->log, WARN, "mcp.left_out", RV_F_TEXT("tool", name), RV_F_TEXT("reason", why));
}

static int add(struct listing *l, enum offer_kind kind, const char *prefix, const char *name, const char *target,
               rv_err **err)
{
    struct offers *o = l->out;
    rv_buf full = RV_BUF_INIT(4096);

    rv_buf_printf(&full, "%s%s", prefix, name);
    if (full.rc == 0 && !is_name(rv_buf_cstr(&full))) {
        warn(l, name, "a name of a tool has 1 to 128 letters, digits, _, . and -");
        rv_buf_fini(&full);
        return 0;
    }
    for (size_t i = 0; i < o->n; i++)
        if (rv_str_is(rv_buf_str(&full), o->items[i].name)) {
            warn(l, name, "another tool has this name");
            rv_buf_fini(&full);
            return 0;
        }
    if (o->n == MCP_MAX_OFFERS) {
        rv_buf_fini(&full);
        return RV_FAIL(err, RV_E_LIMIT, "more than %d tools", MCP_MAX_OFFERS);
    }
    struct offer made = {
        .name = rv_buf_steal(&full, NULL), .kind = kind, .target = target ? rv_str_dup(rv_str_of(target)) : NULL};
    if (!made.name || (target && !made.target) || !rv_has_room(&o->items, &o->cap, o->n + 1, sizeof made)) {
        free(made.name);
        free(made.target);
        return RV_FAIL(err, RV_E_NOMEM, "list the tools");
    }
    o->items[o->n++] = made;
    return 0;
}

static int add_pipeline(void *self, const char *name, rv_err **err)
{
    struct listing *l = self;
    rv_buf path = RV_BUF_INIT(8192);
    int rc = rv_app_find_pipeline_path(l->opts->pipelines, name, &path, err);

    if (rc == 0)
        rc = add(l, OFFER_PIPELINE, "", name, rv_buf_cstr(&path), err);
    rv_buf_fini(&path);
    return rc;
}

static int add_agent(void *self, const char *name, const struct rv_agents_found *found, const rv_err *fault,
                     rv_err **err)
{
    struct listing *l = self;

    (void)found;
    if (!fault)
        return add(l, OFFER_AGENT, AGENT_PREFIX, name, name, err);
    warn(l, name, rv_err_text(fault));
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct offer *)a)->name, ((const struct offer *)b)->name);
}

int app_mcp_offers_list(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, struct offers *out,
                        rv_err **err)
{
    struct listing l = {out, opts, at};
    int rc = 0;

    *out = (struct offers){NULL, 0, 0};
    if (app_mcp_may(at, RV_APP_MCP_DATA))
        rc = add(&l, OFFER_QUERY, "", "query", NULL, err);
    if (rc == 0 && app_mcp_may(at, RV_APP_MCP_RUNS)) {
        rc = add(&l, OFFER_ANSWER, "", "answer_run", NULL, err);
        if (rc == 0)
            rc = rv_app_list_pipelines(opts->pipelines, add_pipeline, &l, err);
        for (size_t i = 0; i < opts->n_tools && rc == 0; i++)
            rc = add(&l, OFFER_TOOL, "", strchr(opts->tools[i], ':') + 1, opts->tools[i], err);
    }
    if (rc == 0 && opts->agents && app_mcp_may(at, RV_APP_MCP_CHAT))
        rc = rv_agents_list(at->sources->agents, &at->app->scope, add_agent, &l, err);
    if (rc < 0)
        app_mcp_offers_fini(out);
    else
        qsort(out->items, out->n, sizeof *out->items, by_name);
    return rc;
}

void app_mcp_offer_fini(struct offer *o)
{
    free(o->name);
    free(o->target);
    *o = (struct offer){.kind = o->kind};
}

void app_mcp_offers_fini(struct offers *offers)
{
    for (size_t i = 0; i < offers->n; i++)
        app_mcp_offer_fini(&offers->items[i]);
    free(offers->items);
    *offers = (struct offers){NULL, 0, 0};
}

struct offer *app_mcp_offers_find(const struct offers *offers, rv_str name)
{
    for (size_t i = 0; i < offers->n; i++)
        if (rv_str_is(name, offers->items[i].name))
            return &offers->items[i];
    return NULL;
}

/* --- what they run --- */

/* A text as a YAML scalar: JSON is YAML. */
static void add_scalar(rv_buf *b, const char *text, size_t n)
{
    rv_jw w = rv_jw_on(b);

    rv_jw_str(&w, (rv_str){text, n});
}

/* A pipeline of one stage for what is not a pipeline by itself. The engine's rules for tools hold for it, too. */
static void write_pipeline(const struct offer *o, rv_buf *b)
{
    if (o->kind == OFFER_AGENT) {
        rv_buf_puts(b, "name: ");
        add_scalar(b, o->name, strlen(o->name));
        rv_buf_puts(b, "\nresponse: {output_key: " MCP_OUTPUT "}\nagents:\n  - {name: answer, agent: ");
        add_scalar(b, o->target, strlen(o->target));
        rv_buf_puts(b, ", output_key: " MCP_OUTPUT "}\n");
        return;
    }
    rv_buf_puts(b, "name: ");
    add_scalar(b, o->name, strlen(o->name));
    rv_buf_puts(b, "\ncapabilities: [");
    add_scalar(b, o->target, (size_t)(strchr(o->target, ':') - o->target));
    rv_buf_puts(b, "]\nagents:\n  - {name: call, has_tools: true, tool_access: all, allowed_tools: [");
    add_scalar(b, o->name, strlen(o->name));
    rv_buf_puts(b, "], output_key: " MCP_OUTPUT "}\n");
}

/* A pipeline that declares inputs gets them as a stage does. The outer one stands in the same folder and has its MCP
 * servers, since those of a stage's pipeline are not started. */
static int write_outer(const struct offer *o, const struct rv_pipeline *inner, rv_buf *b, rv_err **err)
{
    const char *slash = strrchr(o->target, '/'), *file = slash ? slash + 1 : o->target;
    rv_buf value = RV_BUF_INIT(4096);
    rv_jw servers = rv_jw_on(b);
    int rc = 0;

    rv_buf_puts(b, "name: ");
    add_scalar(b, o->name, strlen(o->name));
    if (inner->n_mcp_servers > 0) {
        rv_buf_puts(b, "\nmcp_servers: ");
        rc = rv_pipeline_write_mcp_servers(inner, &servers, err);
    }
    rv_buf_puts(b, "\nagents:\n  - name: " OUTER_STAGE "\n    output_key: " MCP_OUTPUT "\n    pipeline: ");
    add_scalar(b, file, strlen(file));
    rv_buf_puts(b, "\n    inputs:\n");
    for (size_t i = 0; i < inner->inputs.n; i++) {
        rv_buf_puts(b, "      ");
        add_scalar(b, inner->inputs.items[i], strlen(inner->inputs.items[i]));
        rv_buf_puts(b, ": ");
        rv_buf_clear(&value);
        rv_buf_puts(&value, "metadata[");
        add_scalar(&value, inner->inputs.items[i], strlen(inner->inputs.items[i]));
        rv_buf_puts(&value, "]");
        add_scalar(b, rv_buf_cstr(&value), value.len);
        if (value.rc < 0)
            rv_buf_add_buf(b, &value);
        rv_buf_puts(b, "\n");
    }
    rv_buf_fini(&value);
    return rc;
}

const struct rv_pipeline *app_mcp_offered(const struct rv_pipeline *p)
{
    return p && p->n_agents == 1 && strcmp(p->agents[0].name, OUTER_STAGE) == 0 && p->agents[0].inner.pipeline
               ? p->agents[0].inner.pipeline
               : p;
}

static int load_outer(const struct rv_app_mcp_at *at, const struct offer *o, struct rv_app_load_opts *load,
                      struct rv_app_loaded *inner, struct rv_app_loaded *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(1 << 20);
    int rc = write_outer(o, inner->pipeline, &text, err);

    load->text = rv_buf_str(&text);
    load->dir = inner->pipeline->dir;
    if (rc == 0)
        rc = rv_buf_check(&text, "pipeline", err);
    if (rc == 0)
        rc = rv_app_load(at->app, NO_FILE, load, out, err);
    rv_buf_fini(&text);
    return rc;
}

int app_mcp_offer_load(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, const struct offer *o,
                       bool connects, struct rv_app_loaded *out, rv_err **err)
{
    struct rv_app_load_opts load = {.connects = connects, .keeps = true, .store = at->sources->store};
    rv_buf text = RV_BUF_INIT(16 << 10), script = RV_BUF_INIT(8192);
    const char *path = o->kind == OFFER_PIPELINE ? o->target : NO_FILE;

    if (o->kind != OFFER_PIPELINE) {
        write_pipeline(o, &text);
        load.text = rv_buf_str(&text);
    }
    if (opts->scripts) {
        rv_buf_printf(&script, "%s/%s.yaml", opts->scripts, o->name);
        load.script = access(rv_buf_cstr(&script), F_OK) == 0 ? rv_buf_cstr(&script) : NULL;
    }
    int rc = rv_buf_check(&text, "pipeline", err);
    if (rc == 0)
        rc = rv_buf_check(&script, "path of a script", err);
    if (rc == 0)
        rc = rv_app_load(at->app, path, &load, out, err);
    if (rc == 0 && o->kind == OFFER_PIPELINE && out->pipeline && out->pipeline->inputs.n > 0) {
        struct rv_app_loaded inner = *out;
        rc = load_outer(at, o, &load, &inner, out, err);
        rv_app_loaded_fini(&inner);
    }
    rv_buf_fini(&text);
    rv_buf_fini(&script);
    return rc;
}
