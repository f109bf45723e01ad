/* The tools of p8 that work with data: results, errors, and that each finds and changes only what is their own. */
#include "tests/unit/p8/data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADA                                                                                                            \
    "{\"name\": \"Ada\", \"email\": \"ada@x.org\", \"user_id\": \"ada\", \"content\": \"likes maps\", \"tags\": "      \
    "[\"a\"], \"metadata\": {\"relations\": [{\"name\": \"Rex\", \"role\": \"dog\"}, {\"name\": \"Tom\"}], "           \
    "\"interests\": [\"maps\"], \"kept\": 1}}"
#define BOB               "{\"name\": \"Bob\", \"email\": \"bob@x.org\", \"user_id\": \"bob\"}"
#define SHARED            "{\"name\": \"Everybody\", \"email\": \"all@x.org\"}"
#define ITEM(name, owner) "{\"name\": \"" name "\", \"user_id\": \"" owner "\", \"content\": \"x\"}"

static void lacks(struct data *d, const char *tool, const char *args, const char *part)
{
    const char *reply = data_call(d, tool, args);

    ck_assert_msg(strstr(reply, part) == NULL, "%s %.300s: %s\nhas %s", tool, args, reply, part);
}

/* Proves p8-data.14.11: The profile is that of the user who asks, and of no other */
START_TEST(a_profile_is_the_users_own)
{
    struct data d;

    data_begin(&d, _i);
    data_has(&d, "get_user_profile", "{}", "\"error\":\"User not found\",\"code\":\"not_found\"");
    data_put(&d, "users", "[" ADA "," BOB "," SHARED "]");
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
    data_put(&d, "users", "[" ADA "," BOB "," SHARED "]");
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

/* Proves p8-data.14.9: Plots are collected, by day, for the user who saves them */
START_TEST(plots_are_collected_by_day)
{
    char id[16] = "", args[128];
    struct data d;

    data_begin(&d, _i);
    data_has(&d, "save_plot", "{\"title\": \"A\", \"source\": \"graph TD\", \"topic_tags\": [\"z\", \"b\"]}",
             "\"plot_count\":1,\"collection_name\":\"plots-ada-20");
    const char *at = strstr(data_call(&d, "save_plot", "{\"title\": \"B\", \"source\": \"x\"}"), "plot_id");
    memcpy(id, at + 10, 8);
    snprintf(args, sizeof args, "{\"plot_id\": \"%s\"}", id);
    data_has(&d, "get_moments", "{}", "\"summary\":\"Research (2): A, B\",\"category\":\"research\"");
    data_has(&d, "get_moments", "{}", "\"topic_tags\":[\"b\",\"z\"]");
    data_has(&d, "save_plot", "{\"title\": \"B2\", \"source\": \"x\"}", "\"plot_count\":2"); /* the call again */
    data_has(&d, "save_plot", "{\"title\": \"A\", \"source\": \"x\", \"plot_type\": \"svg\"}",
             "Invalid plot_type 'svg'. Must be one of: chartjs, mermaid, vega");
    d.user = "bob";
    data_has(&d, "remove_plot", args, "No plot collection found for 20");
    d.user = "ada";
    data_has(&d, "remove_plot", "{\"plot_id\": \"x\"}", "Plot 'x' not found in collection for 20");
    data_has(&d, "remove_plot", "{\"plot_id\": \"x\", \"collection_date\": \"1.2.2026\"}",
             "Invalid date format: 1.2.2026");
    data_has(&d, "remove_plot", args, "\"removed_title\":\"B2\",\"remaining_count\":1");
    d.user = "";
    data_has(&d, "save_plot", "{\"title\": \"A\", \"source\": \"x\"}", "user_id is required for saving plots");
    data_end(&d);
}
END_TEST

#define FILE_ID   "11111111-1111-4111-8111-111111111111"
#define TEXT_ID   "22222222-2222-4222-8222-222222222222"
#define BOBS_ID   "33333333-3333-4333-8333-333333333333"
#define MOMENT_ID "44444444-4444-4444-8444-444444444444"

/* Proves p8-data.14.10: A file is shown as rows or as text, by its id or by a moment's, to its owner only */
START_TEST(a_file_is_shown_to_its_owner)
{
    struct data d;

    data_begin(&d, _i);
    data_put(&d, "files",
             "[{\"id\": \"" FILE_ID "\", \"name\": \"t.csv\", \"user_id\": \"ada\", \"parsed_content\": "
             "\"a,b\\r\\n1,\\\"x, \\\"\\\"y\\\"\\\"\\\"\\r\\n2,3\\n\"},"
             "{\"id\": \"" TEXT_ID "\", \"name\": \"n\", \"user_id\": \"ada\", \"parsed_content\": "
             "\"one\\ntwo\\nthree\\n\"},"
             "{\"id\": \"" BOBS_ID "\", \"name\": \"b\", \"user_id\": \"bob\", \"parsed_content\": \"secret\"}]");
    data_put(&d, "moments",
             "[{\"id\": \"" MOMENT_ID "\", \"name\": \"up\", \"user_id\": \"ada\", \"metadata\": {\"file_id\": "
             "\"" TEXT_ID "\"}}]");
    data_has(&d, "get_file", "{\"file_id\": \"" FILE_ID "\"}",
             "\"columns\":[\"a\",\"b\"],\"row_count\":2,\"rows\":[{\"a\":\"1\",\"b\":\"x, \\\"y\\\"\"},{\"a\":\"2\","
             "\"b\":\"3\"}]}");
    data_has(&d, "get_file", "{\"file_id\": \"" FILE_ID "\", \"head\": 1}", "\"row_count\":1,");
    data_has(&d, "get_file", "{\"file_id\": \"" MOMENT_ID "\", \"head\": 2}",
             "\"name\":\"n\",\"line_count\":2,\"content\":\"one\\ntwo\"}");
    data_has(&d, "get_file", "{\"file_id\": \"" TEXT_ID "\"}", "\"content\":\"one\\ntwo\\nthree\\n\"}");
    data_has(&d, "get_file", "{\"file_id\": \"" BOBS_ID "\"}", "File not found: " BOBS_ID);
    data_has(&d, "get_file", "{\"file_id\": \"x\"}", "Invalid file_id: x");
    data_has(&d, "read_resource", "{\"uri\": \"files://" TEXT_ID "\"}", "\"line_count\":3");
    data_has(&d, "read_resource", "{\"uri\": \"user://profile\"}", "User not found");
    data_has(&d, "read_resource", "{\"uri\": \"file:///etc/passwd\"}", "\"code\":\"not_found\"");
    d.app.scope.tenant = "other";
    data_has(&d, "get_file", "{\"file_id\": \"" TEXT_ID "\"}", "File not found");
    data_end(&d);
}
END_TEST

static const struct {
    const char *when, *frequency, *recurrence;
} reminders[] = {
    {"2199-04-15T15:00+05:30", "Once — Apr 15 at 15:00", "once"},
    {"2199-04-05", "Once — Apr 5 at 00:00", "once"},
    {"21990405T093000", "Once — Apr 5 at 09:30", "once"},
    {"30 9 * * *", "Daily at 09:30", "recurring"},
    {"0 9 * * 1-5", "Weekdays at 09:00", "recurring"},
    {"0 9 * * mon,WED", "Every Mon, Wed at 09:00", "recurring"},
    {"0 9 * * 7", "Every Sun at 09:00", "recurring"},
    {"0 9 1 * *", "Monthly on the 1st at 09:00", "recurring"},
    {"0 9 12 * *", "Monthly on the 12th at 09:00", "recurring"},
    {"0 9 22 * *", "Monthly on the 22nd at 09:00", "recurring"},
    {"* * * * *", "Daily", "recurring"},
    {"*/15 * * * *", "Custom (*/15 * * * *)", "recurring"},
    {"0 9,17 * * *", "Custom (0 9,17 * * *)", "recurring"},
    {"0 9 1 1 *", "Custom (0 9 1 1 *)", "recurring"},
    {"5 * * * *", "Custom (5 * * * *)", "recurring"},
    {"@daily", "Daily at 00:00", "recurring"},
    {"@hourly", "Custom (@hourly)", "recurring"},
};

/* Proves p8-data.15: A reminder is a schedule and a moment, and one of the same name replaces it */
START_TEST(a_reminder_is_a_schedule_and_a_moment)
{
    char args[256], want[256];
    struct data d;

    data_begin(&d, _i);
    for (size_t i = 0; i < RV_COUNT(reminders); i++) {
        snprintf(args, sizeof args, "{\"name\": \"Don't\", \"description\": \"d\", \"crontab\": \"%s\"}",
                 reminders[i].when);
        snprintf(want, sizeof want, "\"name\":\"Don't\",\"frequency\":\"%s\",\"recurrence\":\"%s\"",
                 reminders[i].frequency, reminders[i].recurrence);
        data_has(&d, "remind_me", args, want);
    }
    data_has(&d, "get_moments", "{\"moment_type\": \"reminder\"}", "\"count\":1,");
    data_has(&d, "remind_me", "{\"name\": \"Don't\", \"description\": \"d\", \"crontab\": \"2199-04-15T15:00+05:30\"}",
             "\"next_at\":\"2199-04-15T09:30:00");
    char *rows = data_find(&d, NULL, "ada", "moments");
    ck_assert_msg(strstr(rows, "\"starts_timestamp\":\"2199-04-15T09:30:00.000000+00:00\""), "%s", rows);
    free(rows);
    data_has(&d, "remind_me", "{\"name\": \"n\", \"description\": \"d\", \"crontab\": \"2020-01-01\"}",
             "reminder time is in the past");
    data_has(&d, "remind_me", "{\"name\": \"n\", \"description\": \"d\", \"crontab\": \"2199-02-31\"}",
             "Invalid crontab expression: 2199-02-31");
    data_has(&d, "remind_me", "{\"name\": \"n\", \"description\": \"d\", \"crontab\": \"0 0 31 2 *\"}",
             "Invalid crontab expression: 0 0 31 2 *");
    data_has(&d, "remind_me", "{\"name\": \"n\", \"description\": \"d\", \"crontab\": \"soon\"}",
             "Invalid crontab expression: soon");
    d.user = "bob";
    data_has(&d, "get_moments", "{}", "\"count\":0,");
    data_has(&d, "remind_me", "{\"name\": \"Don't\", \"description\": \"d\", \"crontab\": \"@daily\"}",
             "\"status\":\"success\"");
    d.user = "";
    data_has(&d, "remind_me", "{\"name\": \"n\", \"description\": \"d\", \"crontab\": \"@daily\"}",
             "user_id is required for reminders");
    data_end(&d);
}
END_TEST

#define HITS                                                                                                           \
    "{\"results\": [{\"title\": \"Leeks\", \"url\": \"https://www.x.org:443/a?b\", \"content\": \"All about it\", "    \
    "\"score\": 0.5}, {\"title\": \"no address\"}, {\"url\": \"https://y.org/\", \"content\": 7}, 3]}"

/* Proves p8-data.14.6: A search shows cards, keeps resources and a moment, and is counted before */
START_TEST(a_web_search_shows_cards_and_keeps_them)
{
    struct data d;

    data_begin_with(&d, _i, "{\"tavily_api_key\": \"k-1\", \"web_search_url\": \"https://fake.example/\"}");
    d.web = HITS;
    data_has(&d, "web_search", "{\"query\": \"leeks \\\"x\\\"\"}",
             "{\"status\":\"ok\",\"query\":\"leeks \\\"x\\\"\",\"results\":[{\"name\":\"Leeks\",\"description\":\"All "
             "about it\","
             "\"url\":\"https://www.x.org:443/"
             "a?b\",\"image\":null,\"tags\":[\"web-search\",\"www.x.org\"],\"resource_id\":\"");
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&d.room.reply), "\"count\":2,\"moment_id\":\""));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&d.room.reply), "\"saved\":true}"));
    ck_assert_msg(strstr(rv_buf_cstr(&d.web_request), "https://fake.example/search") &&
                      strstr(rv_buf_cstr(&d.web_request), "Bearer k-1"),
                  "%s", rv_buf_cstr(&d.web_request));
    data_has(&d, "get_moments", "{}", "\"summary\":\"Searched for 'leeks \\\"x\\\"' — found 2 results\"");
    data_has(&d, "search", "{\"query\": \"LOOKUP Leeks\"}", "\"category\":\"web_search\"");
    data_has(&d, "web_search", "{\"query\": \"q\", \"max_results\": 1, \"save\": false}",
             "\"count\":1,\"moment_id\":null,\"saved\":false}");
    data_has(&d, "web_search", "{\"query\": \"q\", \"max_results\": 21}", "max_results has to be from 1 to 20");
    data_has(&d, "web_search", "{\"query\": \"q\", \"search_depth\": \"x\"}",
             "search_depth has to be basic or advanced");
    ck_assert_int_eq(d.n_web, 2);
    d.web = "busy";
    data_has(&d, "web_search", "{\"query\": \"q\"}",
             "\"code\":\"provider\",\"error_type\":\"ProviderError\",\"query\":\"q\"}");
    d.web = "<html>";
    data_has(&d, "web_search", "{\"query\": \"q\"}", "Search failed: the answer has no list");
    d.web = NULL;
    data_has(&d, "web_search", "{\"query\": \"q\"}", "Search failed: no connection");
    d.web = HITS;
    d.user = "bob";
    data_has(&d, "search", "{\"query\": \"LOOKUP Leeks\"}", "\"count\":0}");
    data_end(&d);
}
END_TEST

