/* Where a role's requests go, with which headers, and what the wire has to know of that place. What the options say
 * wins over the environment, and that over the table. */
#include "coreengine/model/provider/provider_internal.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_BYTES         ((size_t)1 << 20) /* all texts of an endpoint: its headers are a quarter */
#define MIN_SECRET        8                 /* shorter ones ("none", "EMPTY") are placeholders, and words of texts */
#define ANTHROPIC_VERSION "2023-06-01"
#define AZURE_VERSION     "2024-10-21"
#define OWN_HEADERS       8 /* that a wire adds to those of the role */

/* --- a role's options as numbers ---
 *
 * They were checked when the pipeline was loaded: what is not of its type or range here counts as not given. */

#define DEFAULT_CONNECT_MS    10000  /* ten seconds: a server that is there accepts at once */
#define DEFAULT_FIRST_BYTE_MS 300000 /* a model that reasons, or that has to be loaded first, is silent for long */
#define DEFAULT_IDLE_MS       120000 /* two minutes without a byte: a model that thinks sends none */
#define DEFAULT_RETRY_WAIT_MS 60000  /* a minute: a provider that wants more is treated as down */
#define MAX_ATTEMPTS          100    /* of one call: each may cost; the file of a pipeline may ask for fewer */
#define MAX_MS                INT64_C(31536000000) /* a year: sums of times must not overflow */
/* above what any provider allows: its product with a minute does not overflow */
#define MAX_COUNT INT64_C(1000000000)

static int64_t number(json_object *options, const char *key, int64_t min, int64_t max, int64_t missing)
{
    int64_t n;

    if (!options || !rv_json_get_int(options, key, &n) || n < min)
        return missing;
    return n < max ? n : max;
}

static const char *text(json_object *options, const char *key)
{
    const char *s;

    return options && rv_json_get_text(options, key, &s) ? s : NULL;
}

static struct rv_call_options call_options_of(json_object *options)
{
    return (struct rv_call_options){
        .connect_us = RV_US_PER_MS * number(options, "connect_timeout_ms", 1, MAX_MS, DEFAULT_CONNECT_MS),
        .first_byte_us = RV_US_PER_MS * number(options, "first_byte_timeout_ms", 1, MAX_MS, DEFAULT_FIRST_BYTE_MS),
        .idle_us = RV_US_PER_MS * number(options, "idle_timeout_ms", 1, MAX_MS, DEFAULT_IDLE_MS),
        .max_attempts = number(options, "max_attempts", 1, MAX_ATTEMPTS, RV_LLM_DEFAULT_ATTEMPTS),
        .max_retry_wait_us = RV_US_PER_MS * number(options, "max_retry_wait_ms", 0, MAX_MS, DEFAULT_RETRY_WAIT_MS),
        .max_concurrent = number(options, "max_concurrent", 0, MAX_COUNT, 0),
        .requests_per_minute = number(options, "requests_per_minute", 0, MAX_COUNT, 0),
        .tokens_per_minute = number(options, "tokens_per_minute", 0, MAX_COUNT, 0),
        .ca_file = text(options, "ca_file"),
        .proxy = text(options, "proxy"),
    };
}

/* --- address and headers --- */

struct building {
    struct rv_endpoint *e;
    struct rv_provider_env env;
    const struct rv_endpoint_want *want;
    const struct rv_provider_ways *ways;
    const char *base, *key; /* key NULL: none */
    bool at_home;           /* at the provider's own address */
    const char *auth;       /* the header that says who asks, as it is sent; NULL: none does */
    size_t cap_headers;
};

static int no_memory(rv_err **err)
{
    return RV_FAIL(err, RV_E_NOMEM, "prepare a request to a model");
}

static const char *option(const struct building *b, const char *key)
{
    const char *s;

    return b->want->options && rv_json_get_text(b->want->options, key, &s) && s[0] ? s : NULL;
}

static const char *variable(const struct building *b, const char *name)
{
    const char *s = name && b->env.get ? b->env.get(b->env.self, name) : NULL;

    return s && s[0] ? s : NULL;
}

static void hide(struct rv_endpoint *e, rv_str secret)
{
    if (secret.len >= MIN_SECRET && e->n_secrets < RV_PROVIDER_MAX_SECRETS)
        e->secrets[e->n_secrets++] = secret;
}

