/* Models that are at hand: servers on this machine, asked for their lists; keys in the environment. */
#include "coreengine/app/models/fetch_internal.h"

#include <ctype.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAME   200                  /* bytes of a model's name: a table shows it; longer ones are not listed */
#define MAX_LIST   ((size_t)4 << 20)    /* bytes of a server's list of models; a longer one counts as no server */
#define CONNECT_US (300 * RV_US_PER_MS) /* of a server on this machine: it accepts at once, or it is not there */
#define TOTAL_US   (2 * RV_US_PER_S)    /* a server that is busy with another request answers late */
#define MAX_TEXT   ((size_t)64 << 10)   /* bytes of one address, and of an error: servers take addresses of 8 KiB */

/* --- servers --- */

static const char *get_variable(void *self, const char *name)
{
    (void)self;
    return getenv(name);
}

/* The host itself, written as a number or as the one name that is always this machine. */
static bool is_loopback(const char *url)
{
    static const char *const names[] = {"localhost", "[::1]"};
    const char *host = strstr(url, "://");

    host = host ? host + 3 : url;
    if (strchr(host, '@'))
        return false;
    size_t n = strncmp(host, "127.", 4) == 0 ? strspn(host, "0123456789.") : 0;
    for (size_t i = 0; i < RV_COUNT(names); i++)
        if (strncmp(host, names[i], strlen(names[i])) == 0)
            n = strlen(names[i]);
    return n > 0 && (!host[n] || host[n] == ':' || host[n] == '/');
}

static bool is_known(const struct rv_app_models *m, const char *url)
{
    for (size_t i = 0; i < m->n_servers; i++)
        if (strcmp(m->servers[i].url, url) == 0)
            return true;
    return false;
}

static char *joined(rv_str base, const char *path)
{
    rv_buf text = RV_BUF_INIT(RV_HTTP_MAX_HEAD);
    size_t len;

    rv_buf_add_str(&text, base);
    rv_buf_puts(&text, path);
    char *url = rv_buf_steal(&text, &len);
    rv_buf_fini(&text);
    return url;
}

/* Where a provider's embeddings are is where its list of models is, but for the path: address, variables and keys are
 * found in one place. */
static int add_server(struct rv_app_models *m, const struct rv_provider_info *p, rv_err **err)
{
    const char *path = rv_wire_embed_path(p->wire);
    struct rv_provider_env env = {get_variable, NULL};
    struct rv_app_server s = {.provider = p};
    int rc = 0;

    if (!path || !p->base_url || m->n_servers == RV_APP_MAX_SERVERS)
        return 0;
    rc = rv_provider_find_embed_target(env, p->name, "any", NULL, &s.target, err);
    if (rc == RV_E_INVALID) { /* no key, no address, no embeddings: it is not on this machine */
        rv_err_free(rv_err_steal(err));
        return 0;
    }
    if (rc < 0)
        return rc;
    size_t len = strlen(s.target.url), tail = strlen(path);
    rv_str base = {s.target.url, len > tail ? len - tail : 0};
    s.address = rv_str_dup(base);
    s.url = joined(base, p->wire == RV_WIRE_OLLAMA ? "/v1/models" : "/models");
    if (!s.address || !s.url)
        rc = RV_FAIL(err, RV_E_NOMEM, "look for servers of models");
    if (rc == 0 && is_loopback(s.address) && !is_known(m, s.url)) {
        m->servers[m->n_servers++] = s;
        return 0;
    }
    free(s.address);
    free(s.url);
    rv_embed_target_fini(&s.target);
    return rc;
}

static int servers_find(struct rv_app_models *m, rv_err **err)
{
    size_t n;
    const struct rv_provider_info *list = rv_provider_list(&n);
    int rc = 0;

    for (int pass = 0; pass < 2; pass++) /* what is set names a server better than its port does */
        for (size_t i = 0; rc == 0 && i < n; i++)
            if ((rv_app_variable(list[i].base_url_env) != NULL) == (pass == 0))
                rc = add_server(m, &list[i], err);
    return rc;
}

/* It is printed and put into commands. */
static bool is_name(const char *s)
{
    size_t n = strlen(s);

    for (size_t i = 0; i < n; i++)
        if (s[i] <= ' ' || s[i] > '~')
            return false;
    return n > 0 && n <= MAX_NAME;
}