/* Proves p8-data.18: A search that the plan does not allow is not made */
START_TEST(a_web_search_is_counted_before_it_is_made)
{
    struct data d;

    data_begin_with(&d, _i, "{\"tavily_api_key\": \"k-1\"}");
    char *plans = rv_kit_path(d.room.dir, "quotas.yaml");
    rv_kit_write(plans, "plans:\n  free: {quotas: {web_searches: {day: 2}}}\ndefault: free\n");
    d.app.quotas = plans;
    d.web = HITS;
    data_has(&d, "web_search", "{\"query\": \"a\"}", "\"status\":\"ok\"");
    d.key = "call-2";
    data_has(&d, "web_search", "{\"query\": \"b\"}", "\"status\":\"ok\"");
    d.key = "call-3";
    data_has(&d, "web_search", "{\"query\": \"c\"}", "\"error\":\"Daily web search quota exceeded (2/2): ");
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&d.room.reply), "\"code\":\"quota\""));
    ck_assert_int_eq(d.n_web, 2);
    d.user = "bob";
    data_has(&d, "web_search", "{\"query\": \"c\"}", "\"status\":\"ok\"");
    free(plans);
    data_end(&d);
}
END_TEST

START_TEST(without_a_key_there_is_no_web_search)
{
    struct data d;

    data_begin(&d, false);
    data_has(&d, "web_search", "{\"query\": \"a\"}", "P8_TAVILY_API_KEY is not configured");
    ck_assert_int_eq(d.n_web, 0);
    data_end(&d);
}
END_TEST

