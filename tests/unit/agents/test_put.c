/* Putting a document into the store. */
#include "tests/unit/agents/world.h"

#include <string.h>

static int put(struct world *w, const struct rv_store_scope *scope, bool own, const char *text, bool *changed)
{
    rv_err_free(w->err);
    w->err = NULL;
    return rv_agents_put(w->agents, scope,
                         &(const struct rv_agent_text){.user_own = own, .text = rv_str_of(text), .file = "mine.yaml"},
                         changed, &w->err);
}

START_TEST(a_put_says_whether_it_changed_something)
{
    bool changed = false;
    struct world w;

    world_begin(&w, _i, 0);
    ck_assert_int_eq(put(&w, &nobody, false, DOC("helper", "One"), &changed), 0);
    ck_assert(changed);
    must_find(&w, &ann, "helper", "store", "One");
    ck_assert_int_eq(put(&w, &nobody, false, DOC("helper", "Two"), &changed), 0);
    ck_assert(changed);
    must_find(&w, &ann, "helper", "store", "Two");
    world_end(&w);
}
END_TEST

START_TEST(a_faulty_document_is_not_put)
{
    struct world w;
    int64_t version;

    world_begin(&w, _i, 0);
    version = version_of(&w);
    ck_assert_int_eq(put(&w, &nobody, false, DOC("helper", "x") "limits: 7\n", NULL), RV_E_INVALID);
    ck_assert_msg(strstr(error_of(&w), "(mine.yaml:4:9)") != NULL, "%s", error_of(&w));
    ck_assert_int_eq(put(&w, &nobody, false, "type: object\ndescription: x\n", NULL), RV_E_INVALID);
    ck_assert_int_eq(put(&w, &nobody, false, DOC("a/b", "x"), NULL), RV_E_INVALID);
    ck_assert_int_eq(version_of(&w), version);
    world_end(&w);
}
END_TEST

START_TEST(a_document_whose_output_can_not_be_checked_is_not_put) /* p8 W20: everybody would get the broken one */
{
    bool changed = false;
    struct world w;

    world_begin(&w, _i, 0);
    ck_assert_int_eq(put(&w, &nobody, false,
                         "type: object\nname: x\ndescription: d\nstructured_output: true\n"
                         "properties: {a: {type: string, pattern: \"(\"}}\n",
                         &changed),
                     RV_E_INVALID);
    ck_assert_msg(strstr(error_of(&w), "pattern") && strstr(error_of(&w), "mine.yaml:5:"), "%s", error_of(&w));
    ck_assert(!changed);
    world_end(&w);
}
END_TEST

START_TEST(an_agent_of_ones_own_needs_a_user)
{
    const struct rv_store_scope operator_scope = {"acme", NULL};
    struct world w;

    world_begin(&w, _i, 0);
    ck_assert_int_eq(put(&w, &nobody, true, DOC("helper", "x"), NULL), RV_E_INVALID);
    ck_assert_int_eq(put(&w, &operator_scope, true, DOC("helper", "x"), NULL), RV_E_INVALID);
    world_end(&w);
}
END_TEST

START_TEST(without_a_store_nothing_can_be_put)
{
    struct world w;

    world_begin(&w, 0, NO_STORE);
    ck_assert_int_eq(put(&w, &nobody, false, DOC("helper", "x"), NULL), RV_E_STATE);
    world_end(&w);
}
END_TEST

static int take_description(void *self, const struct rv_schema_row *row, rv_err **err)
{
    (void)err;
    rv_buf_puts(self, row->description);
    return 0;
}

/* Proves p8.1.5 */
START_TEST(a_long_prompt_is_described_by_its_first_200_characters)
{
    rv_buf text = RV_BUF_INIT(8192), description = RV_BUF_INIT(8192), want = RV_BUF_INIT(8192);
    struct world w;

    world_begin(&w, _i, 0);
    rv_buf_puts(&text, "type: object\nname: helper\ndescription: ");
    for (int i = 0; i < 201; i++)
        rv_buf_puts(&text, "ä");
    rv_buf_putc(&text, '\n');
    for (int i = 0; i < 200; i++)
        rv_buf_puts(&want, "ä");
    ck_assert_int_eq(put(&w, &nobody, false, rv_buf_cstr(&text), NULL), 0);
    ck_assert_int_eq(rv_store_list_schemas(w.store, &nobody, "agent", take_description, &description, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&description), rv_buf_cstr(&want));
    rv_buf_fini(&want);
    rv_buf_fini(&description);
    rv_buf_fini(&text);
    world_end(&w);
}
END_TEST

TCase *put_case(void)
{
    TCase *tc = tcase_create("put");

    tcase_add_loop_test(tc, a_put_says_whether_it_changed_something, 0, N_STORES);
    tcase_add_loop_test(tc, a_faulty_document_is_not_put, 0, N_STORES);
    tcase_add_loop_test(tc, a_document_whose_output_can_not_be_checked_is_not_put, 0, N_STORES);
    tcase_add_loop_test(tc, an_agent_of_ones_own_needs_a_user, 0, N_STORES);
    tcase_add_test(tc, without_a_store_nothing_can_be_put);
    tcase_add_loop_test(tc, a_long_prompt_is_described_by_its_first_200_characters, 0, N_STORES);
    return tc;
}
