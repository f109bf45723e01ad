/* Every tool, beside rows of another user and of another tenant and without them: the same replies, and those rows
 * stay. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "tests/kit/kit.h"
#include "tests/unit/p8/data.h"

#define HITS   "{\"results\": [{\"title\": \"Wick\", \"url\": \"https://x.org/a\", \"content\": \"All about it\"}]}"
#define HIDDEN "hidden"

#define OWN_ID    "22222222-2222-4222-8222-222222222222"
#define COMMON_ID "33333333-3333-4333-8333-333333333333"

/* Rows with the names and ids that arguments have, of `who`. Texts of others say so. */
static void fill(struct data *d, const char *who, const char *says, const char *file)
{
    static const struct {
        const char *kind, *row;
    } rows[] = {
        {"users", "\"name\": \"X %s\", \"email\": \"%s@x.org\", \"content\": \"%s\""},
        {"files", "\"name\": \"Wick\", \"uri\": \"%s\", \"parsed_content\": \"%s %s\""},
        {"resources",
         "\"name\": \"knots\", \"uri\": \"%s\", \"content\": \"%s %s\", \"graph_edges\": [{\"target\": \"Wick\"}]"},
        {"moments", "\"name\": \"Wick\", \"moment_type\": \"dream\", \"summary\": \"%s %s %s\""},
        {"moments", "\"name\": \"union\", \"moment_type\": \"note\", \"category\": \"%s\", \"summary\": \"%s %s\""},
        {"ontologies", "\"name\": \"x\", \"uri\": \"%s\", \"content\": \"%s %s\""},
    };

    for (size_t i = 0; i < RV_COUNT(rows); i++) {
        rv_buf text = RV_BUF_INIT(10000), row = RV_BUF_INIT(5000);
        const char *left = rows[i].row;
        for (const char *at; (at = strstr(left, "%s")); left = at + 2)
            rv_buf_printf(&row, "%.*s%s", (int)(at - left), left, says);
        if (strcmp(rows[i].kind, "files") == 0)
            rv_buf_printf(&text, "[{\"id\": \"%s\", ", file);
        else
            rv_buf_puts(&text, "[{");
        rv_buf_printf(&text, "%s%s, \"user_id\": \"%s\"}]", rv_buf_cstr(&row), left, who);
        data_put(d, rows[i].kind, rv_buf_cstr(&text));
        rv_buf_fini(&row);
        rv_buf_fini(&text);
    }
}

static void fill_others(struct data *d)
{
    fill(d, "bob", HIDDEN " of bob", DATA_ID);
    d->app.scope.tenant = "other";
    fill(d, "ada", HIDDEN " elsewhere", DATA_ID);
    d->app.scope.tenant = NULL;
}

/* All that the others have. */
static char *theirs(struct data *d)
{
    static const struct rv_store_scope others[] = {{NULL, "bob"}, {"other", "ada"}};
    rv_buf all = RV_BUF_INIT((size_t)16 << 20);

    for (size_t i = 0; i < RV_COUNT(others); i++)
        for (size_t k = 0; k < rv_n_kinds; k++)
            if (rv_kinds[k].place == RV_PLACE_ENTITIES) {
                char *rows = data_find(d, others[i].tenant, others[i].user, rv_kinds[k].name);
                rv_buf_puts(&all, rows);
                free(rows);
            }
    rv_buf_cstr(&all);
    return rv_buf_steal(&all, NULL);
}

/* Times of this minute, and ids that are chosen by chance, become zeros. */
static char *masked(const char *reply)
{
    char *own = rv_str_dup(rv_str_of(reply));

    ck_assert_ptr_nonnull(own);
    for (char *at = own; (at = strchr(at, 'T')); at++)
        if (at - own >= 10 && isdigit((unsigned char)at[-1]) && at[-3] == '-' && isdigit((unsigned char)at[1]))
            for (char *c = at - 10; *c && *c != '"'; c++)
                if (isdigit((unsigned char)*c))
                    *c = '0';
    for (char *at = own; (at = strstr(at, "sched_")); at++)
        for (char *c = at + strlen("sched_"); isalnum((unsigned char)*c); c++)
            *c = '0';
    for (char *at = own; (at = strstr(at, "-4")); at++) /* of version 4; those that follow from names have 5 */
        if (at - own >= 13 && strspn(at - 13, "0123456789abcdef-") >= 36)
            for (char *c = at - 13; c < at + 23; c++)
                *c = *c == '-' ? '-' : '0';
    return own;
}

