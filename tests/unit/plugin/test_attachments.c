/* Attachments of a request as plain structures: what a hook before the model sees, and the reply that its list becomes;
 * lists that break the rules. In this process and in one of its own. */
#include "tests/kit/kit.h"
#include "tests/unit/plugin/suites.h"

#include <string.h>

#define REQUEST                                                                                                        \
    "{\"hook\":\"before_model\",\"request\":{\"prompt\":\"p\",\"attachments\":[{\"type\":\"image\",\"url\":"           \
    "\"https://x/a.png\"},{\"type\":\"file\",\"data\":\"QUJD\",\"media_type\":\"text/plain\",\"name\":\"t\"}]}}"
#define REPLACED(list) "{\"action\":\"replace\",\"request\":{\"attachments\":" list "}}"

static const struct {
    enum rv_name_kind kind;
    const char *name, *args;
    int rc;
    const char *says;
} calls[] = {
    {RV_NAME_HOOK, "pictures.told", REQUEST, 0, "{\"seen\": \"image|https://x/a.png|||;file||QUJD|text/plain|t;\"}"},
    {RV_NAME_HOOK, "pictures.told", "{}", 0, "{\"seen\": \"\"}"},
    {RV_NAME_HOOK, "pictures.told", "{\"request\":[]}", 0, "{\"seen\": \"\"}"},
    {RV_NAME_HOOK, "pictures.told", "{\"request\":{\"attachments\":[]}}", 0, "{\"seen\": \"\"}"},
    {RV_NAME_HOOK, "pictures.told", "{\"request\":{\"attachments\":[7,{\"type\":7}]}}", 0, "{\"seen\": \"||||;\"}"},
    {RV_NAME_TOOL, "told", REQUEST, 0, "{\"seen\": \"\"}"},
    {RV_NAME_HOOK, "pictures.same", REQUEST, 0, REPLACED("[0,1]")},
    {RV_NAME_HOOK, "pictures.same", "{}", 0, REPLACED("[]")},
    {RV_NAME_HOOK, "pictures.turned", REQUEST, 0,
     REPLACED("[{\"data\":\"AAAA\",\"media_type\":\"image/png\",\"name\":\"a \\\"b\\\".png\"},1,0]")},
    {RV_NAME_HOOK, "pictures.too_many", REQUEST, RV_E_TOOL, "it gave more than 32 attachments"},
    {RV_NAME_HOOK, "pictures.no_list", REQUEST, RV_E_TOOL, "it gave attachments without a list of them"},
    {RV_NAME_HOOK, "pictures.a_huge_one", REQUEST, RV_E_PLUGIN, "larger than 8388608 bytes"},
    {RV_NAME_HOOK, "pictures.odd_bytes", REQUEST, RV_E_TOOL, "an attachment that is not UTF-8"},
    {RV_NAME_HOOK, "pictures.twice", REQUEST, RV_E_PLUGIN, "answered 2 times"},
};

static void check(rv_plugins *p, size_t i)
{
    rv_buf out = RV_BUF_INIT((size_t)16 << 20);
    rv_err *err = NULL;

    ck_assert_int_eq(call_entry(p, calls[i].kind, calls[i].name, calls[i].args, &out, &err), calls[i].rc);
    if (calls[i].rc == 0)
        ck_assert_str_eq(rv_buf_cstr(&out), calls[i].says);
    else
        ck_assert_msg(strstr(error_text(err), calls[i].says) != NULL, "%s", error_text(err));
    rv_err_free(err);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}

START_TEST(a_hook_sees_attachments_and_hands_over_others)
{
    rv_plugins *p = new_set(NULL);

    must_load(p, "pictures");
    check(p, (size_t)_i);
}
END_TEST

START_TEST(in_a_process_of_its_own_it_is_the_same)
{
    rv_plugins *p = new_set(NULL);

    must_isolate(p, "pictures");
    check(p, (size_t)_i);
}
END_TEST

Suite *attachments_suite(void)
{
    Suite *s = suite_create("plugin attachments");
    TCase *tc = tcase_create("attachments");

    tcase_add_loop_test(tc, a_hook_sees_attachments_and_hands_over_others, 0, RV_COUNT(calls));
    tcase_add_loop_test(tc, in_a_process_of_its_own_it_is_the_same, 0, RV_COUNT(calls));
    suite_add_tcase(s, tc);
    return s;
}
