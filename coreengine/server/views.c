/* Lists that clients of REMLight ask for, made from what is there: the models that agents name, the servers of tools
 * that pipelines name, the tools that clients of MCP are offered. None of them can be written here. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "coreengine/server/handlers_internal.h"
#include "coreengine/server/mcp_internal.h"

/* --- models --- */

struct models {
    char **ids; /* owned, and each of them: "provider:model" */
    size_t n, cap;
};

static void models_fini(struct models *m)
{
    for (size_t i = 0; i < m->n; i++)
        free(m->ids[i]);
    free(m->ids);
}

static int add_model(struct models *m, const char *id, rv_err **err)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->ids[i], id) == 0)
            return 0;
    if (!rv_has_room(&m->ids, &m->cap, m->n + 1, sizeof *m->ids) || !(m->ids[m->n] = rv_str_dup(rv_str_of(id))))
        return RV_FAIL(err, RV_E_NOMEM, "list models");
    m->n++;
    return 0;
}

static int take_agent(void *self, const char *name, const struct rv_agents_found *found, const rv_err *fault,
                      rv_err **err)
{
    (void)name;
    return !fault && found->doc && found->doc->model ? add_model(self, found->doc->model, err) : 0;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int find_models(struct srv_call *c, struct models *m, rv_err **err)
{
    struct rv_chat_settings settings;
    int rc = rv_chat_settings_read(&settings, err);

    if (rc == 0)
        rc = add_model(m, settings.default_model, err);
    if (rc == 0)
        rc = rv_agents_list(c->handles->sources.agents, &c->app.scope, take_agent, m, err);
    if (rc == 0)
        qsort(m->ids, m->n, sizeof *m->ids, by_id);
    return rc;
}

static void write_model(rv_jw *w, const char *id)
{
    const char *colon = strchr(id, ':');

    rv_jw_obj(w);
    rv_jw_kv_text(w, "id", id);
    rv_jw_kv_text(w, "name", colon ? colon + 1 : id);
    rv_jw_kv_str(w, "provider", (rv_str){id, colon ? (size_t)(colon - id) : 0});
    rv_jw_kv_text(w, "context_window", NULL); /* providers do not say */
    rv_jw_kv_bool(w, "supports_tools", true);
    rv_jw_kv_bool(w, "supports_streaming", true);
    rv_jw_obj_end(w);
}

static int write_one(struct srv_call *c, const struct models *m, const char *id, rv_err **err)
{
    size_t i = 0;

    while (i < m->n && strcmp(m->ids[i], id) != 0)
        i++;
    if (i == m->n) {
        RV_FAIL(err, RV_E_NOT_FOUND, "no agent here uses the model \"%.100s\"", id);
        rv_err_set_hint(err, "GET /models lists those that agents use");
        return RV_E_NOT_FOUND;
    }
    rv_jw w = srv_call_json(c, 200);
    write_model(&w, m->ids[i]);
    return 0;
}

int srv_models_used(struct srv_call *c, rv_err **err)
{
    struct models m = {NULL, 0, 0};
    int rc = find_models(c, &m, err);

    if (rc == 0 && c->n_args > 0) {
        rc = write_one(c, &m, c->args[0], err);
    } else if (rc == 0) {
        rv_jw w = srv_call_json(c, 200);
        rv_jw_obj(&w);
        rv_jw_key(&w, "models");
        rv_jw_arr(&w);
        for (size_t i = 0; i < m.n; i++)
            write_model(&w, m.ids[i]);
        rv_jw_arr_end(&w);
        rv_jw_obj_end(&w);
    }
    models_fini(&m);
    return rc;
}

/* --- servers of tools --- */

struct servers {
    struct srv_call *c;
    rv_jw *w;
    char *wanted; /* owned; NULL: all */
};

/* Without a user, a password and a query, which may be secrets. */
static rv_str plain_url(const char *url, rv_buf *out)
{
    const char *at = strstr(url, "://"), *host = at ? at + 3 : url;
    size_t n = strcspn(host, "/?#");
    const char *sign = memrchr(host, '@', n), *from = sign ? sign + 1 : host;

    rv_buf_add(out, url, (size_t)(host - url));
    rv_buf_add(out, from, strcspn(from, "?#"));
    return rv_buf_str(out);
}

static void write_server(struct servers *s, const char *pipeline, const struct rv_mcp_server_config *server)
{
    rv_buf url = RV_BUF_INIT(8192);
    bool has_url = server->has_url && server->url[0];

    rv_jw_obj(s->w);
    rv_jw_kv_text(s->w, "name", server->name);
    rv_jw_kv_text(s->w, "pipeline", pipeline);
    rv_jw_kv_text(s->w, "server_type", server->has_openapi ? "rest" : server->command.is_set ? "stdio" : "mcp");
    rv_jw_key(s->w, "endpoint");
    if (has_url)
        rv_jw_str(s->w, plain_url(server->url, &url));
    else
        rv_jw_null(s->w);
    rv_jw_kv_bool(s->w, "required", server->required);
    rv_jw_kv_bool(s->w, "enabled", true);
    rv_jw_obj_end(s->w);
    rv_buf_fini(&url);
}

static int take_pipeline(void *self, const char *name, rv_err **err)
{
    struct servers *s = self;
    const struct rv_app_load_opts opts = {.store = s->c->store};
    rv_buf path = RV_BUF_INIT(8192);
    struct rv_app_loaded l;
    int rc = rv_app_find_pipeline_path(s->c->server->opts->pipelines, name, &path, err);

    if (rc == 0)
        rc = rv_app_load_plain(&s->c->app, rv_buf_cstr(&path), &opts, &l, err);
    rv_buf_fini(&path);
    if (rc < 0)
        return rc;
    for (size_t i = 0; l.pipeline && i < l.pipeline->n_mcp_servers; i++)
        if (!s->wanted || strcmp(s->wanted, l.pipeline->mcp_servers[i].name) == 0)
            write_server(s, name, &l.pipeline->mcp_servers[i]);
    rv_app_loaded_fini(&l);
    return 0;
}

int srv_tool_servers(struct srv_call *c, rv_err **err)
{
    rv_jw w = srv_call_json(c, 200);
    struct servers s = {.c = c, .w = &w};
    int rc = srv_call_dup_text(c, "name", &s.wanted, err);

    rv_jw_arr(&w);
    if (rc == 0)
        rc = rv_app_list_pipelines(c->server->opts->pipelines, take_pipeline, &s, err);
    rv_jw_arr_end(&w);
    free(s.wanted);
    return rc;
}
