/* Where embeddings are asked for. */
#include "coreengine/model/provider/provider_internal.h"

#include <stdlib.h>

int rv_provider_embed_target(struct rv_provider_env env, const char *provider, const char *model, json_object *options,
                             struct rv_embed_target *out, rv_err **err)
{
    struct rv_endpoint_want want = {.provider = provider, .model = model, .options = options, .is_embedding = true};
    struct rv_embed_target t = {.url = NULL};
    struct rv_endpoint e;
    int rc = rv_endpoint_init(&e, env, &want, err);

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
    rv_endpoint_fini(&e);
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
