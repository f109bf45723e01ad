/* Which models are at hand, for people and for programs. No value of a variable is shown: it may be a secret. */
#include "coreengine/cli/doctor/doctor.h"

#define MAX_TEXT     ((size_t)64 << 10)
#define SHOWN_MODELS 3

const char rv_doctor_ways[] =
    "  1. a key: export OPENAI_API_KEY=... (from platform.openai.com/api-keys) or ANTHROPIC_API_KEY=... (from\n"
    "     console.anthropic.com); `reeve inspect --providers` lists all others\n"
    "  2. a model on this machine with Ollama (ollama.com/download): ollama pull qwen3:4b\n"
    "  3. the same with llama.cpp: llama-server -hf ggml-org/gemma-3-1b-it-GGUF --port 8080; or any server that is\n"
    "     compatible with OpenAI's, by OPENAI_BASE_URL\n";

static void show_server(const struct rv_app_server *s, struct rv_checkup *c)
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
        if (rv_app_variable(list[i].key_env))
            rv_checkup_line(c, RV_CHECK_OK, "model key", "%s is set: %s", list[i].key_env, list[i].name);
        if (rv_app_variable(list[i].base_url_env))
            rv_checkup_line(c, RV_CHECK_OK, "model address", "%s is set: %s is asked there", list[i].base_url_env,
                            list[i].name);
    }
}

static void show_none(const struct rv_app_models *m, struct rv_checkup *c)
{
    rv_checkup_line(c, RV_CHECK_NOTE, "model", "none is at hand: %s", rv_app_models_why_none(m));
    rv_buf_printf(&c->text, "  scripts and mocks need none; three ways to get one:\n%s", rv_doctor_ways);
}

void rv_doctor_models_check(const struct rv_app_models *m, struct rv_checkup *c)
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
