/* Errors of plans as JSON and as text. One table says which fields an error has. */
#include <stdint.h>

#include "coreengine/plan/planner.h"

enum field {
    NONE,
    REFERENCED_INDEX,
    MAX_INDEX,
    COUNT,
    MAX,
    TOOL,
    SUBJECT,
    TEXT,
    NAMES,
    SOURCE_TYPE,
    TARGET_TOOL,
    TARGET_ARGUMENT,
    TARGET_TYPE,
};
#define MAX_FIELDS 6 /* of the longest error's details */

static const struct row {
    const char *word;
    struct {
        const char *key;
        enum field field;
    } fields[MAX_FIELDS];
} rows[] =
    {
#define ROW(type, name) [RV_PLAN_ERROR_##type] = {.word = name, .fields =
        /* clang-format off */
    ROW(NONE, "") {{0}}},
    ROW(PLAN_MALFORMED, "plan_malformed") {{"reason", SUBJECT}, {"detail", TEXT}}},
    ROW(EMPTY_PLAN, "empty_plan") {{0}}},
    ROW(TOO_MANY_CALLS, "too_many_calls") {{"count", COUNT}, {"max", MAX}}},
    ROW(TOO_MANY_REFERENCES, "too_many_references") {{"count", COUNT}, {"max", MAX}}},
    ROW(UNKNOWN_TOOL, "unknown_tool") {{"tool_name", TOOL}, {"available_tools", NAMES}}},
    ROW(AMBIGUOUS_TOOL, "ambiguous_tool") {{"tool_name", TOOL}, {"candidates", NAMES}}},
    ROW(INVALID_CALL_OPTION, "invalid_call_option") {{"option", SUBJECT}, {"message", TEXT}}},
    ROW(ARGUMENTS_NOT_OBJECT, "arguments_not_object") {{"actual_type", SUBJECT}}},
    ROW(MISSING_REQUIRED_ARGUMENT, "missing_required_argument") {{"tool_name", TOOL}, {"missing", SUBJECT}}},
    ROW(UNKNOWN_ARGUMENT, "unknown_argument") {{"tool_name", TOOL}, {"unknown", SUBJECT}, {"allowed", NAMES}}},
    ROW(INVALID_ARGUMENT, "invalid_argument") {{"tool_name", TOOL}, {"message", TEXT}}},
    ROW(INVALID_TEMPLATE_SYNTAX, "invalid_template_syntax") {{0}}},
    ROW(EMBEDDED_REFERENCE, "embedded_reference") {{0}}},
    ROW(SELF_REFERENCE, "self_reference") {{0}}},
    ROW(INDEX_OUT_OF_BOUNDS, "index_out_of_bounds")
        {{"referenced_index", REFERENCED_INDEX}, {"max_valid_index", MAX_INDEX}}},
    ROW(FORWARD_REFERENCE, "forward_reference") {{"referenced_index", REFERENCED_INDEX}}},
    ROW(NO_OUTPUT_SCHEMA, "no_output_schema") {{"tool_name", TOOL}}},
    ROW(FIELD_NOT_FOUND, "field_not_found") {{"tool_name", TOOL}, {"field", SUBJECT}, {"available_fields", NAMES}}},
    ROW(UNRESOLVED_REFERENCE, "unresolved_reference") {{"reason", SUBJECT}}},
    ROW(TYPE_MISMATCH, "type_mismatch")
        {{"source_tool", TOOL}, {"field", SUBJECT}, {"source_type", SOURCE_TYPE}, {"target_tool", TARGET_TOOL},
         {"target_argument", TARGET_ARGUMENT}, {"target_type", TARGET_TYPE}}},
/* clang-format on */
#undef ROW
}
;
RV_EACH_HAS_ROW(rows, RV_PLAN_N_ERRORS);

const char *rv_plan_error_text(enum rv_plan_error_type type)
{
    return rows[type].word;
}

/* --- JSON --- */

static void write_names(const struct rv_plan_error *e, rv_jw *out)
{
    rv_jw_arr(out);
    for (size_t i = 0; i < e->n_names; i++)
        rv_jw_text(out, e->names[i]);
    rv_jw_arr_end(out);
}

static void write_field(const struct rv_plan_error *e, enum field field, rv_jw *out)
{
    switch (field) {
    case REFERENCED_INDEX:
        rv_jw_int(out, (int64_t)e->referenced_index);
        return;
    case MAX_INDEX:
        if (e->max_index == SIZE_MAX)
            rv_jw_null(out);
        else
            rv_jw_int(out, (int64_t)e->max_index);
        return;
    case COUNT:
        rv_jw_int(out, (int64_t)e->count);
        return;
    case MAX:
        rv_jw_int(out, (int64_t)e->max);
        return;
    case TOOL:
        rv_jw_text(out, e->tool);
        return;
    case SUBJECT:
        rv_jw_text(out, e->subject);
        return;
    case TEXT:
        rv_jw_text(out, e->text);
        return;
    case NAMES:
        write_names(e, out);
        return;
    case SOURCE_TYPE:
        rv_jw_text(out, e->source_type);
        return;
    case TARGET_TOOL:
        rv_jw_text(out, e->target_tool);
        return;
    case TARGET_ARGUMENT:
        rv_jw_text(out, e->target_argument);
        return;
    case TARGET_TYPE:
        rv_jw_text(out, e->target_type);
        return;
    case NONE:
        break;
    }
    rv_jw_null(out);
}

