/* One row of a turn, read from JSON. */
#include "coreengine/conversation/turn_internal.h"

static const char *const known[] = {
    "id",         "type",        "content", "tool_calls",     "agent",         "model",
    "trace_id",   "span_id",     "run_id",  "input_tokens",   "output_tokens", "cost_micro_usd",
    "latency_ms", "token_count", "status",  "parent_call_id", "metadata",      "at_us"};

static int read_count(json_object *json, const char *key, int64_t missing, int64_t *out, rv_err **err)
{
    json_object *value = NULL;

    *out = missing;
    json_object_object_get_ex(json, key, &value);
    if (!value)
        return 0;
    if (!rv_json_is_int(value) || json_object_get_int64(value) < 0)
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" is no count", key);
    *out = json_object_get_int64(value);
    return 0;
}

static int read_texts(json_object *json, struct rv_message *m, rv_err **err)
{
    const struct {
        const char *key;
        const char **out;
    } texts[] = {{"agent", &m->agent_name},
                 {"model", &m->model},
                 {"trace_id", &m->trace_id},
                 {"span_id", &m->span_id},
                 {"run_id", &m->run_id},
                 {"status", &m->status},
                 {"parent_call_id", &m->parent_call_id}};
    int rc = rv_turn_name(json, "id", &m->id, err);

    if (rc == 0)
        rc = rv_turn_name(json, "type", &m->type, err);
    for (size_t i = 0; rc == 0 && i < RV_COUNT(texts); i++)
        rc = rv_turn_text(json, texts[i].key, texts[i].out, err);
    if (rc == 0 && rv_message_type_of(rv_str_of(m->type)) < 0)
        rc = RV_FAIL(err, RV_E_INVALID, "\"type\" can not be \"%s\"", m->type);
    if (rc == 0 && m->status && rv_turn_status_of(rv_str_of(m->status)) < 0)
        rc = RV_FAIL(err, RV_E_INVALID, "\"status\" can not be \"%s\"", m->status);
    return rc;
}

static int read_content(json_object *json, struct rv_message *m, rv_err **err)
{
    json_object *content = NULL;

    json_object_object_get_ex(json, "content", &content);
    if (content && !json_object_is_type(content, json_type_string))
        return RV_FAIL(err, RV_E_INVALID, "\"content\" is no text but %s", rv_json_type_text(content));
    m->has_content = content != NULL;
    m->content = rv_json_str(content);
    return 0;
}

static int read_counts(json_object *json, struct rv_message *m, rv_err **err)
{
    const struct {
        const char *key;
        int64_t missing;
        int64_t *out;
    } counts[] = {{"input_tokens", 0, &m->input_tokens},
                  {"output_tokens", 0, &m->output_tokens},
                  {"cost_micro_usd", 0, &m->cost_micro_usd},
                  {"latency_ms", 0, &m->latency_ms},
                  {"token_count", rv_tokens_estimate(m->content), &m->token_count},
                  {"at_us", RV_UNSET, &m->created_us}};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < RV_COUNT(counts); i++)
        rc = read_count(json, counts[i].key, counts[i].missing, counts[i].out, err);
    if (rc == 0 && m->created_us < 0)
        rc = RV_FAIL(err, RV_E_INVALID, "\"at_us\" is missing");
    return rc;
}

static int write_object(json_object *json, const char *key, rv_buf *texts, rv_str *out, rv_err **err)
{
    json_object *value = NULL;
    size_t before = texts->len;
    int rc = rv_turn_object(json, key, &value, err);

    if (rc < 0 || !value)
        return rc;
    rv_json_write(value, texts);
    out->len = texts->len - before;
    return 0;
}

int rv_turn_read_row(json_object *json, rv_buf *texts, struct rv_message *out, rv_err **err)
{
    struct rv_message m = {0};
    int rc;

    if (!json_object_is_type(json, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "it is no object but %s", rv_json_type_text(json));
    rc = rv_turn_check_members(json, known, RV_COUNT(known), err);
    if (rc == 0)
        rc = read_texts(json, &m, err);
    if (rc == 0)
        rc = read_content(json, &m, err);
    if (rc == 0)
        rc = read_counts(json, &m, err);
    if (rc == 0)
        rc = write_object(json, "tool_calls", texts, &m.tool_calls, err);
    if (rc == 0)
        rc = write_object(json, "metadata", texts, &m.metadata, err);
    if (rc == 0)
        *out = m;
    return rc;
}
