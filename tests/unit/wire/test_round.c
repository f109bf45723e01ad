/* There and back: whatever text, picture, file or example a request has is found in the body of each wire that takes
 * it, byte for byte. The texts are those that encoders get wrong: quotes, NULs, halves of escapes, long ones, empty
 * ones. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/model/wire/wire.h"
#include "tests/kit/kit.h"
#include "tests/unit/wire/suites.h"

#define N_REQUESTS    300
#define MANY_REQUESTS 20000
#define MAX_LONG      70000

struct maker {
    uint64_t state;
    rv_jw w;
};

static unsigned pick(struct maker *m, unsigned n)
{
    m->state = m->state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(m->state >> 33) % n;
}

/* --- making --- */

static void add_text(struct maker *m, rv_buf *out)
{
    static const char *const pieces[] = {
        "a",    "\"",       "\\",           "\n",    "\x01",     "\x7f",         "\\u0000",          "{{",
        "</s>", "\xC3\xA9", "\xE2\x80\xA8", "data:", ";base64,", "\xEF\xBF\xBD", "\xF0\x9F\x98\x80", "\xED\x9F\xBF",
        " "};
    unsigned n = pick(m, 50) == 0 ? MAX_LONG : pick(m, 12);

    rv_buf_puts(out, "x"); /* some wires leave a blank text out */
    for (unsigned i = 0; i < n; i++) {
        unsigned k = pick(m, RV_COUNT(pieces) + 1);
        if (k < RV_COUNT(pieces))
            rv_buf_puts(out, pieces[k]);
        else
            rv_buf_putc(out, '\0');
    }
}

static void put_text(struct maker *m, const char *key)
{
    rv_buf text = RV_BUF_INIT(1 << 20);

    add_text(m, &text);
    rv_jw_kv_str(&m->w, key, rv_buf_str(&text));
    rv_buf_fini(&text);
}

static void put_data(struct maker *m)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned n = 4 * (1 + (pick(m, 40) == 0 ? MAX_LONG : pick(m, 9)));
    rv_buf text = RV_BUF_INIT(1 << 20);

    for (unsigned i = 0; i < n; i++)
        rv_buf_putc(&text, i + 1 == n && pick(m, 2) ? '=' : digits[pick(m, 64)]);
    rv_jw_kv_str(&m->w, "data", rv_buf_str(&text));
    rv_buf_fini(&text);
}

static void make_attachment(struct maker *m, unsigned takes)
{
    static const char *const images[] = {"image/png", "image/jpeg", "image/gif", "image/webp"};
    bool is_image = !(takes & RV_WIRE_FILE_DATA) || pick(m, 2);
    bool by_url = takes & (is_image ? RV_WIRE_IMAGE_URL : RV_WIRE_FILE_URL) && pick(m, 2);

    rv_jw_obj(&m->w);
    rv_jw_kv_text(&m->w, "type", is_image ? "image" : "file");
    if (by_url)
        rv_jw_kv_text(&m->w, "url", pick(m, 2) ? "https://x.y/\"\\?a=\xC3\xA9&b#c" : "https://x");
    else
        put_data(m);
    rv_jw_kv_text(&m->w, "media_type", is_image ? images[pick(m, 4)] : "application/pdf");
    if (!is_image)
        rv_jw_kv_text(&m->w, "name", pick(m, 2) ? "a \"b\".pdf" : "\xF0\x9F\x98\x80\\");
    rv_jw_obj_end(&m->w);
}

static json_object *make_request(uint64_t seed, unsigned takes)
{
    rv_buf out = RV_BUF_INIT((size_t)16 << 20);
    struct maker m = {.state = seed * 2 + 1, .w = rv_jw_on(&out)};
    json_object *request = NULL;

    rv_jw_obj(&m.w);
    put_text(&m, "system");
    rv_jw_key(&m.w, "examples");
    rv_jw_arr(&m.w);
    for (unsigned i = pick(&m, 4); i > 0; i--) {
        for (int side = 0; side < 2; side++) {
            rv_jw_obj(&m.w);
            rv_jw_kv_text(&m.w, "role", side ? "assistant" : "user");
            put_text(&m, "content");
            rv_jw_obj_end(&m.w);
        }
    }
    rv_jw_arr_end(&m.w);
    put_text(&m, "prompt");
    rv_jw_key(&m.w, "attachments");
    rv_jw_arr(&m.w);
    for (unsigned i = pick(&m, 5); i > 0; i--)
        make_attachment(&m, takes);
    rv_jw_arr_end(&m.w);
    rv_jw_obj_end(&m.w);
    ck_assert_int_eq(rv_json_parse(rv_buf_str(&out), NULL, &request, NULL), 0);
    rv_buf_fini(&out);
    return request;
}

/* --- reading back --- */

/* "" for what is not there. */
static rv_str text_at(json_object *obj, const char *key)
{
    json_object *part = NULL;

    if (obj)
        json_object_object_get_ex(obj, key, &part);
    return rv_json_str(part);
}

static void same(const char *what, rv_str got, rv_str want)
{
    ck_assert_msg(rv_str_eq(got, want), "%s: %.*s, not %.*s", what, RV_STR_ARG(rv_utf8_cut(got, 200)),
                  RV_STR_ARG(rv_utf8_cut(want, 200)));
}

