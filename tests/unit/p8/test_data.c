/* The tools of p8 that work with data: results, errors, and that nobody finds or changes what is another's. */
#include "tests/unit/p8/data.h"

#include <stdlib.h>
#include <string.h>

#define ADA                                                                                                            \
    "{\"name\": \"Ada\", \"email\": \"ada@x.org\", \"user_id\": \"ada\", \"content\": \"likes maps\", \"tags\": "      \
    "[\"a\"], \"metadata\": {\"relations\": [{\"name\": \"Rex\", \"role\": \"dog\"}, {\"name\": \"Tom\"}], "           \
    "\"interests\": [\"maps\"], \"kept\": 1}}"
#define BOB               "{\"name\": \"Bob\", \"email\": \"bob@x.org\", \"user_id\": \"bob\"}"
#define NOBODY            "{\"name\": \"Everybody\", \"email\": \"all@x.org\"}"
#define ITEM(name, owner) "{\"name\": \"" name "\", \"user_id\": \"" owner "\", \"content\": \"x\"}"

static void lacks(struct data *d, const char *tool, const char *args, const char *part)
{
    const char *reply = data_call(d, tool, args);

    ck_assert_msg(strstr(reply, part) == NULL, "%s %.300s: %s\nhas %s", tool, args, reply, part);
}

/* Proves p8-data.14.11: The profile is that of the user who asks, and nobody else's */
START_TEST(a_profile_is_the_users_own)
{
    struct data d;

    data_begin(&d, _i);
    data_has(&d, "get_user_profile", "{}", "\"error\":\"User not found\",\"code\":\"not_found\"");
    data_put(&d, "users", "[" ADA "," BOB "," NOBODY "]");
    data_has(&d, "get_user_profile", "{}",
             "{\"user_id\":\"ada\",\"name\":\"Ada\",\"email\":\"ada@x.org\",\"content\":\"likes maps\",\"metadata\":{");
    d.user = "bob";
    data_has(&d, "get_user_profile", "{}", "\"name\":\"Bob\"");
    d.user = "eve";
    data_has(&d, "get_user_profile", "{}", "User not found");
    d.user = "";
    data_has(&d, "get_user_profile", "{}", "No authenticated user in context");
    data_end(&d);
}
END_TEST

/* Proves p8-data.14.7: Facts about a user are merged into their own profile */
START_TEST(facts_are_merged_into_the_users_own_profile)
{
    struct data d;

    data_begin(&d, _i);
    data_put(&d, "users", "[" ADA "," BOB "," NOBODY "]");
    data_has(&d, "update_user_metadata", "{\"metadata\": {\"facts\": {\"born\": 1815}}, \"remove_keys\": [\"kept\"]}",
             "{\"status\":\"ok\",\"user_id\":\"ada\",\"metadata\":{");
    lacks(&d, "get_user_profile", "{}", "kept");
    data_has(&d, "update_user_metadata",
             "{\"metadata\": {\"relations\": [{\"name\": \"Rex\", \"role\": \"cat\"}, {\"name\": \"Una\"}], "
             "\"interests\": [\"maps\", \"tea\"]}, \"list_mode\": \"union\"}",
             "\"relations\":[{\"name\":\"Rex\",\"role\":\"cat\"},{\"name\":\"Tom\"},{\"name\":\"Una\"}]");
    data_has(&d, "get_user_profile", "{}", "\"interests\":[\"maps\",\"tea\"]");
    data_has(&d, "update_user_metadata", "{\"metadata\": {\"relations\": []}}", "\"relations\":[]");
    data_has(&d, "update_user_metadata", "{\"metadata\": {\"facts\": []}}",
             "Invalid metadata shape: facts has to be an object");
    data_has(&d, "update_user_metadata", "{\"metadata\": {\"relations\": [\"Rex\"]}}",
             "relations has to be a list of objects");
    data_has(&d, "update_user_metadata", "{\"metadata\": {}, \"list_mode\": \"add\"}", "bad_arguments");
    d.user = "bob";
    lacks(&d, "get_user_profile", "{}", "1815");
    d.user = "eve";
    data_has(&d, "update_user_metadata", "{\"metadata\": {\"facts\": {}}}", "\"error\":\"User not found\"");
    d.user = "";
    data_has(&d, "update_user_metadata", "{\"metadata\": {\"facts\": {}}}", "user_id is required");
    data_end(&d);
}
END_TEST

