/* POST /v1/embeddings: texts as vectors, as clients of OpenAI ask for them. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "coreengine/base/base.h"
#include "coreengine/match/match.h"
#include "coreengine/server/body_internal.h"
#include "coreengine/server/handlers_internal.h"

#define MAX_TEXTS 256 /* of one request: each is computed in turn, and others wait; more is an error */
#define MAX_NAME  (RV_EMBED_MAX_NAME + 32) /* bytes of "provider:model:dimensions" */

struct embedding {
    struct srv_call *c;
    rv_str *texts; /* owned */
    size_t n, dims;
    rv_buf model;  /* "provider:model", maybe with "@dimensions" */
    float *values; /* owned */
    bool as_base64;
};

static int read_texts(struct embedding *e, rv_err **err)
{
    json_object *input = NULL;

    json_object_object_get_ex(e->c->body, "input", &input);
    bool is_list = json_object_is_type(input, json_type_array);
    e->n = is_list ? json_object_array_length(input) : 1;
    if (e->n == 0 || e->n > MAX_TEXTS)
        return RV_FAIL(err, RV_E_INVALID, "input must be a text, or a list of 1 to %d texts", MAX_TEXTS);
    e->texts = calloc(e->n, sizeof *e->texts);
    if (!e->texts)
        return RV_FAIL(err, RV_E_NOMEM, "embed texts");
    for (size_t i = 0; i < e->n; i++) {
        json_object *text = is_list ? json_object_array_get_idx(input, i) : input;
        e->texts[i] = rv_json_str(text);
        if (!json_object_is_type(text, json_type_string) || e->texts[i].len == 0 ||
            e->texts[i].len > RV_EMBED_MAX_TEXT || memchr(e->texts[i].ptr, '\0', e->texts[i].len))
            return RV_FAIL(err, RV_E_INVALID, "input %zu must be a text of 1 to %zu bytes without zero bytes", i + 1,
                           RV_EMBED_MAX_TEXT);
    }
    return 0;
}

static size_t local_dims(const char *name)
{
    return strcmp(name, RV_EMBED_NGRAM) == 0 ? RV_EMBED_NGRAM_DIMS : RV_EMBED_LOCAL_DIMS;
}

static int check_local(const char *name, int64_t dims, rv_err **err)
{
    if (dims == (int64_t)local_dims(name))
        return 0;
    return RV_FAIL(err, RV_E_INVALID, "model \"%s\" has no choice of \"dimensions\": it has %zu, not %lld", name,
                   local_dims(name), (long long)dims);
}

static int read_opts(struct embedding *e, rv_err **err)
{
    const char *model = NULL, *format = NULL;
    json_object *given = NULL;
    int64_t dims = 0;
    int rc = 0;

    if (rv_json_get_text(e->c->body, "model", &model) && model[0] && strcmp(model, "default") != 0)
        rv_buf_puts(&e->model, model);
    else
        rc = rv_store_read_embedding_provider(e->c->store, &e->model, err);
    if (rc == 0 && json_object_object_get_ex(e->c->body, "dimensions", &given) && given) /* null: as if absent */
        rc = srv_body_int(e->c, "dimensions", 1, RV_VECTOR_MAX_DIMS, &dims, err);
    if (rc == 0 && dims > 0 && rv_embedding_is_local(rv_buf_cstr(&e->model)))
        rc = check_local(rv_buf_cstr(&e->model), dims, err);
    else if (rc == 0 && dims > 0)
        rv_buf_printf(&e->model, "@%lld", (long long)dims);
    if (rv_json_get_text(e->c->body, "encoding_format", &format)) {
        e->as_base64 = strcmp(format, "base64") == 0;
        if (!e->as_base64 && strcmp(format, "float") != 0)
            return RV_FAIL(err, RV_E_INVALID, "encoding_format is \"float\" or \"base64\", not \"%.40s\"", format);
    }
    return rc == 0 ? rv_buf_check(&e->model, "the name of a model", err) : rc;
}

static int embed_here(struct embedding *e, rv_err **err)
{
    const char *name = rv_buf_cstr(&e->model);
    int rc = 0;

    e->dims = local_dims(name);
    e->values = calloc(e->n * e->dims, sizeof *e->values);
    if (!e->values)
        return RV_FAIL(err, RV_E_NOMEM, "embed texts");
    for (size_t i = 0; i < e->n && rc == 0; i++)
        rc = rv_embed_text(rv_str_of(name), e->texts[i], e->dims, e->values + i * e->dims, err);
    return rc;
}

static int embed(struct embedding *e, rv_err **err)
{
    const struct rv_knowledge_embedder embedder = rv_app_make_embedder(&e->c->app);
    const char *name = rv_buf_cstr(&e->model);

    if (rv_embedding_is_local(name))
        return embed_here(e, err);
    struct rv_knowledge_vectors made = {NULL, 0};
    int rc = rv_app_check_embedder(name, err);
    if (rc == 0)
        rc = embedder.embed(embedder.self, name, e->texts, e->n, &made, err);
    e->values = made.values;
    e->dims = made.dims;
    return rc;
}

/* Little-endian floats of 32 bits. */
static void write_base64(const float *values, size_t n, rv_jw *w)
{
    rv_buf bytes = RV_BUF_INIT(n * 4 + 1), text = RV_BUF_INIT(n * 6 + 16);

    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        for (int k = 0; k < 32; k += 8)
            rv_buf_putc(&bytes, (char)(unsigned char)(bits >> k & 0xff));
    }
    rv_base64_write(rv_buf_str(&bytes), &text);
    rv_jw_buf(w, bytes.rc < 0 ? &bytes : &text);
    rv_buf_fini(&bytes);
    rv_buf_fini(&text);
}

static void write_answer(const struct embedding *e)
{
    rv_jw w = srv_call_json(e->c, 200);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "object", "list");
    rv_jw_key(&w, "data");
    rv_jw_arr(&w);
    for (size_t i = 0; i < e->n; i++) {
        const float *row = e->values + i * e->dims;
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "object", "embedding");
        rv_jw_kv_int(&w, "index", (int64_t)i);
        rv_jw_key(&w, "embedding");
        if (e->as_base64)
            write_base64(row, e->dims, &w);
        else
            rv_jw_arr(&w);
        for (size_t k = 0; k < e->dims && !e->as_base64; k++)
            rv_jw_double(&w, (double)row[k]);
        if (!e->as_base64)
            rv_jw_arr_end(&w);
        rv_jw_obj_end(&w);
    }
    rv_jw_arr_end(&w);
    rv_jw_kv_str(&w, "model", rv_buf_str(&e->model));
    rv_jw_key(&w, "usage"); /* what a provider counted is not told here */
    rv_jw_raw(&w, RV_STR_LIT("{\"prompt_tokens\":0,\"total_tokens\":0}"));
    rv_jw_obj_end(&w);
}

int srv_embeddings(struct srv_call *c, rv_err **err)
{
    struct embedding e = {.c = c, .model = RV_BUF_INIT(MAX_NAME)};
    int rc = read_texts(&e, err);

    if (rc == 0)
        rc = read_opts(&e, err);
    if (rc == 0)
        rc = embed(&e, err);
    if (rc == 0)
        write_answer(&e);
    free(e.texts);
    free(e.values);
    rv_buf_fini(&e.model);
    return rc;
}
