/* Entities as they are found: by filters and by names; and what is left of them, deletions and versions. */
#include "tests/contract/store/entities.h"

/* --- Finding --- */

/* Proves p8-data.1.4 */
START_TEST(rows_are_found_by_columns_tags_and_times)
{
    struct world world, *w = &world;
    const char *const ab[] = {"a", "b"};
    struct rv_entity_where note = {"moment_type", json_object_new_string("note")}, none = {"category", NULL},
                           rating = {"rating", json_object_new_int(2)},
                           topic = {"topic_tags", json_object_new_string("t\"1")};

    world_open(w, _i);
    json_object_put(put_one(w, &ada, "moments", "{\"name\":\"m1\",\"moment_type\":\"note\",\"tags\":[\"a\"]}", T0 + 1));
    json_object_put(put_one(w, &ada, "moments",
                            "{\"name\":\"m2\",\"moment_type\":\"dream\",\"tags\":[\"a\",\"b\"],\"rating\":2,"
                            "\"summary\":\"\\\"moment_type\\\":\\\"note\\\"\"}",
                            T0 + 2));
    json_object_put(put_one(w, &ada, "moments",
                            "{\"name\":\"m3\",\"moment_type\":\"note\",\"category\":\"c\",\"topic_tags\":[\"t\\\"1\"],"
                            "\"tags\":[\"b\",\"x\",\"a\"],\"source_session_id\":\"s1\"}",
                            T0 + 3));
    FINDS_NAMES(&ada, "moments", NULL, "m3 m2 m1");
    FINDS_NAMES(&ada, "moments", &((struct rv_entity_filter){.where = &note, .n_where = 1}), "m3 m1");
    FINDS_NAMES(&ada, "moments", &((struct rv_entity_filter){.where = &none, .n_where = 1}), "m2 m1");
    FINDS_NAMES(&ada, "moments", &((struct rv_entity_filter){.where = &rating, .n_where = 1}), "m2");
    FINDS_NAMES(&ada, "moments", &((struct rv_entity_filter){.lists = &topic, .n_lists = 1}), "m3");
    FINDS_NAMES(&ada, "moments", &((struct rv_entity_filter){.tags = ab, .n_tags = 2}), "m3 m2");
    FINDS_NAMES(&ada, "moments", &((struct rv_entity_filter){.about = "s1"}), "m3");
    FINDS_NAMES(&ada, "moments", &((struct rv_entity_filter){.name = "m2"}), "m2");
    FINDS_NAMES(&ada, "moments", &((struct rv_entity_filter){.since_us = T0 + 2}), "m3 m2");
    FINDS_NAMES(&ada, "moments", &((struct rv_entity_filter){.until_us = T0 + 2}), "m2 m1");
    FINDS_NAMES(&ada, "moments", &((struct rv_entity_filter){.offset = 1, .limit = 1}), "m2");
    FINDS_NAMES(&ada, "moments", &((struct rv_entity_filter){.offset = 9}), "");
    FINDS_NAMES(&bob, "moments", NULL, "");
    struct rv_entity_where wrong = {"colour", NULL};
    FAILS(RV_E_INVALID,
          rv_store_find_entities(
              w->s, &ada,
              &(const struct rv_entities_of){"moments", &(struct rv_entity_filter){.where = &wrong, .n_where = 1}},
              NULL, NULL, &w->err));
    json_object_put(note.value);
    json_object_put(rating.value);
    json_object_put(topic.value);
    world_close(w);
}
END_TEST

/* --- Names --- */

/* Proves p8-data.3: A name means a user's own rows before shared ones, in the order of kinds, newest first, one for
 * each kind and owner */