void rv_plan_error_write_json(const struct rv_plan_error *error, rv_jw *out)
{
    const struct row *row = &rows[error->type];

    rv_jw_obj(out);
    rv_jw_kv_int(out, "tool_index", (int64_t)error->tool_index);
    rv_jw_kv_text(out, "argument", error->argument);
    rv_jw_kv_str(out, "template", error->written);
    rv_jw_key(out, "error");
    rv_jw_obj(out);
    rv_jw_kv_text(out, "type", row->word);
    for (size_t i = 0; i < MAX_FIELDS && row->fields[i].key; i++) {
        rv_jw_key(out, row->fields[i].key);
        write_field(error, row->fields[i].field, out);
    }
    rv_jw_obj_end(out);
    rv_jw_obj_end(out);
}

/* --- text --- */

#define MAX_SHOWN   200 /* bytes of a text of the model in one line: it comes back to the model */
#define NAMES_SHOWN 40  /* of a list */

/* A text of a model or a server in a line for people: short, without control characters. */
static void put_shown(rv_str text, rv_buf *out)
{
    rv_str cut = rv_utf8_cut(text, MAX_SHOWN);

    for (size_t i = 0; i < cut.len;) {
        size_t n = rv_utf8_control(cut.ptr + i, cut.len - i);
        if (n > 0)
            rv_buf_putc(out, ' ');
        else
            rv_buf_putc(out, cut.ptr[i]);
        i += n > 0 ? n : 1;
    }
    if (cut.len < text.len)
        rv_buf_puts(out, "...");
}

static void put(const char *text, rv_buf *out)
{
    put_shown(rv_str_of(text), out);
}

static void put_names(const char *before, const char *none, const struct rv_plan_error *e, rv_buf *out)
{
    if (e->n_names == 0)
        rv_buf_puts(out, none);
    for (size_t i = 0; i < e->n_names; i++) {
        if (i == NAMES_SHOWN) {
            rv_buf_printf(out, " and %zu more", e->n_names - i);
            break;
        }
        rv_buf_puts(out, i == 0 ? before : ", ");
        put(e->names[i], out);
    }
}

/* "a tool "x"" with words before and behind. */
static void put_quoted(const char *before, const char *text, rv_buf *out)
{
    rv_buf_printf(out, "%s\"", before);
    put(text ? text : "", out);
    rv_buf_putc(out, '"');
}

static void put_mismatch(const struct rv_plan_error *e, rv_buf *out)
{
    if (e->subject[0])
        put_quoted("field ", e->subject, out);
    else
        rv_buf_puts(out, "the output");
    put_quoted(" of tool ", e->tool, out);
    rv_buf_printf(out, " is %s, but ", e->source_type);
    put_quoted("argument ", e->target_argument, out);
    put_quoted(" of tool ", e->target_tool, out);
    rv_buf_printf(out, " needs %s", e->target_type);
}

static void put_invalid(const char *what, const char *name, const struct rv_plan_error *e, rv_buf *out)
{
    put_quoted(what, name, out);
    rv_buf_puts(out, ": ");
    put(e->text, out);
}

/* What a tool or its output does not have, and what it has. */
static void put_lacking(const char *of, const char *name, const char *lists, const struct rv_plan_error *e, rv_buf *out)
{
    put_quoted(of, e->tool, out);
    put_quoted(e->type == RV_PLAN_ERROR_UNKNOWN_ARGUMENT ? " does not have an argument " : " does not have a field ",
               name, out);
    put_names(lists, "", e, out);
}

static void put_out_of_bounds(const struct rv_plan_error *e, rv_buf *out)
{
    rv_buf_printf(out, "the plan does not have a call %zu", e->referenced_index);
    if (e->max_index == SIZE_MAX)
        rv_buf_puts(out, "; the first call cannot use outputs");
    else
        rv_buf_printf(out, "; outputs of calls 0 to %zu can be used here", e->max_index);
}

/* Only errors without details. */
static const char *const fixed[RV_PLAN_ERROR_SELF_REFERENCE + 1] = {
    [RV_PLAN_ERROR_INVALID_TEMPLATE_SYNTAX] =
        "not a valid reference; write $N.output.field, or ${N.output.field} inside a text",
    [RV_PLAN_ERROR_EMBEDDED_REFERENCE] = "a reference inside a text is written ${N.output.field}",
    [RV_PLAN_ERROR_SELF_REFERENCE] = "a call cannot use its own output",
};

