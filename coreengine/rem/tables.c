/* The tables that queries may name, with the columns that SQL sees. A table of another kind is a row here. */
#include "coreengine/rem/rem.h"

static const struct rv_rem_column common[] = {
    {"id", RV_REM_TEXT},          {"tenant_id", RV_REM_TEXT},
    {"user_id", RV_REM_TEXT},     {"encryption_level", RV_REM_TEXT},
    {"graph_edges", RV_REM_JSON}, {"metadata", RV_REM_JSON},
    {"tags", RV_REM_JSON},        {"created_at", RV_REM_TIME},
    {"updated_at", RV_REM_TIME},  {"deleted_at", RV_REM_TIME},
};

static const struct rv_rem_column schemas[] = {
    {"name", RV_REM_TEXT},        {"kind", RV_REM_TEXT},    {"version", RV_REM_TEXT},
    {"description", RV_REM_TEXT}, {"content", RV_REM_TEXT}, {"json_schema", RV_REM_JSON},
};
static const struct rv_rem_column sessions[] = {
    {"name", RV_REM_TEXT}, {"description", RV_REM_TEXT}, {"agent_name", RV_REM_TEXT},
    {"mode", RV_REM_TEXT}, {"total_tokens", RV_REM_INT},
};
static const struct rv_rem_column messages[] = {
    {"session_id", RV_REM_TEXT}, {"message_type", RV_REM_TEXT}, {"content", RV_REM_TEXT},
    {"token_count", RV_REM_INT}, {"tool_calls", RV_REM_JSON},   {"trace_id", RV_REM_TEXT},
    {"span_id", RV_REM_TEXT},    {"input_tokens", RV_REM_INT},  {"output_tokens", RV_REM_INT},
    {"latency_ms", RV_REM_INT},  {"model", RV_REM_TEXT},        {"agent_name", RV_REM_TEXT},
};
static const struct rv_rem_column moments[] = {
    {"name", RV_REM_TEXT},
    {"moment_type", RV_REM_TEXT},
    {"summary", RV_REM_TEXT},
    {"image_uri", RV_REM_TEXT},
    {"starts_timestamp", RV_REM_TIME},
    {"ends_timestamp", RV_REM_TIME},
    {"present_persons", RV_REM_JSON},
    {"emotion_tags", RV_REM_JSON},
    {"topic_tags", RV_REM_JSON},
    {"category", RV_REM_TEXT},
    {"rating", RV_REM_INT},
    {"source_session_id", RV_REM_TEXT},
    {"previous_moment_keys", RV_REM_JSON},
};
static const struct rv_rem_column resources[] = {
    {"name", RV_REM_TEXT},    {"uri", RV_REM_TEXT},      {"ordinal", RV_REM_INT},
    {"content", RV_REM_TEXT}, {"category", RV_REM_TEXT}, {"image_uri", RV_REM_TEXT},
    {"comment", RV_REM_TEXT}, {"rating", RV_REM_INT},    {"related_entities", RV_REM_JSON},
};
static const struct rv_rem_column ontologies[] = {
    {"name", RV_REM_TEXT},
    {"uri", RV_REM_TEXT},
    {"content", RV_REM_TEXT},
    {"extracted_data", RV_REM_JSON},
    {"file_id", RV_REM_TEXT},
    {"agent_schema_id", RV_REM_TEXT},
    {"confidence_score", RV_REM_FLOAT},
};
static const struct rv_rem_column users[] = {
    {"name", RV_REM_TEXT},           {"email", RV_REM_TEXT},   {"interests", RV_REM_JSON},
    {"activity_level", RV_REM_TEXT}, {"content", RV_REM_TEXT}, {"devices", RV_REM_JSON},
};
static const struct rv_rem_column files[] = {
    {"name", RV_REM_TEXT},
    {"uri", RV_REM_TEXT},
    {"mime_type", RV_REM_TEXT},
    {"size_bytes", RV_REM_INT},
    {"parsed_content", RV_REM_TEXT},
    {"parsed_output", RV_REM_JSON},
    {"processing_status", RV_REM_TEXT},
    {"thumbnail_uri", RV_REM_TEXT},
};
/* Without auth_config: it holds keys. */
static const struct rv_rem_column servers[] = {
    {"name", RV_REM_TEXT},    {"url", RV_REM_TEXT},         {"protocol", RV_REM_TEXT},
    {"enabled", RV_REM_BOOL}, {"description", RV_REM_TEXT},
};
static const struct rv_rem_column tools[] = {
    {"name", RV_REM_TEXT},         {"server_id", RV_REM_TEXT},     {"description", RV_REM_TEXT},
    {"input_schema", RV_REM_JSON}, {"output_schema", RV_REM_JSON}, {"enabled", RV_REM_BOOL},
};
static const struct rv_rem_column feedback[] = {
    {"session_id", RV_REM_TEXT}, {"message_id", RV_REM_TEXT}, {"rating", RV_REM_INT},
    {"comment", RV_REM_TEXT},    {"trace_id", RV_REM_TEXT},   {"span_id", RV_REM_TEXT},
};

#define COLUMNS(list) (list), RV_COUNT(list)
static const struct rv_rem_table tables[] = {
    {"schemas", "description", COLUMNS(schemas)},   {"ontologies", "content", COLUMNS(ontologies)},
    {"resources", "content", COLUMNS(resources)},   {"moments", "summary", COLUMNS(moments)},
    {"sessions", "description", COLUMNS(sessions)}, {"tools", "description", COLUMNS(tools)},
    {"users", "content", COLUMNS(users)},           {"files", "parsed_content", COLUMNS(files)},
    {"messages", NULL, COLUMNS(messages)},          {"servers", NULL, COLUMNS(servers)},
    {"feedback", NULL, COLUMNS(feedback)},
};

const struct rv_rem_table *rv_rem_tables(size_t *n)
{
    *n = RV_COUNT(tables);
    return tables;
}

const struct rv_rem_column *rv_rem_common_columns(size_t *n)
{
    *n = RV_COUNT(common);
    return common;
}
