/* Find the models that are available: keys in the environment, and model servers on this machine. Nothing is sent to
 * other machines, no key is tried, and no value of a variable is shown: it may be a secret. */
#include "coreengine/app/models/models_internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT ((size_t)64 << 10)

/* A model of each provider that is cheap and good enough to begin with; where there is none, people have to say. */
static const struct {
    const char *provider, *model;
} first_choices[] = {
    {"openai", "gpt-4.1-mini"},
    {"anthropic", "claude-haiku-4-5"},
    {"gemini", "gemini-2.5-flash"},
    {"mistral", "mistral-small-latest"},
    {"groq", "llama-3.3-70b-versatile"},
    {"deepseek", "deepseek-chat"},
    {"xai", "grok-3-mini"},
    {"together", "meta-llama/Llama-3.3-70B-Instruct-Turbo"},
    {"openrouter", "openai/gpt-4.1-mini"},
};

const char *rv_app_variable(const char *name)
{
    const char *value = name ? getenv(name) : NULL;

    return value && value[0] ? value : NULL;
}

/* --- the choice --- */

static bool has_part(const char *name, const char *part)
{
    size_t n = strlen(part);

    for (; *name; name++) {
        size_t i = 0;
        while (i < n && tolower((unsigned char)name[i]) == part[i])
            i++;
        if (i == n)
            return true;
    }
    return false;
}

/* Those that make vectors, ranks or sounds do not answer. */
static const char *talking_model(const struct rv_app_server *s)
{
    static const char *const others[] = {"embed", "rerank", "bge-", "minilm", "whisper", "tts"};

    for (size_t i = 0; i < s->n_models; i++) {
        bool talks = true;
        for (size_t k = 0; k < RV_COUNT(others); k++)
            talks = talks && !has_part(s->models[i], others[k]);
        if (talks)
            return s->models[i];
    }
    return NULL;
}

static void choose(struct rv_app_models *m)
{
    for (size_t i = 0; i < m->n_servers; i++) {
        const char *model = talking_model(&m->servers[i]);
        if (model) {
            rv_buf_printf(&m->model, "%s:%s", m->servers[i].provider->name, model);
            return;
        }
    }
    for (size_t i = 0; i < RV_COUNT(first_choices); i++) {
        const struct rv_provider_info *p = rv_provider_find(rv_str_of(first_choices[i].provider));
        /* elsewhere the model may not be there */
        if (p && rv_app_variable(p->key_env) && !rv_app_variable(p->base_url_env)) {
            rv_buf_printf(&m->model, "%s:%s", p->name, first_choices[i].model);
            return;
        }
    }
}

int rv_app_models_find(const struct rv_app *app, struct rv_app_models **out, rv_err **err)
{
    struct rv_app_models *m = calloc(1, sizeof *m);
    size_t n;
    const struct rv_provider_info *list = rv_provider_list(&n);

    if (!m)
        return RV_FAIL(err, RV_E_NOMEM, "look for models");
    m->http = m->http_err = m->model = RV_BUF_INIT(MAX_TEXT);
    for (size_t i = 0; i < n; i++)
        m->has_key = m->has_key || rv_app_variable(list[i].key_env);
    int rc = rv_app_servers_find(m, err);
    if (rc == 0)
        rc = rv_app_servers_ask(app, m, err);
    if (rc == 0 && m->http_err.len == 0)
        choose(m);
    if (rc < 0) {
        rv_app_models_free(m);
        return rc;
    }
    *out = m;
    return 0;
}

void rv_app_models_free(struct rv_app_models *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n_servers; i++) {
        struct rv_app_server *s = &m->servers[i];
        for (size_t k = 0; k < s->n_models; k++)
            free(s->models[k]);
        free(s->address);
        free(s->url);
        rv_embed_target_fini(&s->target);
    }
    rv_buf_fini(&m->http);
    rv_buf_fini(&m->http_err);
    rv_buf_fini(&m->model);
    free(m);
}

const char *rv_app_models_best(const struct rv_app_models *m)
{
    return m->model.len ? rv_buf_cstr(&m->model) : NULL;
}

const char *rv_app_models_why_none(const struct rv_app_models *m)
{
    bool answers = false;

    for (size_t i = 0; i < m->n_servers; i++)
        answers = answers || (m->servers[i].answers && !m->servers[i].problem);
    if (m->http_err.len)
        return "the HTTP library is missing, so models cannot be reached";
    if (m->has_key)
        return "a key is set, but no model is named for it";
    return answers ? "a server on this machine answers, but has no chat model"
                   : "no key is set, and no model server answers on this machine";
}

void rv_app_models_write(const struct rv_app_models *m, rv_jw *w)
{
    size_t n;
    const struct rv_provider_info *list = rv_provider_list(&n);

    rv_jw_kv_text(w, "model", rv_app_models_best(m));
    rv_jw_kv_text(w, "http", m->http_err.len ? NULL : rv_buf_cstr(&m->http));
    rv_jw_key(w, "keys");
    rv_jw_arr(w);
    for (size_t i = 0; i < n; i++)
        if (rv_app_variable(list[i].key_env))
            rv_jw_text(w, list[i].key_env);
    rv_jw_arr_end(w);
    rv_jw_key(w, "servers");
    rv_jw_arr(w);
    for (size_t i = 0; i < m->n_servers; i++) {
        const struct rv_app_server *s = &m->servers[i];
        rv_jw_obj(w);
        rv_jw_kv_text(w, "provider", s->provider->name);
        rv_jw_kv_text(w, "address", s->address);
        rv_jw_kv_bool(w, "answers", s->answers);
        rv_jw_kv_text(w, "problem", s->problem);
        rv_jw_key(w, "models");
        rv_jw_arr(w);
        for (size_t k = 0; k < s->n_models; k++)
            rv_jw_text(w, s->models[k]);
        rv_jw_arr_end(w);
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
}