static void put_tools(const char *before, const char *names, const char *without, const struct rv_plan_error *e,
                      rv_buf *out)
{
    put_quoted(before, e->tool, out);
    put_names(names, without, e, out);
}

static void put_message(const struct rv_plan_error *e, rv_buf *out)
{
    switch (e->type) {
    case RV_PLAN_ERROR_PLAN_MALFORMED:
    case RV_PLAN_ERROR_EMPTY_PLAN:
    case RV_PLAN_ERROR_TOO_MANY_CALLS:
        put(e->text, out);
        return;
    case RV_PLAN_ERROR_TOO_MANY_REFERENCES:
        rv_buf_printf(out, "the plan has %zu references, at most %zu are allowed", e->count, e->max);
        return;
    case RV_PLAN_ERROR_UNKNOWN_TOOL:
        put_tools("unknown tool ", "; the tools are: ", "; there are no tools", e, out);
        return;
    case RV_PLAN_ERROR_AMBIGUOUS_TOOL:
        put_tools("several servers have a tool ", "; use one of: ", "", e, out);
        return;
    case RV_PLAN_ERROR_INVALID_CALL_OPTION:
        put_invalid("invalid ", e->subject, e, out);
        return;
    case RV_PLAN_ERROR_ARGUMENTS_NOT_OBJECT:
        rv_buf_printf(out, "arguments have to be an object, not %s", e->subject);
        return;
    case RV_PLAN_ERROR_MISSING_REQUIRED_ARGUMENT:
        put_quoted("tool ", e->tool, out);
        put_quoted(" needs argument ", e->subject, out);
        return;
    case RV_PLAN_ERROR_UNKNOWN_ARGUMENT:
        put_lacking("tool ", e->argument, "; it has: ", e, out);
        return;
    case RV_PLAN_ERROR_INVALID_ARGUMENT:
        put_invalid("invalid argument of tool ", e->tool, e, out);
        return;
    case RV_PLAN_ERROR_INVALID_TEMPLATE_SYNTAX:
    case RV_PLAN_ERROR_EMBEDDED_REFERENCE:
    case RV_PLAN_ERROR_SELF_REFERENCE:
        rv_buf_puts(out, fixed[e->type]);
        return;
    case RV_PLAN_ERROR_INDEX_OUT_OF_BOUNDS:
        put_out_of_bounds(e, out);
        return;
    case RV_PLAN_ERROR_FORWARD_REFERENCE:
        rv_buf_printf(out, "call %zu runs later: only outputs of earlier calls can be used", e->referenced_index);
        return;
    case RV_PLAN_ERROR_NO_OUTPUT_SCHEMA:
        put_quoted("tool ", e->tool, out);
        rv_buf_puts(out, " does not declare its output, so it cannot be referenced");
        return;
    case RV_PLAN_ERROR_FIELD_NOT_FOUND:
        put_lacking("the output of tool ", e->subject, "; available fields: ", e, out);
        return;
    case RV_PLAN_ERROR_UNRESOLVED_REFERENCE:
        put(e->subject, out);
        return;
    case RV_PLAN_ERROR_TYPE_MISMATCH:
        put_mismatch(e, out);
        return;
    case RV_PLAN_ERROR_NONE:
    case RV_PLAN_N_ERRORS:
        break;
    }
}

/* One line, without a line feed. */
static void write_text(const struct rv_plan_error *error, rv_buf *out)
{
    bool is_of_plan = error->type == RV_PLAN_ERROR_PLAN_MALFORMED || error->type == RV_PLAN_ERROR_EMPTY_PLAN ||
                      error->type == RV_PLAN_ERROR_TOO_MANY_CALLS;

    if (!is_of_plan)
        rv_buf_printf(out, "call %zu: ", error->tool_index);
    if (error->argument[0] && error->type != RV_PLAN_ERROR_UNKNOWN_ARGUMENT) {
        put_quoted("argument ", error->argument, out);
        rv_buf_puts(out, ": ");
    }
    if (error->written.len > 0) {
        rv_buf_putc(out, '"');
        put_shown(error->written, out);
        rv_buf_puts(out, "\": ");
    }
    put_message(error, out);
}

void rv_plan_check_write_text(const struct rv_plan_check *check, rv_buf *out)
{
    rv_buf_puts(out, "Plan validation failed:");
    for (size_t i = 0; i < check->n_errors; i++) {
        rv_buf_puts(out, "\n- ");
        write_text(&check->errors[i], out);
    }
    if (check->n_more > 0)
        rv_buf_printf(out, "\n- and %zu more errors", check->n_more);
}
