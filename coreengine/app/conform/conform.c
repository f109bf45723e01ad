/* The report of `reeve inspect --check`. What the loader and a call refuse comes as text, from another process; the
 * table below knows the rule that each of their messages is about, and a test plants a fault for each rule. */
#include "coreengine/app/conform/conform_internal.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/rows.h"
#include "coreengine/base/base.h"

/* --- What a capability declares. The loader has let it in: everything here is advice. --- */

#define MAX_DEPTH 16 /* of schemas: one may contain itself; deeper ones are not looked at */

static bool is_closed(json_object *schema)
{
    bool more = true;

    return (rv_json_get_bool(schema, "additionalProperties", &more) && !more) ||
           json_object_object_get_ex(schema, "unevaluatedProperties", NULL);
}

static bool has_any(json_object *schema, const char *const *keys)
{
    for (; *keys; keys++)
        if (json_object_object_get_ex(schema, *keys, NULL))
            return true;
    return false;
}

/* The texts and lists of a schema, with the path to each. */
static void check_bounds(struct conform *c, const char *tool, json_object *schema, const char *path, int depth)
{
    static const char *const of_texts[] = {"maxLength", "enum", "const", "pattern", "format", NULL};
    static const char *const of_lists[] = {"maxItems", "enum", "const", NULL};
    const char *type = rv_json_text_or(schema, "type", "");
    json_object *properties = rv_json_get_obj(schema, "properties"), *items = rv_json_get_obj(schema, "items");

    if (strcmp(type, "string") == 0)
        app_conform_note(c, RV_CONFORM_TOOL_BOUNDED, has_any(schema, of_texts), tool, "%s has no maxLength", path);
    if (strcmp(type, "array") == 0)
        app_conform_note(c, RV_CONFORM_TOOL_BOUNDED, has_any(schema, of_lists), tool, "%s has no maxItems", path);
    if (depth >= MAX_DEPTH)
        return;
    if (properties) {
        json_object_object_foreach (properties, key, value) {
            RV_AUTO(rv_buf_fini) rv_buf deeper = RV_BUF_INIT(4096);
            rv_buf_printf(&deeper, "%s%s%.200s", path, *path ? "." : "", key);
            if (json_object_is_type(value, json_type_object))
                check_bounds(c, tool, value, rv_buf_cstr(&deeper), depth + 1);
        }
    }
    if (items) {
        RV_AUTO(rv_buf_fini) rv_buf deeper = RV_BUF_INIT(4096);
        rv_buf_printf(&deeper, "%s[]", path);
        check_bounds(c, tool, items, rv_buf_cstr(&deeper), depth + 1);
    }
}

static void check_tool(struct conform *c, json_object *tool)
{
    json_object *input = rv_json_get_obj(tool, "input_schema");
    const char *name = rv_json_text_or(tool, "name", "");

    app_conform_note(c, RV_CONFORM_TOOL_INPUT, input != NULL, name, "it has no input_schema");
    app_conform_note(c, RV_CONFORM_TOOL_OUTPUT, json_object_object_get_ex(tool, "output_schema", NULL), name,
                     "it has no output_schema");
    if (!input)
        return;
    app_conform_note(c, RV_CONFORM_TOOL_CLOSED, is_closed(input), name, "its input_schema takes any further argument");
    check_bounds(c, name, input, "", 0);
}

/* cap: one element of rv_app_build_capabilities(). */
static void check_specs(struct conform *c, json_object *cap)
{
    static const char *const seeing[] = {"hooks", "policies", "routes"};
    json_object *config = rv_json_get_obj(cap, "config_schema");

    app_conform_note(c, RV_CONFORM_DESC_VERSION, *rv_json_text_or(cap, "version", ""), "", "it has no version");
    app_conform_note(c, RV_CONFORM_DESC_ABOUT, *rv_json_text_or(cap, "description", ""), "", "it has no description");
    if (config)
        app_conform_note(c, RV_CONFORM_CONFIG_CLOSED, is_closed(config), "", "its config_schema takes any further key");
    json_object_object_foreach (cap, group, list) {
        bool sees = false;
        for (size_t i = 0; i < RV_COUNT(seeing); i++)
            sees = sees || strcmp(group, seeing[i]) == 0;
        size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
        for (size_t i = 0; i < n; i++) {
            json_object *entry = json_object_array_get_idx(list, i);
            const char *name = rv_json_text_or(entry, "name", "");
            if (strcmp(group, "probes") != 0)
                app_conform_note(c, RV_CONFORM_ENTRY_ABOUT, *rv_json_text_or(entry, "description", ""), name,
                                 "it has no description");
            if (strcmp(group, "tools") == 0)
                check_tool(c, entry);
            if (sees)
                app_conform_note(c, RV_CONFORM_HOOK_SEES, json_object_object_get_ex(entry, "sees", NULL), name,
                                 "it does not say what it sees");
        }
    }
}