#define DREAM(target)                                                                                                  \
    "{\"moments\": [{\"name\": \"dream-ml-patterns\", \"summary\": \"It's all one\", \"topic_tags\": [\"ml\", \"x\"]," \
    "\"affinity_fragments\": [{\"target\": \"" target                                                                  \
    "\", \"weight\": 7, \"reason\": \"r\"}, {\"relation\": \"x\"}]}]}"

/* Proves p8-data.14.4: Moments are kept under a title, with edges in both directions to what there is */
START_TEST(moments_are_kept_with_edges_to_what_there_is)
{
    struct data d;

    data_begin(&d, _i);
    data_put(&d, "resources", "[" ITEM("The Dentist", "ada") "," ITEM("Secret", "bob") "]");
    data_has(&d, "save_moments", DREAM("the dentist"),
             "\"moments_count\":1,\"merge_results\":[{\"target\":\"the dentist\",\"status\":\"merged\",\"edge_count\":"
             "1}]}");
    char *rows = data_find(&d, NULL, "ada", "moments");
    ck_assert_msg(strstr(rows, "\"name\":\"Ml Patterns\",\"moment_type\":\"dream\",\"summary\":\"It's all one\""), "%s",
                  rows);
    ck_assert_msg(strstr(rows, "\"graph_edges\":[{\"target\":\"the-dentist\",\"relation\":\"dream_affinity\","
                               "\"weight\":1.0,\"reason\":\"r\"}]"),
                  "%s", rows);
    ck_assert(strstr(rows, "\"metadata\":{\"source\":\"dreaming\"}"));
    free(rows);
    rows = data_find(&d, NULL, "ada", "resources");
    ck_assert_msg(strstr(rows, "{\"target\":\"Ml Patterns\",\"relation\":\"dreamed_from\",\"weight\":1.0"), "%s", rows);
    free(rows);
    data_has(&d, "save_moments", DREAM("Secret"), "{\"target\":\"Secret\",\"status\":\"not_found\"}");
    rows = data_find(&d, NULL, "ada", "moments");
    ck_assert_msg(strstr(rows, "\"graph_edges\":[]"), "%s", rows); /* the same moment, written over */
    free(rows);
    rows = data_find(&d, NULL, "bob", "resources");
    ck_assert_msg(!strstr(rows, "dreamed_from"), "%s", rows);
    free(rows);
    data_has(&d, "save_moments", "{\"moments\": []}",
             "{\"status\":\"success\",\"saved_moment_ids\":[],\"moments_count\":0,\"merge_results\":[]}");
    data_has(&d, "save_moments", "{\"moments\": [], \"user_id\": \"bob\"}", "\"code\":\"denied\"");
    data_has(&d, "save_moments", "{\"moments\": [{\"topic_tags\": [1]}]}", "\"code\":\"bad_arguments\"");
    data_end(&d);
}
END_TEST