static void hide_user(struct rv_endpoint *e, const char *url)
{
    rv_str user = provider_url_user(rv_str_of(url));
    const char *colon = user.len ? memchr(user.ptr, ':', user.len) : NULL;

    hide(e, user);
    if (colon)
        hide(e, (rv_str){colon + 1, user.len - (size_t)(colon + 1 - user.ptr)});
}

/* Some gateways take their key there. False: there are too many values, of which no message may tell one. */
static bool hide_query(struct rv_endpoint *e, rv_str query)
{
    for (int i = 0; query.len; i++) {
        if (i == RV_PROVIDER_MAX_QUERY)
            return false;
        const char *amp = memchr(query.ptr, '&', query.len);
        rv_str pair = {query.ptr, amp ? (size_t)(amp - query.ptr) : query.len};
        const char *is = memchr(pair.ptr, '=', pair.len);
        rv_str name = {pair.ptr, is ? (size_t)(is - pair.ptr) : pair.len};
        if (is && !rv_str_is(name, "api-version"))
            hide(e, (rv_str){is + 1, pair.len - name.len - 1});
        query = (rv_str){query.ptr + pair.len + (amp ? 1 : 0), query.len - pair.len - (amp ? 1 : 0)};
    }
    return true;
}

/* --- Address --- */

static int find_base(struct building *b, rv_err **err)
{
    const struct rv_provider_info *info = b->e->info;
    const char *said = option(b, "base_url");
    rv_str home = {NULL, 0};

    if (!said) {
        said = variable(b, info->base_url_env);
        if (said && b->ways->env_port) {
            said = provider_url_of_host(b->e->arena, rv_str_of(said), b->ways->env_port);
            if (!said)
                return no_memory(err);
        }
    }
    if (!said)
        said = info->base_url;
    if (!said) {
        RV_FAIL(err, RV_E_INVALID, "provider \"%s\" has no address of its own", info->name);
        rv_err_set_hint(err, "give the role a base_url%s%s", info->base_url_env ? ", or set " : "",
                        info->base_url_env ? info->base_url_env : "");
        return RV_E_INVALID;
    }
    b->base = rv_arena_dup(b->e->arena, rv_str_of(said));
    if (!b->base)
        return no_memory(err);
    rv_str host;
    int rc = provider_url_check(rv_str_of(b->base), &host, err);
    if (rc < 0)
        return rc;
    b->e->host = rv_arena_dup(b->e->arena, host);
    if (!b->e->host)
        return no_memory(err);
    b->at_home =
        !info->base_url ||
        (provider_url_check(
             rv_str_of(info->base_url), &home,
             RV_CODE_ONLY("the address is the provider's own, from the table of providers: it is sound")) == 0 &&
         home.len == host.len && strncasecmp(home.ptr, host.ptr, host.len) == 0);
    hide_user(b->e, b->base);
    if (!hide_query(b->e, provider_url_query(rv_str_of(b->base))))
        return RV_FAIL(err, RV_E_INVALID, "base_url has more than %d values behind its \"?\"", RV_PROVIDER_MAX_QUERY);
    return 0;
}

static int make_url(struct building *b, rv_err **err)
{
    rv_arena *a = b->e->arena;
    const char *query = NULL;
    const char *path = b->want->is_embedding ? rv_wire_embed_path(b->e->info->wire) : rv_wire_path(b->e->info->wire);

    if (b->ways->has_deployments) {
        bool is_bare = provider_url_is_bare(rv_str_of(b->base));
        const char *version = option(b, "api_version");
        if (!version)
            version = variable(b, "OPENAI_API_VERSION");
        if (is_bare) {
            const char *model = provider_url_escape(a, b->want->model);
            rv_buf deployment = RV_BUF_INIT(RV_PROVIDER_MAX_VALUE);
            rv_buf_printf(&deployment, "/openai/deployments/%s", model ? model : "");
            b->base = model && deployment.rc == 0
                          ? provider_url_join(a, rv_str_of(b->base), rv_buf_cstr(&deployment), NULL)
                          : NULL;
            rv_buf_fini(&deployment);
            if (!b->base)
                return no_memory(err);
        }
        if (version || is_bare) {
            rv_buf text = RV_BUF_INIT(RV_PROVIDER_MAX_VALUE);
            const char *escaped = provider_url_escape(a, version ? version : AZURE_VERSION);
            rv_buf_printf(&text, "api-version=%s", escaped ? escaped : "");
            query = escaped && text.rc == 0 ? rv_arena_dup(a, rv_buf_str(&text)) : NULL;
            rv_buf_fini(&text);
            if (!query)
                return no_memory(err);
        }
    }
    b->e->url = provider_url_join(a, rv_str_of(b->base), path, query);
    b->e->address = provider_url_shown(a, rv_str_of(b->base));
    return b->e->url && b->e->address ? 0 : no_memory(err);
}