/* --- the report --- */

#define MAX_TEXT ((size_t)2048) /* bytes of one finding: half a screen of a terminal; the rest is cut */

static const struct {
    const char *id, *text, *hint;
    bool is_error;
} rules[] = {
#define X(name, id, is_error, text, hint) [RV_CONFORM_##name] = {id, text, hint, is_error},
    RV_CONFORM_RULES(X)
#undef X
};

/* A part of a message, in the order in which they are looked for. */
static const struct {
    const char *says;
    enum rv_conform_rule rule;
} messages[] = {
    {"not a capability that can be loaded", RV_CONFORM_LOAD_FILE},
    {"no function rv_capability()", RV_CONFORM_LOAD_SYMBOL},
    {"gave no descriptor", RV_CONFORM_DESC_GIVEN},
    {"built for capability ABI", RV_CONFORM_DESC_ABI},
    {"its descriptor is ", RV_CONFORM_DESC_SIZE},
    {"its entries are said to be ", RV_CONFORM_ENTRIES_SIZE},
    {"but its file is", RV_CONFORM_DESC_FILE},
    {"it calls itself", RV_CONFORM_DESC_NAME},
    {"its config_schema is", RV_CONFORM_DESC_CONFIG},
    {"its version is", RV_CONFORM_DESC_TEXT},
    {"its description is", RV_CONFORM_DESC_TEXT},
    {"does not say why", RV_CONFORM_OPEN_SAYS},
    {"failed to open", RV_CONFORM_OPEN_WORKS},
    {"it has no list of entries", RV_CONFORM_ENTRIES_END},
    {"has no end within", RV_CONFORM_ENTRIES_END},
    {"there is no kind", RV_CONFORM_ENTRY_KIND},
    {"is not a name of a", RV_CONFORM_ENTRY_NAME},
    {"its document", RV_CONFORM_AGENT_DOCUMENT},
    {"has no function", RV_CONFORM_ENTRY_FUNCTION},
    {"has a function", RV_CONFORM_ENTRY_FUNCTION},
    {"two entries for", RV_CONFORM_ENTRY_ONCE},
    {"\"services\"", RV_CONFORM_SPEC_SERVICES},
    {"its specification has an unknown key", RV_CONFORM_SPEC_KEYS},
    {"its specification is", RV_CONFORM_SPEC_JSON},
    {"\"timeout_ms\" is not", RV_CONFORM_SPEC_TIMEOUT},
    {"_schema\" is not a schema", RV_CONFORM_SPEC_SCHEMA},
    {"it has no \"text\"", RV_CONFORM_PROMPT_TEXT},
    {"its text is not a template", RV_CONFORM_PROMPT_TEXT},
    {"but no tool of that name", RV_CONFORM_PROBE_TOOL},
    {"unknown risk level", RV_CONFORM_SPEC_WORDS},
    {"unknown tool category", RV_CONFORM_SPEC_WORDS},
    {"unknown effect class", RV_CONFORM_SPEC_WORDS},
    {"is not a string but", RV_CONFORM_SPEC_TYPES},
    {"is not a list but", RV_CONFORM_SPEC_TYPES},
    {"is neither true nor false", RV_CONFORM_SPEC_TYPES},
    {"must be true or false", RV_CONFORM_SPEC_TYPES},
    {"its specification", RV_CONFORM_SPEC_TYPES},
    {" in this call", RV_CONFORM_CALL_LIVE},
    {"answered and failed", RV_CONFORM_CALL_ONCE},
    {" times in one call", RV_CONFORM_CALL_ONCE},
    {"without saying why", RV_CONFORM_CALL_SAYS},
    {"returned without an answer", RV_CONFORM_CALL_SAYS},
    {"left its answer for later", RV_CONFORM_CALL_SAYS},
    {"it answered", RV_CONFORM_CALL_JSON},
    {"its answer", RV_CONFORM_CALL_JSON},
    {"died", RV_CONFORM_LOAD_LIVE},
    {"ended with status", RV_CONFORM_LOAD_LIVE},
    {"process of a capability is gone", RV_CONFORM_LOAD_LIVE},
    {"no answer in time", RV_CONFORM_LOAD_LIVE},
};

