/* What becomes an attachment, and what is said of that which does not. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/model/llm/llm.h"
#include "tests/kit/kit.h"
#include "tests/unit/llm/suites.h"

static const struct {
    const char *value, *want; /* the list; or the error, without the brackets */
} values[] = {
    {"null", "[]"},
    {"[]", "[]"},
    {"[null,[]]", "!item 1: array is not an attachment: give a URL as text, or an object with url, or with data and "
                  "media_type"},
    /* addresses */
    {"'https://x.y/z.PNG'", "[{'type':'image','url':'https://x.y/z.PNG','media_type':'image/png'}]"},
    {"'HTTPS://x.y/z.jpeg?a=b.pdf#c'",
     "[{'type':'image','url':'HTTPS://x.y/z.jpeg?a=b.pdf#c','media_type':'image/jpeg'}]"},
    {"'https://x.y/z.pdf'", "[{'type':'file','url':'https://x.y/z.pdf','media_type':'application/pdf'}]"},
    {"{'url':'https://x.y/z','type':'image'}", "[{'type':'image','url':'https://x.y/z'}]"},
    {"{'url':'https://x.y/z.png','type':'file'}", "[{'type':'file','url':'https://x.y/z.png'}]"},
    {"{'url':'https://x.y/z','media_type':'image/webp','name':null}",
     "[{'type':'image','url':'https://x.y/z','media_type':'image/webp'}]"},
    {"'https://x.y/z'", "!its URL does not tell what it is: give {url, type} with image or file"},
    {"'http://x.y/z.png'", "!\"http://x.y/z.png\" is not an https: or data: URL"},
    {"'/etc/passwd'", "!\"/etc/passwd\" is not an https: or data: URL"},
    {"'file:///etc/passwd'", "!\"file:///etc/passwd\" is not an https: or data: URL"},
    {"''", "!\"\" is not an https: or data: URL"},
    {"'https://'", "!\"https://\" is not an https: or data: URL"},
    {"'https://x.y/a b.png'", "!its URL is longer than 8192 bytes or has blanks in it"},
    {"'https://x.y/\\u0000.png'", "!its URL is longer than 8192 bytes or has blanks in it"},
    /* data */
    {"'data:image/png;base64,AAAA'", "[{'type':'image','data':'AAAA','media_type':'image/png'}]"},
    {"'DATA:text/plain;charset=utf-8;BASE64,AA=='", "[{'type':'file','data':'AA==','media_type':'text/plain'}]"},
    {"{'data':'AA\\nA= \\r\\n','media_type':'application/pdf','name':'a b.pdf'}",
     "[{'type':'file','data':'AAA=','media_type':'application/pdf','name':'a b.pdf'}]"},
    {"{'url':'data:image/png;base64,AAAA','media_type':'image/gif'}",
     "[{'type':'image','data':'AAAA','media_type':'image/gif'}]"},
    {"'data:image/png,AAAA'", "!its data: URL must be data:MEDIA_TYPE;base64,..."},
    {"'data:'", "!its data: URL must be data:MEDIA_TYPE;base64,..."},
    {"'data:image/png;base64,'", "!its data: URL is empty"},
    {"'data:image/png;base64, '", "!its data is not base64: there is none"},
    {"'data:;base64,AAAA'", "!its data needs a media_type, such as image/png"},
    {"{'data':'AAAA'}", "!its data needs a media_type, such as image/png"},
    {"{'data':'AAA','media_type':'image/png'}", "!its data is not base64: its length is not a multiple of 4"},
    {"{'data':'AA=A','media_type':'image/png'}", "!its data is not base64: byte 4 does not belong there"},
    {"{'data':'A===','media_type':'image/png'}", "!its data is not base64: byte 4 does not belong there"},
    {"{'data':'AA-_','media_type':'image/png'}", "!its data is not base64: byte 3 does not belong there"},
    /* what is said of it */
    {"{'path':'/etc/passwd'}", "!it has \"path\", and files are not read: give their bytes as data"},
    {"{'uri':'https://x'}", "!it has \"uri\": type, url, data, media_type and name are known"},
    {"{}", "!it must have either url or data"},
    {"{'url':'https://x','data':'AAAA'}", "!it must have either url or data"},
    {"{'url':7}", "!its url must be a text, not integer"},
    {"{'url':'https://x','type':'sound'}", "!its type is \"sound\": image and file are known"},
    {"{'url':'https://x','media_type':'image'}", "!its media_type is \"image\", which is none"},
    {"{'url':'https://x','media_type':'image/a;b'}", "!its media_type is \"image/a;b\", which is none"},
    {"{'url':'https://x','type':'image','media_type':'text/plain'}",
     "!its type is image, and its media_type text/plain"},
    {"{'url':'https://x.y/a.png','name':'a\\nb'}", "!its name is longer than 255 bytes or has control characters"},
    {"7", "!integer is not an attachment: give a URL as text, or an object with url, or with data and media_type"},
    /* several */
    {"['https://x/a.png','data:image/gif;base64,AAAA']",
     "[{'type':'image','url':'https://x/a.png','media_type':'image/png'},"
     "{'type':'image','data':'AAAA','media_type':'image/gif'}]"},
    {"['https://x/a.png',{'url':''}]", "!item 1: it must have either url or data"},
};

