/* Embeddings: texts go out, rows of numbers come back, in the order of the texts whatever the order of the answer. */
#include <math.h>
#include <stdlib.h>

#include "coreengine/model/wire/wire_internal.h"

#define MAX_TEXTS 2048               /* of one request; what the largest providers take */
#define MAX_BODY  ((size_t)64 << 20) /* of an answer: that many rows of three thousand numbers in base64 */
#define MAX_DIMS  ((size_t)1 << 16)  /* numbers of a row; the largest models have a tenth of this */
#define MAX_SHOWN ((size_t)16 << 10) /* bytes of a provider's error: its beginning says what is wrong */

const char *rv_wire_embed_path(enum rv_wire_kind wire)
{
    static const char *const paths[] = {
        [RV_WIRE_OPENAI] = "/embeddings", [RV_WIRE_ANTHROPIC] = NULL, [RV_WIRE_OLLAMA] = "/api/embed"};
    RV_EACH_HAS_ROW(paths, RV_N_WIRES);

    return paths[wire];
}

static int check_request(const struct rv_wire_target *t, const rv_str *texts, size_t n, int64_t dimensions,
                         rv_err **err)
{
    if (!rv_wire_embed_path(t->wire))
        return RV_FAIL(err, RV_E_INVALID, "provider \"%s\" has no embeddings", t->provider);
    if (n == 0)
        return RV_FAIL(err, RV_E_INVALID, "there is no text to embed");
    if (n > MAX_TEXTS)
        return RV_FAIL(err, RV_E_LIMIT, "%zu texts are too many for one request: the most is %d", n, MAX_TEXTS);
    if (dimensions < 0 || dimensions > (int64_t)MAX_DIMS)
        return RV_FAIL(err, RV_E_INVALID, "an embedding cannot have %lld dimensions", (long long)dimensions);
    for (size_t i = 0; i < n; i++)
        if (texts[i].len == 0)
            return RV_FAIL(err, RV_E_INVALID, "text %zu of those to embed is empty", i + 1);
    return 0;
}

int rv_wire_embed_write_request(const struct rv_wire_target *t, const rv_str *texts, size_t n, int64_t dimensions,
                                rv_buf *body, rv_err **err)
{
    rv_jw w = rv_jw_on(body);
    int rc = check_request(t, texts, n, dimensions, err);

    if (rc < 0)
        return rc;
    rv_jw_obj(&w);
    if (!wire_body_has_extra(t, "model"))
        rv_jw_kv_text(&w, "model", t->model);
    if (!wire_body_has_extra(t, "input")) {
        rv_jw_key(&w, "input");
        rv_jw_arr(&w);
        for (size_t i = 0; i < n; i++)
            rv_jw_str(&w, texts[i]);
        rv_jw_arr_end(&w);
    }
    if (dimensions && !wire_body_has_extra(t, "dimensions"))
        rv_jw_kv_int(&w, "dimensions", dimensions);
    if (t->wire == RV_WIRE_OPENAI && !wire_body_has_extra(t, "encoding_format"))
        rv_jw_kv_text(&w, "encoding_format", "base64"); /* a third of the bytes; numbers are read, too */
    wire_body_write_extra(t, &w);
    rv_jw_obj_end(&w);
    return rv_buf_check(body, "the body of an embedding request", err);
}

/* --- the answer --- */

struct rows {
    struct rv_embeddings *out;
    bool *has;         /* one for each row; owned */
    size_t body_bytes; /* of the answer */
    rv_err **err;
};