static void add_finding(struct conform *c, enum rv_conform_rule rule, const char *entry, rv_str text)
{
    struct conform_finding *f = calloc(1, sizeof *f);

    if (f)
        *f = (struct conform_finding){
            .rule = rule, .entry = rv_str_dup(rv_str_of(entry)), .text = rv_str_dup(rv_utf8_cut(text, MAX_TEXT))};
    if (!f || !f->entry || !f->text)
        c->rc = RV_E_NOMEM;
    if (!f)
        return;
    *c->end = f;
    c->end = &f->next;
}

void app_conform_note(struct conform *c, enum rv_conform_rule rule, bool is_kept, const char *entry, const char *fmt,
                      ...)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT * 4);
    va_list ap;

    c->checked[rule]++;
    c->kept[rule] += is_kept;
    if (is_kept)
        return;
    va_start(ap, fmt);
    rv_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    add_finding(c, rule, entry, rv_buf_str(&text));
    rv_buf_fini(&text);
}

void app_conform_keep(struct conform *c, enum rv_conform_rule rule)
{
    c->checked[rule]++;
    c->kept[rule]++;
}

void app_conform_note_err(struct conform *c, enum rv_conform_rule otherwise, const char *entry, const rv_err *why)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT * 4);
    enum rv_conform_rule rule = otherwise;

    rv_err_write_chain(why, &text);
    for (const rv_err *link = why; link; link = rv_err_cause(link))
        if (rv_err_hint_text(link))
            rv_buf_printf(&text, "; %s", rv_err_hint_text(link));
    for (size_t i = 0; i < RV_COUNT(messages); i++)
        if (strstr(rv_buf_cstr(&text), messages[i].says)) {
            rule = messages[i].rule;
            break;
        }
    app_conform_note(c, rule, false, entry, "%s", rv_buf_cstr(&text));
    rv_buf_fini(&text);
}

static bool is_ok(const struct conform *c)
{
    for (size_t i = 0; i < RV_COUNT(rules); i++)
        if (rules[i].is_error && c->kept[i] < c->checked[i])
            return false;
    return true;
}

/* Of 100: the part of all checks that were kept; a capability that does not load has none. */
static int64_t score_of(const struct conform *c, bool is_loaded)
{
    size_t checked = 0, kept = 0;

    for (size_t i = 0; i < RV_COUNT(rules); i++) {
        checked += c->checked[i];
        kept += c->kept[i];
    }
    return is_loaded && checked > 0 ? (int64_t)(kept * 100 / checked) : 0;
}

static void write_rule(const struct conform *c, size_t i, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "rule", rules[i].id);
    rv_jw_kv_bool(w, "is_error", rules[i].is_error);
    rv_jw_kv_int(w, "checked", (int64_t)c->checked[i]);
    rv_jw_kv_int(w, "kept", (int64_t)c->kept[i]);
    rv_jw_kv_text(w, "text", rules[i].text);
    rv_jw_kv_text(w, "hint", rules[i].hint);
    rv_jw_key(w, "findings");
    rv_jw_arr(w);
    for (const struct conform_finding *f = c->findings; f; f = f->next) {
        if (f->rule != i)
            continue;
        rv_jw_obj(w);
        rv_jw_kv_text(w, "entry", f->entry);
        rv_jw_kv_text(w, "text", f->text);
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}

static void write_report(const struct conform *c, const char *name, json_object *cap, rv_jw *w)
{
    const char *real = rv_json_text_or(cap, "name", name);
    const char *version = rv_json_text_or(cap, "version", "");
    rv_jw_obj(w);
    rv_jw_kv_text(w, "capability", real);
    rv_jw_kv_text(w, "version", version);
    rv_jw_kv_bool(w, "ok", is_ok(c));
    rv_jw_kv_int(w, "score", score_of(c, cap != NULL));
    rv_jw_key(w, "rules");
    rv_jw_arr(w);
    for (size_t i = 0; i < RV_COUNT(rules); i++)
        if (c->checked[i] > 0)
            write_rule(c, i, w);
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}