/* --- Headers --- */

static bool is_name(const char *s)
{
    const char *c;

    for (c = s; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
              strchr("!#$%&'*+-.^_`|~", *c)))
            return false;
    return c != s;
}

/* Bytes that would end the header, or hide what follows. */
static bool is_value(rv_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (((unsigned char)s.ptr[i] < ' ' && s.ptr[i] != '\t') || s.ptr[i] == 0x7f)
            return false;
    return true;
}

/* The last of equal names counts. what: where the value comes from, for the message; the value never is in it. */
static int add_header(struct building *b, const char *name, const char *prefix, rv_str value, const char *what,
                      rv_err **err)
{
    struct rv_endpoint *e = b->e;
    size_t len = strlen(name), i;
    rv_buf line = RV_BUF_INIT(2 * RV_PROVIDER_MAX_VALUE);

    if (!is_name(name))
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" is not the name of a header", name);
    if (!is_value(value) || value.len > RV_PROVIDER_MAX_VALUE) {
        RV_FAIL(err, RV_E_INVALID, "%s cannot be sent: it has a line end or a control character in it, or is too long",
                what);
        rv_err_set_hint(err, "look for a line end behind the value");
        return RV_E_INVALID;
    }
    rv_buf_printf(&line, "%s: %s", name, prefix);
    rv_buf_add_str(&line, value);
    const char *text = line.rc < 0 ? NULL : rv_arena_dup(e->arena, rv_buf_str(&line));
    rv_buf_fini(&line);
    if (!text)
        return no_memory(err);
    for (i = 0; i < e->n_headers; i++)
        if (strncasecmp(e->headers[i], name, len) == 0 && e->headers[i][len] == ':')
            break;
    if (i == b->cap_headers)
        return RV_FAIL(err, RV_E_INVALID, "more than %d headers", RV_PROVIDER_MAX_HEADERS);
    if (i == e->n_headers)
        e->n_headers++;
    e->headers[i] = text;
    if (strcasecmp(name, "authorization") == 0 || strcasecmp(name, "x-api-key") == 0 ||
        strcasecmp(name, "api-key") == 0)
        b->auth = text;
    return 0;
}

static int add_key(struct building *b, rv_err **err)
{
    static const struct {
        const char *name, *prefix;
    } kinds[] = {[RV_AUTH_BEARER] = {"Authorization", "Bearer "},
                 [RV_AUTH_X_API_KEY] = {"x-api-key", ""},
                 [RV_AUTH_API_KEY] = {"api-key", ""}};
    RV_EACH_HAS_ROW(kinds, RV_N_AUTHS);
    const char *what = "api_key";

    b->key = option(b, "api_key");
    if (!b->key) {
        const char *said = variable(b, b->e->info->key_env);
        what = b->e->info->key_env;
        if (said) { /* the environment may change while the endpoint lives */
            b->key = rv_arena_dup(b->e->arena, rv_str_of(said));
            if (!b->key)
                return no_memory(err);
        }
    }
    if (!b->key)
        return 0;
    hide(b->e, rv_str_trim(rv_str_of(b->key)));
    return add_header(b, kinds[b->ways->auth].name, kinds[b->ways->auth].prefix, rv_str_of(b->key), what, err);
}

static int add_named(struct building *b, const char *header, const char *key, const char *env, rv_err **err)
{
    const char *value = option(b, key);

    if (!value && b->ways->has_organization && b->at_home)
        value = variable(b, env);
    return value ? add_header(b, header, "", rv_str_of(value), key, err) : 0;
}

static int add_extra(struct building *b, rv_err **err)
{
    json_object *extra = b->want->options ? rv_json_get_obj(b->want->options, "headers") : NULL;
    int rc = 0;

    if (!extra)
        return 0;
    json_object_object_foreach (extra, name, value) {
        if (rc == 0 && json_object_is_type(value, json_type_string)) {
            hide(b->e, rv_json_str(value));
            rc = add_header(b, name, "", rv_json_str(value), name, err);
        }
    }
    return rc;
}

