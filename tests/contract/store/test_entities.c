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

/* Proves p8-data.1.3: A write sets exactly the columns that are given, keeps created_at, and brings a deleted row back
 */
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
    OK(rv_store_delete_entity(w->s, &ada, &(struct rv_entity_target){"ontologies", id, T0 + 1}, &w->err));
    LOOKS_UP(&ada, "a-b", "");
    FAILS(RV_E_NOT_FOUND, rv_store_get_entity(w->s, &ada, "ontologies", id, &row, &w->err));
    FAILS(RV_E_NOT_FOUND,
          rv_store_delete_entity(w->s, &ada, &(struct rv_entity_target){"ontologies", id, T0 + 1}, &w->err));
    FINDS_NAMES(&ada, "ontologies", NULL, "");
    row = put_one(w, &ada, "ontologies", "{\"name\":\"A b\"}", T0 + 2);
    ck_assert_str_eq(member(row, "content"), "\"c\"");
    ck_assert_str_eq(member(row, "created_at"), "\"2023-11-14T22:13:20.000000+00:00\"");
    json_object_put(row);
    LOOKS_UP(&ada, "A_B", "ontologies:a-b/ada");
    world_close(w);
}
END_TEST

/* --- Who sees and changes what --- */

static void see_nothing(struct world *w, const struct rv_store_scope *scope, const char *id)
{
    static const char *const gone[] = {"a"};
    json_object *row = NULL, *edges = tree("[{\"target\":\"x\"}]");
    int64_t n = 0;

    FAILS(RV_E_NOT_FOUND, rv_store_get_entity(w->s, scope, "moments", id, &row, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_load_entity(w->s, scope, "moments", 1, &row, &w->err));
    FAILS(RV_E_NOT_FOUND,
          rv_store_delete_entity(w->s, scope, &(struct rv_entity_target){"moments", id, T0 + 9}, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_delete_entities_named(
                              w->s, scope, &(struct rv_entity_target){"moments", "secret", T0 + 9}, &n, &w->err));
    FAILS(RV_E_NOT_FOUND,
          rv_store_merge_metadata(w->s, scope, &(struct rv_entity_target){"moments", id, T0 + 9},
                                  &(struct rv_metadata_change){.remove = gone, .n_remove = 1}, NULL, &w->err));
    FAILS(RV_E_NOT_FOUND,
          rv_store_merge_edges(w->s, scope, &(struct rv_entity_target){"moments", id, T0 + 9}, edges, NULL, &w->err));
    FINDS_NAMES(scope, "moments", NULL, "");
    LOOKS_UP(scope, "secret", "");
    LOOKS_UP(scope, id, "");
    json_object_put(edges);
}

/* Proves p8-data.1.5: A scope sees rows of its tenant, those of its user and those without one, and changes its own */
START_TEST(rows_of_others_are_not_seen_changed_or_counted)
{
    struct world world, *w = &world;
    json_object *row = NULL;
    char id[64];

    world_open(w, _i);
    row = put_one(w, &ada, "moments", "{\"name\":\"secret\",\"metadata\":{\"a\":1}}", T0);
    snprintf(id, sizeof id, "%s", json_object_get_string(json_object_object_get(row, "id")));
    see_nothing(w, &bob, id);
    see_nothing(w, &unowned, id);
    see_nothing(w, &elsewhere, id);
    see_nothing(w, &(struct rv_store_scope){"other", NULL}, id);
    FINDS_NAMES(&ada, "moments", NULL, "secret");
    FINDS_NAMES(NULL, "moments", NULL, "secret");
    LOOKS_UP(NULL, "secret", "moments:secret/ada");
    json_object_put(row);
    OK(rv_store_get_entity(w->s, &ada, "moments", id, &row, &w->err));
    ck_assert_str_eq(member(row, "metadata"), "{\"a\":1}");
    ck_assert_str_eq(member(row, "graph_edges"), "[]");
    json_object_put(row);
    world_close(w);
}
END_TEST

/* Neither a refusal nor a number tells a user that another one has a row of that id. */
START_TEST(an_id_of_another_user_or_tenant_is_a_row_of_ones_own)
{
    static const char given[] =
        "{\"id\":\"9EB51F0B-3026-58aa-8afa-835fd3f3febc\",\"name\":\"mine\",\"summary\":\"bob\"}";
    struct world world, *w = &world;
    json_object *row = NULL;

    world_open(w, _i);
    json_object_put(put_one(w, &ada, "moments", "{\"name\":\"Lunch\",\"summary\":\"ada\"}", T0));
    row = put_one(w, &bob, "moments", given, T0 + 1);
    ck_assert_str_eq(member(row, "id"), "\"9eb51f0b-3026-58aa-8afa-835fd3f3febc\"");
    ck_assert_str_eq(member(row, "user_id"), "\"bob\"");
    ck_assert_str_eq(member(row, "created_at"), "\"2023-11-14T22:13:20.000001+00:00\"");
    json_object_put(row);
    json_object_put(put_one(w, &elsewhere, "moments", "{\"name\":\"Lunch\",\"summary\":\"elsewhere\"}", T0 + 2));
    OK(rv_store_get_entity(w->s, &ada, "moments", "9eb51f0b-3026-58aa-8afa-835fd3f3febc", &row, &w->err));
    ck_assert_str_eq(member(row, "summary"), "\"ada\"");
    json_object_put(row);
    OK(rv_store_get_entity(w->s, &elsewhere, "moments", "9eb51f0b-3026-58aa-8afa-835fd3f3febc", &row, &w->err));
    ck_assert_str_eq(member(row, "tenant_id"), "\"other\"");
    json_object_put(row);
    SAYS(RV_E_INVALID, "several users",
         rv_store_get_entity(w->s, &operator_scope, "moments", "9eb51f0b-3026-58aa-8afa-835fd3f3febc", &row, &w->err));
    FAILS(RV_E_INVALID, try_put(w, NULL, "moments", given, T0 + 3));
    SAYS(RV_E_EXISTS, "another user",
         try_put(w, NULL, "moments", "{\"id\":\"9eb51f0b-3026-58aa-8afa-835fd3f3febc\",\"user_id\":\"cy\"}", T0));
    world_close(w);
}
END_TEST

START_TEST(a_user_reads_shared_rows_and_does_not_change_them)
{
    struct world world, *w = &world;
    json_object *row = NULL, *edges = tree("[{\"target\":\"x\"}]");
    char id[64];

    world_open(w, _i);
    row = put_one(w, &unowned, "ontologies", "{\"name\":\"page\"}", T0);
    snprintf(id, sizeof id, "%s", json_object_get_string(json_object_object_get(row, "id")));
    json_object_put(row);
    OK(rv_store_get_entity(w->s, &ada, "ontologies", id, &row, &w->err));
    json_object_put(row);
    FINDS_NAMES(&ada, "ontologies", NULL, "page");
    LOOKS_UP(&ada, "page", "ontologies:page/");
    rv_buf text = RV_BUF_INIT(1000);
    rv_buf_printf(&text, "{\"id\":\"%s\",\"content\":\"x\"}", id);
    SAYS(RV_E_DENIED, "no owner", try_put(w, &ada, "ontologies", rv_buf_cstr(&text), T0 + 1));
    rv_buf_fini(&text);
    FAILS(RV_E_DENIED,
          rv_store_delete_entity(w->s, &ada, &(struct rv_entity_target){"ontologies", id, T0 + 1}, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_delete_entities_named(
                              w->s, &ada, &(struct rv_entity_target){"ontologies", "page", T0 + 1}, NULL, &w->err));
    FAILS(RV_E_DENIED,
          rv_store_merge_edges(w->s, &ada, &(struct rv_entity_target){"ontologies", id, T0 + 1}, edges, NULL, &w->err));
    FAILS(RV_E_DENIED, rv_store_merge_metadata(w->s, &ada, &(struct rv_entity_target){"ontologies", id, T0 + 1},
                                               &(struct rv_metadata_change){0}, NULL, &w->err));
    SAYS(RV_E_DENIED, "not that of the caller",
         try_put(w, &ada, "ontologies", "{\"name\":\"q\",\"user_id\":\"bob\"}", T0));
    OK(try_put(w, NULL, "ontologies", "{\"name\":\"q\",\"user_id\":\"bob\"}", T0 + 1));
    OK(rv_store_merge_edges(w->s, &operator_scope, &(struct rv_entity_target){"ontologies", id, T0 + 1}, edges, NULL,
                            &w->err));
    FINDS_NAMES(&bob, "ontologies", NULL, "q page");
    FINDS_NAMES(&ada, "ontologies", NULL, "page");
    json_object_put(edges);
    world_close(w);
}
END_TEST

START_TEST(rows_without_a_tenant_are_every_tenants_where_the_kind_is_shared)
{
    struct world world, *w = &world;
    json_object *rows[] = {tree("{\"name\":\"manual\"}")};
    struct rv_entities_put put = {.kind = "ontologies", .rows = rows, .n_rows = 1, .now_us = T0, .is_tenantless = true};

    world_open(w, _i);
    OK(rv_store_put_entities(w->s, &operator_scope, &put, NULL, &w->err));
    put.kind = "resources";
    OK(rv_store_put_entities(w->s, &operator_scope, &put, NULL, &w->err));
    FAILS(RV_E_DENIED, rv_store_put_entities(w->s, &ada, &put, NULL, &w->err));
    LOOKS_UP(&elsewhere, "manual", "ontologies:manual/");
    LOOKS_UP(&ada, "manual", "ontologies:manual/");
    FINDS_NAMES(&ada, "ontologies", NULL, "");
    json_object_put(rows[0]);
    world_close(w);
}
END_TEST

/* --- What is refused --- */

/* Proves p8-data.1.3/types: A value of another type than its column's is refused, JSON within a text above all */
START_TEST(values_have_the_type_of_their_column)
{
    static const struct {
        const char *kind, *row, *part;
        int code;
    } cases[] = {
        {"moments", "{\"metadata\":\"{}\"}", "a text that contains JSON", RV_E_INVALID},
        {"moments", "{\"graph_edges\":\"[]\"}", "a text that contains JSON", RV_E_INVALID},
        {"moments", "{\"topic_tags\":\"a\"}", "topic_tags must be a list of texts", RV_E_INVALID},
        {"moments", "{\"topic_tags\":[1]}", "item 1 of topic_tags", RV_E_INVALID},
        {"moments", "{\"present_persons\":[\"x\"]}", "item 1 of present_persons", RV_E_INVALID},
        {"moments", "{\"rating\":6}", "not from 1 to 5", RV_E_INVALID},
        {"moments", "{\"rating\":1.5}", "rating must be an integer", RV_E_INVALID},
        {"moments", "{\"starts_timestamp\":\"tomorrow\"}", "is not a time", RV_E_INVALID},
        {"moments", "{\"starts_timestamp\":5}", "starts_timestamp must be a time", RV_E_INVALID},
        {"moments", "{\"sumary\":\"x\"}", "no column \"sumary\"", RV_E_INVALID},
        {"moments", "{\"id\":\"x\"}", "is not a UUID", RV_E_INVALID},
        {"moments", "{\"name\":\"a\\u0000b\"}", "has a NUL", RV_E_INVALID},
        {"moments", "{\"tags\":[\"a\\u0000b\"]}", "has a NUL", RV_E_INVALID},
        {"moments", "{\"graph_edges\":[{}]}", "no target", RV_E_INVALID},
        {"moments", "{\"graph_edges\":[{\"target\":\"a\",\"weight\":\"1\"}]}", "weight of edge 1", RV_E_INVALID},
        {"moments", "{\"encryption_level\":\"rot13\"}", "is none of", RV_E_INVALID},
        {"moments", "{\"user_id\":7}", "user_id must be a text", RV_E_INVALID},
        {"moments", "[]", "must be an object", RV_E_INVALID},
        {"moments", "null", "must be an object", RV_E_INVALID},
        {"servers", "{\"protocol\":\"ftp\"}", "is none of: mcp openapi", RV_E_INVALID},
        {"servers", "{\"enabled\":\"yes\"}", "enabled must be a boolean", RV_E_INVALID},
        {"files", "{\"size_bytes\":-1}", "less than 0", RV_E_INVALID},
        {"sessions", "{\"name\":\"x\"}", "not written as entities", RV_E_INVALID},
        {"moment", "{}", "unknown kind", RV_E_INVALID},
    };
    struct world world, *w = &world;

    world_open(w, _i);
    for (size_t i = 0; i < RV_COUNT(cases); i++)
        SAYS(cases[i].code, cases[i].part, try_put(w, &ada, cases[i].kind, cases[i].row, T0));
    FINDS_NAMES(NULL, "moments", NULL, "");
    world_close(w);
}
END_TEST

START_TEST(one_row_that_is_refused_refuses_all)
{
    struct world world, *w = &world;
    json_object *rows[] = {tree("{\"name\":\"a\"}"), tree("{\"name\":\"b\"}"), tree("{\"user_id\":\"bob\"}")};
    struct rv_entities_put put = {.kind = "moments", .rows = rows, .n_rows = 3, .now_us = T0};

    world_open(w, _i);
    SAYS(RV_E_DENIED, "row 3 of 3", rv_store_put_entities(w->s, &ada, &put, NULL, &w->err));
    FINDS_NAMES(NULL, "moments", NULL, "");
    put.n_rows = 2;
    OK(rv_store_put_entities(w->s, &ada, &put, NULL, &w->err));
    for (size_t i = 0; i < RV_COUNT(rows); i++)
        json_object_put(rows[i]);
    world_close(w);
}
END_TEST

START_TEST(sizes_have_limits)
{
    struct world world, *w = &world;
    json_object *row = json_object_new_object(), *tags = json_object_new_array(), *edges = json_object_new_array();
    const struct rv_entities_put put = {.kind = "moments", .rows = &row, .n_rows = 1, .now_us = T0};
    char *name = malloc(RV_ENTITY_MAX_NAME + 2);

    world_open(w, _i);
    memset(name, 'n', RV_ENTITY_MAX_NAME + 1);
    name[RV_ENTITY_MAX_NAME + 1] = 0;
    OK(rv_json_set_text(row, "name", name, &w->err));
    FAILS(RV_E_LIMIT, rv_store_put_entities(w->s, &ada, &put, NULL, &w->err));
    name[RV_ENTITY_MAX_NAME] = 0;
    OK(rv_json_set_text(row, "name", name, &w->err));
    for (int i = 0; i < RV_ENTITY_MAX_TAGS; i++)
        OK(rv_json_push_take(tags, json_object_new_string("t"), &w->err));
    OK(rv_json_set_ref(row, "tags", tags, &w->err));
    OK(rv_store_put_entities(w->s, &ada, &put, NULL, &w->err));
    LOOKS_UP(&bob, name, "");
    OK(rv_json_push_take(tags, json_object_new_string("t"), &w->err));
    FAILS(RV_E_LIMIT, rv_store_put_entities(w->s, &ada, &put, NULL, &w->err));
    for (int i = 0; i <= RV_ENTITY_MAX_EDGES; i++) {
        json_object *edge = json_object_new_object();
        snprintf(name, RV_ENTITY_MAX_NAME, "target %d", i);
        OK(rv_json_set_text(edge, "target", name, &w->err));
        OK(rv_json_push_take(edges, edge, &w->err));
    }
    json_object_object_del(row, "tags");
    OK(rv_json_set_text(row, "name", "many", &w->err));
    OK(rv_json_set_ref(row, "graph_edges", edges, &w->err));
    FAILS(RV_E_LIMIT, rv_store_put_entities(w->s, &ada, &put, NULL, &w->err));
    json_object_array_del_idx(edges, 0, 1);
    OK(rv_store_put_entities(w->s, &ada, &put, NULL, &w->err));
    json_object_put(row);
    json_object_put(tags);
    json_object_put(edges);
    free(name);
    world_close(w);
}
END_TEST

/* --- Changes of a part --- */

/* Proves p8-data.1.4: One statement merges the members of a patch into metadata, whole, and takes the named ones out */
START_TEST(metadata_is_merged_member_by_member)
{
    static const char *const gone[] = {"b", "nowhere"};
    struct world world, *w = &world;
    json_object *row = NULL, *patch = tree("{\"a\":{\"y\":2},\"c\":null}"), *got = NULL;

    world_open(w, _i);
    row = put_one(w, &ada, "users", "{\"email\":\"a@b\",\"metadata\":{\"a\":{\"x\":1},\"b\":2}}", T0);
    const char *id = json_object_get_string(json_object_object_get(row, "id"));
    OK(rv_store_merge_metadata(w->s, &ada, &(struct rv_entity_target){"users", id, T0 + 1},
                               &(struct rv_metadata_change){.members = patch, .remove = gone, .n_remove = 2}, &got,
                               &w->err));
    ck_assert_str_eq(json_object_to_json_string_ext(got, JSON_C_TO_STRING_PLAIN), "{\"a\":{\"y\":2},\"c\":null}");
    json_object_put(got);
    OK(rv_store_get_entity(w->s, &ada, "users", id, &got, &w->err));
    ck_assert_str_eq(member(got, "metadata"), "{\"a\":{\"y\":2},\"c\":null}");
    ck_assert_str_eq(member(got, "updated_at"), "\"2023-11-14T22:13:20.000001+00:00\"");
    json_object_put(got);
    json_object *half = world_half(w, "x"), *other = world_half(w, "y");
    OK(rv_store_merge_metadata(w->s, &ada, &(struct rv_entity_target){"users", id, T0 + 1},
                               &(struct rv_metadata_change){.members = half}, NULL, &w->err));
    FAILS(RV_E_LIMIT, rv_store_merge_metadata(w->s, &ada, &(struct rv_entity_target){"users", id, T0 + 1},
                                              &(struct rv_metadata_change){.members = other}, NULL, &w->err));
    json_object_put(half);
    json_object_put(other);
    json_object_put(row);
    json_object_put(patch);
    world_close(w);
}
END_TEST

/* Proves p8-data.16: Edges are unique by target and relation; the strictly heavier one wins, at the place of the first
 */
START_TEST(edges_are_merged_into_the_row)
{
    struct world world, *w = &world;
    json_object *row = NULL, *edges = NULL, *got = NULL;
    int64_t n = 0;

    world_open(w, _i);
    row = put_one(w, &ada, "ontologies",
                  "{\"name\":\"Dentist\",\"graph_edges\":[{\"target\":\"A b\",\"weight\":0.5,\"why\":\"old\"},"
                  "{\"target\":\"c\",\"relation\":\"links_to\"}]}",
                  T0);
    const char *id = json_object_get_string(json_object_object_get(row, "id"));
    edges = tree("[{\"target\":\"a-b\",\"weight\":0.7,\"why\":\"new\"},{\"target\":\"c\",\"relation\":\"links_to\","
                 "\"weight\":1.0,\"x\":1},{\"target\":\"d\"}]");
    OK(rv_store_merge_edges(w->s, &ada, &(struct rv_entity_target){"ontologies", id, T0 + 1}, edges, &n, &w->err));
    ck_assert_int_eq(n, 3);
    OK(rv_store_get_entity(w->s, &ada, "ontologies", id, &got, &w->err));
    ck_assert_str_eq(
        member(got, "graph_edges"),
        "[{\"target\":\"a-b\",\"weight\":0.7,\"why\":\"new\"},{\"target\":\"c\",\"relation\":\"links_to\"},"
        "{\"target\":\"d\"}]");
    json_object_put(got);
    OK(rv_store_merge_edges(w->s, &ada, &(struct rv_entity_target){"ontologies", id, T0 + 2}, edges, &n, &w->err));
    ck_assert_int_eq(n, 3);
    json_object_put(edges);
    json_object_put(row);
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
    ADD(tc, rows_of_others_are_not_seen_changed_or_counted);
    ADD(tc, an_id_of_another_user_or_tenant_is_a_row_of_ones_own);
    ADD(tc, a_user_reads_shared_rows_and_does_not_change_them);
    ADD(tc, rows_without_a_tenant_are_every_tenants_where_the_kind_is_shared);
    ADD(tc, values_have_the_type_of_their_column);
    ADD(tc, one_row_that_is_refused_refuses_all);
    ADD(tc, sizes_have_limits);
    ADD(tc, metadata_is_merged_member_by_member);
    ADD(tc, edges_are_merged_into_the_row);
    suite_add_tcase(suite, tc);
    return suite;
}
