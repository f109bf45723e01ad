/* Embeddings: texts out, rows of numbers back. */
#include <check.h>
#include <stdlib.h>

#include "coreengine/model/wire/wire.h"
#include "tests/kit/kit.h"
#include "tests/unit/wire/suites.h"

static struct rv_wire_target target_of(enum rv_wire_kind wire)
{
    return (struct rv_wire_target){.wire = wire, .provider = "p", .model = "m"};
}

#define OPENAI    RV_WIRE_OPENAI
#define OLLAMA    RV_WIRE_OLLAMA
#define ANTHROPIC RV_WIRE_ANTHROPIC

static const struct {
    enum rv_wire_kind wire;
    int64_t dimensions;
    const char *extra, *want;
} requests[] = {
    {OPENAI, 0, NULL, "{\"model\":\"m\",\"input\":[\"a\",\"\xC3\xA9\"],\"encoding_format\":\"base64\"}"},
    {OPENAI, 256, "{'encoding_format':'float','user':'u'}",
     "{\"model\":\"m\",\"input\":[\"a\",\"\xC3\xA9\"],\"dimensions\":256,\"encoding_format\":\"float\",\"user\":"
     "\"u\"}"},
    {OLLAMA, 0, NULL, "{\"model\":\"m\",\"input\":[\"a\",\"\xC3\xA9\"]}"},
    {OLLAMA, 3, "{'dimensions':4,'truncate':false}",
     "{\"model\":\"m\",\"input\":[\"a\",\"\xC3\xA9\"],\"dimensions\":4,\"truncate\":false}"},
};

START_TEST(requests_name_model_and_texts)
{
    const rv_str texts[] = {RV_STR_LIT("a"), RV_STR_LIT("\xC3\xA9")};
    struct rv_wire_target t = target_of(requests[_i].wire);
    rv_buf body = RV_BUF_INIT(1000);

    t.extra_body = requests[_i].extra ? rv_kit_json(requests[_i].extra) : NULL;
    ck_assert_int_eq(rv_wire_embed_write_request(&t, texts, 2, requests[_i].dimensions, &body, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&body), requests[_i].want);
    rv_buf_fini(&body);
    json_object_put(t.extra_body);
}
END_TEST

static const struct {
    enum rv_wire_kind wire;
    const char *text;
    size_t n;
    int64_t dimensions;
    int rc;
} refused[] = {
    {ANTHROPIC, "a", 1, 0, RV_E_INVALID}, {OPENAI, "a", 0, 0, RV_E_INVALID},       {OPENAI, "", 1, 0, RV_E_INVALID},
    {OPENAI, "a", 1, -1, RV_E_INVALID},   {OPENAI, "a", 1, 1 << 20, RV_E_INVALID}, {OPENAI, "a", 2049, 0, RV_E_LIMIT},
    {OLLAMA, "\xFF", 1, 0, RV_E_INVALID},
};

START_TEST(requests_that_make_no_sense_are_refused)
{
    struct rv_wire_target t = target_of(refused[_i].wire);
    rv_str *texts = calloc(refused[_i].n + 1, sizeof *texts);
    rv_buf body = RV_BUF_INIT(1 << 20);

    for (size_t i = 0; i < refused[_i].n; i++)
        texts[i] = rv_str_of(refused[_i].text);
    ck_assert_int_eq(rv_wire_embed_write_request(&t, texts, refused[_i].n, refused[_i].dimensions, &body, NULL),
                     refused[_i].rc);
    rv_buf_fini(&body);
    free(texts);
}
END_TEST

START_TEST(only_wires_with_embeddings_have_a_path)
{
    ck_assert_str_eq(rv_wire_embed_path(RV_WIRE_OPENAI), "/embeddings");
    ck_assert_str_eq(rv_wire_embed_path(RV_WIRE_OLLAMA), "/api/embed");
    ck_assert_ptr_null(rv_wire_embed_path(RV_WIRE_ANTHROPIC));
}
END_TEST

