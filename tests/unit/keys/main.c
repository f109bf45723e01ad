/* Walks the tables of keys: each key has a row, and each row a difference. */
#include <json-c/linkhash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/agentdoc/agentdoc_internal.h"
#include "config/config_internal.h"
#include "tests/kit/suites.h"
#include "tests/unit/keys/rows.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SHADOW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SHADOW 1
#endif
#endif
#ifndef HAS_SHADOW
#define HAS_SHADOW 0
#endif

static const struct key_rows *const groups[] = {
    &key_rows_pipeline, &key_rows_stage, &key_rows_execution, &key_rows_models,   &key_rows_commands,
    &key_rows_agents,   &key_rows_ask,   &key_rows_work,      &key_rows_declared, &key_rows_plans,
};

/* The n-th row of all groups; the group goes to *group. NULL: there are fewer. */
static const struct key_row *row_at(size_t n, const struct key_rows **group)
{
    for (size_t g = 0; g < RV_COUNT(groups); g++) {
        *group = groups[g];
        if (n < groups[g]->n)
            return &groups[g]->rows[n];
        n -= groups[g]->n;
    }
    return NULL;
}

START_TEST(a_changed_key_has_an_effect)
{
    const struct key_rows *group = NULL;
    const struct key_row *row = row_at((size_t)_i, &group);
    if (HAS_SHADOW &&
        strcmp(row->key, "capability.limits.memory_mb") == 0) /* the sanitizers' address space is larger */
        return;
    char *before = group->tell(row, row->before), *after = group->tell(row, row->after);
    char *again = group->tell(row, row->before);

    ck_assert_msg(strcmp(before, again) == 0, "%s: \"%s\" does not do the same twice:\n%.1500s\nand\n%.1500s", row->key,
                  row->before, before, again);
    ck_assert_msg(strcmp(before, after) != 0, "%s: \"%s\" does what \"%s\" does: %.1500s", row->key, row->after,
                  row->before, before);
    const char *shown = getenv("RV_TEST_KEY"); /* a key whose difference a person wants to see */
    if (shown && strncmp(shown, row->key, strlen(shown)) == 0)
        printf("--- %s: %s\n%s\n--- %s: %s\n%s\n", row->key, row->before, before, row->key, row->after, after);
    free(before);
    free(after);
    free(again);
}
END_TEST

/* What came with rules 2 does not reach into runs that began before. */
START_TEST(an_execution_key_that_is_new_in_rules_2_changes_no_older_run)
{
    static const char *const old[] = {"max_plan_steps",  "max_tool_retries", "max_llm_retries",
                                      "llm_timeout",     "executor_timeout", "tool_timeout",
                                      "agent_timeout",   "llm_seed",         "require_confirmation_for_destructive",
                                      "enable_loop_back"};
    const struct key_row *row = &key_rows_execution.rows[_i];

    for (size_t i = 0; i < RV_COUNT(old); i++)
        if (strcmp(old[i], strchr(row->key, '.') + 1) == 0)
            return;
    char *before = key_tell_run_of(row, row->before, RV_RULES_1), *after = key_tell_run_of(row, row->after, RV_RULES_1);
    ck_assert_msg(strcmp(before, after) == 0, "%s: \"%s\" changes a run of rules 1", row->key, row->after);
    free(before);
    free(after);
}
END_TEST

/* Keys whose effect needs a server of its own: tests/integration/mcp/keys.mjs tries each, and fails for one without; so
 * does tests/mcp_server/offers.mjs for `mcp`. */
static bool is_tried_elsewhere(const char *key)
{
    return strcmp(key, "pipeline.mcp_servers") == 0 || strncmp(key, "mcp_server.", 11) == 0 ||
           strncmp(key, "mcp_tool.", 9) == 0 || strcmp(key, "pipeline.mcp") == 0 ||
           strncmp(key, "pipeline.mcp.", 13) == 0;
}

static bool has_row(const char *key)
{
    if (is_tried_elsewhere(key))
        return true;
    for (size_t g = 0; g < RV_COUNT(groups); g++)
        for (size_t i = 0; i < groups[g]->n; i++)
            if (strcmp(groups[g]->rows[i].key, key) == 0)
                return true;
    return false;
}

