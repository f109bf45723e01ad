/* What may stand in a script: one row per key. The same rows read, check, document and make the JSON Schema. The rows
 * of models' replies are in model_keys.c. */
#include <stddef.h>
#include <string.h>

#include "coreengine/tools/script/script_internal.h"
#include "envelope/envelope.h"

#define AT(member) SCRIPT_AT(member)
/* A row whose value is a map, kept as JSON. */
#define OBJECT(key, member, reader, text)                                                                              \
    {                                                                                                                  \
        .name = key, .type = RV_KEY_CUSTOM, .offset = AT(member), .read = reader, .schema = "{\"type\":\"object\"}",   \
        .doc = text                                                                                                    \
    }

static const struct rv_term type_terms[] = {
    {rv_error_processing, "the stage itself"},
    {rv_error_llm, "the model"},
    {rv_error_parse, "the model's reply"},
    {rv_error_validation, "missing fields"},
    {rv_error_hook, "a hook"},
    {rv_error_policy, "a policy said no"},
    {rv_error_limit, "a limit"},
    {rv_error_timeout, "out of time"},
    {rv_error_cancelled, "cancelled"},
};
static const struct rv_term_list types = {"error_type", "error type", type_terms, RV_COUNT(type_terms)};

static const struct rv_term decision_terms[] = {{"approve", "go on"},
                                                {"reject", "stop, or go where rejected work goes"},
                                                {"modify", "go on with the text as feedback"},
                                                {"happened", "the call happened, with data as its result"},
                                                {"not_happened", "it did not: it is made now"},
                                                {"fail", "the stage gives up"},
                                                {"accept", "the form of a tool has data as its values"},
                                                {"decline", "the form is declined"},
                                                {"cancel", "it is dismissed"}};
static const struct rv_term_list decisions = {"decision", "decision", decision_terms, RV_COUNT(decision_terms)};

const char *script_decision_text(int decision)
{
    return decision >= 0 && decision < (int)RV_COUNT(decision_terms) ? decision_terms[decision].text : NULL;
}

/* --- errors: a text, or a map --- */

struct stage_error {
    struct script_raw_error error;
    int type;
};
static const struct rv_key stage_error_keys[] = {
    {.name = "type",
     .type = RV_KEY_TERM,
     .offset = offsetof(struct stage_error, type),
     .terms = &types,
     .doc = "Which failure to play; ProcessingError when left out."},
    {.name = "message",
     .type = RV_KEY_STR,
     .offset = offsetof(struct stage_error, error.message),
     .required = true,
     .doc = "The text."},
};
static const struct rv_key tool_error_keys[] = {
    {.name = "type",
     .type = RV_KEY_STR,
     .offset = AT(error.type),
     .doc = "For example NotFoundError; ExecutionError when left out."},
    {.name = "message", .type = RV_KEY_STR, .offset = AT(error.message), .required = true, .doc = "The text."},
    {.name = "recoverable",
     .type = RV_KEY_BOOL,
     .offset = AT(error.recoverable),
     .default_text = "false",
     .doc = "Another attempt may help."},
};

static void wrong_error(struct rv_key_reader *r, const struct rv_node *node)
{
    rv_keys_add_wrong_type(r, node, "error", "a text or a map");
}

void script_read_within(struct rv_key_reader *r, const struct rv_node *node, const char *path,
                        const struct rv_key *keys, size_t n, void *target)
{
    const char *outer = r->path;
    r->path = path;
    rv_keys_read(r, node, keys, n, target);
    r->path = outer;
}

static void read_stage_error(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct script_raw_entry *raw = target;
    struct stage_error e = {.type = 0};

    if (node->kind == RV_NODE_STR)
        e.error.message = node->text.ptr;
    else if (node->kind == RV_NODE_MAP)
        script_read_within(r, node, "error.", stage_error_keys, RV_COUNT(stage_error_keys), &e);
    else
        wrong_error(r, node);
    raw->error.message = e.error.message;
    raw->error.type = type_terms[e.type < 0 ? 0 : e.type].text;
}

static void read_tool_error(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct script_raw_entry *raw = target;

    if (node->kind == RV_NODE_STR)
        raw->error.message = node->text.ptr;
    else if (node->kind == RV_NODE_MAP)
        script_read_within(r, node, "error.", tool_error_keys, RV_COUNT(tool_error_keys), raw);
    else
        wrong_error(r, node);
}

/* --- values that must be maps --- */

static void read_object(struct rv_key_reader *r, const struct rv_node *node, const char *key, json_object **out)
{
    if (node->kind == RV_NODE_MAP)
        rv_keys_read_json(r, node, out);
    else
        rv_keys_add_wrong_type(r, node, key, "a map");
}

static void read_output(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    read_object(r, node, "output", target);
}

static void read_result(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    read_object(r, node, "result", target);
}

static void read_reply(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    read_object(r, node, "reply", target);
}

static void read_data(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    read_object(r, node, "data", target);
}