START_TEST(a_value_is_an_attachment_or_says_why_not)
{
    json_object *value = strcmp(values[_i].value, "null") == 0 ? NULL : rv_kit_json(values[_i].value);
    json_object *list = json_object_new_array();
    rv_err *err = NULL;
    int rc = rv_attachments_add(list, value, &err);

    if (values[_i].want[0] == '!') {
        rv_buf text = RV_BUF_INIT(4096);
        ck_assert_msg(rc == RV_E_INVALID, "%s is taken", values[_i].value);
        rv_err_write_chain(err, &text);
        ck_assert_str_eq(rv_buf_cstr(&text), values[_i].want + 1);
        rv_buf_fini(&text);
    } else {
        json_object *want = rv_kit_json(values[_i].want);
        ck_assert_msg(rc == 0, "%s: %s", values[_i].value, rv_err_text(err));
        ck_assert_msg(rv_json_equal(list, want), "%s: %s", values[_i].value, json_object_to_json_string(list));
        json_object_put(want);
    }
    rv_err_free(err);
    json_object_put(list);
    json_object_put(value);
}
END_TEST

static int add_data(json_object *list, size_t n)
{
    char *text = malloc(n + 1);
    json_object *value = json_object_new_object();

    ck_assert_ptr_nonnull(text);
    memset(text, 'A', n);
    json_object_object_add(value, "data", json_object_new_string_len(text, (int)n));
    json_object_object_add(value, "media_type", json_object_new_string("image/png"));
    int rc = rv_attachments_add(list, value, NULL);
    json_object_put(value);
    free(text);
    return rc;
}

/* The bytes of all attachments count together, to the last one. */
START_TEST(the_bytes_and_the_number_are_bounded)
{
    json_object *list = json_object_new_array();

    ck_assert_int_eq(add_data(list, RV_LLM_MAX_ATTACHMENT_BYTES + 4), RV_E_INVALID);
    ck_assert_int_eq(add_data(list, 3 * RV_LLM_MAX_ATTACHMENT_BYTES), RV_E_INVALID);
    json_object_put(list);
    list = json_object_new_array();
    ck_assert_int_eq(add_data(list, RV_LLM_MAX_ATTACHMENT_BYTES - 8), 0);
    ck_assert_int_eq(add_data(list, 8), 0);
    ck_assert_int_eq(add_data(list, 4), RV_E_INVALID);
    json_object_put(list);
    list = json_object_new_array();
    for (size_t i = 0; i < RV_LLM_MAX_ATTACHMENTS; i++)
        ck_assert_int_eq(add_data(list, 4), 0);
    ck_assert_int_eq(add_data(list, 4), RV_E_INVALID);
    json_object_put(list);
}
END_TEST

/* One that is kept from another list counts as it would when it came first. */
START_TEST(one_that_is_kept_is_bounded_too)
{
    json_object *from = json_object_new_array(), *list = json_object_new_array();

    ck_assert_int_eq(add_data(from, RV_LLM_MAX_ATTACHMENT_BYTES / 2), 0);
    ck_assert_int_eq(add_data(from, 4), 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(rv_attachments_keep(list, json_object_array_get_idx(from, 0), NULL), 0);
    ck_assert_int_eq(rv_attachments_keep(list, json_object_array_get_idx(from, 1), NULL), RV_E_INVALID);
    json_object_put(list);
    list = json_object_new_array();
    for (size_t i = 0; i < RV_LLM_MAX_ATTACHMENTS; i++)
        ck_assert_int_eq(rv_attachments_keep(list, json_object_array_get_idx(from, 1), NULL), 0);
    ck_assert_int_eq(rv_attachments_keep(list, json_object_array_get_idx(from, 1), NULL), RV_E_INVALID);
    json_object_put(list);
    json_object_put(from);
}
END_TEST

static const struct {
    const char *type, *media_type;
    size_t n; /* bytes of base64; 0: a URL */
    int64_t tokens;
} estimates[] = {
    {"image", "image/png", 0, 1600},
    {"image", "image/png", 8000000, 1600},
    {"file", "application/pdf", 0, 16000},
    {"file", "application/pdf", 4, 1600},
    {"file", "application/pdf", 34132, 1600},
    {"file", "application/pdf", 34156, 1601},
    {"file", "text/plain", 4, 1},
    {"file", "TEXT/csv", 1600, 301},
    {"file", "application/json", 1600, 301},
    {"file", "application/jsonl", 1600, 1600},
};

START_TEST(the_estimate_of_an_attachment_depends_on_it_alone)
{
    json_object *list = json_object_new_array(), *item = json_object_new_object();
    char *text = calloc(1, estimates[_i].n + 1);

    ck_assert_ptr_nonnull(text);
    memset(text, 'A', estimates[_i].n);
    json_object_object_add(item, "type", json_object_new_string(estimates[_i].type));
    json_object_object_add(item, "media_type", json_object_new_string(estimates[_i].media_type));
    json_object_object_add(item, estimates[_i].n ? "data" : "url", json_object_new_string(text));
    json_object_array_add(list, item);
    ck_assert_int_eq(rv_attachments_estimate(list), estimates[_i].tokens);
    json_object_array_add(list, json_object_get(item));
    ck_assert_int_eq(rv_attachments_estimate(list), 2 * estimates[_i].tokens);
    ck_assert_int_eq(rv_attachments_estimate(NULL), 0);
    json_object_put(list);
    free(text);
}
END_TEST

TCase *attachments_case(void)
{
    TCase *tc = tcase_create("attachments");

    tcase_add_loop_test(tc, a_value_is_an_attachment_or_says_why_not, 0, RV_COUNT(values));
    tcase_add_test(tc, the_bytes_and_the_number_are_bounded);
    tcase_add_test(tc, one_that_is_kept_is_bounded_too);
    tcase_add_loop_test(tc, the_estimate_of_an_attachment_depends_on_it_alone, 0, RV_COUNT(estimates));
    return tc;
}