/* The properties of a JSON Schema, and below each those of a map; what other tables describe is looked at there. */
static void walk(const char *name, json_object *schema, rv_buf *missing)
{
    json_object *properties = rv_json_get_obj(schema, "properties");

    if (!properties)
        return;
    json_object_object_foreach (properties, key, value) {
        rv_buf path = RV_BUF_INIT(400);
        rv_buf_printf(&path, "%s.%s", name, key);
        if (!has_row(rv_buf_cstr(&path)))
            rv_buf_printf(missing, "%s\n", rv_buf_cstr(&path));
        if (strcmp(rv_buf_cstr(&path), "model.price") != 0) /* the table "price" */
            walk(rv_buf_cstr(&path), value, missing);
        if (rv_json_get_obj(value, "items"))
            walk(rv_buf_cstr(&path), rv_json_get_obj(value, "items"), missing);
        rv_buf_fini(&path);
    }
}

static json_object *parsed(rv_buf *text)
{
    json_object *json = rv_kit_json(rv_buf_cstr(text));

    rv_buf_fini(text);
    return json;
}

/* Proves 4.6/effect: Each key of the section changes what a run does; a key without a row fails the test */
START_TEST(every_key_of_a_pipeline_has_a_row)
{
    rv_buf text = RV_BUF_INIT((size_t)8 << 20), missing = RV_BUF_INIT((size_t)1 << 20);
    rv_jw w = rv_jw_on(&text);
    size_t n = 0;

    rv_pipeline_write_schema(&w);
    json_object *schema = parsed(&text);
    json_object_object_foreach (rv_json_get_obj(schema, "$defs"), name, table) {
        walk(name, json_object_array_get_idx(rv_json_get_arr(table, "allOf"), 0), &missing);
        n++;
    }
    ck_assert_uint_ge(n, 14);
    ck_assert_msg(missing.len == 0, "no row tries what these keys change:\n%s", rv_buf_cstr(&missing));
    rv_buf_fini(&missing);
    json_object_put(schema);
}
END_TEST

START_TEST(every_key_of_an_agent_document_has_a_row)
{
    rv_buf missing = RV_BUF_INIT((size_t)1 << 20);
    size_t n;
    const struct rv_agentdoc_key *keys = agentdoc_keys(&n);

    for (size_t i = 0; i < n; i++) {
        rv_buf path = RV_BUF_INIT(400);
        json_object *schema = rv_kit_json(keys[i].schema);
        rv_buf_printf(&path, "agentdoc.%s", keys[i].name);
        if (!has_row(rv_buf_cstr(&path)))
            rv_buf_printf(&missing, "%s\n", rv_buf_cstr(&path));
        walk(rv_buf_cstr(&path), schema, &missing);
        json_object_put(schema);
        rv_buf_fini(&path);
    }
    for (size_t i = 0; i < RV_AGENTDOC_LIMITS; i++) { /* their members have a table of their own */
        rv_buf path = RV_BUF_INIT(400);
        rv_buf_printf(&path, "agentdoc.limits.%s", agentdoc_limit_keys[i].name);
        if (!has_row(rv_buf_cstr(&path)))
            rv_buf_printf(&missing, "%s\n", rv_buf_cstr(&path));
        rv_buf_fini(&path);
    }
    ck_assert_msg(missing.len == 0, "no row tries what these keys change:\n%s", rv_buf_cstr(&missing));
    rv_buf_fini(&missing);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("keys");
    TCase *tc = tcase_create("keys");
    const struct key_rows *group = NULL;
    size_t n = 0;

    while (row_at(n, &group))
        n++;
    tcase_add_loop_test(tc, a_changed_key_has_an_effect, 0, (int)n);
    tcase_add_loop_test(tc, an_execution_key_that_is_new_in_rules_2_changes_no_older_run, 0, (int)key_rows_execution.n);
    tcase_add_test(tc, every_key_of_a_pipeline_has_a_row);
    tcase_add_test(tc, every_key_of_an_agent_document_has_a_row);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
