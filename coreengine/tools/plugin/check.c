/* What a capability says of itself: its descriptor, the list of its entries, and the JSON specification of each entry.
 * Each part may lie. What can be checked is checked before the next thing is read: the ABI and the size first, since
 * they say which further fields exist at all. What cannot be checked in a shared process is whether a pointer points
 * somewhere. */
#include "coreengine/tools/plugin/plugin_internal.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

/* --- the specification of one entry: a JSON object in which every key is known --- */

static const char *const tool_keys[] = {
    "description",           "risk",    "category", "effect", "timeout_ms", "input_schema", "output_schema", "blocking",
    "requires_confirmation", "services"};
static const char *const call_keys[] = {"description", "sees", "timeout_ms", "blocking", "services"};
static const char *const plain_keys[] = {"description", "timeout_ms", "blocking",
                                         "services"}; /* of those that see no envelope */
static const char *const subscriber_keys[] = {"description", "events", "timeout_ms", "blocking", "services"};
static const char *const provider_keys[] = {"description", "timeout_ms", "blocking", "attachments", "services"};
static const char *const prompt_keys[] = {"description", "text"};

static int advise(int rc, const char *hint, rv_err **err)
{
    rv_err_set_hint(err, "%s", hint);
    return rc;
}

/* A JSON object from text that a plugin gave; what names it in messages. RV_E_PLUGIN. */
static int read_object(const char *text, const char *what, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_PLUGIN_MAX_SPEC, .what = what};
    json_object *obj = NULL;
    int rc;

    if (!text)
        return advise(RV_FAIL(err, RV_E_PLUGIN, "%s is missing", what), "write it as JSON, at least {}", err);
    rc = rv_json_parse((rv_str){text, strnlen(text, RV_PLUGIN_MAX_SPEC + 1)}, &opts, &obj, err);
    if (rc < 0)
        return rc == RV_E_NOMEM ? rc
                                : advise(RV_WRAP(err, RV_E_PLUGIN, "%s is not JSON", what),
                                         "RV_CAP_JSON({...}) of capability.h writes it without quotes around it", err);
    if (!json_object_is_type(obj, json_type_object)) {
        rc = RV_FAIL(err, RV_E_PLUGIN, "%s is not an object but %s", what, rv_json_type_text(obj));
        json_object_put(obj);
        return rc;
    }
    *out = obj;
    return 0;
}

static int check_keys(json_object *spec, const char *const *keys, size_t n, rv_err **err)
{
    json_object_object_foreach (spec, key, value) {
        size_t i = 0;
        const char *nearest;
        int rc;

        (void)value;
        while (i < n && strcmp(keys[i], key) != 0)
            i++;
        if (i < n)
            continue;
        nearest = rv_nearest(rv_str_of(key), keys, n);
        rc = RV_FAIL(err, RV_E_PLUGIN, "its specification has an unknown key \"%s\"", key);
        if (nearest)
            rv_err_set_hint(err, "did you mean \"%s\"?", nearest);
        return rc;
    }
    return 0;
}

/* The text under key, or "" when it is absent. */
static int read_text(json_object *spec, const char *key, const char **out, rv_err **err)
{
    json_object *value;

    *out = "";
    if (!json_object_object_get_ex(spec, key, &value))
        return 0;
    if (!rv_json_get_text(spec, key, out))
        return RV_FAIL(err, RV_E_PLUGIN, "\"%s\" is not a string but %s", key, rv_json_type_text(value));
    return 0;
}

static int read_timeout(json_object *spec, int64_t *out, rv_err **err)
{
    json_object *value;

    if (!json_object_object_get_ex(spec, "timeout_ms", &value))
        return 0;
    if (!rv_json_get_int(spec, "timeout_ms", out) || *out < 1 || *out > RV_PLUGIN_MAX_TIMEOUT_MS)
        return RV_FAIL(err, RV_E_PLUGIN, "\"timeout_ms\" is not an integer between 1 and %lld",
                       (long long)RV_PLUGIN_MAX_TIMEOUT_MS);
    return 0;
}