/* In base64: 1, -2 is AACAPwAAAMA=; 0.5 is AAAAPw==; infinity is AACAfw==; not a number is AADAfw==. */
static const struct {
    const char *what;
    enum rv_wire_kind wire;
    size_t n;
    const char *body, *want; /* "dims: numbers; ...", tokens; or NULL with why */
    const char *why;
} answers[] = {
    {"numbers in any order", OPENAI, 2,
     "{'data':[{'index':1,'embedding':[3,-4.5e0]},{'index':0,'embedding':[1,2]}],'usage':{'prompt_tokens':7}}",
     "2: 1 2 3 -4.5 tokens 7", NULL},
    {"a whole number, however it is written", OPENAI, 1, "{'data':[{'embedding':[1]}],'usage':{'prompt_tokens':7e0}}",
     "1: 1 tokens 7", NULL},
    {"what is not a count", OPENAI, 1, "{'data':[{'embedding':[1]}],'usage':{'prompt_tokens':'7'}}",
     "1: 1 tokens unknown", NULL},
    {"less than nothing", OLLAMA, 1, "{'embeddings':[[1]],'prompt_eval_count':-7}", "1: 1 tokens unknown", NULL},
    {"base64", OPENAI, 2, "{'data':[{'index':0,'embedding':'AACAPwAAAMA='},{'index':1,'embedding':'AACAPwAAAMA'}]}",
     "2: 1 -2 1 -2 tokens unknown", NULL},
    {"both", OPENAI, 2, "{'data':[{'index':1,'embedding':'AAAAPw=='},{'index':0,'embedding':[0]}]}",
     "1: 0 0.5 tokens unknown", NULL},
    {"no index", OPENAI, 2, "{'data':[{'embedding':[1]},{'embedding':[2]}]}", "1: 1 2 tokens unknown", NULL},
    {"ollama", OLLAMA, 2, "{'embeddings':[[0.25,1],[1,1]],'prompt_eval_count':9}", "2: 0.25 1 1 1 tokens 9", NULL},
    {"an error that says nothing", OPENAI, 1, "{'data':[{'index':0,'embedding':[1]}],'error':''}",
     "1: 1 tokens unknown", NULL},
    {"too few", OPENAI, 2, "{'data':[{'index':0,'embedding':[1]}]}", NULL, "1 embeddings came for 2 texts"},
    {"too many", OLLAMA, 1, "{'embeddings':[[1],[2]]}", NULL, "2 embeddings came for 1 texts"},
    {"twice the same", OPENAI, 2, "{'data':[{'index':0,'embedding':[1]},{'index':0,'embedding':[2]}]}", NULL,
     "embedding 1 is there twice"},
    {"out of range", OPENAI, 1, "{'data':[{'index':1,'embedding':[1]}]}", NULL,
     "embedding 2 was not asked for: there are 1 texts"},
    {"a negative index", OPENAI, 1, "{'data':[{'index':-1,'embedding':[1]}]}", NULL,
     "the index of embedding 1 is none"},
    {"ragged", OLLAMA, 2, "{'embeddings':[[1,2],[3]]}", NULL, "embedding 2 has 1 numbers, one before it 2"},
    {"an empty row", OLLAMA, 1, "{'embeddings':[[]]}", NULL, "embedding 1 has 0 numbers"},
    {"no number", OLLAMA, 1, "{'embeddings':[[1,'2']]}", NULL, "number 2 of embedding 1 is none"},
    {"null", OLLAMA, 1, "{'embeddings':[[null]]}", NULL, "number 1 of embedding 1 is none"},
    {"too large for a float", OLLAMA, 1, "{'embeddings':[[1e39]]}", NULL, "number 1 of embedding 1 is none"},
    {"infinity in base64", OPENAI, 1, "{'data':[{'embedding':'AACAfw=='}]}", NULL, "number 1 of embedding 1 is none"},
    {"not a number in base64", OPENAI, 1, "{'data':[{'embedding':'AADAfw=='}]}", NULL,
     "number 1 of embedding 1 is none"},
    {"base64 of three bytes", OPENAI, 1, "{'data':[{'embedding':'AAAA'}]}", NULL,
     "embedding 1 is not base64 of numbers"},
    {"no base64", OPENAI, 1, "{'data':[{'embedding':'AA?APw=='}]}", NULL, "embedding 1 is not base64 of numbers"},
    {"base64 cut in a byte", OPENAI, 1, "{'data':[{'embedding':'AACAPwAAA'}]}", NULL,
     "embedding 1 is not base64 of numbers"},
    {"an object as a row", OLLAMA, 1, "{'embeddings':[{}]}", NULL, "embedding 1 is of type object"},
    {"no object", OPENAI, 1, "{'data':[[1]]}", NULL, "embedding 1 is not an object"},
    {"a row that others can not be as long as", OLLAMA, 90,
     "{'embeddings':[[0,0,0,0,0,0,0,0,0,0],0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
     "0,0,"
     "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}",
     NULL, "not every embedding has 10 numbers, as embedding 1 has"},
    {"nothing", OPENAI, 1, "{}", NULL, "the answer has no embeddings"},
    {"a list", OPENAI, 1, "[]", NULL, "the answer with the embeddings is not a JSON object"},
    {"an error", OPENAI, 1, "{'error':{'message':'no such model'}}", NULL,
     "the provider answers with an error: no such model"},
    {"an error in words", OLLAMA, 1, "{'error':'no such model'}", NULL,
     "the provider answers with an error: no such model"},
    {"none asked for", OPENAI, 0, "{'data':[]}", NULL, "0 embeddings were never asked for"},
};

