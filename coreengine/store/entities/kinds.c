/* The table of kinds, after p8-data 1.2, 2 and 3. */
#include "coreengine/store/store_internal.h"

#define MAX_KINDS 32 /* of the list of names in a message: the assertion below compares it with the table */

static const struct rv_kind_field users[] = {
    {.name = "name"},           {.name = "email"},   {.name = "interests", .type = RV_KIND_TEXTS},
    {.name = "activity_level"}, {.name = "content"}, {.name = "devices", .type = RV_KIND_OBJECTS},
};
static const struct rv_kind_field ontologies[] = {
    {.name = "name"},
    {.name = "uri"},
    {.name = "content"},
    {.name = "extracted_data", .type = RV_KIND_OBJECT},
    {.name = "file_id", .type = RV_KIND_ID},
    {.name = "agent_schema_id", .type = RV_KIND_ID},
    {.name = "confidence_score", .type = RV_KIND_REAL},
};
static const struct rv_kind_field schemas[] = {
    {.name = "name"},    {.name = "kind", .fallback = "\"model\""},       {.name = "version"}, {.name = "description"},
    {.name = "content"}, {.name = "json_schema", .type = RV_KIND_OBJECT},
};
static const struct rv_kind_field resources[] = {
    {.name = "name"},
    {.name = "uri"},
    {.name = "ordinal", .type = RV_KIND_INT},
    {.name = "content"},
    {.name = "category"},
    {.name = "image_uri"},
    {.name = "comment"},
    {.name = "rating", .type = RV_KIND_INT, .least = 1, .greatest = 5},
    {.name = "related_entities", .type = RV_KIND_TEXTS},
};
static const struct rv_kind_field moments[] = {
    {.name = "name"},
    {.name = "moment_type"},
    {.name = "summary"},
    {.name = "image_uri"},
    {.name = "starts_timestamp", .type = RV_KIND_TIME},
    {.name = "ends_timestamp", .type = RV_KIND_TIME},
    {.name = "present_persons", .type = RV_KIND_OBJECTS},
    {.name = "emotion_tags", .type = RV_KIND_TEXTS},
    {.name = "topic_tags", .type = RV_KIND_TEXTS},
    {.name = "category"},
    {.name = "rating", .type = RV_KIND_INT, .least = 1, .greatest = 5},
    {.name = "source_session_id", .type = RV_KIND_ID},
    {.name = "previous_moment_keys", .type = RV_KIND_TEXTS},
};
static const struct rv_kind_field sessions[] = {
    {.name = "name"},
    {.name = "description"},
    {.name = "agent_name"},
    {.name = "mode", .fallback = "\"chat\""},
    {.name = "total_tokens", .type = RV_KIND_INT, .fallback = "0"},
};
static const struct rv_kind_field messages[] = {
    {.name = "session_id", .type = RV_KIND_ID},
    {.name = "message_type", .fallback = "\"user\""},
    {.name = "content"},
    {.name = "token_count", .type = RV_KIND_INT, .fallback = "0"},
    {.name = "tool_calls", .type = RV_KIND_OBJECT},
    {.name = "trace_id"},
    {.name = "span_id"},
    {.name = "input_tokens", .type = RV_KIND_INT, .fallback = "0"},
    {.name = "output_tokens", .type = RV_KIND_INT, .fallback = "0"},
    {.name = "latency_ms", .type = RV_KIND_INT},
    {.name = "model"},
    {.name = "agent_name"},
};
static const struct rv_kind_field files[] = {
    {.name = "name"},
    {.name = "uri"},
    {.name = "mime_type"},
    {.name = "size_bytes", .type = RV_KIND_INT, .least = 0, .greatest = INT64_MAX},
    {.name = "parsed_content"},
    {.name = "parsed_output", .type = RV_KIND_OBJECT},
    {.name = "processing_status", .fallback = "\"pending\"", .words = "pending processing completed failed"},
    {.name = "thumbnail_uri"},
};
static const struct rv_kind_field servers[] = {
    {.name = "name"},
    {.name = "url"},
    {.name = "protocol", .fallback = "\"mcp\"", .words = "mcp openapi"},
    {.name = "auth_config", .type = RV_KIND_OBJECT, .fallback = "{}"},
    {.name = "enabled", .type = RV_KIND_BOOL, .fallback = "true"},
    {.name = "description"},
};
static const struct rv_kind_field tools[] = {
    {.name = "name"},
    {.name = "server_id", .type = RV_KIND_ID},
    {.name = "description"},
    {.name = "input_schema", .type = RV_KIND_OBJECT},
    {.name = "output_schema", .type = RV_KIND_OBJECT},
    {.name = "enabled", .type = RV_KIND_BOOL, .fallback = "true"},
};
static const struct rv_kind_field tenants[] = {
    {.name = "name"},
    {.name = "encryption_mode", .fallback = "\"platform\"", .words = "none platform client sealed disabled"},
    {.name = "status", .fallback = "\"active\""},
};
static const struct rv_kind_field feedback[] = {
    {.name = "session_id", .type = RV_KIND_ID},
    {.name = "message_id", .type = RV_KIND_ID},
    {.name = "rating", .type = RV_KIND_INT},
    {.name = "comment"},
    {.name = "trace_id"},
    {.name = "span_id"},
};