static int read_blocking(struct rv_plugin_entry *e, rv_err **err)
{
    bool blocks = true;

    if (json_object_object_get_ex(e->spec, "blocking", NULL) && !rv_json_get_bool(e->spec, "blocking", &blocks))
        return RV_FAIL(err, RV_E_PLUGIN, "\"blocking\" is neither true nor false");
    e->never_blocks = !blocks;
    return 0;
}

static int read_schema(json_object *spec, const char *key, json_object **json, rv_schema **out, rv_err **err)
{
    int rc;

    if (!json_object_object_get_ex(spec, key, json))
        return 0;
    rc = rv_schema_compile(*json, key, out, err);
    if (rc < 0)
        return rc == RV_E_NOMEM ? rc : RV_WRAP(err, RV_E_PLUGIN, "\"%s\" is not a schema", key);
    return 0;
}

static int read_words(json_object *spec, struct rv_tool_info *tool, rv_err **err)
{
    const char *risk, *category, *effect;
    int rc;

    if ((rc = read_text(spec, "risk", &risk, err)) < 0 || (rc = read_text(spec, "category", &category, err)) < 0 ||
        (rc = read_text(spec, "effect", &effect, err)) < 0)
        return rc;
    rc = rv_tool_read_words(tool, *category ? category : NULL, *risk ? risk : NULL, *effect ? effect : NULL, err);
    return rc == RV_E_INVALID ? RV_WRAP(err, RV_E_PLUGIN, "its specification") : rc;
}

static int read_tool(struct rv_plugin_entry *e, rv_err **err)
{
    struct rv_tool_info *tool = &e->tool;
    json_object *confirm = NULL;
    int rc;

    tool->name = e->name;
    tool->description = e->description;
    if ((rc = check_keys(e->spec, tool_keys, RV_COUNT(tool_keys), err)) < 0 ||
        (rc = read_words(e->spec, tool, err)) < 0 || (rc = read_timeout(e->spec, &tool->timeout_ms, err)) < 0 ||
        (rc = read_blocking(e, err)) < 0 ||
        (rc = read_schema(e->spec, "input_schema", &tool->input_json, &e->input, err)) < 0 ||
        (rc = read_schema(e->spec, "output_schema", &tool->output_json, &e->output, err)) < 0)
        return rc;
    tool->input = e->input;
    tool->output = e->output;
    if (json_object_object_get_ex(e->spec, "requires_confirmation", &confirm) &&
        (rc = rv_tool_read_confirm(tool, confirm, err)) < 0)
        return rc == RV_E_NOMEM ? rc : RV_WRAP(err, RV_E_PLUGIN, "its specification");
    return 0;
}

/* A list of strings, which belong to the specification. */
static int read_list(const struct rv_plugin_entry *e, const char *key, struct rv_str_list *out, rv_err **err)
{
    json_object *list;
    size_t n;

    if (!json_object_object_get_ex(e->spec, key, &list))
        return 0;
    if (!json_object_is_type(list, json_type_array))
        return RV_FAIL(err, RV_E_PLUGIN, "\"%s\" is not a list but %s", key, rv_json_type_text(list));
    n = json_object_array_length(list);
    out->items = calloc(n + 1, sizeof *out->items); /* one more: an empty list must not be a null pointer */
    if (!out->items)
        return RV_FAIL(err, RV_E_NOMEM, "read \"%s\"", key);
    for (size_t i = 0; i < n; i++) {
        json_object *item = json_object_array_get_idx(list, i);
        if (!json_object_is_type(item, json_type_string))
            return RV_FAIL(err, RV_E_PLUGIN, "\"%s\" has an item that is not a string but %s", key,
                           rv_json_type_text(item));
        out->items[i] = rv_json_str(item).ptr;
    }
    out->n = n;
    out->is_set = true;
    return 0;
}

/* The engine repeats the calls of an entry as its effect says, and everything that is not a tool's as often as it likes
 * after a crash: what is asked has to bear that. */