START_TEST(rows_come_in_the_order_of_the_texts_or_not_at_all)
{
    struct rv_wire_target t = target_of(answers[_i].wire);
    struct rv_embeddings e = {0};
    json_object *json = rv_kit_json(answers[_i].body);
    rv_buf body = RV_BUF_INIT(1 << 16), got = RV_BUF_INIT(1000);
    rv_err *err = NULL;
    int rc;

    rv_json_write(json, &body);
    rc = rv_wire_embed_read(&t, rv_buf_str(&body), answers[_i].n, &e, &err);
    if (answers[_i].want) {
        ck_assert_msg(rc == 0, "%s: %s", answers[_i].what, rv_err_text(err));
        ck_assert_uint_eq(e.n, answers[_i].n);
        rv_buf_printf(&got, "%zu:", e.dims);
        for (size_t i = 0; i < e.n * e.dims; i++)
            rv_buf_printf(&got, " %g", (double)e.values[i]);
        rv_buf_puts(&got, e.has_usage ? "" : " tokens unknown");
        if (e.has_usage)
            rv_buf_printf(&got, " tokens %d", (int)e.usage.input_tokens);
        ck_assert_str_eq(rv_buf_cstr(&got), answers[_i].want);
    } else {
        ck_assert_msg(rc < 0, "%s", answers[_i].what);
        ck_assert_str_eq(rv_err_text(err), answers[_i].why);
        ck_assert_ptr_null(e.values);
    }
    rv_err_free(err);
    rv_embeddings_fini(&e);
    rv_buf_fini(&body);
    rv_buf_fini(&got);
    json_object_put(json);
}
END_TEST

START_TEST(text_that_is_no_json_is_a_parse_error)
{
    struct rv_wire_target t = target_of(RV_WIRE_OPENAI);
    struct rv_embeddings e;

    ck_assert_int_eq(rv_wire_embed_read(&t, RV_STR_LIT("<html>"), 1, &e, NULL), RV_E_PARSE);
    ck_assert_int_eq(rv_wire_embed_read(&t, RV_STR_LIT("{\"data\":[{\"embedding\":[NaN]}]}"), 1, &e, NULL), RV_E_PARSE);
}
END_TEST

START_TEST(the_largest_answer_of_a_provider_is_read)
{
    enum { N_ROWS = 2048, N_CHARS = 3072 * 16 / 3 };
    struct rv_wire_target t = target_of(RV_WIRE_OPENAI);
    struct rv_embeddings e = {0};
    rv_buf body = RV_BUF_INIT((size_t)64 << 20);
    rv_err *err = NULL;

    rv_buf_puts(&body, "{\"data\":[");
    for (int i = 0; i < N_ROWS; i++) {
        rv_buf_printf(&body, "%s{\"index\":%d,\"embedding\":\"", i ? "," : "", N_ROWS - 1 - i);
        for (int k = 0; k < N_CHARS; k += 16)
            rv_buf_puts(&body, "AACAPwAAgD8AAIA/");
        rv_buf_puts(&body, "\"}");
    }
    rv_buf_puts(&body, "]}");
    ck_assert_msg(rv_wire_embed_read(&t, rv_buf_str(&body), N_ROWS, &e, &err) == 0, "%s", rv_err_text(err));
    ck_assert_uint_eq(e.dims, 3072);
    ck_assert(e.values[0] == 1.0F && e.values[e.n * e.dims - 1] == 1.0F);
    rv_embeddings_fini(&e);
    rv_buf_fini(&body);
}
END_TEST

TCase *embed_case(void)
{
    TCase *tc = tcase_create("embed");

    tcase_add_loop_test(tc, requests_name_model_and_texts, 0, RV_COUNT(requests));
    tcase_add_loop_test(tc, requests_that_make_no_sense_are_refused, 0, RV_COUNT(refused));
    tcase_add_test(tc, only_wires_with_embeddings_have_a_path);
    tcase_add_loop_test(tc, rows_come_in_the_order_of_the_texts_or_not_at_all, 0, RV_COUNT(answers));
    tcase_add_test(tc, text_that_is_no_json_is_a_parse_error);
    tcase_add_test(tc, the_largest_answer_of_a_provider_is_read);
    return tc;
}