static int bit_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/** The first row says how long each is; a row that is there already is not overwritten. */
static int make_room(struct rows *x, size_t row, size_t dims)
{
    struct rv_embeddings *e = x->out;

    if (row >= e->n)
        return RV_FAIL(x->err, RV_E_PARSE, "embedding %zu was not asked for: there are %zu texts", row + 1, e->n);
    if (x->has[row])
        return RV_FAIL(x->err, RV_E_PARSE, "embedding %zu is there twice", row + 1);
    if (dims == 0 || dims > MAX_DIMS)
        return RV_FAIL(x->err, RV_E_PARSE, "embedding %zu has %zu numbers", row + 1, dims);
    if (e->dims && e->dims != dims)
        return RV_FAIL(x->err, RV_E_PARSE, "embedding %zu has %zu numbers, one before it %zu", row + 1, dims, e->dims);
    if (e->n * dims > x->body_bytes) /* before memory is taken for them: a number is a byte at least */
        return RV_FAIL(x->err, RV_E_PARSE, "not every embedding has %zu numbers, as embedding %zu has", dims, row + 1);
    x->has[row] = true;
    if (e->dims)
        return 0;
    e->values = calloc(e->n * dims, sizeof *e->values);
    if (!e->values)
        return RV_FAIL(x->err, RV_E_NOMEM, "no memory for %zu embeddings", e->n);
    e->dims = dims;
    return 0;
}

static int put(struct rows *x, size_t row, size_t i, double value)
{
    float f = (float)value;

    if (!isfinite(f))
        return RV_FAIL(x->err, RV_E_PARSE, "number %zu of embedding %zu is none", i + 1, row + 1);
    x->out->values[row * x->out->dims + i] = f;
    return 0;
}

static int read_numbers(struct rows *x, size_t row, json_object *numbers)
{
    size_t dims = json_object_array_length(numbers);
    int rc = make_room(x, row, dims);

    for (size_t i = 0; rc == 0 && i < dims; i++) {
        json_object *number = json_object_array_get_idx(numbers, i);
        if (!rv_json_is_number(number))
            return RV_FAIL(x->err, RV_E_PARSE, "number %zu of embedding %zu is none", i + 1, row + 1);
        rc = put(x, row, i, json_object_get_double(number));
    }
    return rc;
}

/* Floats of four bytes, the lowest first, in base64. */
static int read_base64(struct rows *x, size_t row, rv_str text)
{
    uint32_t bits = 0, word = 0;
    size_t n_bytes, at = 0;
    int n_bits = 0, rc;

    while (text.len && text.ptr[text.len - 1] == '=')
        text.len--;
    n_bytes = text.len / 4 * 3 + (text.len % 4 ? text.len % 4 - 1 : 0);
    if (text.len % 4 == 1 || n_bytes % sizeof(float))
        return RV_FAIL(x->err, RV_E_PARSE, "embedding %zu is not base64 of numbers", row + 1);
    rc = make_room(x, row, n_bytes / sizeof(float));
    for (size_t i = 0; rc == 0 && i < text.len; i++) {
        int value = bit_value(text.ptr[i]);
        if (value < 0)
            return RV_FAIL(x->err, RV_E_PARSE, "embedding %zu is not base64 of numbers", row + 1);
        bits = bits << 6 | (uint32_t)value;
        n_bits += 6;
        if (n_bits < 8)
            continue;
        n_bits -= 8;
        word |= (bits >> n_bits & 0xFF) << 8 * (at % 4);
        if (++at % 4 == 0) {
            union {
                uint32_t u;
                float f;
            } number = {.u = word};
            rc = put(x, row, at / 4 - 1, (double)number.f);
            word = 0;
        }
    }
    return rc;
}

static int read_row(struct rows *x, size_t row, json_object *embedding)
{
    if (json_object_is_type(embedding, json_type_array))
        return read_numbers(x, row, embedding);
    if (json_object_is_type(embedding, json_type_string))
        return read_base64(x, row, rv_json_str(embedding));
    return RV_FAIL(x->err, RV_E_PARSE, "embedding %zu is of type %s", row + 1, rv_json_type_text(embedding));
}

static int read_openai_row(struct rows *x, size_t i, json_object *item)
{
    json_object *embedding = NULL;
    int64_t index = (int64_t)i;

    if (!json_object_is_type(item, json_type_object))
        return RV_FAIL(x->err, RV_E_PARSE, "embedding %zu is not an object", i + 1);
    if (json_object_object_get_ex(item, "index", NULL) && (!rv_json_get_int(item, "index", &index) || index < 0))
        return RV_FAIL(x->err, RV_E_PARSE, "the index of embedding %zu is none", i + 1);
    json_object_object_get_ex(item, "embedding", &embedding);
    return read_row(x, (size_t)index, embedding);
}