#define MINE "55555555-5555-4555-8555-555555555555"
#define BOBS "66666666-6666-4666-8666-666666666666"
#define EDGE "[{\"target\": \"x\", \"weight\": 3}]"

static const struct {
    const char *service, *args, *part; /* part: of the answer, or of the error */
    int rc;
} asks[] = {
    {"entities.get", "{\"kind\": \"resources\", \"id\": \"" MINE "\"}", "{\"row\":{\"id\":\"" MINE "\"", 0},
    {"entities.get", "{\"kind\": \"resources\", \"id\": \"" BOBS "\"}", "", RV_E_NOT_FOUND},
    {"entities.get", "{\"kind\": \"resource\", \"id\": \"" MINE "\"}", "unknown kind", RV_E_INVALID},
    {"entities.get", "{\"kind\": \"resources\"}", "it needs \"id\"", RV_E_INVALID},
    {"entities.get", "{\"kind\": \"resources\", \"id\": \"x\", \"user\": \"bob\"}", "no argument \"user\"",
     RV_E_INVALID},
    {"entities.find", "{\"kind\": \"resources\", \"columns\": [\"name\"]}",
     "{\"rows\":[{\"name\":\"Mine\"}],\"truncated\":false}", 0},
    {"entities.find", "{\"kind\": \"resources\", \"columns\": [\"nam\"]}", "have no column \"nam\"", RV_E_INVALID},
    {"entities.find", "{\"kind\": \"resources\", \"where\": {\"user_id\": \"bob\"}}", "{\"rows\":[],", 0},
    {"entities.find", "{\"kind\": \"resources\", \"limit\": 0}", "from 1 to 1000", RV_E_INVALID},
    {"entities.find", "{\"kind\": \"resources\", \"until\": \"2025-12-31\"}", "{\"rows\":[],", 0},
    {"entities.find", "{\"kind\": \"resources\", \"contains\": {\"related_entities\": 7}}", "is not a list",
     RV_E_INVALID},
    {"entities.lookup", "{\"name\": \"MINE\"}", "\"key\":\"mine\",\"user_id\":\"ada\"", 0},
    {"entities.lookup", "{\"name\": \"Theirs\"}", "{\"hits\":[]}", 0},
    {"entities.merge_edges", "{\"kind\": \"resources\", \"id\": \"" MINE "\", \"edges\": " EDGE "}", "{\"n_edges\":1}",
     0},
    {"entities.merge_edges", "{\"kind\": \"resources\", \"id\": \"" BOBS "\", \"edges\": " EDGE "}", "",
     RV_E_NOT_FOUND},
    {"entities.merge_metadata", "{\"kind\": \"resources\", \"id\": \"" MINE "\", \"patch\": {\"a\": 1}}",
     "{\"metadata\":{\"a\":1}}", 0},
    {"entities.merge_metadata", "{\"kind\": \"resources\", \"id\": \"" BOBS "\", \"patch\": {\"a\": 1}}", "",
     RV_E_NOT_FOUND},
    {"entities.merge_metadata", "{\"kind\": \"resources\", \"id\": \"" MINE "\", \"patch\": []}", "is not an object",
     RV_E_INVALID},
    {"entities.put", "{\"kind\": \"resources\", \"rows\": [{\"name\": \"New\", \"user_id\": \"bob\"}]}",
     "not that of the caller", RV_E_DENIED},
    {"entities.put",
     "{\"kind\": \"resources\", \"rows\": [{\"name\": \"New\"}], \"links\": [{\"kind\": \"resources\", \"id\": \"" BOBS
     "\", \"edges\": " EDGE "}]}",
     "\"links\":[{\"error\":", 0},
    {"entities.put", "{\"kind\": \"resources\", \"rows\": [{\"name\": \"Gone\"}], \"links\": [7]}",
     "each is {kind, id, edges", RV_E_INVALID},
    {"entities.put",
     "{\"kind\": \"resources\", \"rows\": [{\"name\": \"Gone\"}], \"merges\": [{\"kind\": \"resources\", \"id\": "
     "\"" BOBS "\", \"patch\": {}}]}",
     "", RV_E_NOT_FOUND},
    {"entities.put",
     "{\"kind\": \"resources\", \"rows\": [{\"name\": \"Gone\"}], \"merges\": [{\"kind\": \"resources\", \"id\": "
     "\"" MINE "\", \"patch\": {}, \"version\": \"x\"}]}",
     "changed a row of resources", RV_E_TOOL},
    {"entities.put",
     "{\"kind\": \"resources\", \"rows\": [{\"name\": \"Gone\"}], \"merges\": [{\"id\": \"" MINE "\"}]}",
     "each is {kind, id, patch", RV_E_INVALID},
    {"entities.put", "{\"kind\": \"resources\", \"rows\": [{\"name\": \"Gone\"}], \"versions\": [\"x\"]}",
     "deleted a row of resources", RV_E_TOOL},
    {"entities.put", "{\"kind\": \"resources\", \"rows\": [{\"name\": \"Gone\"}], \"versions\": []}",
     "\"versions\" has 0 items, and \"rows\" 1", RV_E_INVALID},
    {"entities.put", "{\"kind\": \"resources\", \"rows\": [{\"name\": \"Gone\"}], \"versions\": [7]}",
     "item 1 is not a string", RV_E_INVALID},
    {"entities.merge_metadata", "{\"kind\": \"resources\", \"id\": \"" MINE "\", \"patch\": {}, \"version\": \"x\"}",
     "changed a row of resources", RV_E_TOOL},
    {"entities.lookup", "{\"name\": \"Gone\"}", "{\"hits\":[]}", 0}, /* nothing of the asks before was kept */
    {"entities.put", "{\"kind\": \"resources\", \"rows\": 7}", "\"rows\" is not a list", RV_E_INVALID},
    {"entities.delete", "{\"kind\": \"resources\", \"id\": \"" BOBS "\"}", "", RV_E_NOT_FOUND},
    {"entities.delete", "{\"kind\": \"resources\", \"id\": \"" MINE "\"}", "{}", 0},
    {"entities.get", "{\"kind\": \"resources\", \"id\": \"" MINE "\"}", "", RV_E_NOT_FOUND},
    {"query", "{\"text\": \"LOOKUP New\"}", "{\"mode\":\"LOOKUP\",\"results\":[{\"entity_type\":\"resources\"", 0},
    {"query", "{\"text\": \"LOOKUP New\", \"limit\": 1001}", "from 1 to 1000", RV_E_INVALID},
    {"query", "{\"text\": \"what\"}", "unknown mode", RV_E_PARSE},
    {"quotas.take", "{\"kind\": \"tokens\"}", "has to be \"web_searches\"", RV_E_INVALID},
    {"quotas.take", "{\"kind\": \"web_searches\"}", "{}", 0},
};