void rv_conform_write_reference(rv_buf *b)
{
    rv_buf_puts(b,
                "# Rules of capabilities\n\nGenerated by `reeve docs reference capability-rules`; do not edit.\n\n"
                "`reeve inspect --check` says of each rule how often it was looked at and how often it was kept; the "
                "score is the\npart that was kept, of 100, and 0 for a capability that does not load. A rule that is "
                "only advice does not change the\nexit status. With `--json` the report has `capability`, `version`, "
                "`ok`, `score` and `rules`: `rule`, `is_error`,\n`checked`, `kept`, `text`, `hint` and `findings` "
                "(`entry`, `text`). The capability runs in a [process of its\nown](../how-to/isolate-a-capability.md). "
                "Tools whose effect is `safe` are called with arguments made up from their\nschemas (`default`, "
                "`examples`, `enum`, the least length), and once more cancelled; no other entry is called.\n\n"
                "| rule | is kept if | else | what to do |\n| --- | --- | --- | --- |\n");
    for (size_t i = 0; i < RV_COUNT(rules); i++)
        rv_buf_printf(b, "| `%s` | %s | %s | %s |\n", rules[i].id, rules[i].text,
                      rules[i].is_error ? "broken" : "advice", rules[i].hint);
}

static void findings_fini(struct conform *c)
{
    while (c->findings) {
        struct conform_finding *f = c->findings;
        c->findings = f->next;
        free(f->entry);
        free(f->text);
        free(f);
    }
}

/* What the loader has looked at, when it let the capability in. */
static void note_loaded(struct conform *c, json_object *cap)
{
    static const enum rv_conform_rule once[] = {RV_CONFORM_LOAD_FILE,  RV_CONFORM_LOAD_SYMBOL,  RV_CONFORM_LOAD_LIVE,
                                                RV_CONFORM_DESC_GIVEN, RV_CONFORM_DESC_ABI,     RV_CONFORM_DESC_SIZE,
                                                RV_CONFORM_DESC_NAME,  RV_CONFORM_DESC_FILE,    RV_CONFORM_DESC_TEXT,
                                                RV_CONFORM_OPEN_WORKS, RV_CONFORM_ENTRIES_SIZE, RV_CONFORM_ENTRIES_END};
    static const enum rv_conform_rule each[] = {RV_CONFORM_ENTRY_KIND, RV_CONFORM_ENTRY_NAME, RV_CONFORM_ENTRY_FUNCTION,
                                                RV_CONFORM_ENTRY_ONCE, RV_CONFORM_SPEC_JSON,  RV_CONFORM_SPEC_KEYS,
                                                RV_CONFORM_SPEC_TYPES};

    for (size_t i = 0; i < RV_COUNT(once); i++)
        app_conform_keep(c, once[i]);
    json_object_object_foreach (cap, group, list) {
        (void)group;
        for (size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0; n > 0; n--)
            for (size_t i = 0; i < RV_COUNT(each); i++)
                app_conform_keep(c, each[i]);
    }
}

static int look(struct conform *c, rv_plugins *plugins, json_object **list, rv_err **err)
{
    int rc = rv_app_build_capabilities(plugins, list, err);
    json_object *cap = rc == 0 ? json_object_array_get_idx(*list, 0) : NULL;

    if (rc < 0)
        return rc;
    note_loaded(c, cap);
    check_specs(c, cap);
    return app_conform_calls(c, plugins, cap, err);
}

int rv_app_conform(const struct rv_plugins_opts *opts, const char *name, rv_jw *w, bool *ok, rv_err **err)
{
    const struct rv_capability_config which = {.name = name, .isolation = RV_ISOLATION_PROCESS};
    struct conform c = {.end = NULL};
    rv_plugins *plugins = NULL;
    json_object *list = NULL;
    rv_err *why = NULL;

    c.end = &c.findings;
    int rc = rv_plugins_new(opts, &plugins, err);
    int loaded = rc < 0 ? rc : rv_plugins_load(plugins, &which, &why);
    if (rc == 0 && (loaded == RV_E_NOMEM || loaded == RV_E_NOT_FOUND)) { /* nothing can be said */
        rc = loaded;
        rv_err_pass(err, why);
        why = NULL;
    } else if (rc == 0 && loaded < 0) {
        app_conform_note_err(&c, loaded == RV_E_INVALID ? RV_CONFORM_OPEN_CONFIG : RV_CONFORM_LOAD_FILE, "", why);
    } else if (rc == 0) {
        rc = look(&c, plugins, &list, err);
    }
    if (rc == 0 && c.rc < 0)
        rc = RV_FAIL(err, c.rc, "check capability \"%s\"", name);
    if (rc == 0) {
        write_report(&c, name, list ? json_object_array_get_idx(list, 0) : NULL, w);
        *ok = is_ok(&c);
    }
    rv_err_free(why);
    json_object_put(list);
    rv_plugins_free(plugins);
    findings_fini(&c);
    return rc;
}