static void read_arguments(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    read_object(r, node, "arguments", target);
}

static void read_input_schema(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    read_object(r, node, "input_schema", target);
}

static void read_confirm(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_tool_info info = {0};
    json_object **out = target;
    rv_err *err = NULL;

    int rc = rv_node_build_json(node, out, &err);
    if (rc == 0)
        rc = rv_tool_read_confirm(&info, *out, &err);
    if (rc == RV_E_NOMEM)
        r->rc = rc;
    else if (rc < 0)
        rv_findings_add_err(r->findings, RV_SEVERITY_ERROR, &node->src, err);
    if (rc < 0 || !info.confirm) {
        json_object_put(*out);
        *out = NULL;
    }
    rv_err_free(err);
}

static void keep_node(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    (void)r;
    *(const struct rv_node **)target = node;
}

/* --- entries --- */

static const struct rv_key raise_keys[] = {
    {.name = "kind",
     .type = RV_KEY_TERM,
     .offset = AT(raise_kind),
     .required = true,
     .term_list = "interrupt_kind",
     .doc = "Kind of the interrupt."},
    {.name = "question", .type = RV_KEY_STR, .offset = AT(raise_question), .doc = "Of a clarification."},
    {.name = "message", .type = RV_KEY_STR, .offset = AT(raise_message), .doc = "Of every other kind."},
    OBJECT("data", raise_data, read_data, "What goes with it."),
};

static const struct rv_key stage_keys[] = {
    SCRIPT_MATCHERS,
    OBJECT("output", output, read_output, "What the stage puts out."),
    {.name = "outcome",
     .type = RV_KEY_TERM,
     .offset = AT(outcome),
     .term_list = "outcome",
     .doc = "Put into the output under that key."},
    {.name = "raise",
     .type = RV_KEY_MAP,
     .keys = raise_keys,
     .n_keys = RV_COUNT(raise_keys),
     .is_set_offset = AT(has_raise),
     .doc = "The stage raises an interrupt."},
    {.name = "error",
     .type = RV_KEY_CUSTOM,
     .offset = 0,
     .read = read_stage_error,
     .is_set_offset = AT(has_error),
     .schema = SCRIPT_ERROR_SCHEMA("\"type\":{\"type\":\"string\"},\"message\":{\"type\":\"string\"}"),
     .doc = "The stage fails: a text, or {type, message}."},
};
static const struct rv_key tool_keys[] = {
    {.name = "tool", .type = RV_KEY_STR, .offset = AT(tool), .doc = "Of a flat list: the tool; required there."},
    SCRIPT_MATCHERS,
    {.name = "result",
     .type = RV_KEY_CUSTOM,
     .offset = AT(result),
     .read = read_result,
     .schema = "{\"type\":\"object\"}",
     .is_set_offset = AT(has_result),
     .doc = "What the tool answers."},
    {.name = "error",
     .type = RV_KEY_CUSTOM,
     .offset = 0,
     .read = read_tool_error,
     .is_set_offset = AT(has_error),
     .schema = SCRIPT_ERROR_SCHEMA("\"type\":{\"type\":\"string\"},\"message\":{\"type\":\"string\"},"
                                   "\"recoverable\":{\"type\":\"boolean\"}"),
     .doc = "The call fails: a text, or {type, message, recoverable}."},
};
static const struct rv_key hook_keys[] = {
    {.name = "hook", .type = RV_KEY_STR, .offset = AT(tool), .doc = "Of a flat list: capability.hook; required there."},
    SCRIPT_MATCHERS,
    {.name = "reply",
     .type = RV_KEY_CUSTOM,
     .offset = AT(result),
     .read = read_reply,
     .schema = "{\"type\":\"object\"}",
     .is_set_offset = AT(has_result),
     .doc = "What the hook answers, as a capability would; {} changes nothing."},
    {.name = "error",
     .type = RV_KEY_CUSTOM,
     .offset = 0,
     .read = read_tool_error,
     .is_set_offset = AT(has_error),
     .schema = SCRIPT_ERROR_SCHEMA("\"type\":{\"type\":\"string\"},\"message\":{\"type\":\"string\"},"
                                   "\"recoverable\":{\"type\":\"boolean\"}"),
     .doc = "The hook fails, and with it the stage: a text, or {type, message}."},
};
static const struct script_table stage_table = {"stage entry", stage_keys, RV_COUNT(stage_keys)};
static const struct script_table tool_table = {"tool entry", tool_keys, RV_COUNT(tool_keys)};
static const struct script_table hook_table = {"hook entry", hook_keys, RV_COUNT(hook_keys)};

const struct script_table *script_table_of(enum rv_script_kind kind)
{
    return kind == RV_SCRIPT_MODEL   ? &script_model_table
           : kind == RV_SCRIPT_STAGE ? &stage_table
           : kind == RV_SCRIPT_TOOL  ? &tool_table
                                     : &hook_table;
}