START_TEST(a_name_means_rows_in_order)
{
    struct world world, *w = &world;
    const struct rv_schema_row schema = {.name = "My Notes",
                                         .kind = "agent",
                                         .source = "person",
                                         .content = RV_STR_LIT("c"),
                                         .document = RV_STR_LIT("d")};
    json_object *row;

    world_open(w, _i);
    json_object_put(put_one(w, &unowned, "moments", "{\"name\":\"my notes\"}", T0));
    json_object_put(put_one(w, &ada, "resources", "{\"name\":\"My_Notes!\"}", T0));
    json_object_put(put_one(w, &ada, "moments", "{\"name\":\"MY-NOTES\"}", T0 + 1));
    json_object_put(put_one(w, &ada, "moments", "{\"name\":\"my  notes\"}", T0 + 2));
    json_object_put(put_one(w, &bob, "ontologies", "{\"name\":\"my-notes\"}", T0));
    OK(rv_store_put_schema(w->s, &schema, RV_SCHEMA_PUT, T0, NULL, &w->err));
    LOOKS_UP(&ada, "My Notes", "resources:my-notes/ada moments:my-notes/ada schemas:my-notes/ moments:my-notes/");
    LOOKS_UP(&bob, "my_notes", "ontologies:my-notes/bob schemas:my-notes/ moments:my-notes/");
    LOOKS_UP(&unowned, "my_notes", "schemas:my-notes/ moments:my-notes/");
    OK(rv_store_delete_schema(w->s, &operator_scope, "agent", "My Notes", T0, &w->err));
    LOOKS_UP(&unowned, "my_notes", "moments:my-notes/");
    row = put_one(w, &ada, "resources", "{\"uri\":\"file:x\",\"name\":\"!?\"}", T0);
    const char *id = json_object_get_string(json_object_object_get(row, "id"));
    char key[100], want[200];
    snprintf(want, sizeof want, "resources:%s/ada", id);
    LOOKS_UP(&ada, id, want);
    for (size_t i = 0; i <= strlen(id); i++)
        key[i] = (char)(id[i] >= 'a' && id[i] <= 'z' ? id[i] - 32 : id[i]);
    LOOKS_UP(&ada, key, want);
    LOOKS_UP(&bob, id, "");
    LOOKS_UP(&ada, "!?", "");
    json_object_put(row);
    world_close(w);
}
END_TEST

START_TEST(sessions_and_their_messages_have_names)
{
    struct world world, *w = &world;
    const struct rv_session_change renamed = {.name = "Trip to Rome", .now_us = T0 + 5};

    world_open(w, _i);
    make_session(w, "s1", "ada");
    make_session(w, "s2", "");
    OK(add_rows(w, "s1", "m", "user:hello assistant:hi"));
    LOOKS_UP(&ada, "chat s1", "sessions:chat-s1/ada");
    LOOKS_UP(&bob, "chat s1", "");
    LOOKS_UP(&bob, "s2", "sessions:chat-s2/");
    OK(rv_store_change_session(w->s, &ada, "s1", &renamed, &w->err));
    LOOKS_UP(&ada, "trip-to-rome", "sessions:trip-to-rome/ada");
    LOOKS_UP(&ada, "chat-s1", "");
    LOOKS_UP(&ada, "session-s1-msg-2", "messages:session-s1-msg-2/ada");
    LOOKS_UP(&ada, "session-s1-msg-3", "");
    LOOKS_UP(&bob, "session-s1-msg-2", "");
    LOOKS_UP(NULL, "session-s1-msg-2", "messages:session-s1-msg-2/ada");
    OK(rv_store_delete_message(w->s, &ada, "s1", 2, T0 + 6, &w->err));
    LOOKS_UP(&ada, "session-s1-msg-2", "");
    OK(rv_store_delete_session(w->s, &ada, "s1", T0 + 7, &w->err));
    LOOKS_UP(&ada, "trip-to-rome", "");
    LOOKS_UP(&ada, "session-s1-msg-1", "");
    world_close(w);
}
END_TEST

/* What each call keeps is what a rebuild makes. */
START_TEST(a_rebuilt_index_is_the_same)
{
    struct world world, *w = &world;
    int64_t n = 0;

    world_open(w, _i);
    make_session(w, "s1", "ada");
    json_object_put(put_one(w, &ada, "moments", "{\"name\":\"a\",\"summary\":\"s\"}", T0 + 1));
    json_object_put(put_one(w, &ada, "ontologies", "{\"name\":\"A\"}", T0 + 2));
    json_object_put(put_one(w, &unowned, "feedback", "{\"rating\":1}", T0 + 2));
    OK(rv_store_rebuild_keys(w->s, &n, &w->err));
    ck_assert_int_eq(n, 3);
    LOOKS_UP(&ada, "a", "ontologies:a/ada moments:a/ada");
    LOOKS_UP(&ada, "chat-s1", "sessions:chat-s1/ada");
    world_close(w);
}
END_TEST