static int make_headers(struct building *b, rv_err **err)
{
    struct rv_endpoint *e = b->e;
    rv_str accept = b->want->is_embedding             ? RV_STR_LIT("application/json")
                    : e->info->wire == RV_WIRE_OLLAMA ? RV_STR_LIT("application/x-ndjson")
                                                      : RV_STR_LIT("text/event-stream");
    int rc;

    b->cap_headers = OWN_HEADERS + RV_PROVIDER_MAX_HEADERS;
    e->headers = rv_arena_alloc(e->arena, b->cap_headers * sizeof *e->headers);
    if (!e->headers)
        return no_memory(err);
    rc = add_header(b, "Content-Type", "", RV_STR_LIT("application/json"), "", err);
    if (rc == 0)
        rc = add_header(b, "Accept", "", accept, "", err);
    if (rc == 0 && e->info->wire == RV_WIRE_ANTHROPIC)
        rc = add_header(b, "anthropic-version", "", RV_STR_LIT(ANTHROPIC_VERSION), "", err);
    if (rc == 0)
        rc = add_key(b, err);
    if (rc == 0 && e->info->wire == RV_WIRE_OPENAI)
        rc = add_named(b, "OpenAI-Organization", "organization", "OPENAI_ORG_ID", err);
    if (rc == 0 && e->info->wire == RV_WIRE_OPENAI)
        rc = add_named(b, "OpenAI-Project", "project", "OPENAI_PROJECT_ID", err);
    if (rc == 0)
        rc = add_extra(b, err);
    if (rc < 0)
        return rc;
    if (!b->auth && e->info->needs_key && b->at_home) {
        RV_FAIL(err, RV_E_DENIED, "there is no API key for the provider \"%s\"", e->info->name);
        rv_err_set_hint(err, "set %s, or write api_key: ${env:NAME} in the role's entry of models", e->info->key_env);
        return RV_E_DENIED;
    }
    return 0;
}

/* --- What the wire has to know --- */

static void make_target(struct building *b)
{
    struct rv_wire_target *t = &b->e->target;
    json_object *said = b->want->options ? rv_json_get_obj(b->want->options, "quirks") : NULL;
    unsigned quirks = b->ways->quirks | (b->at_home ? 0 : b->ways->elsewhere_quirks);

    provider_model_quirks(b->e->info, b->want->model, b->at_home, &quirks);
    if (said) {
        json_object_object_foreach (said, key, value) {
            if (json_object_is_type(value, json_type_boolean))
                quirks =
                    json_object_get_boolean(value) ? quirks | provider_quirk_of(key) : quirks & ~provider_quirk_of(key);
        }
    }
    *t = (struct rv_wire_target){
        .wire = b->e->info->wire,
        .provider = b->e->info->name,
        .model = b->want->model,
        .old_max_tokens = quirks & RV_QUIRK_OLD_MAX_TOKENS,
        .developer_role = quirks & RV_QUIRK_DEVELOPER_ROLE,
        .no_stream_usage = quirks & RV_QUIRK_NO_STREAM_USAGE,
        .no_parallel_calls = quirks & RV_QUIRK_NO_PARALLEL_CALLS,
        .no_sampling = quirks & RV_QUIRK_NO_SAMPLING,
        .no_tools = quirks & RV_QUIRK_NO_TOOLS,
        .no_native_output = quirks & RV_QUIRK_NO_NATIVE_OUTPUT,
        .no_strict_output = quirks & RV_QUIRK_NO_STRICT_OUTPUT,
        .no_images = quirks & RV_QUIRK_NO_IMAGES,
        .no_files = quirks & RV_QUIRK_NO_FILES,
        .extra_body = b->want->options ? rv_json_get_obj(b->want->options, "extra_body") : NULL,
    };
}

static void name_gate(struct building *b)
{
    struct rv_hash h;

    rv_hash_init(&h);
    rv_hash_add(&h, rv_str_of(b->e->address));
    rv_hash_add(&h, RV_STR_LIT("\n"));
    rv_hash_add(&h, rv_str_of(b->auth));
    rv_hash_finish_hex(&h, b->e->gate);
}

