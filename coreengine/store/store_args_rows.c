/* What sessions, messages and schemas have to be like when they are given; as store_args.c. */
#include <string.h>

#include "coreengine/store/store_internal.h"

/* May be NULL; if it is there, it says something. */
static int check_optional(const char *kind, const char *text, size_t max, rv_err **err)
{
    if (!text)
        return 0;
    if (!*text)
        return RV_FAIL(err, RV_E_INVALID, "the %s is empty", kind);
    return rv_store_check_text(kind, text, max, err);
}

/* Checks the text without building a tree: it is stored unchanged. */
int rv_store_check_object(const char *kind, rv_str json, size_t max, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = max};
    struct rv_json_scan scan = {0};
    rv_str text;
    int rc = rv_store_check_bytes(kind, json, max, err);

    if (rc < 0 || json.len == 0)
        return rc;
    text = rv_str_trim(json);
    rc = rv_json_scan(text, &opts, &scan, NULL, err);
    if (rc == 0 && (scan.how != RV_JSON_VALUE || scan.end != text.len || text.ptr[0] != '{'))
        rc = RV_FAIL(err, RV_E_INVALID, "the %s is no JSON object", kind);
    return rc;
}

static int check_members(const char *kind, json_object *v, rv_err **err)
{
    if (v && !json_object_is_type(v, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "the %s is no JSON object", kind);
    return 0;
}

static int check_status(const char *status, rv_err **err)
{
    if (status && rv_session_status_of(rv_str_of(status)) < 0)
        return RV_FAIL(err, RV_E_INVALID, "a session has no status \"%.40s\"", status);
    return 0;
}

int rv_store_check_session(const struct rv_session_row *row, rv_err **err)
{
    int rc;

    if (!row)
        return RV_FAIL(err, RV_E_INVALID, "no session given");
    if ((rc = rv_store_check_id("session id", row->id, err)) < 0 ||
        (rc = rv_store_check_id("tenant", row->tenant, err)) < 0 ||
        (rc = rv_store_check_text("user", row->user, RV_STORE_MAX_ID, err)) < 0 ||
        (rc = check_optional("name", row->name, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = check_optional("mode", row->mode, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = check_status(row->status, err)) < 0 ||
        (rc = check_optional("agent's name", row->agent_name, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = row->description ? rv_store_check_text("description", row->description, RV_STORE_MAX_QUESTION, err) : 0) <
            0 ||
        (rc = rv_store_check_object("metadata", row->metadata, RV_STORE_MAX_META, err)) < 0)
        return rc;
    if ((rc = rv_store_check_new_id("session id", row->id, err)) < 0 ||
        (rc = rv_store_check_new_id("tenant", row->tenant, err)) < 0 ||
        (rc = rv_store_check_new_id("user", row->user, err)) < 0)
        return rc;
    return rv_store_check_time("the time", row->created_us, err);
}

int rv_store_check_change(const struct rv_session_change *change, rv_err **err)
{
    int rc;

    if (!change)
        return RV_FAIL(err, RV_E_INVALID, "no change given");
    if ((rc = check_optional("name", change->name, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = check_optional("mode", change->mode, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = check_status(change->status, err)) < 0 || (rc = check_members("metadata", change->metadata, err)) < 0 ||
        (rc = rv_store_check_time("the time", change->now_us, err)) < 0)
        return rc;
    if (change->n_remove > 0 && !change->remove)
        return RV_FAIL(err, RV_E_INVALID, "%zu members to remove and none given", change->n_remove);
    for (size_t i = 0; i < change->n_remove && rc == 0; i++)
        rc = rv_store_check_text("member to remove", change->remove[i], RV_STORE_MAX_META, err);
    return rc;
}

int rv_store_check_sessions(const struct rv_session_filter *filter, rv_err **err)
{
    int rc;

    if (filter->limit < 0 || filter->offset < 0)
        return RV_FAIL(err, RV_E_INVALID, "%lld sessions from the %lldth", (long long)filter->limit,
                       (long long)filter->offset);
    rc = filter->agent_name ? rv_store_check_text("agent's name", filter->agent_name, RV_STORE_MAX_TEXT, err) : 0;
    if (rc == 0 && filter->name_contains)
        rc = rv_store_check_text("part of the name", filter->name_contains, RV_STORE_MAX_TEXT, err);
    return rc == 0 ? check_status(filter->status, err) : rc;
}

int rv_store_check_messages(const struct rv_message_filter *filter, rv_err **err)
{
    if (filter->from_seq < 0 || filter->upto_seq < 0 || filter->limit < 0)
        return RV_FAIL(err, RV_E_INVALID, "%lld messages from %lld up to %lld", (long long)filter->limit,
                       (long long)filter->from_seq, (long long)filter->upto_seq);
    return 0;
}

static int check_counts(const struct rv_message *m, rv_err **err)
{
    const struct {
        const char *kind;
        int64_t n;
    } counts[] = {{"token_count", m->token_count},
                  {"input_tokens", m->input_tokens},
                  {"output_tokens", m->output_tokens},
                  {"cost_micro_usd", m->cost_micro_usd},
                  {"latency_ms", m->latency_ms}};

    for (size_t i = 0; i < RV_COUNT(counts); i++)
        if (counts[i].n < RV_UNSET || counts[i].n > RV_STORE_MAX_COUNT)
            return RV_FAIL(err, RV_E_INVALID, "%s is %lld", counts[i].kind, (long long)counts[i].n);
    return rv_store_check_time("the time", m->created_us, err);
}

static int check_message(const struct rv_message *m, rv_err **err)
{
    const struct {
        const char *kind, *text;
    } texts[] = {{"agent's name", m->agent_name},
                 {"model", m->model},
                 {"trace id", m->trace_id},
                 {"span id", m->span_id},
                 {"run id", m->run_id},
                 {"status", m->status},
                 {"parent's call", m->parent_call_id}};
    int rc;

    if ((rc = rv_store_check_id("id", m->id, err)) < 0 || (rc = rv_store_check_id("type", m->type, err)) < 0 ||
        (rc = m->has_content ? rv_store_check_bytes("content", m->content, RV_STORE_MAX_VALUE, err) : 0) < 0 ||
        (rc = rv_store_check_object("tool_calls", m->tool_calls, RV_STORE_MAX_BODY, err)) < 0 ||
        (rc = rv_store_check_object("metadata", m->metadata, RV_STORE_MAX_META, err)) < 0)
        return rc;
    for (size_t i = 0; i < RV_COUNT(texts) && rc == 0; i++)
        rc = texts[i].text ? rv_store_check_text(texts[i].kind, texts[i].text, RV_STORE_MAX_TEXT, err) : 0;
    return rc < 0 ? rc : check_counts(m, err);
}

int rv_store_check_turn(const struct rv_turn *turn, rv_err **err)
{
    int rc;

    if (!turn)
        return RV_FAIL(err, RV_E_INVALID, "no turn given");
    if ((rc = rv_store_check_id("session id", turn->session, err)) < 0 ||
        (rc = check_optional("name", turn->name, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = check_optional("agent's name", turn->agent_name, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = check_members("metadata", turn->metadata, err)) < 0)
        return rc;
    if (turn->n_rows > RV_STORE_MAX_ROWS)
        return RV_FAIL(err, RV_E_LIMIT, "session \"%s\": %zu messages at once, more than %zu", turn->session,
                       turn->n_rows, RV_STORE_MAX_ROWS);
    if (turn->n_rows > 0 && !turn->rows)
        return RV_FAIL(err, RV_E_INVALID, "session \"%s\": %zu messages and none given", turn->session, turn->n_rows);
    for (size_t i = 0; i < turn->n_rows; i++) {
        rc = check_message(&turn->rows[i], err);
        if (rc < 0)
            return RV_WRAP(err, rc, "session \"%s\": message %zu", turn->session, i);
    }
    return 0;
}

int rv_store_check_schema(const struct rv_schema_row *row, enum rv_schema_put how, rv_err **err)
{
    int rc;

    if (!row)
        return RV_FAIL(err, RV_E_INVALID, "no schema given");
    if ((rc = row->id ? rv_store_check_id("schema's id", row->id, err) : 0) < 0 ||
        (rc = row->tenant ? rv_store_check_id("tenant", row->tenant, err) : 0) < 0 ||
        (rc = row->user ? rv_store_check_text("user", row->user, RV_STORE_MAX_ID, err) : 0) < 0 ||
        (rc = rv_store_check_id("schema's name", row->name, err)) < 0 ||
        (rc = rv_store_check_id("kind", row->kind, err)) < 0 ||
        (rc = row->version ? rv_store_check_text("version", row->version, RV_STORE_MAX_TEXT, err) : 0) < 0 ||
        (rc = row->description ? rv_store_check_text("description", row->description, RV_STORE_MAX_QUESTION, err) : 0) <
            0 ||
        (rc = row->place ? rv_store_check_text("place", row->place, RV_STORE_MAX_URL, err) : 0) < 0 ||
        (rc = rv_store_check_bytes("content", row->content, RV_STORE_MAX_VALUE, err)) < 0 ||
        (rc = rv_store_check_object("json_schema", row->json_schema, RV_STORE_MAX_BODY, err)) < 0 ||
        (rc = rv_store_check_bytes("document", row->document, RV_STORE_MAX_VALUE, err)) < 0)
        return rc;
    if (!row->source || (strcmp(row->source, RV_STORE_SCHEMA_PERSON) != 0 && strcmp(row->source, "built-in") != 0 &&
                         strcmp(row->source, "file") != 0))
        return RV_FAIL(err, RV_E_INVALID, "schema \"%s\": the source \"%.40s\" is neither person, built-in nor file",
                       row->name, row->source ? row->source : "");
    if (how == RV_SCHEMA_REGISTER && strcmp(row->source, RV_STORE_SCHEMA_PERSON) == 0)
        return RV_FAIL(err, RV_E_INVALID, "schema \"%s\": what is registered is no person's", row->name);
    return 0;
}
