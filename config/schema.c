/* What the tables of keys say, in two more forms: a JSON Schema for editors and a reference page for people. */
#include <string.h>

#include "config/config_internal.h"

static const struct rv_key_table *const tables[] = {
    &config_pipeline_table,    &config_agent_table,       &config_rule_table,        &config_branch_table,
    &config_join_table,        &config_ask_table,         &config_client_tool_table, &config_example_table,
    &config_edge_limit_table,  &config_budget_table,      &config_model_table,       &config_price_table,
    &config_prompt_table,      &config_capability_table,  &config_mcp_server_table,  &config_mcp_tool_table,
    &config_execution_table,   &config_state_field_table, &config_test_table,        &config_test_input_table,
    &config_test_expect_table, &config_test_error_table,  &config_test_call_table,   &config_test_similar_table,
    &config_test_near_table,   &config_test_judge_table,
};

/* What stands in the place of a value where a test has cases or a matrix: the text becomes the value of each. */
#define OF_CASES "{\"type\":\"string\",\"pattern\":\"\\\\{\\\\{(case|matrix)\\\\.\"}"

static bool is_of_tests(const struct rv_key_table *table)
{
    return strncmp(table->name, "test", 4) == 0;
}

static void write_table(const struct rv_key_table *table, rv_jw *w)
{
    rv_jw_key(w, table->name);
    rv_jw_obj(w);
    rv_jw_kv_text(w, "description", table->title);
    rv_jw_key(w, "allOf");
    rv_jw_arr(w);
    rv_keys_write_schema_or(table->keys, table->n_keys, is_of_tests(table) ? OF_CASES : NULL, w);
    if (table->more) {
        rv_buf more = RV_BUF_INIT(4096);
        rv_buf_printf(&more, "{%s}", table->more);
        if (more.rc < 0 && w->out->rc == 0)
            w->out->rc = more.rc;
        rv_jw_raw(w, rv_buf_str(&more));
        rv_buf_fini(&more);
    }
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}

void rv_pipeline_write_schema(rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "$schema", "https://json-schema.org/draft/2020-12/schema");
    rv_jw_kv_text(w, "title", "reeve pipeline");
    rv_jw_kv_text(w, "$ref", "#/$defs/pipeline");
    rv_jw_key(w, "$defs");
    rv_jw_obj(w);
    for (size_t i = 0; i < RV_COUNT(tables); i++)
        write_table(tables[i], w);
    rv_jw_obj_end(w);
    rv_jw_obj_end(w);
}

void rv_pipeline_write_reference(rv_buf *b)
{
    rv_buf_puts(b,
                "# Keys of a pipeline\n\nA pipeline is one YAML file. Unknown keys, wrong types and unknown words are "
                "errors.\n");
    for (size_t i = 0; i < RV_COUNT(tables); i++) {
        const struct rv_key_table *table = tables[i];

        rv_buf_printf(b, "\n## %s\n\n%s.\n\n", table->name, table->title);
        rv_keys_write_markdown(table->keys, table->n_keys, b);
        for (size_t k = 0; k < table->n_keys; k++) {
            const struct rv_key *key = &table->keys[k];
            if (key->type != RV_KEY_MAP || key->keys == config_price_table.keys)
                continue;
            rv_buf_printf(b, "\n### %s.%s\n\n", table->name, key->name);
            rv_keys_write_markdown(key->keys, key->n_keys, b);
        }
    }
}