/* --- Deletion, versions --- */

START_TEST(a_sweep_erases_what_was_deleted_thirty_days_ago)
{
    const int64_t day = INT64_C(24) * 3600 * 1000000;
    struct world world, *w = &world;
    json_object *row;

    world_open(w, _i);
    json_object_put(put_one(w, &ada, "moments", "{\"name\":\"a\",\"summary\":\"old\"}", T0));
    OK(rv_store_delete_entities_named(w->s, &ada, &(struct rv_entity_target){"moments", "a", T0}, NULL, &w->err));
    OK(rv_store_sweep(w->s, T0 + 30 * day - 1, 0, NULL, &w->err));
    row = put_one(w, &ada, "moments", "{\"name\":\"a\"}", T0 + day);
    ck_assert_str_eq(member(row, "summary"), "\"old\"");
    json_object_put(row);
    OK(rv_store_delete_entities_named(w->s, &ada, &(struct rv_entity_target){"moments", "a", T0 + day}, NULL, &w->err));
    OK(rv_store_sweep(w->s, T0 + 31 * day, 0, NULL, &w->err));
    row = put_one(w, &ada, "moments", "{\"name\":\"a\"}", T0 + 32 * day);
    ck_assert_str_eq(member(row, "summary"), "null");
    json_object_put(row);
    world_close(w);
}
END_TEST

static int see_version(void *self, const struct rv_schema_version *v, rv_err **err)
{
    struct seen *seen = self;

    (void)err;
    rv_buf_printf(&seen->text, "%s%s/%s:%.*s", seen->n++ ? " " : "", v->operation, v->user, RV_STR_ARG(v->content));
    return 0;
}

static void put_schema(struct world *w, const char *user, const char *content, const char *document)
{
    const struct rv_schema_row row = {.user = user,
                                      .name = "n",
                                      .kind = "agent",
                                      .source = "person",
                                      .content = rv_str_of(content),
                                      .document = rv_str_of(document)};

    OK(rv_store_put_schema(w->s, &row, RV_SCHEMA_PUT, T0, NULL, &w->err));
}

/* Proves p8-data.2/timemachine: Each version of a schema is kept once, by what it says */
START_TEST(versions_of_a_schema_are_kept)
{
    struct world world, *w = &world;
    struct seen seen = SEEN_INIT;

    world_open(w, _i);
    put_schema(w, "ada", "one", "d1");
    put_schema(w, "ada", "one", "d2"); /* another document that says the same */
    put_schema(w, "ada", "two", "d3");
    put_schema(w, "", "shared", "d");
    OK(rv_store_delete_schema(w->s, &ada, "agent", "n", T0, &w->err));
    put_schema(w, "ada", "two", "d3");
    OK(rv_store_list_schema_versions(w->s, &ada, &(const struct rv_schema_key){.kind = "agent", .name = "n"},
                                     see_version, &seen, &w->err));
    SEEN(&seen, "insert/ada:one update/ada:two delete/ada:two insert/ada:two insert/:shared");
    OK(rv_store_list_schema_versions(w->s, &bob, &(const struct rv_schema_key){.kind = "agent", .name = "n"},
                                     see_version, &seen, &w->err));
    SEEN(&seen, "insert/:shared");
    OK(rv_store_list_schema_versions(w->s, &elsewhere, &(const struct rv_schema_key){.kind = "agent", .name = "n"},
                                     see_version, &seen, &w->err));
    SEEN(&seen, "");
    world_close(w);
}
END_TEST

Suite *entities_names_suite(void)
{
    Suite *suite = suite_create("entities names");
    TCase *tc = tcase_create("finding");

    ADD(tc, rows_are_found_by_columns_tags_and_times);
    ADD(tc, a_name_means_rows_in_order);
    ADD(tc, sessions_and_their_messages_have_names);
    ADD(tc, a_rebuilt_index_is_the_same);
    ADD(tc, a_sweep_erases_what_was_deleted_thirty_days_ago);
    ADD(tc, versions_of_a_schema_are_kept);
    suite_add_tcase(suite, tc);
    return suite;
}