static int check_service(const struct rv_plugin_entry *e, const char *name, rv_err **err)
{
    enum rv_effect_class of = e->kind == RV_NAME_TOOL    ? rv_tool_effect(&e->tool)
                              : e->kind == RV_NAME_PROBE ? RV_EFFECT_SAFE
                                                         : RV_EFFECT_IDEMPOTENT;
    int rc = rv_service_check(rv_str_of(name), err);

    if (rc < 0)
        return RV_WRAP(err, RV_E_PLUGIN, "\"services\"");
    const struct rv_service_info *s = rv_service_find(rv_str_of(name));
    if (e->kind == RV_NAME_SUBSCRIBER && s->is_command && strcmp(s->name, "events.publish") == 0)
        return RV_FAIL(err, RV_E_PLUGIN, "\"services\": a subscriber cannot publish events, which it would be told of");
    if (rv_service_fits(s, of))
        return 0;
    rc = RV_FAIL(err, RV_E_PLUGIN, "\"services\": \"%s\" is %s, and calls of this %s are repeated as %s ones", s->name,
                 rv_effect_class_text(s->effect), rv_name_kind_text(e->kind), rv_effect_class_text(of));
    if (e->kind == RV_NAME_TOOL)
        rv_err_set_hint(err, "say \"effect\": \"%s\"", rv_effect_class_text(s->effect));
    else
        rv_err_set_hint(err, "let a tool ask for it");
    return rc;
}

static int read_services(struct rv_plugin_entry *e, rv_err **err)
{
    int rc = read_list(e, "services", &e->services, err);

    for (size_t i = 0; i < e->services.n && rc == 0; i++)
        rc = check_service(e, e->services.items[i], err);
    if (rc == 0 && e->services.n > 0 && e->never_blocks)
        return RV_FAIL(err, RV_E_PLUGIN, "\"services\" are waited for, which \"blocking\": false rules out");
    return rc;
}

static int read_called(struct rv_plugin_entry *e, const char *const *keys, size_t n_keys, rv_err **err)
{
    int rc;

    e->info.name = e->name;
    e->info.kind = e->kind;
    if ((rc = check_keys(e->spec, keys, n_keys, err)) < 0 ||
        (rc = read_timeout(e->spec, &e->info.timeout_ms, err)) < 0 || (rc = read_blocking(e, err)) < 0)
        return rc;
    return read_list(e, e->kind == RV_NAME_SUBSCRIBER ? "events" : "sees", &e->info.sees, err);
}

static int read_provider(struct rv_plugin_entry *e, rv_err **err)
{
    json_object *takes = NULL;
    int rc = read_called(e, provider_keys, RV_COUNT(provider_keys), err);

    if (rc < 0 || !json_object_object_get_ex(e->spec, "attachments", &takes))
        return rc;
    if (!json_object_is_type(takes, json_type_boolean))
        return RV_FAIL(err, RV_E_PLUGIN, "\"attachments\" must be true or false, not %s", rv_json_type_text(takes));
    e->info.takes_attachments = json_object_get_boolean(takes);
    return 0;
}

static int read_prompt(struct rv_plugin_entry *e, rv_err **err)
{
    rv_err *why = NULL;
    int rc;

    if ((rc = check_keys(e->spec, prompt_keys, RV_COUNT(prompt_keys), err)) < 0 ||
        (rc = read_text(e->spec, "text", &e->prompt_text, err)) < 0)
        return rc;
    if (!*e->prompt_text)
        return RV_FAIL(err, RV_E_PLUGIN, "it has no \"text\"");
    rc = rv_template_compile(rv_str_of(e->prompt_text), NULL, &e->prompt, &why);
    if (rc < 0) /* the text only: a place inside a plugin would hide the place in the pipeline */
        rc = advise(
            RV_FAIL(err, rc == RV_E_NOMEM ? rc : RV_E_PLUGIN, "its text is not a template: %s", rv_err_text(why)),
            "placeholders are written {{path}}", err);
    rv_err_free(why);
    return rc;
}

