/* What makes the vectors of rows and queries: "provider:model", "provider:model@DIMENSIONS", or the provider alone when
 * it has a model that is used by default. */
#include "coreengine/app/models.h"

#include <stdlib.h>

#define NATURAL "P8_REM_NATURAL_LANGUAGE"

static const struct {
    const char *provider, *model;
} defaults[] = {{"openai", "text-embedding-3-small"}, {"ollama", "nomic-embed-text"}};

static const char *default_model(rv_str provider)
{
    for (size_t i = 0; i < RV_COUNT(defaults); i++)
        if (rv_str_is(provider, defaults[i].provider))
            return defaults[i].model;
    return NULL;
}

struct named {
    rv_str provider;
    char *model; /* owned */
    int64_t dimensions;
};

static int read_dimensions(const char *text, int64_t *out)
{
    char *end;
    long n = strtol(text, &end, 10);

    *out = n;
    return *text >= '0' && *text <= '9' && !*end && n >= 1 && n <= 8192 ? 0 : RV_E_INVALID;
}

static int read_name(const char *text, struct named *out, rv_err **err)
{
    const char *colon = strchr(text, ':'), *at = strrchr(text, '@');

    out->provider = colon ? (rv_str){text, (size_t)(colon - text)} : rv_str_of(text);
    const char *model = colon ? colon + 1 : default_model(out->provider);
    if (!model || !*model || out->provider.len == 0) {
        int rc = RV_FAIL(err, RV_E_INVALID, "\"%s\" does not say which model makes vectors", text);
        rv_err_set_hint(err,
                        "write PROVIDER:MODEL, for example openai:text-embedding-3-small; hash-ngram needs no model");
        return rc;
    }
    size_t len = at && at > model ? (size_t)(at - model) : strlen(model);
    if (len < strlen(model) && read_dimensions(at + 1, &out->dimensions) < 0)
        return RV_FAIL(err, RV_E_INVALID, "\"%s\": a number of dimensions from 1 to 8192 stands behind @", text);
    out->model = rv_str_dup((rv_str){model, len});
    return out->model ? 0 : RV_FAIL(err, RV_E_NOMEM, "find a provider");
}

static int embed(void *self, const char *provider, const rv_str *texts, size_t n, struct rv_knowledge_vectors *out,
                 rv_err **err)
{
    struct rv_embed_target target = {0};
    struct rv_embeddings rows = {0};
    struct named name = {0};
    int rc = read_name(provider, &name, err);

    if (rc == 0)
        rc = rv_app_find_embed_target(name.provider, name.model, NULL, &target, err);
    if (rc == 0)
        rc = rv_app_embed(self, &target,
                          &(const struct rv_embed_texts){.texts = texts, .n = n, .dimensions = name.dimensions}, &rows,
                          err);
    if (rc == 0) {
        out->values = rows.values;
        out->dims = rows.dims;
    }
    rv_embed_target_fini(&target);
    free(name.model);
    return rc;
}

struct rv_knowledge_embedder rv_app_make_embedder(const struct rv_app *app)
{
    return (struct rv_knowledge_embedder){embed, (void *)app};
}

int rv_app_query_init(const struct rv_app *app, struct rv_app_query *out, rv_err **err)
{
    const char *natural = rv_app_variable(NATURAL);
    int how = natural ? rv_rem_natural_of(rv_str_of(natural)) : RV_REM_NATURAL_REJECT;

    if (how < 0)
        return RV_FAIL(err, RV_E_INVALID, NATURAL " must be reject, search or sql, not \"%.60s\"", natural);
    *out = (struct rv_app_query){.opts.natural = (enum rv_rem_natural)how, .embedder = rv_app_make_embedder(app)};
    out->opts.embedder = &out->embedder;
    return 0;
}

int rv_app_check_embedder(const char *provider, rv_err **err)
{
    struct rv_embed_target target = {0};
    struct named name = {0};
    int rc = rv_embedding_is_local(provider) ? 0 : read_name(provider, &name, err);

    if (rc == 0 && name.model)
        rc = rv_app_find_embed_target(name.provider, name.model, NULL, &target, err);
    rv_embed_target_fini(&target);
    free(name.model);
    return rc;
}