static const struct rv_kind_field scenarios[] = {
    {.name = "name"},
    {.name = "description"},
    {.name = "session_id", .type = RV_KIND_ID},
    {.name = "agent_name"},
    {.name = "status", .fallback = "\"active\""},
};
static const struct rv_kind_field collections[] = {
    {.name = "name"},
    {.name = "description"},
    {.name = "status", .fallback = "\"active\""},
    {.name = "session_ids", .type = RV_KIND_TEXTS},
};

#define FIELDS(list) .fields = (list), .n_fields = RV_COUNT(list)
const struct rv_kind rv_kinds[] = {
    {.name = "users",
     .doc = "profiles of users; structured facts are in metadata",
     FIELDS(users),
     .keys = {"email"},
     .embedded = "content",
     .encrypted = {"content", "email"},
     .matched = "email",
     .is_sealed = true,
     .summary = {"name"},
     .is_indexed = true},
    {.name = "ontologies",
     .doc = "pages of knowledge, of some 500 tokens each",
     FIELDS(ontologies),
     .keys = {"uri", "name"},
     .embedded = "content",
     .encrypted = {"content", "extracted_data"},
     .is_sealed = true,
     .summary = {"name"},
     .about = "file_id",
     .is_indexed = true,
     .is_shared = true},
    {.name = "schemas",
     .doc = "declarations: agents, models, tools, tables",
     .place = RV_PLACE_SCHEMAS,
     FIELDS(schemas),
     .keys = {"name"},
     .embedded = "description",
     .summary = {"content", "description", "name"},
     .is_indexed = true,
     .is_shared = true},
    {.name = "resources",
     .doc = "documents, chunks of documents, saved web pages",
     FIELDS(resources),
     .keys = {"uri", "name"},
     .embedded = "content",
     .encrypted = {"content", "comment"},
     .is_sealed = true,
     .summary = {"name"},
     .about = "metadata.file_id",
     .is_indexed = true},
    {.name = "moments",
     .doc = "memory: what happened, with its time",
     FIELDS(moments),
     .keys = {"name"},
     .embedded = "summary",
     .encrypted = {"summary"},
     .summary = {"name"},
     .about = "source_session_id",
     .is_indexed = true},
    {.name = "sessions",
     .doc = "conversations",
     .place = RV_PLACE_SESSIONS,
     FIELDS(sessions),
     .embedded = "description",
     .encrypted = {"description"},
     .summary = {"description", "name"},
     .is_indexed = true},
    {.name = "files",
     .doc = "uploaded files",
     FIELDS(files),
     .keys = {"uri", "name"},
     .embedded = "parsed_content",
     .encrypted = {"parsed_content", "parsed_output"},
     .is_sealed = true,
     .summary = {"name"},
     .is_indexed = true},
    {.name = "servers",
     .doc = "remote servers of tools",
     FIELDS(servers),
     .keys = {"name"},
     .encrypted = {"auth_config"},
     .summary = {"description", "name"},
     .is_indexed = true,
     .is_shared = true},
    {.name = "tools",
     .doc = "tools that remote servers offer",
     FIELDS(tools),
     .keys = {"name"},
     .embedded = "description",
     .summary = {"description", "name"},
     .about = "server_id",
     .is_indexed = true,
     .is_shared = true},
    {.name = "tenants",
     .doc = "tenants and their settings",
     FIELDS(tenants),
     .keys = {"name"},
     .summary = {"name"},
     .is_indexed = true},
    {.name = "messages",
     .doc = "messages of conversations",
     .place = RV_PLACE_MESSAGES,
     FIELDS(messages),
     .encrypted = {"content", "tool_calls"},
     .about = "session_id"},
    {.name = "feedback",
     .doc = "ratings of sessions and messages",
     FIELDS(feedback),
     .encrypted = {"comment"},
     .is_sealed = true,
     .about = "session_id"},
    {.name = "scenarios",
     .doc = "sessions that are kept under a name, to be tried again",
     FIELDS(scenarios),
     .embedded = "description",
     .encrypted = {"description"},
     .summary = {"name"},
     .about = "session_id",
     .is_indexed = true},
    {.name = "collections",
     .doc = "groups of sessions",
     FIELDS(collections),
     .keys = {"name"},
     .embedded = "description",
     .encrypted = {"description"},
     .summary = {"name"},
     .is_indexed = true},
};
const size_t rv_n_kinds = RV_COUNT(rv_kinds);
_Static_assert(RV_COUNT(rv_kinds) <= MAX_KINDS, "room for the names of all kinds");