static int read_by_kind(struct rv_plugin_entry *e, rv_err **err)
{
    switch (e->kind) {
    case RV_NAME_TOOL:
        return read_tool(e, err);
    case RV_NAME_PROMPT:
        return read_prompt(e, err);
    case RV_NAME_HOOK:
    case RV_NAME_POLICY:
    case RV_NAME_MOCK:
    case RV_NAME_ROUTE:
        return read_called(e, call_keys, RV_COUNT(call_keys), err);
    case RV_NAME_PROVIDER:
        return read_provider(e, err);
    case RV_NAME_PROBE:
        return read_called(e, plain_keys, RV_COUNT(plain_keys), err);
    case RV_NAME_SUBSCRIBER:
        return read_called(e, subscriber_keys, RV_COUNT(subscriber_keys), err);
    case RV_N_NAME_KINDS:
        break;
    }
    return RV_FAIL(err, RV_E_INTERNAL, "an entry of a kind that the table does not give");
}

/* The specification of an entry. */
static int read_spec(struct rv_plugin_entry *e, const char *text, rv_err **err)
{
    int rc = read_object(text, "its specification", &e->spec, err);

    if (rc == 0)
        rc = read_text(e->spec, "description", &e->description, err);
    if (rc == 0)
        rc = read_by_kind(e, err);
    return rc == 0 ? read_services(e, err) : rc;
}

/* --- the descriptor and its list of entries --- */

/* Sizes of the first version: nothing older can be loaded. */
#define MIN_DESC_SIZE  (offsetof(struct rv_cap_desc, close) + sizeof(void (*)(void)))
#define MIN_ENTRY_SIZE (offsetof(struct rv_cap_entry, fn) + sizeof(void (*)(void)))

static const struct {
    const char *noun;
    enum rv_name_kind kind;
} kinds[] = {
    [RV_CAP_TOOL] = {"tool", RV_NAME_TOOL},
    [RV_CAP_HOOK] = {"hook", RV_NAME_HOOK},
    [RV_CAP_POLICY] = {"policy", RV_NAME_POLICY},
    [RV_CAP_MOCK] = {"mock", RV_NAME_MOCK},
    [RV_CAP_ROUTE] = {"routing function", RV_NAME_ROUTE},
    [RV_CAP_PROMPT] = {"prompt", RV_NAME_PROMPT},
    [RV_CAP_PROBE] = {"probe", RV_NAME_PROBE},
    [RV_CAP_PROVIDER] = {"provider", RV_NAME_PROVIDER},
    [RV_CAP_SUBSCRIBER] = {"subscriber", RV_NAME_SUBSCRIBER},
    [RV_CAP_AGENT] = {"agent", RV_N_NAME_KINDS}, /* an agent is not an entry */
};
RV_EACH_HAS_ROW(kinds, RV_PLUGIN_LAST_KIND + 1);

static int check_versions(const struct rv_cap_desc *given, rv_err **err)
{
    uint32_t abi = given->abi, size = given->size;

    if (abi != RV_CAP_ABI) {
        int rc = RV_FAIL(err, RV_E_VERSION, "it was built for capability ABI %u, this engine has %d", abi, RV_CAP_ABI);
        if (abi < RV_CAP_ABI)
            rv_err_set_hint(err, "it is too old: build it again with this version's capability.h");
        else
            rv_err_set_hint(err, "it is too new: use a newer reeve, or build it with this version's capability.h");
        return rc;
    }
    if (size < MIN_DESC_SIZE)
        return advise(RV_FAIL(err, RV_E_VERSION, "its descriptor is %u bytes long, ABI %d needs at least %zu", size,
                              RV_CAP_ABI, MIN_DESC_SIZE),
                      "define it with RV_CAPABILITY() of capability.h", err);
    if (given->entry_size < MIN_ENTRY_SIZE || given->entry_size > RV_PLUGIN_MAX_ENTRY_SIZE ||
        given->entry_size % _Alignof(struct rv_cap_entry) != 0)
        return RV_FAIL(err, RV_E_VERSION, "its entries are said to be %u bytes long, which cannot be (ABI %d has %zu)",
                       given->entry_size, RV_CAP_ABI, MIN_ENTRY_SIZE);
    return 0;
}