static int read_rows(struct rows *x, const struct rv_wire_target *t, json_object *body)
{
    bool is_ollama = t->wire == RV_WIRE_OLLAMA;
    json_object *list = rv_json_get_arr(body, is_ollama ? "embeddings" : "data");
    size_t n = list ? json_object_array_length(list) : 0;
    int rc = 0;

    if (!list)
        return RV_FAIL(x->err, RV_E_PARSE, "the answer has no embeddings");
    if (n != x->out->n)
        return RV_FAIL(x->err, RV_E_PARSE, "%zu embeddings came for %zu texts", n, x->out->n);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        json_object *item = json_object_array_get_idx(list, i);
        rc = is_ollama ? read_row(x, i, item) : read_openai_row(x, i, item);
    }
    return rc;
}

static void read_usage(const struct rv_wire_target *t, json_object *body, struct rv_embeddings *out)
{
    json_object *from = t->wire == RV_WIRE_OLLAMA ? body : rv_json_get_obj(body, "usage");
    int64_t n = 0;

    if (!wire_reader_count(from, t->wire == RV_WIRE_OLLAMA ? "prompt_eval_count" : "prompt_tokens", &n) || n == 0 ||
        !wire_is_count(n)) /* a server that does not count says 0 */
        return;
    out->usage.input_tokens = n;
    out->has_usage = true;
}

/* An error with a good status. */
static int check_error(const struct rv_wire_target *t, json_object *body, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_WIRE_MAX_ERROR), shown = RV_BUF_INIT(MAX_SHOWN);
    bool retryable = false;
    int kind = RV_LLM_ERROR_OVERLOADED, rc = 0;

    if (!wire_says_error(body))
        return 0;
    wire_codec_of(t->wire)->fault(body, 0, &kind, &retryable, &text);
    wire_show(rv_buf_str(&text), &shown);
    rc = text.rc == RV_E_NOMEM ? rv_buf_check(&text, "the error of a provider", err)
                               : rv_buf_check(&shown, "the error of a provider", err);
    if (rc == 0)
        rc = RV_FAIL(err, RV_E_PROVIDER, "the provider answers with an error: %s", rv_buf_cstr(&shown));
    rv_buf_fini(&text);
    rv_buf_fini(&shown);
    return rc;
}

int rv_wire_embed_read(const struct rv_wire_target *t, rv_str body, size_t n, struct rv_embeddings *out, rv_err **err)
{
    static const struct rv_json_opts opts = {.max_bytes = MAX_BODY, .allow_duplicates = true, .what = "embeddings"};
    struct rv_embeddings e = {.n = n};
    struct rows x = {.out = &e, .body_bytes = body.len, .err = err};
    json_object *json = NULL;
    int rc;

    if (n == 0 || n > MAX_TEXTS)
        return RV_FAIL(err, RV_E_INVALID, "%zu embeddings were never asked for", n);
    rc = rv_json_parse(body, &opts, &json, err);
    if (rc < 0)
        return rc;
    if (!json_object_is_type(json, json_type_object)) {
        rc = RV_FAIL(err, RV_E_PARSE, "the answer with the embeddings is not a JSON object");
        goto done;
    }
    rc = check_error(t, json, err);
    if (rc < 0)
        goto done;
    x.has = calloc(n, sizeof *x.has);
    rc = x.has ? read_rows(&x, t, json) : RV_FAIL(err, RV_E_NOMEM, "no memory for %zu embeddings", n);
    if (rc < 0)
        goto done;
    read_usage(t, json, &e);
    *out = e;
    e.values = NULL; /* the caller's now */
done:
    free(x.has);
    free(e.values);
    json_object_put(json);
    return rc;
}

void rv_embeddings_fini(struct rv_embeddings *e)
{
    free(e->values);
    *e = (struct rv_embeddings){0};
}