/* Proves p8-data.14.5: Moments are listed by filters, newest first, the user's own and those without an owner */
START_TEST(moments_are_listed_by_filters)
{
    struct data d;

    data_begin(&d, _i);
    data_put(&d, "moments",
             "[{\"name\": \"m1\", \"user_id\": \"ada\", \"moment_type\": \"note\", \"topic_tags\": [\"a\", \"b\"]},"
             "{\"name\": \"m2\", \"user_id\": \"bob\", \"moment_type\": \"note\"},"
             "{\"name\": \"m3\", \"moment_type\": \"dream\", \"category\": \"c\", \"topic_tags\": [\"a\"]}]");
    data_has(&d, "get_moments", "{}", "\"count\":2,\"limit\":20,\"offset\":0,\"has_more\":false}");
    lacks(&d, "get_moments", "{}", "m2");
    data_has(&d, "get_moments", "{\"limit\": 1}", "\"count\":1,\"limit\":1,\"offset\":0,\"has_more\":true}");
    data_has(&d, "get_moments", "{\"limit\": 1000, \"offset\": 1}", "\"count\":1,\"limit\":100,\"offset\":1,");
    data_has(&d, "get_moments", "{\"topic_tags\": [\"a\", \"b\"], \"category\": null}", "\"count\":1,");
    data_has(&d, "get_moments", "{\"moment_type\": \"dream\"}", "\"name\":\"m3\"");
    data_has(&d, "get_moments", "{\"category\": \"d\"}", "\"results\":[],\"count\":0");
    data_has(&d, "get_moments", "{\"after_date\": \"2026-01-01\", \"before_date\": \"2026-01-01\"}", "\"count\":2,");
    data_has(&d, "get_moments", "{\"after_date\": \"2026-01-01T00:00:01\"}", "\"count\":0,");
    data_has(&d, "get_moments", "{\"after_date\": \"soon\"}", "\"status\":\"error\"");
    data_has(&d, "get_moments", "{\"after_date\": \"2026-13-01\"}", "\"code\":\"bad_arguments\"");
    data_has(&d, "get_moments", "{\"offset\": -1}", "offset has to be 0 or more");
    d.user = "";
    data_has(&d, "get_moments", "{}", "user_id is required");
    d.user = "ada";
    d.app.scope.tenant = "other";
    data_has(&d, "get_moments", "{}", "\"count\":0,");
    data_end(&d);
}
END_TEST

/* Proves p8-data.14.1: A query begins with a mode, a whole word; its results are those of the user */
START_TEST(a_query_finds_what_is_the_users)
{
    struct data d;

    data_begin(&d, _i);
    data_put(&d, "resources", "[" ITEM("The Dentist", "ada") "," ITEM("Secret", "bob") "]");
    data_has(&d, "search", "{\"query\": \" lookup the dentist, Secret\"}",
             "{\"status\":\"success\",\"query\":\" lookup the dentist, Secret\",\"results\":[{\"entity_type\":");
    data_has(&d, "search", "{\"query\": \"LOOKUP Secret\"}", "\"results\":[],\"count\":0}");
    data_has(&d, "search", "{\"query\": \"LOOKUPS x\"}", "must start with LOOKUP, SEARCH, FUZZY, TRAVERSE, or SQL");
    data_has(&d, "search", "{\"query\": \"what is it?\"}", "\"query\":\"what is it?\"}");
    data_has(&d, "search", "{\"query\": \"LOOKUP\"}", "LOOKUP requires at least one key");
    data_has(&d, "search", "{\"query\": \"LOOKUP the dentist\", \"limit\": 0}", "limit has to be from 1 to 1000");
    data_has(&d, "search", "{\"query\": 7}", "query has to be a string");
    d.user = "bob";
    data_has(&d, "search", "{\"query\": \"LOOKUP the dentist, Secret\"}", "\"count\":1}");
    d.user = "";
    data_has(&d, "search", "{\"query\": \"LOOKUP the dentist, Secret\"}", "\"count\":0}");
    data_end(&d);
}
END_TEST

TCase *data_case(void)
{
    TCase *tc = tcase_create("data");

    tcase_add_loop_test(tc, a_profile_is_the_users_own, 0, 2);
    tcase_add_loop_test(tc, facts_are_merged_into_the_users_own_profile, 0, 2);
    tcase_add_loop_test(tc, moments_are_kept_with_edges_to_what_there_is, 0, 2);
    tcase_add_loop_test(tc, moments_are_listed_by_filters, 0, 2);
    tcase_add_loop_test(tc, a_query_finds_what_is_the_users, 0, 2);
    return tc;
}