START_TEST(a_capability_reads_and_writes_what_is_the_users)
{
    struct data d;

    data_begin(&d, false);
    data_put(&d, "resources",
             "[{\"id\": \"" MINE "\", \"name\": \"Mine\", \"user_id\": \"ada\"}, {\"id\": \"" BOBS
             "\", \"name\": \"Theirs\", \"user_id\": \"bob\"}]");
    for (size_t i = 0; i < RV_COUNT(asks); i++) {
        rv_buf answer = RV_BUF_INIT(1 << 20);
        rv_err *err = NULL;
        int rc = data_ask(&d, asks[i].service, asks[i].args, &answer, &err);
        if (rc < 0)
            rv_err_write_chain(err, &answer);
        const char *said = rv_buf_cstr(&answer);
        ck_assert_msg(rc == asks[i].rc && strstr(said, asks[i].part), "%zu %s %s: %d %s", i, asks[i].service,
                      asks[i].args, rc, said);
        rv_err_free(err);
        rv_buf_fini(&answer);
    }
    data_end(&d);
}
END_TEST

/* Proves p8-data.23/9: Every tool result is a JSON object with a status, whatever the input */
START_TEST(whatever_a_tool_is_given_it_gives_a_result)
{
    static const char *const bytes[] = {"",
                                        "[]",
                                        "{",
                                        "null",
                                        "7",
                                        "{\"query\": \"\xff\"}",
                                        "{\"query\": \"\xed\xa0\x80\"}",
                                        "{\"query\": \"a\\u0000b\", \"name\": \"\\u0000\", \"uri\": \"\\u0000\"}"};
    uint64_t seed = 7;
    struct data d;

    data_begin_with(&d, false, "{\"tavily_api_key\": \"k-1\"}");
    data_put(&d, "users", "[" ADA "]");
    d.web = HITS;
    for (int i = 0; i < 2000; i++) {
        rv_buf args = RV_BUF_INIT(1 << 20);
        if (i < (int)RV_COUNT(bytes) * 10)
            rv_buf_puts(&args, bytes[i / 10]);
        else
            data_write_args(&args, &seed);
        d.is_denied = i % 7 == 0 && i > 100;
        const char *tool = data_tools[(size_t)i % data_n_tools];
        const char *reply = data_call(&d, tool, rv_buf_cstr(&args)), *status = NULL;
        json_object *said = NULL;
        ck_assert_int_eq(rv_json_parse(rv_str_of(reply), NULL, &said, NULL), 0);
        bool has = rv_json_get_text(said, "status", &status);
        ck_assert_msg(has ? strcmp(status, "success") == 0 || strcmp(status, "ok") == 0 || strstr(reply, "\"code\":\"")
                          : strstr(reply, "{\"user_id\":") == reply,
                      "%s %s: %s", tool, rv_buf_cstr(&args), reply);
        json_object_put(said);
        rv_buf_fini(&args);
    }
    ck_assert_int_gt(d.n_asked, 200);
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
    tcase_add_loop_test(tc, plots_are_collected_by_day, 0, 2);
    tcase_add_loop_test(tc, a_file_is_shown_to_its_owner, 0, 2);
    tcase_add_loop_test(tc, a_reminder_is_a_schedule_and_a_moment, 0, 2);
    tcase_add_loop_test(tc, a_web_search_shows_cards_and_keeps_them, 0, 2);
    tcase_add_loop_test(tc, a_web_search_is_counted_before_it_is_made, 0, 2);
    tcase_add_test(tc, a_capability_reads_and_writes_what_is_the_users);
    tcase_add_test(tc, without_a_key_there_is_no_web_search);
    tcase_add_test(tc, whatever_a_tool_is_given_it_gives_a_result);
    return tc;
}
