/* The JSON Schema of scripts, from the rows that read them. */
#include "coreengine/tools/script/script_internal.h"

#define OPEN(w, key) (rv_jw_key((w), (key)), rv_jw_obj(w))

static void write_table(rv_jw *w, const char *name, const struct script_table *t)
{
    rv_jw_key(w, name);
    rv_keys_write_schema(t->keys, t->n_keys, w);
}

/* {"type":"array","items":{"$ref":...}} */
static void write_list(rv_jw *w, const char *name, const char *ref)
{
    OPEN(w, name);
    rv_jw_kv_text(w, "type", "array");
    OPEN(w, "items");
    rv_jw_kv_text(w, "$ref", ref);
    rv_jw_obj_end(w);
    rv_jw_obj_end(w);
}

static void write_ref(rv_jw *w, const char *ref)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "$ref", ref);
    rv_jw_obj_end(w);
}

/* A map from name to entries (or to a declaration), or a flat list. */
static void write_section(rv_jw *w, const char *name, const char *entries, const char *declaration)
{
    OPEN(w, name);
    rv_jw_key(w, "anyOf");
    rv_jw_arr(w);
    write_ref(w, entries);
    rv_jw_obj(w);
    rv_jw_kv_text(w, "type", "object");
    rv_jw_key(w, "additionalProperties");
    if (declaration) {
        rv_jw_obj(w);
        rv_jw_key(w, "anyOf");
        rv_jw_arr(w);
        write_ref(w, entries);
        write_ref(w, declaration);
        rv_jw_arr_end(w);
        rv_jw_obj_end(w);
    } else {
        write_ref(w, entries);
    }
    rv_jw_obj_end(w);
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}

void rv_script_write_schema(rv_jw *w)
{
    size_t n;
    const struct rv_key *keys = rv_script_keys(&n);

    rv_jw_obj(w);
    rv_jw_kv_text(w, "$schema", "https://json-schema.org/draft/2020-12/schema");
    rv_jw_kv_text(w, "title", "A script: what stands in for models, stages, tools and people");
    rv_jw_kv_text(w, "$ref", "#/$defs/script");
    OPEN(w, "$defs");
    rv_jw_key(w, "script");
    rv_keys_write_schema(keys, n, w);
    write_table(w, "model_entry", rv_script_table(RV_SCRIPT_MODEL));
    write_table(w, "chunk", &rv_script_chunk_table);
    write_table(w, "tool_call", &rv_script_call_table);
    write_table(w, "stage_entry", rv_script_table(RV_SCRIPT_STAGE));
    write_table(w, "tool_entry", rv_script_table(RV_SCRIPT_TOOL));
    write_table(w, "tool", rv_script_tool_table());
    write_table(w, "answer", rv_script_answer_table());
    write_list(w, "model_entries", "#/$defs/model_entry");
    write_list(w, "stage_entries", "#/$defs/stage_entry");
    write_list(w, "tool_entries", "#/$defs/tool_entry");
    write_list(w, "answer_list", "#/$defs/answer");
    write_section(w, "model_section", "#/$defs/model_entries", NULL);
    write_section(w, "stage_section", "#/$defs/stage_entries", NULL);
    write_section(w, "tool_section", "#/$defs/tool_entries", "#/$defs/tool");
    rv_jw_obj_end(w);
    rv_jw_obj_end(w);
}