static int find_info(struct building *b, rv_err **err)
{
    const char *name = b->want->provider;
    const char *names[64], *nearest;
    size_t n;
    const struct rv_provider_info *list = rv_provider_list(&n);

    b->e->info = name ? rv_provider_find(rv_str_of(name)) : NULL;
    if (b->e->info)
        return 0;
    if (!name)
        return RV_FAIL(err, RV_E_INVALID, "no provider is named");
    if (rv_provider_is_capability(name))
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" is a capability's provider, and not asked over HTTP", name);
    for (size_t i = 0; i < n && i < RV_COUNT(names); i++)
        names[i] = list[i].name;
    nearest = rv_nearest(rv_str_of(name), names, n < RV_COUNT(names) ? n : RV_COUNT(names));
    RV_FAIL(err, RV_E_INVALID, "unknown provider \"%s\"", name);
    if (nearest)
        rv_err_set_hint(err, "did you mean \"%s\"?", nearest);
    else
        rv_err_set_hint(err, "servers that speak OpenAI's protocol are \"openai\" with a base_url");
    return RV_E_INVALID;
}

int provider_endpoint_init(struct rv_endpoint *out, struct rv_provider_env env, const struct rv_endpoint_want *want,
                           rv_err **err)
{
    struct building b = {.e = out, .env = env, .want = want};
    int rc;

    *out = (struct rv_endpoint){.arena = rv_arena_new(MAX_BYTES)};
    if (!out->arena)
        return no_memory(err);
    rc = find_info(&b, err);
    if (rc == 0 && (!want->model || !want->model[0]))
        rc = RV_FAIL(err, RV_E_INVALID, "no model of provider \"%s\" is named", want->provider);
    if (rc < 0)
        return rc;
    b.ways = provider_ways_of(out->info);
    if (want->is_embedding && (b.ways->no_embeddings || !rv_wire_embed_path(out->info->wire)))
        return RV_FAIL(err, RV_E_INVALID, "provider \"%s\" has no embeddings", want->provider);
    out->call = call_options_of(want->options);
    if (out->call.proxy)
        hide_user(out, out->call.proxy);
    rc = find_base(&b, err);
    if (rc == 0)
        rc = make_url(&b, err);
    if (rc == 0)
        rc = make_headers(&b, err);
    if (rc < 0)
        return rc;
    make_target(&b);
    name_gate(&b);
    return 0;
}

void provider_endpoint_fini(struct rv_endpoint *e)
{
    rv_arena_free(e->arena);
    *e = (struct rv_endpoint){.arena = NULL};
}

/* --- embeddings --- */

int rv_provider_find_embed_target(struct rv_provider_env env, const char *provider, const char *model,
                                  json_object *options, struct rv_embed_target *out, rv_err **err)
{
    struct rv_endpoint_want want = {.provider = provider, .model = model, .options = options, .is_embedding = true};
    struct rv_embed_target t = {.url = NULL};
    struct rv_endpoint e;
    int rc = provider_endpoint_init(&e, env, &want, err);

    if (rc < 0)
        goto done;
    t.wire = e.target;
    t.wire.provider = e.info->name;
    t.url = rv_str_dup(rv_str_of(e.url));
    t.headers = calloc(e.n_headers, sizeof *t.headers);
    for (; t.headers && t.n_headers < e.n_headers; t.n_headers++) {
        t.headers[t.n_headers] = rv_str_dup(rv_str_of(e.headers[t.n_headers]));
        if (!t.headers[t.n_headers])
            break;
    }
    if (!t.url || !t.headers || t.n_headers < e.n_headers) {
        rc = RV_FAIL(err, RV_E_NOMEM, "prepare a request for embeddings");
        goto done;
    }
    *out = t;
    t = (struct rv_embed_target){.url = NULL};
done:
    rv_embed_target_fini(&t);
    provider_endpoint_fini(&e);
    return rc == RV_E_DENIED ? RV_WRAP(err, RV_E_INVALID, "embeddings of \"%s\"", provider ? provider : "") : rc;
}

void rv_embed_target_fini(struct rv_embed_target *t)
{
    for (size_t i = 0; i < t->n_headers; i++)
        free(t->headers[i]);
    free(t->headers);
    free(t->url);
    *t = (struct rv_embed_target){.url = NULL};
}