/* data:MEDIA_TYPE;base64,DATA, or the address. */
static void same_url(rv_str url, json_object *want)
{
    rv_buf text = RV_BUF_INIT(1 << 20);

    if (text_at(want, "url").len == 0) {
        rv_str type = text_at(want, "media_type"), data = text_at(want, "data");
        rv_buf_printf(&text, "data:%.*s;base64,", RV_STR_ARG(type));
        rv_buf_add_str(&text, data);
        same("data", url, rv_buf_str(&text));
    } else {
        same("url", url, text_at(want, "url"));
    }
    rv_buf_fini(&text);
}

static void check_openai_part(json_object *part, json_object *want)
{
    bool is_image = rv_str_is(text_at(want, "type"), "image");
    json_object *inner = rv_json_get_obj(part, is_image ? "image_url" : "file");

    same("type", text_at(part, "type"), is_image ? RV_STR_LIT("image_url") : RV_STR_LIT("file"));
    same_url(text_at(inner, is_image ? "url" : "file_data"), want);
    if (!is_image)
        same("name", text_at(inner, "filename"), text_at(want, "name"));
}

static void check_anthropic_block(json_object *block, json_object *want)
{
    bool is_image = rv_str_is(text_at(want, "type"), "image"), by_url = text_at(want, "url").len > 0;
    json_object *source = rv_json_get_obj(block, "source");

    same("type", text_at(block, "type"), is_image ? RV_STR_LIT("image") : RV_STR_LIT("document"));
    same("source", text_at(source, "type"), by_url ? RV_STR_LIT("url") : RV_STR_LIT("base64"));
    same("bytes", text_at(source, by_url ? "url" : "data"), text_at(want, by_url ? "url" : "data"));
    if (!by_url)
        same("media type", text_at(source, "media_type"), text_at(want, "media_type"));
    same("title", text_at(block, "title"), text_at(want, "name"));
}

/* The message of the prompt: its text, then or before it what is attached. */
static void check_prompt(enum rv_wire_kind wire, json_object *message, json_object *request)
{
    json_object *want = rv_json_get_arr(request, "attachments"), *content = rv_json_get_arr(message, "content");
    size_t n = json_object_array_length(want), first = wire == RV_WIRE_OPENAI ? 1 : 0;
    rv_str prompt = text_at(request, "prompt");

    if (wire == RV_WIRE_OLLAMA || !content) {
        same("prompt", text_at(message, "content"), prompt);
        content = rv_json_get_arr(message, "images");
        ck_assert_uint_eq(content ? json_object_array_length(content) : 0, n);
        for (size_t i = 0; i < n; i++)
            same("image", rv_json_str(json_object_array_get_idx(content, i)),
                 text_at(json_object_array_get_idx(want, i), "data"));
        return;
    }
    ck_assert_uint_eq(json_object_array_length(content), n + 1);
    same("prompt", text_at(json_object_array_get_idx(content, first == 1 ? 0 : n), "text"), prompt);
    for (size_t i = 0; i < n; i++)
        (wire == RV_WIRE_OPENAI ? check_openai_part : check_anthropic_block)(
            json_object_array_get_idx(content, first + i), json_object_array_get_idx(want, i));
}

static rv_str text_of(json_object *message)
{
    json_object *blocks = rv_json_get_arr(message, "content");

    return blocks ? text_at(json_object_array_get_idx(blocks, 0), "text") : text_at(message, "content");
}

START_TEST(what_goes_out_can_be_read_back)
{
    enum rv_wire_kind wire = (enum rv_wire_kind)_i;
    const struct rv_wire_target t = {.wire = wire, .provider = "p", .model = "m"};

    for (uint64_t seed = 0; seed < (uint64_t)rv_kit_sample(N_REQUESTS, MANY_REQUESTS); seed++) {
        json_object *request = make_request(seed, rv_wire_takes(wire)), *body = NULL;
        json_object *examples = rv_json_get_arr(request, "examples");
        rv_buf text = RV_BUF_INIT((size_t)32 << 20);

        ck_assert_int_eq(rv_wire_write_request(&t, request, &text, NULL), 0);
        ck_assert_int_eq(rv_json_parse(rv_buf_str(&text), NULL, &body, NULL), 0);
        json_object *messages = rv_json_get_arr(body, "messages");
        size_t n = json_object_array_length(messages), before = wire == RV_WIRE_ANTHROPIC ? 0 : 1;
        ck_assert_uint_eq(n, before + json_object_array_length(examples) + 1);
        same("system", before ? text_of(json_object_array_get_idx(messages, 0)) : text_at(body, "system"),
             text_at(request, "system"));
        for (size_t i = 0; i < json_object_array_length(examples); i++)
            same("example", text_of(json_object_array_get_idx(messages, before + i)),
                 text_at(json_object_array_get_idx(examples, i), "content"));
        check_prompt(wire, json_object_array_get_idx(messages, n - 1), request);
        json_object_put(body);
        rv_buf_fini(&text);
        json_object_put(request);
    }
}
END_TEST

TCase *round_case(void)
{
    TCase *tc = tcase_create("round");

    tcase_add_loop_test(tc, what_goes_out_can_be_read_back, 0, RV_N_WIRES);
    return tc;
}
