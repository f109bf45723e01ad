/* The document as text, and what can be said of all documents: the JSON Schema and the reference page. */
#include <string.h>

#include "config/agentdoc/agentdoc_internal.h"

void rv_agentdoc_write_json(const struct rv_agentdoc *d, rv_jw *w)
{
    rv_jw_value(w, d->flat);
}

static void write_property(rv_jw *w, const char *name, const char *schema, const char *meaning)
{
    size_t len = strlen(schema);

    rv_jw_key(w, name);
    rv_jw_obj(w);
    rv_jw_kv_text(w, "description", meaning);
    rv_jw_raw(w, (rv_str){schema + 1, len - 2}); /* the members between the braces */
    rv_jw_obj_end(w);
}

static void write_limits(rv_jw *w)
{
    rv_jw_key(w, "limits");
    rv_jw_obj(w);
    rv_jw_key(w, "type");
    rv_jw_raw(w, RV_STR_LIT("[\"object\",\"null\"]"));
    rv_jw_key(w, "properties");
    rv_jw_obj(w);
    for (size_t i = 0; i < RV_AGENTDOC_LIMITS; i++)
        write_property(w, rv_agentdoc_limit_keys[i].name, "{\"type\":[\"integer\",\"string\",\"null\"],\"minimum\":1}",
                       rv_agentdoc_limit_keys[i].meaning);
    rv_jw_obj_end(w);
    rv_jw_obj_end(w);
}

void rv_agentdoc_write_schema(rv_jw *w)
{
    size_t n;
    const struct rv_agentdoc_key *rows = rv_agentdoc_keys(&n);

    rv_jw_obj(w);
    rv_jw_kv_text(w, "$schema", "https://json-schema.org/draft/2020-12/schema");
    rv_jw_kv_text(w, "title", "Agent document");
    rv_jw_kv_text(w, "description", "A declared agent, in the flat form. Further keys are kept and have no effect.");
    rv_jw_kv_text(w, "type", "object");
    rv_jw_key(w, "required");
    rv_jw_raw(w, RV_STR_LIT("[\"name\"]"));
    rv_jw_key(w, "properties");
    rv_jw_obj(w);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(rows[i].name, "limits") == 0)
            write_limits(w);
        else
            write_property(w, rows[i].name, rows[i].schema, rows[i].meaning);
    }
    rv_jw_obj_end(w);
    rv_jw_obj_end(w);
}

static void write_row(rv_buf *out, const char *name, const char *type, const char *otherwise, const char *meaning,
                      const char *forms)
{
    rv_buf_printf(out, "| `%s` | %s | %s | %s | %s |\n", name, type, otherwise, meaning, forms);
}

#define TABLE_HEAD "| key | type | default | meaning | form |\n| --- | --- | --- | --- | --- |\n"

static const char intro[] =
    "# Keys of an agent document\n"
    "\n"
    "An agent document declares one agent: what it is told, what it may call, what its answer looks like, what it may\n"
    "use up. It is a JSON Schema of the answer with the agent's own keys beside the schema's, in YAML or JSON.\n"
    "\n"
    "Numbers may be written as strings, a whole float is an integer, booleans may be written as `true`, `yes`, `on`,\n"
    "`t`, `y`, `1` and their opposites in any case. Strings are strings: put `\"1.0\"` in quotes. A wrong value is an\n"
    "error with its place; a key that has no effect is a warning, and the flat and the nested form keep it. Keys that\n"
    "begin with `x-`, and `$schema`, `$id`, `$comment`, `examples`, `icon` and `enabled` are kept without a word;\n"
    "`title` is dropped.\n"
    "\n"
    "## Forms\n"
    "\n"
    "| form | how it is told | what it becomes |\n"
    "| --- | --- | --- |\n"
    "| flat | none of the others | itself |\n"
    "| nested | `json_schema_extra` | the outer keys with those of `json_schema_extra` over them |\n"
    "| legacy | `json_schema` with neither `name` and `description` nor `json_schema_extra` in it; or, without those "
    "two "
    "at the top, `content`, `model_name` or `response_schema` | `name` and `content` (else `description`) of the row, "
    "`model_name` or `model`, the schema of `response_schema`, and the keys that the table lists for the form |\n"
    "\n"
    "A row whose `json_schema` is a flat or nested document is that document.\n"
    "\n"
    "## Keys\n"
    "\n"
    "The order is the one in which documents are written back. What is unset is left out, other defaults are written.\n"
    "\n";

static const char notes[] =
    "\n"
    "The prompt shows `description`, `system_prompt`, the tools that have a description of their own, and, unless the\n"
    "output is structured, the properties as a structure to think in. There a reference is replaced by the definition\n"
    "that has its last part as name, once; the schema of a structured output keeps references and `$defs`.\n";

void rv_agentdoc_write_reference(rv_buf *out)
{
    static const char name_type[] = "name";
    size_t n;
    const struct rv_agentdoc_key *rows = rv_agentdoc_keys(&n);

    rv_buf_puts(out, intro);
    rv_buf_puts(out, TABLE_HEAD);
    for (size_t i = 0; i < n; i++)
        write_row(out, rows[i].name, rows[i].type, rows[i].default_text, rows[i].meaning, rows[i].forms);
    rv_buf_puts(out, "\n## Keys of a tool\n\nA string stands for a map with that `name`.\n\n" TABLE_HEAD);
    write_row(out, "name", name_type, "required", "The tool. `ask_agent` is the one that asks another agent.", "all");
    write_row(out, "server", name_type, "unset",
              "Which server has it. Unset, `local` and `rem`: it is in the process, as `ask_agent` always is. "
              "`mcp_server` is another name.",
              "all");
    write_row(out, "description", "string", "unset",
              "What this agent should know about it: it goes into the prompt, not to the tool's definition.", "all");
    write_row(
        out, "uri", "URI", "unset",
        "Makes it a resource that is read. Each `{word}` is a string parameter; `{user_id}` and `{session_id}` are "
        "filled in.",
        "all");
    rv_buf_puts(out, "\n## limits\n\n" TABLE_HEAD);
    for (size_t i = 0; i < RV_AGENTDOC_LIMITS; i++)
        write_row(out, rv_agentdoc_limit_keys[i].name, "integer, from 1", "unset", rv_agentdoc_limit_keys[i].meaning,
                  "all");
    rv_buf_puts(out, "\n## routing\n\n" TABLE_HEAD);
    write_row(out, "agents", "list of names", "required", "Where it may lead.", "flat, nested");
    write_row(out, "fallback", name_type, "`general`", "Who answers when none of them fits.", "flat, nested");
    rv_buf_puts(out, notes);
}