static void read_models(struct rv_app_server *s, rv_str body)
{
    const struct rv_json_opts opts = {.max_bytes = MAX_LIST};
    json_object *list = NULL, *data = NULL;

    int rc = rv_json_parse(body, &opts, &list, RV_CODE_ONLY("the problem of the server says it in words below"));
    s->problem = rc == RV_E_NOMEM ? "no memory to read its list of models" : "its list of models cannot be read";
    if (rc < 0)
        return;
    if (json_object_is_type(list, json_type_object) && (data = rv_json_get_arr(list, "data")))
        s->problem = NULL;
    for (size_t i = 0; data && i < json_object_array_length(data) && s->n_models < RV_APP_MAX_MODELS; i++) {
        json_object *entry = json_object_array_get_idx(data, i);
        const char *id = NULL;
        if (json_object_is_type(entry, json_type_object) && rv_json_get_text(entry, "id", &id) && is_name(id) &&
            (s->models[s->n_models] = rv_str_dup(rv_str_of(id))))
            s->n_models++;
    }
    json_object_put(list);
}

static void take_answer(struct rv_app_server *s, const struct rv_app_fetch *f)
{
    bool timed_out = f->fault == RV_HTTP_FIRST_BYTE_TIME || f->fault == RV_HTTP_TOTAL_TIME;

    s->answers = f->fault != RV_HTTP_UNREACHABLE && f->fault != RV_HTTP_CONNECT_TIME;
    if (!s->answers)
        return;
    if (timed_out)
        s->problem = "the server does not answer in time";
    else if (f->fault != RV_HTTP_OK)
        s->problem = "the program at this address is not an HTTP server";
    else if (f->status == 401 || f->status == 403)
        s->problem = "the server requires a key";
    else if (f->status != 200)
        s->problem = "the program at this address is not a model server";
    else
        read_models(s, rv_buf_str(&f->body));
}

/* --- the HTTP library --- */

static void read_version(struct rv_app_models *m)
{
    const char *text = rv_http_library() ? rv_http_library() : "libcurl"; /* it is open: servers were asked */
    size_t n = strcspn(text, " "); /* its name, and who does TLS: "libcurl/7.88.1 OpenSSL/3.0.19 zlib/..." */
    n += text[n] ? 1 + strcspn(text + n + 1, " ") : 0;
    rv_buf_printf(&m->http, "%.*s%s", (int)n, text, strstr(text, "nghttp2/") ? ", with HTTP/2" : "");
}

static int servers_ask(const struct rv_app *app, struct rv_app_models *m, rv_err **err)
{
    struct rv_app_fetch fetches[RV_APP_MAX_SERVERS] = {0};

    for (size_t i = 0; i < m->n_servers; i++)
        fetches[i].request = (struct rv_http_request){.method = "GET",
                                                      .url = m->servers[i].url,
                                                      .headers = (const char *const *)m->servers[i].target.headers,
                                                      .n_headers = m->servers[i].target.n_headers,
                                                      .connect_us = CONNECT_US,
                                                      .first_byte_us = TOTAL_US,
                                                      .total_us = TOTAL_US,
                                                      .max_body = MAX_LIST,
                                                      .proxy = ""};
    int rc = app_fetch_all(app, fetches, m->n_servers, err);
    if (rc == 0)
        read_version(m);
    for (size_t i = 0; i < m->n_servers; i++) {
        if (rc == 0)
            take_answer(&m->servers[i], &fetches[i]);
        app_fetch_fini(&fetches[i]);
    }
    if (rc < 0 && rc != RV_E_NOMEM) {
        rv_err_write_text(*err, false, &m->http_err);
        while (m->http_err.len && m->http_err.ptr[m->http_err.len - 1] == '\n')
            rv_buf_truncate(&m->http_err, m->http_err.len - 1);
        rv_err_free(rv_err_steal(err));
        rc = 0;
    }
    return rc;
}

/* --- what is at hand --- */

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
        while (i < n && rv_ascii_lower(name[i]) == part[i])
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
    int rc = servers_find(m, err);
    if (rc == 0)
        rc = servers_ask(app, m, err);
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