/* A copy of a text of the plugin, in the limits and in UTF-8; NULL gives "". */
static int copy_text(const char *text, const char *what, char **out, rv_err **err)
{
    rv_str s = {text, text ? strnlen(text, RV_PLUGIN_MAX_TEXT + 1) : 0};

    if (s.len > RV_PLUGIN_MAX_TEXT)
        return RV_FAIL(err, RV_E_PLUGIN, "its %s is longer than %zu bytes", what, RV_PLUGIN_MAX_TEXT);
    if (!rv_utf8_valid(s, NULL))
        return RV_FAIL(err, RV_E_PLUGIN, "its %s is not UTF-8", what);
    *out = rv_str_dup(s);
    return *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "copy the %s of a capability", what);
}

static int check_config_schema(struct rv_plugin *pl, rv_err **err)
{
    int rc;

    if (!pl->desc.config_schema)
        return 0;
    rc = read_object(pl->desc.config_schema, "its config_schema", &pl->config_schema_json, err);
    if (rc == 0)
        rc = rv_schema_compile(pl->config_schema_json, "config_schema", &pl->config_schema, err);
    if (rc == RV_E_INVALID)
        rc = RV_WRAP(err, RV_E_PLUGIN, "its config_schema is not a schema");
    return rc;
}

int plugin_check_desc(const struct rv_cap_desc *given, struct rv_plugin *pl, rv_err **err)
{
    rv_str name;
    int rc;

    if (!given)
        return RV_FAIL(err, RV_E_PLUGIN, "rv_capability() gave no descriptor");
    rc = check_versions(given, err);
    if (rc < 0)
        return rc;
    memset(&pl->desc, 0, sizeof pl->desc);
    memcpy(&pl->desc, given, given->size < sizeof pl->desc ? given->size : sizeof pl->desc);

    name = (rv_str){pl->desc.name, pl->desc.name ? strnlen(pl->desc.name, RV_PLUGIN_MAX_NAME + 1) : 0};
    if (!plugin_name_ok(name, true))
        return advise(RV_FAIL(err, RV_E_PLUGIN,
                              "it calls itself \"%.*s\", which is not a name (a-z, 0-9, _ and -, at most %d)",
                              RV_STR_ARG(name), RV_PLUGIN_MAX_NAME),
                      "change .name of its descriptor", err);
    if (!pl->desc.entries)
        return RV_FAIL(err, RV_E_PLUGIN, "it has no list of entries");
    rc = copy_text(pl->desc.name, "name", &pl->name, err);
    if (rc == 0)
        rc = copy_text(pl->desc.version, "version", &pl->version, err);
    if (rc == 0)
        rc = copy_text(pl->desc.description, "description", &pl->description, err);
    if (rc == 0)
        rc = check_config_schema(pl, err);
    return rc;
}

static int entry_name(struct rv_plugin_entry *e, const char *bare, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf name = RV_BUF_INIT((size_t)2 * RV_PLUGIN_MAX_NAME + 1);
    size_t at;

    if (e->kind != RV_NAME_TOOL && e->kind != RV_NAME_PROBE)
        rv_buf_printf(&name, "%s.", e->owner->name);
    at = name.len;
    rv_buf_puts(&name, bare);
    e->name = rv_buf_steal(&name, NULL);
    if (!e->name)
        return RV_FAIL(err, RV_E_NOMEM, "name an entry of a capability");
    e->bare = e->name + at;
    return 0;
}

