/* The schema, the reference page and the explanation come from the tables that read the file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_internal.h"
#include "tests/unit/config/world.h"

static json_object *schema(void)
{
    rv_buf b = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&b);
    json_object *root = NULL;

    rv_pipeline_write_schema(&w);
    ck_assert_int_eq(rv_json_parse(rv_buf_str(&b), NULL, &root, NULL), 0);
    rv_buf_fini(&b);
    return root;
}

static const struct rv_key_table *const tables[] = {
    &config_pipeline_table,   &config_agent_table,      &config_rule_table,        &config_edge_limit_table,
    &config_model_table,      &config_price_table,      &config_prompt_table,      &config_capability_table,
    &config_mcp_server_table, &config_mcp_tool_table,   &config_execution_table,   &config_state_field_table,
    &config_test_table,       &config_test_input_table, &config_test_expect_table, &config_test_error_table,
};

START_TEST(every_key_of_a_table_is_in_the_schema_and_no_other)
{
    const struct rv_key_table *table = tables[_i];
    json_object *root = schema();
    json_object *def = rv_json_get_obj(rv_json_get_obj(root, "$defs"), table->name);
    json_object *map = json_object_array_get_idx(rv_json_get_arr(def, "allOf"), 0);
    json_object *properties = rv_json_get_obj(map, "properties");
    json_object *required = rv_json_get_arr(map, "required");
    size_t n_required = 0;
    bool is_open = true;

    ck_assert_uint_eq((size_t)json_object_object_length(properties), table->n_keys);
    for (size_t i = 0; i < table->n_keys; i++) {
        ck_assert_msg(rv_json_get_obj(properties, table->keys[i].name), "%s", table->keys[i].name);
        ck_assert_msg(table->keys[i].doc || table->keys[i].type == RV_KEY_MAP, "%s has no doc", table->keys[i].name);
        n_required += table->keys[i].required;
    }
    ck_assert_uint_eq(required ? json_object_array_length(required) : 0, n_required);
    ck_assert(rv_json_get_bool(map, "additionalProperties", &is_open) && !is_open);
    json_object_put(root);
}
END_TEST

START_TEST(every_key_is_on_the_reference_page)
{
    rv_buf b = RV_BUF_INIT(1 << 20);

    rv_pipeline_write_reference(&b);
    ck_assert_int_eq(b.rc, 0);
    for (size_t t = 0; t < RV_COUNT(tables); t++) {
        const struct rv_key_table *table = tables[t];
        for (size_t i = 0; i < table->n_keys; i++) {
            char cell[64];
            snprintf(cell, sizeof cell, "| `%s` |", table->keys[i].name);
            ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&b), cell));
        }
    }
    rv_buf_fini(&b);
}
END_TEST

START_TEST(explaining_fills_in_defaults_and_is_stable)
{
    struct loaded l = load_clean("name: x\n"
                                 "agents:\n"
                                 "  - name: b\n    stage_order: 1\n"
                                 "  - name: a\n    routing_rules: [{when: 'output.x > 1', target: b},\n"
                                 "                     {condition: k, value: [1, 2.50], target: end}]\n"
                                 "edge_limits: [{from: a, to: b, max_count: 2}]\n"
                                 "state: [{key: a, merge: append}]\n"
                                 "prompts: {p: 'hi {{raw_input}}'}\n"
                                 "response: {output_key: b}\n");
    rv_buf b = RV_BUF_INIT(1 << 20);
    rv_buf again = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&b);
    json_object *root = NULL;

    rv_pipeline_write_json(l.p, &w);
    w = rv_jw_on(&again);
    rv_pipeline_write_json(l.p, &w);
    ck_assert_str_eq(rv_buf_cstr(&b), rv_buf_cstr(&again));
    ck_assert_int_eq(rv_json_parse(rv_buf_str(&b), NULL, &root, NULL), 0);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&b), "\"max_iterations\":3,\"max_llm_calls\":10,\"max_agent_hops\":21"));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&b), "\"agents\":[{\"name\":\"a\""));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&b), "{\"when\":\"output.x > 1\",\"target\":\"b\"}"));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&b), "{\"condition\":\"k\",\"value\":[1,2.50],\"target\":\"end\"}"));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&b), "\"state\":[{\"key\":\"a\",\"merge\":\"append\"}]"));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&b), "\"response\":{\"output_key\":\"b\",\"field\":\"final_response\"}"));
    json_object_put(root);
    rv_buf_fini(&b);
    rv_buf_fini(&again);
    loaded_fini(&l);
}
END_TEST

/* Hooks around calls and the bound of a context stand where they were written, and nowhere else. */
START_TEST(explaining_shows_hooks_around_calls)
{
    struct loaded l =
        load_clean("name: x\nagents:\n"
                   "  - {name: a, has_llm: true, model_role: r, before_model: c.x, after_model: [c.y, c.x],\n"
                   "     max_context_tokens: 9}\n"
                   "  - {name: b, has_tools: true, tool_access: all, before_tool: c.x, after_tool: c.y}\n");
    rv_buf b = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&b);

    rv_pipeline_write_json(l.p, &w);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&b), "\"max_context_tokens\":9"));
    ck_assert_ptr_nonnull(
        strstr(rv_buf_cstr(&b), "\"before_model\":[\"c.x\"],\"after_model\":[\"c.y\",\"c.x\"],\"mock\""));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&b), "\"before_tool\":[\"c.x\"],\"after_tool\":[\"c.y\"],\"mock\""));
    rv_buf_fini(&b);
    loaded_fini(&l);
}
END_TEST

TCase *views_case(void)
{
    TCase *tc = tcase_create("views");

    tcase_add_loop_test(tc, every_key_of_a_table_is_in_the_schema_and_no_other, 0, RV_COUNT(tables));
    tcase_add_test(tc, every_key_is_on_the_reference_page);
    tcase_add_test(tc, explaining_fills_in_defaults_and_is_stable);
    tcase_add_test(tc, explaining_shows_hooks_around_calls);
    return tc;
}