static const struct {
    const char *tool, *args;
} directed[] = {
    {"get_file", "{\"file_id\": \"" DATA_ID "\"}"},
    {"read_resource", "{\"uri\": \"files://" DATA_ID "\"}"},
    {"read_resource", "{\"uri\": \"user://profile\"}"},
    {"get_user_profile", "{}"},
    {"update_user_metadata", "{\"metadata\": {\"facts\": {\"a\": 1}}}"},
    {"search", "{\"query\": \"LOOKUP Wick, knots, x, " DATA_ID "\"}"},
    {"search", "{\"query\": \"FUZZY hidden THRESHOLD 0\"}"},
    {"search", "{\"query\": \"SEARCH hidden FROM moments MIN_SIMILARITY 0\"}"},
    {"search", "{\"query\": \"SEARCH hidden FROM resources rank=hybrid\"}"},
    {"search", "{\"query\": \"TRAVERSE knots DEPTH 5 PATHS LOAD\"}"},
    {"search", "{\"query\": \"SQL SELECT name, user_id, summary FROM moments\"}"},
    {"get_moments", "{\"limit\": 100}"},
    {"get_moments", "{\"category\": \"hidden of bob\"}"},
    {"save_moments",
     "{\"moments\": [{\"name\": \"Wick\", \"affinity_fragments\": [{\"target\": \"knots\"}, {\"target\": "
     "\"union\"}, {\"target\": \"X hidden of bob\"}]}]}"},
    {"remind_me", "{\"name\": \"union\", \"description\": \"d\", \"crontab\": \"2199-01-01\"}"},
    {"list_reminders", "{}"},
    {"cancel_reminder", "{\"name\": \"union\"}"},
    {"save_plot", "{\"title\": \"x\", \"source\": \"y\"}"},
    {"web_search", "{\"query\": \"Wick\"}"},
    {"gather_activity", "{\"days\": 366}"},
};

static bool same(struct data *with, struct data *without, const char *tool, const char *args)
{
    char *one = masked(data_call(with, tool, args)), *other = masked(data_call(without, tool, args));
    bool is_good = !strstr(one, "\"status\":\"error\"");

    size_t at = 0;

    while (one[at] && one[at] == other[at])
        at++;
    size_t from = at > 100 ? at - 100 : 0;
    ck_assert_msg(one[at] == other[at], "%s %.500s: ...%.500s\nwithout rows of others: ...%.500s", tool, args,
                  one + from, other + from);
    const char *leak = strstr(args, HIDDEN) ? NULL : strstr(one, HIDDEN);
    ck_assert_msg(!leak, "%s %.500s: %.500s", tool, args, leak);
    free(one);
    free(other);
    return is_good;
}

/* Proves p8-data.23/tools: No reply of a tool depends on what other users and tenants have, and no tool changes that */
START_TEST(what_others_have_changes_no_reply)
{
    struct data with, without, *both[] = {&with, &without};
    uint64_t seed = 11;
    int n = rv_kit_sample(1500, 20000), n_good = 0;

    for (size_t i = 0; i < RV_COUNT(both); i++) {
        data_begin_with(both[i], false, "{\"tavily_api_key\": \"k-1\"}");
        both[i]->web = HITS;
        fill(both[i], "ada", "of ada", OWN_ID);
        fill(both[i], "", "of all", COMMON_ID);
    }
    fill_others(&with);
    char *before = theirs(&with);
    ck_assert_ptr_nonnull(strstr(before, HIDDEN));
    for (size_t i = 0; i < RV_COUNT(directed); i++)
        same(&with, &without, directed[i].tool, directed[i].args);
    for (int i = 0; i < n; i++) {
        rv_buf args = RV_BUF_INIT(1 << 20);
        const char *tool = data_tools[(size_t)i % data_n_tools];
        data_write_args(&args, &seed);
        n_good += same(&with, &without, tool, rv_buf_cstr(&args));
        rv_buf_fini(&args);
    }
    ck_assert_int_gt(n_good, n / 10);
    char *after = theirs(&with);
    ck_assert_str_eq(before, after);
    free(before);
    free(after);
    for (size_t i = 0; i < RV_COUNT(both); i++)
        data_end(both[i]);
}
END_TEST

TCase *owners_case(void)
{
    TCase *tc = tcase_create("owners");

    tcase_add_test(tc, what_others_have_changes_no_reply);
    return tc;
}