#undef AT
#define AT(member) offsetof(struct script_raw_answer, member)
static const struct rv_key answer_keys[] = {
    {.name = "text", .type = RV_KEY_STR, .offset = AT(text), .is_set_offset = AT(has_text), .doc = "The words."},
    {.name = "approved",
     .type = RV_KEY_BOOL,
     .offset = AT(approved),
     .is_set_offset = AT(has_approved),
     .doc = "To a confirmation."},
    {.name = "decision", .type = RV_KEY_TERM, .offset = AT(decision), .terms = &decisions, .doc = "To a review."},
    OBJECT("data", data, read_data, "What goes with it."),
    {.name = "choice", .type = RV_KEY_STR, .offset = AT(choice), .doc = "To a question with choices."},
    OBJECT("arguments", arguments, read_arguments, "With an approval: the call is made with these arguments instead."),
    {.name = "stage",
     .type = RV_KEY_STR,
     .offset = AT(stage),
     .doc = "Matcher: only to a question of that stage; other answers are not kept waiting by it."},
    {.name = "expires",
     .type = RV_KEY_BOOL,
     .offset = AT(expires),
     .default_text = "false",
     .doc = "No one answers until the question expires."},
    {.name = "cancels",
     .type = RV_KEY_BOOL,
     .offset = AT(cancels),
     .default_text = "false",
     .doc = "The question is cancelled; text is the reason."},
    {.name = "delay_ms",
     .type = RV_KEY_INT,
     .offset = AT(delay_ms),
     .min = 0,
     .max = RV_SCRIPT_MAX_DELAY_MS,
     .doc = "How long the person takes."},
};
const struct script_table script_answer_table = {"answer", answer_keys, RV_COUNT(answer_keys)};

#undef AT
#define AT(member) offsetof(struct script_raw_tool, member)
static const struct rv_key declaration_keys[] = {
    {.name = "description", .type = RV_KEY_STR, .offset = AT(description), .doc = "What it does."},
    {.name = "risk", .type = RV_KEY_TERM, .offset = AT(risk), .term_list = "risk", .doc = "read_only when left out."},
    {.name = "effect",
     .type = RV_KEY_TERM,
     .offset = AT(effect),
     .term_list = "effect_class",
     .doc = "Follows from the risk when left out."},
    OBJECT("input_schema", input_schema, read_input_schema, "JSON Schema of the arguments."),
    {.name = "requires_confirmation",
     .type = RV_KEY_CUSTOM,
     .offset = AT(confirm),
     .read = read_confirm,
     .schema = "{\"anyOf\":[{\"type\":\"boolean\"},{\"type\":\"object\"}]}",
     .doc = "A person approves each call: true, or {question, show} as in a capability."},
    {.name = "calls",
     .type = RV_KEY_CUSTOM,
     .offset = AT(calls),
     .read = keep_node,
     .required = true,
     .schema = "{\"$ref\":\"#/$defs/tool_entries\"}",
     .doc = "The entries; may be empty for a tool that is not called."},
};
const struct script_table script_tool_table = {"tool", declaration_keys, RV_COUNT(declaration_keys)};

/* --- the JSON Schema --- */

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
    const struct rv_key *keys = script_all_keys(&n);

    rv_jw_obj(w);
    rv_jw_kv_text(w, "$schema", "https://json-schema.org/draft/2020-12/schema");
    rv_jw_kv_text(w, "title", "A script: what stands in for models, stages, tools, hooks and people");
    rv_jw_kv_text(w, "$ref", "#/$defs/script");
    OPEN(w, "$defs");
    rv_jw_key(w, "script");
    rv_keys_write_schema(keys, n, w);
    write_table(w, "model_entry", script_table_of(RV_SCRIPT_MODEL));
    write_table(w, "chunk", &script_chunk_table);
    write_table(w, "tool_call", &script_call_table);
    write_table(w, "stage_entry", script_table_of(RV_SCRIPT_STAGE));
    write_table(w, "tool_entry", script_table_of(RV_SCRIPT_TOOL));
    write_table(w, "hook_entry", script_table_of(RV_SCRIPT_HOOK));
    write_table(w, "tool", &script_tool_table);
    write_table(w, "answer", &script_answer_table);
    write_list(w, "model_entries", "#/$defs/model_entry");
    write_list(w, "stage_entries", "#/$defs/stage_entry");
    write_list(w, "tool_entries", "#/$defs/tool_entry");
    write_list(w, "hook_entries", "#/$defs/hook_entry");
    write_list(w, "answer_list", "#/$defs/answer");
    write_section(w, "model_section", "#/$defs/model_entries", NULL);
    write_section(w, "stage_section", "#/$defs/stage_entries", NULL);
    write_section(w, "tool_section", "#/$defs/tool_entries", "#/$defs/tool");
    write_section(w, "hook_section", "#/$defs/hook_entries", NULL);
    rv_jw_obj_end(w);
    rv_jw_obj_end(w);
}