/* What entries of all kinds have to be like. */
static int check_row(const struct rv_cap_entry *given, size_t i, rv_err **err)
{
    bool has_function = given->kind != RV_CAP_PROMPT && given->kind != RV_CAP_AGENT;
    const char *noun;
    rv_str name;

    if (given->kind < RV_CAP_TOOL || given->kind > RV_PLUGIN_LAST_KIND)
        return RV_FAIL(err, RV_E_PLUGIN, "entry %zu: there is no kind %d", i, given->kind);
    noun = kinds[given->kind].noun;
    name = (rv_str){given->name, given->name ? strnlen(given->name, RV_PLUGIN_MAX_NAME + 1) : 0};
    if (!plugin_name_ok(name, false))
        return RV_FAIL(err, RV_E_PLUGIN, "entry %zu: \"%.*s\" is not a name of a %s (a-z, 0-9 and _, at most %d)", i,
                       RV_STR_ARG(name), noun, RV_PLUGIN_MAX_NAME);
    if (has_function && !given->fn)
        return advise(RV_FAIL(err, RV_E_PLUGIN, "%s \"%s\" has no function", noun, given->name),
                      "name the function of the call as the last member of the entry", err);
    if (!has_function && given->fn)
        return RV_FAIL(err, RV_E_PLUGIN, "%s \"%s\" has a function; %ss have none", noun, given->name, noun);
    return 0;
}

static int read_entry(struct rv_plugin_entry *e, const struct rv_cap_entry *given, rv_err **err)
{
    int rc;

    e->kind = kinds[given->kind].kind;
    e->fn = given->fn;
    rc = entry_name(e, given->name, err);
    return rc < 0 ? rc : read_spec(e, given->spec, err);
}

static int read_row(struct rv_plugin *pl, const struct rv_cap_entry *given, size_t i, rv_err **err)
{
    int rc = check_row(given, i, err);

    if (rc < 0)
        return rc;
    if (given->kind == RV_CAP_AGENT) {
        rc = plugin_read_agent(&pl->agents[pl->n_agents++], given->name, given->spec, err);
    } else {
        struct rv_plugin_entry *e = &pl->entries[pl->n_entries++];
        e->owner = pl;
        rc = read_entry(e, given, err);
    }
    return rc < 0 ? RV_WRAP(err, rc, "%s \"%s\"", kinds[given->kind].noun, given->name) : 0;
}

/* A probe is about a tool of its own capability; which one may stand anywhere in the list. */
static int match_probes(struct rv_plugin *pl, rv_err **err)
{
    for (size_t i = 0; i < pl->n_entries; i++) {
        const struct rv_plugin_entry *probe = &pl->entries[i];
        size_t at = 0;

        if (probe->kind != RV_NAME_PROBE)
            continue;
        while (at < pl->n_entries &&
               (pl->entries[at].kind != RV_NAME_TOOL || strcmp(pl->entries[at].name, probe->name) != 0))
            at++;
        if (at == pl->n_entries)
            return RV_FAIL(err, RV_E_PLUGIN, "it has a probe \"%s\" but no tool of that name", probe->name);
        pl->entries[at].tool.has_probe = true;
    }
    return 0;
}

int plugin_check_entries(struct rv_plugin *pl, rv_err **err)
{
    const char *row = (const char *)pl->desc.entries;
    struct rv_cap_entry given;
    size_t n = 0, n_agents = 0;

    /* Rows are as long as the plugin says: it may have been built with fields that we do not know. */
    for (;; n++) {
        memcpy(&given.kind, row + n * pl->desc.entry_size, sizeof given.kind);
        if (given.kind == 0)
            break;
        if (n == RV_CAP_MAX_ENTRIES)
            return RV_FAIL(err, RV_E_PLUGIN, "its list of entries has no end within %d", RV_CAP_MAX_ENTRIES);
        n_agents += given.kind == RV_CAP_AGENT;
    }
    if (n == 0)
        return 0;
    pl->n_rows = n;
    pl->entries = calloc(n - n_agents + 1, sizeof *pl->entries);
    pl->agents = calloc(n_agents + 1, sizeof *pl->agents);
    if (!pl->entries || !pl->agents)
        return RV_FAIL(err, RV_E_NOMEM, "read the entries of a capability");
    for (size_t i = 0; i < n; i++) {
        int rc;
        memcpy(&given, row + i * pl->desc.entry_size, sizeof given);
        rc = read_row(pl, &given, i, err);
        if (rc < 0)
            return rc;
    }
    return match_probes(pl, err);
}