const char *store_kind_type_text(enum rv_kind_type type)
{
    static const char *const texts[] = {
        [RV_KIND_TEXT] = "text",     [RV_KIND_INT] = "integer",         [RV_KIND_REAL] = "number",
        [RV_KIND_BOOL] = "boolean",  [RV_KIND_TIME] = "time",           [RV_KIND_ID] = "id",
        [RV_KIND_OBJECT] = "object", [RV_KIND_TEXTS] = "list of texts", [RV_KIND_OBJECTS] = "list of objects"};
    RV_EACH_HAS_ROW(texts, RV_N_KIND_TYPES);

    return texts[type];
}

const struct rv_kind *rv_kind_find(rv_str name)
{
    for (size_t i = 0; i < rv_n_kinds; i++)
        if (rv_str_is(name, rv_kinds[i].name))
            return &rv_kinds[i];
    return NULL;
}

int rv_kind_of(rv_str name, const struct rv_kind **out, rv_err **err)
{
    const char *names[MAX_KINDS];
    rv_buf list = RV_BUF_INIT(1000);

    *out = rv_kind_find(name);
    if (*out)
        return 0;
    for (size_t i = 0; i < rv_n_kinds; i++) {
        names[i] = rv_kinds[i].name;
        rv_buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = rv_nearest(name, names, rv_n_kinds);
    rv_str shown = rv_utf8_cut(name, 40);
    RV_FAIL(err, RV_E_INVALID, "unknown kind \"%.*s\"", RV_STR_ARG(shown));
    if (near)
        rv_err_set_hint(err, "did you mean \"%s\"? Kinds: %s", near, rv_buf_cstr(&list));
    else
        rv_err_set_hint(err, "kinds: %s", rv_buf_cstr(&list));
    rv_buf_fini(&list);
    return RV_E_INVALID;
}

const struct rv_kind_field *rv_kind_find_field(const struct rv_kind *kind, rv_str name)
{
    for (size_t i = 0; i < kind->n_fields; i++)
        if (rv_str_is(name, kind->fields[i].name))
            return &kind->fields[i];
    return NULL;
}

bool store_kind_encrypts(const struct rv_kind *kind, const char *field)
{
    for (size_t i = 0; i < RV_KIND_MAX_NAMES && kind->encrypted[i]; i++)
        if (strcmp(kind->encrypted[i], field) == 0)
            return true;
    return false;
}
