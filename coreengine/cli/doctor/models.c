/* Which models are at hand: keys in the environment, and servers of models on this machine. Nothing is sent to anybody
 * else, no key is tried, and no value of a variable is shown: it may be a secret. */
#include "coreengine/cli/doctor/doctor.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT     ((size_t)64 << 10)
#define SHOWN_MODELS 3

const char rv_doctor_ways[] =
    "  1. a key: export OPENAI_API_KEY=... (from platform.openai.com/api-keys) or ANTHROPIC_API_KEY=... (from\n"
    "     console.anthropic.com); `reeve inspect --providers` lists all others\n"
    "  2. a model on this machine with Ollama (ollama.com/download): ollama pull qwen3:4b\n"
    "  3. the same with llama.cpp: llama-server -hf ggml-org/gemma-3-1b-it-GGUF --port 8080; or any server that is\n"
    "     compatible with OpenAI's, by OPENAI_BASE_URL\n";

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

const char *rv_doctor_variable(const char *name)
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
static const char *talking_model(const struct rv_doctor_server *s)
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

static void choose(struct rv_doctor_models *m)
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
        if (p && rv_doctor_variable(p->key_env) && !rv_doctor_variable(p->base_url_env)) {
            rv_buf_printf(&m->model, "%s:%s", p->name, first_choices[i].model);
            return;
        }
    }
}

int rv_doctor_models_find(const struct rv_cli *cli, struct rv_doctor_models **out, rv_err **err)
{
    struct rv_doctor_models *m = calloc(1, sizeof *m);
    size_t n;
    const struct rv_provider_info *list = rv_provider_list(&n);

    if (!m)
        return RV_FAIL(err, RV_E_NOMEM, "look for models");
    m->http = m->http_err = m->model = RV_BUF_INIT(MAX_TEXT);
    for (size_t i = 0; i < n; i++)
        m->has_key = m->has_key || rv_doctor_variable(list[i].key_env);
    int rc = rv_doctor_find_servers(m, err);
    if (rc == 0)
        rc = rv_doctor_ask_servers(cli, m, err);
    if (rc == 0 && m->http_err.len == 0)
        choose(m);
    if (rc < 0) {
        rv_doctor_models_free(m);
        return rc;
    }
    *out = m;
    return 0;
}

void rv_doctor_models_free(struct rv_doctor_models *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n_servers; i++) {
        struct rv_doctor_server *s = &m->servers[i];
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

const char *rv_doctor_model(const struct rv_doctor_models *m)
{
    return m->model.len ? rv_buf_cstr(&m->model) : NULL;
}

const char *rv_doctor_why_none(const struct rv_doctor_models *m)
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

/* --- showing --- */

static void show_server(const struct rv_doctor_server *s, struct rv_checkup *c)
{
    rv_buf models = RV_BUF_INIT(MAX_TEXT);

    for (size_t i = 0; i < s->n_models && i < SHOWN_MODELS; i++)
        rv_buf_printf(&models, "%s%s", i ? ", " : "", s->models[i]);
    if (s->n_models > SHOWN_MODELS)
        rv_buf_printf(&models, " and %zu more", s->n_models - SHOWN_MODELS);
    if (s->problem)
        rv_checkup_line(c, RV_CHECK_NOTE, "model server", "%s: %s", s->address, s->problem);
    else
        rv_checkup_line(c, s->n_models ? RV_CHECK_OK : RV_CHECK_NOTE, "model server", "%s (%s): %s", s->address,
                        s->provider->name, s->n_models ? rv_buf_cstr(&models) : "no models installed");
    rv_buf_fini(&models);
}

static void show_variables(struct rv_checkup *c)
{
    size_t n;
    const struct rv_provider_info *list = rv_provider_list(&n);

    for (size_t i = 0; i < n; i++) {
        if (rv_doctor_variable(list[i].key_env))
            rv_checkup_line(c, RV_CHECK_OK, "model key", "%s is set: %s", list[i].key_env, list[i].name);
        if (rv_doctor_variable(list[i].base_url_env))
            rv_checkup_line(c, RV_CHECK_OK, "model address", "%s is set: %s is asked there", list[i].base_url_env,
                            list[i].name);
    }
}

static void show_none(const struct rv_doctor_models *m, struct rv_checkup *c)
{
    rv_checkup_line(c, RV_CHECK_NOTE, "model", "none is at hand: %s", rv_doctor_why_none(m));
    rv_buf_printf(&c->text, "  scripts and mocks need none; three ways to get one:\n%s", rv_doctor_ways);
}

void rv_doctor_models_check(const struct rv_doctor_models *m, struct rv_checkup *c)
{
    if (m->http_err.len)
        rv_checkup_line(c, m->has_key ? RV_CHECK_BAD : RV_CHECK_NOTE, "http", "%s", rv_buf_cstr(&m->http_err));
    else
        rv_checkup_line(c, RV_CHECK_OK, "http", "%s", rv_buf_cstr(&m->http));
    show_variables(c);
    for (size_t i = 0; i < m->n_servers; i++)
        if (m->servers[i].answers)
            show_server(&m->servers[i], c);
    if (m->model.len)
        rv_checkup_line(c, RV_CHECK_OK, "model", "%s is at hand", rv_buf_cstr(&m->model));
    else
        show_none(m, c);
}

void rv_doctor_models_json(const struct rv_doctor_models *m, rv_jw *w)
{
    size_t n;
    const struct rv_provider_info *list = rv_provider_list(&n);

    rv_jw_kv_text(w, "model", rv_doctor_model(m));
    rv_jw_kv_text(w, "http", m->http_err.len ? NULL : rv_buf_cstr(&m->http));
    rv_jw_key(w, "keys");
    rv_jw_arr(w);
    for (size_t i = 0; i < n; i++)
        if (rv_doctor_variable(list[i].key_env))
            rv_jw_text(w, list[i].key_env);
    rv_jw_arr_end(w);
    rv_jw_key(w, "servers");
    rv_jw_arr(w);
    for (size_t i = 0; i < m->n_servers; i++) {
        const struct rv_doctor_server *s = &m->servers[i];
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
