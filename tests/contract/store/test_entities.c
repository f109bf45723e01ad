/* Entities: exactly the columns that are given, ids that follow from names, who sees and changes what. */
#include "tests/contract/store/entities.h"

/* Proves p8-data.1.2 */
START_TEST(an_id_follows_from_the_key_of_the_kind)
{
    static const struct {
        const char *kind, *user, *row, *id;
    } cases[] = {
        {"users", "", "{\"email\":\"user@example.com\",\"name\":\"x\"}", "\"e76db623-9067-5688-9d24-e05bff36b694\""},
        {"moments", "dddddddd-0000-0000-0000-000000000001", "{\"name\":\"ML Patterns\"}",
         "\"ecdeb45e-1e9f-522b-8ceb-fec960f3dccc\""},
    };
    struct world world, *w = &world;

    world_open(w, _i);
    for (size_t i = 0; i < RV_COUNT(cases); i++) {
        const struct rv_store_scope scope = {NULL, cases[i].user};
        json_object *row = put_one(w, &scope, cases[i].kind, cases[i].row, T0);
        ck_assert_str_eq(member(row, "id"), cases[i].id);
        json_object_put(row);
    }
    world_close(w);
}
END_TEST

START_TEST(a_row_has_all_columns_in_their_order)
{
    struct world world, *w = &world;
    json_object *row = NULL, *again = NULL;
    rv_buf text = RV_BUF_INIT(10000), other = RV_BUF_INIT(10000);

    world_open(w, _i);
    row = put_one(w, &ada, "moments",
                  "{\"tags\":[\"b\",\"a\"],\"summary\":\"we met\",\"name\":\"Lunch\",\"starts_timestamp\":"
                  "\"2026-02-03T04:05:06+01:00\",\"rating\":3,\"metadata\":{\"z\":1,\"a\":{\"b\":null}},"
                  "\"graph_edges\":[{\"target\":\"ada\",\"why\":\"x\"}]}",
                  T0);
    rv_json_write(row, &text);
    ck_assert_str_eq(
        rv_buf_cstr(&text),
        "{\"id\":\"9eb51f0b-3026-58aa-8afa-835fd3f3febc\",\"tenant_id\":\"default\",\"user_id\":\"ada\",\"name\":"
        "\"Lunch\",\"moment_type\":null,\"summary\":\"we met\",\"image_uri\":null,\"starts_timestamp\":"
        "\"2026-02-03T03:05:06.000000+00:00\",\"ends_timestamp\":null,\"present_persons\":[],\"emotion_tags\":[],"
        "\"topic_tags\":[],\"category\":null,\"rating\":3,\"source_session_id\":null,\"previous_moment_keys\":[],"
        "\"metadata\":{\"z\":1,\"a\":{\"b\":null}},\"tags\":[\"b\",\"a\"],\"graph_edges\":[{\"target\":\"ada\","
        "\"why\":\"x\"}],\"encryption_level\":null,\"created_at\":\"2023-11-14T22:13:20.000000+00:00\",\"updated_at\":"
        "\"2023-11-14T22:13:20.000000+00:00\",\"deleted_at\":null}");
    OK(rv_store_get_entity(w->s, &ada, "moments", "9eb51f0b-3026-58aa-8afa-835fd3f3febc", &again, &w->err));
    rv_json_write(again, &other);
    ck_assert_str_eq(rv_buf_cstr(&other), rv_buf_cstr(&text));
    json_object_put(row);
    json_object_put(again);
    rv_buf_fini(&text);
    rv_buf_fini(&other);
    world_close(w);
}
END_TEST

/* Proves p8-data.1.3 */
START_TEST(exactly_the_given_columns_are_set)
{
    struct world world, *w = &world;
    json_object *row;

    world_open(w, _i);
    json_object_put(put_one(w, &ada, "moments",
                            "{\"name\":\"n\",\"topic_tags\":[\"t\"],\"summary\":\"s\",\"tags\":[\"x\"],"
                            "\"metadata\":{\"a\":1},\"rating\":2}",
                            T0));
    row = put_one(w, &ada, "moments", "{\"name\":\"n\",\"summary\":\"new\",\"rating\":null}", T0 + 5);
    ck_assert_str_eq(member(row, "summary"), "\"new\"");
    ck_assert_str_eq(member(row, "rating"), "null");
    ck_assert_str_eq(member(row, "topic_tags"), "[\"t\"]");
    ck_assert_str_eq(member(row, "tags"), "[\"x\"]");
    ck_assert_str_eq(member(row, "metadata"), "{\"a\":1}");
    ck_assert_str_eq(member(row, "created_at"), "\"2023-11-14T22:13:20.000000+00:00\"");
    ck_assert_str_eq(member(row, "updated_at"), "\"2023-11-14T22:13:20.000005+00:00\"");
    json_object_put(row);
    row = put_one(w, &ada, "moments", "{\"name\":\"n\",\"tags\":[],\"metadata\":{},\"topic_tags\":[]}", T0 + 6);
    ck_assert_str_eq(member(row, "tags"), "[]");
    ck_assert_str_eq(member(row, "metadata"), "{}");
    ck_assert_str_eq(member(row, "topic_tags"), "[]");
    ck_assert_str_eq(member(row, "summary"), "\"new\"");
    json_object_put(row);
    world_close(w);
}
END_TEST

/* Proves p8-data.1.3 */
START_TEST(writing_a_deleted_row_brings_it_back)
{
    struct world world, *w = &world;
    json_object *row = put_one((world_open(w, _i), w), &ada, "ontologies", "{\"name\":\"A b\",\"content\":\"c\"}", T0);
    char id[64];

    snprintf(id, sizeof id, "%s", json_object_get_string(json_object_object_get(row, "id")));
    json_object_put(row);
    LOOKS_UP(&ada, "a-b", "ontologies:a-b/ada");
    OK(rv_store_delete_entity(w->s, &ada, "ontologies", id, T0 + 1, &w->err));
    LOOKS_UP(&ada, "a-b", "");
    FAILS(RV_E_NOT_FOUND, rv_store_get_entity(w->s, &ada, "ontologies", id, &row, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_delete_entity(w->s, &ada, "ontologies", id, T0 + 1, &w->err));
    FINDS_NAMES(&ada, "ontologies", NULL, "");
    row = put_one(w, &ada, "ontologies", "{\"name\":\"A b\"}", T0 + 2);
    ck_assert_str_eq(member(row, "content"), "\"c\"");
    ck_assert_str_eq(member(row, "created_at"), "\"2023-11-14T22:13:20.000000+00:00\"");
    json_object_put(row);
    LOOKS_UP(&ada, "A_B", "ontologies:a-b/ada");
    world_close(w);
}
END_TEST

Suite *entities_suite(void)
{
    Suite *suite = suite_create("entities");
    TCase *tc = tcase_create("rows");

    ADD(tc, an_id_follows_from_the_key_of_the_kind);
    ADD(tc, a_row_has_all_columns_in_their_order);
    ADD(tc, exactly_the_given_columns_are_set);
    ADD(tc, writing_a_deleted_row_brings_it_back);
    suite_add_tcase(suite, tc);
    return suite;
}
