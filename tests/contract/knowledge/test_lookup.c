/* LOOKUP: whole rows in the order of their keys, of what the scope sees. */
#include "tests/contract/knowledge/people.h"

/* "type/name" */
static void put_name(json_object *row, rv_buf *out)
{
    json_object *data = rv_json_get_obj(row, "data");
    const char *type = "", *name = "";

    if (!rv_json_get_text(data, "name", &name))
        RV_IGNORE(rv_json_get_text(data, "content", &name), "it has no words");
    ck_assert(rv_json_get_text(row, "entity_type", &type));
    rv_buf_printf(out, "%s/%s", type, name);
}
#define FINDS(scope, query, want) tells(w, (scope), (query), put_name, (want), __LINE__)

/* Proves p8-data.9/lookup: LOOKUP gives whole rows in the order of the keys; a key without a row adds nothing */
START_TEST(keys_give_whole_rows_in_their_order)
{
    struct world world, *w = &world;

    world_open(w, _i);
    fill_seen(w);
    FINDS(&ada, "LOOKUP lunch", "moments/Lunch");
    FINDS(&ada, "lookup Report, LUNCH, nothing, atlas", "resources/Report moments/Lunch ontologies/Atlas");
    FINDS(&ada, "LOOKUP session-talk-msg-2", "messages/Hamburg, create a *star* [x] 100%");
    FINDS(&ada, "REM LOOKUP session-TALK-msg-1", "messages/Which port?");
    FINDS(&ada, "LOOKUP talk, ports, common", "sessions/Ports sessions/Ports sessions/Common");
    FINDS(&ada, "LOOKUP \"lunch, \"", "moments/Lunch");
    world_close(w);
}
END_TEST

START_TEST(an_own_row_comes_before_a_shared_one)
{
    struct world world, *w = &world;

    world_open(w, _i);
    json_object_put(put_one(w, &unowned, "moments", "{\"name\":\"plan\",\"summary\":\"of all\"}", T0 + 5));
    json_object_put(put_one(w, &ada, "resources", "{\"name\":\"Plan\"}", T0));
    json_object_put(put_one(w, &ada, "ontologies", "{\"name\":\"PLAN\"}", T0));
    FINDS(&ada, "LOOKUP plan", "ontologies/PLAN resources/Plan moments/plan");
    FINDS(&bob, "LOOKUP plan", "moments/plan");
    FINDS(&elsewhere, "LOOKUP plan", "");
    FINDS(&operator_scope, "LOOKUP plan", "ontologies/PLAN resources/Plan moments/plan");
    world_close(w);
}
END_TEST

START_TEST(rows_of_others_are_as_if_they_did_not_exist)
{
    static const char *const keys[] = {
        "secret plan", "hidden file", "hidden talk", "hidden later",       "report",
        "lunch",       "talk",        "atlas",       "session-talk-msg-1", "99999999-0000-4000-8000-000000000001"};
    struct world world, *w = &world;
    char *without[RV_COUNT(keys)];

    world_open(w, _i);
    fill_seen(w);
    for (size_t i = 0; i < RV_COUNT(keys); i++) {
        char query[100];
        snprintf(query, sizeof query, "LOOKUP %s", keys[i]);
        without[i] = ask(w, &ada, query, NULL);
    }
    fill_hidden(w);
    for (size_t i = 0; i < RV_COUNT(keys); i++) {
        char query[100];
        snprintf(query, sizeof query, "LOOKUP %s", keys[i]);
        char *with = ask(w, &ada, query, NULL);
        ck_assert_str_eq(with, without[i]);
        ck_assert_ptr_null(strstr(with, HIDDEN ":"));
        free(with);
        free(without[i]);
    }
    world_close(w);
}
END_TEST

START_TEST(results_end_where_their_bytes_end)
{
    const struct rv_knowledge_opts tight = {.max_bytes = 1500};
    struct world world, *w = &world;

    world_open(w, _i);
    fill_seen(w);
    char *answer = ask(w, &ada, "LOOKUP lunch, quay, report, atlas", &tight);
    ck_assert_uint_lt(strlen(answer), 1600);
    ck_assert_ptr_nonnull(strstr(answer, "\"truncated\":true"));
    ck_assert_ptr_nonnull(strstr(answer, "\"Lunch\""));
    ck_assert_ptr_null(strstr(answer, "\"Atlas\",\"uri\""));
    free(answer);
    world_close(w);
}
END_TEST

Suite *lookup_suite(void)
{
    Suite *s = suite_create("lookup");
    TCase *tc = tcase_create("lookup");

    ADD(tc, keys_give_whole_rows_in_their_order);
    ADD(tc, an_own_row_comes_before_a_shared_one);
    ADD(tc, rows_of_others_are_as_if_they_did_not_exist);
    ADD(tc, results_end_where_their_bytes_end);
    suite_add_tcase(s, tc);
    return s;
}
