/* reeve query: rows of the store by their keys. */
#include "coreengine/cli/query.h"
#include "coreengine/cli/rows.h"
#include "coreengine/cli/runs.h"
#include "coreengine/cli/verbs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define AGENT_KIND "agent"

/* Keys of messages are cut where they would be too long, and then do not say of which session they are. No session that
 * a store keeps has an id that long. */
#define LONGEST_KEY (sizeof "session-" - 1 + RV_STORE_MAX_ID + sizeof "-msg-" - 1 + sizeof "9223372036854775807")
static_assert(LONGEST_KEY < RV_MESSAGE_MAX_KEY, "keys of messages name their session");

struct lookup {
    rv_store *store;
    struct rv_store_scope scope;
    const char *session; /* of the message that is looked for */
    rv_jw w;
};

/* What is not there, or is somebody else's, is no row. */
static int found(int rc, rv_err *cause, rv_err **err)
{
    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(cause);
        return 0;
    }
    if (rc < 0)
        *err = cause;
    return rc;
}

static bool can_be_id(rv_str key)
{
    return key.len > 0 && key.len <= RV_STORE_MAX_ID;
}

static void begin_row(struct lookup *l, const char *entity_type)
{
    rv_jw_obj(&l->w);
    rv_jw_kv_text(&l->w, "entity_type", entity_type);
    rv_jw_key(&l->w, "data");
}

static int take_message(void *self, const struct rv_message *m, rv_err **err)
{
    struct lookup *l = self;

    (void)err;
    begin_row(l, "messages");
    rv_cli_message_json(l->session, m, &l->w);
    rv_jw_obj_end(&l->w);
    return 0;
}

static int look_up_message(struct lookup *l, rv_str key, rv_err **err)
{
    struct rv_message_filter filter = {.with_children = true};
    bool is_cut = false;
    rv_err *cause = NULL;
    rv_str session;
    int64_t seq = 0;

    if (!rv_message_key_read(key, &session, &seq, &is_cut) || !can_be_id(session))
        return 0;
    char *id = rv_str_dup(session);
    if (!id)
        return RV_FAIL(err, RV_E_NOMEM, "look up a message");
    filter.from_seq = filter.upto_seq = seq;
    l->session = id;
    int rc = rv_store_read_messages(l->store, &l->scope, id, &filter, take_message, l, &cause);
    rc = found(rc, cause, err);
    free(id);
    return rc;
}

static int look_up_session(struct lookup *l, const char *key, rv_err **err)
{
    struct rv_session_row row = {0};
    rv_err *cause = NULL;

    int rc = rv_store_get_session(l->store, &l->scope, key, &row, &cause);
    if (rc == 0) {
        begin_row(l, "sessions");
        rv_cli_session_json(&row, &l->w);
        rv_jw_obj_end(&l->w);
        rv_session_row_fini(&row);
    }
    return found(rc, cause, err);
}

static int look_up_agent(struct lookup *l, const char *key, rv_err **err)
{
    struct rv_schema_row row = {0};
    rv_err *cause = NULL;

    int rc = rv_store_find_schema(l->store, &l->scope, AGENT_KIND, key, &row, &cause);
    if (rc == 0) {
        begin_row(l, "schemas");
        rv_cli_schema_json(&row, &l->w);
        rv_jw_obj_end(&l->w);
        rv_schema_row_fini(&row);
    }
    return found(rc, cause, err);
}

static int look_up(struct lookup *l, const struct rv_query *q, rv_err **err)
{
    int rc = 0;

    rv_jw_arr(&l->w);
    for (size_t i = 0; i < q->n_keys && rc == 0; i++) {
        const char *key = rv_buf_cstr(&q->keys[i]);
        rc = look_up_message(l, rv_buf_str(&q->keys[i]), err);
        if (rc < 0 || !can_be_id(rv_buf_str(&q->keys[i])))
            continue;
        rc = look_up_session(l, key, err);
        if (rc == 0)
            rc = look_up_agent(l, key, err);
    }
    rv_jw_arr_end(&l->w);
    return rc;
}

static int write_rows(const struct rv_cli_args *args, rv_str json, rv_buf *out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_CLI_MAX_TEXT};
    const char *format = rv_cli_value(args, "format");
    json_object *rows = NULL;

    int rc = rv_json_parse(json, &opts, &rows, err);
    if (rc == 0 && format && strcmp(format, "table") == 0) {
        rc = rv_query_write_table(rows, out, err);
    } else if (rc == 0) {
        rv_json_write_pretty(rows, out);
        rv_buf_putc(out, '\n');
    }
    json_object_put(rows);
    return rc;
}

static int query(struct rv_cli *cli, const struct rv_cli_args *args)
{
    rv_buf json = RV_BUF_INIT(RV_CLI_MAX_TEXT), text = RV_BUF_INIT(RV_CLI_MAX_TEXT);
    struct lookup l = {.scope = rv_cli_scope(args), .w = rv_jw_on(&json)};
    struct rv_query q;
    rv_err *err = NULL;
    int status;

    if (rv_query_parse(rv_str_of(args->words[0]), &q, &err) < 0)
        return rv_cli_report(cli, err);
    if (!rv_cli_runs_open(cli, args, RV_CLI_STORE_READ, &l.store, &status)) {
        rv_query_fini(&q);
        return status;
    }
    int rc = look_up(&l, &q, &err);
    if (rc == 0)
        rc = rv_buf_check(&json, "rows", &err);
    if (rc == 0)
        rc = write_rows(args, rv_buf_str(&json), &text, &err);
    if (rc < 0) {
        rv_buf_fini(&text);
        status = rv_cli_report(cli, err);
    } else {
        status = rv_cli_print(cli, &text);
    }
    rv_buf_fini(&json);
    rv_query_fini(&q);
    rv_store_close(l.store);
    return status;
}

static const struct rv_cli_option options[] = {
    {"format", 'f', "FORMAT", "how rows are shown (default json)", "json table", false},
    RV_CLI_STORE_OPTION,
    RV_CLI_USER_OPTION,
    RV_CLI_TENANT_OPTION,
};

const struct rv_cli_verb rv_verb_query = {
    .name = "query",
    .args = "QUERY",
    .summary = "look rows of the store up by their keys",
    .text =
        "LOOKUP KEY[, KEY...] gives whole rows, in the order of the keys: a message by the key that a shortened one\n"
        "names (session-ID-msg-N), a session by its id, an agent by its name. A key in quotes may have commas. What\n"
        "is not there, or is somebody else's, gives no row.",
    .examples = "reeve query \"LOOKUP session-2f6c0c5e-9a39-5f1c-8d0e-0c5a53a8a1d2-msg-7\" | jq -r '.[].data.content'\n"
                "reeve query \"LOOKUP general, sample-agent\" --format table",
    .options = options,
    .n_options = RV_COUNT(options),
    .min_words = 1,
    .max_words = 1,
    .run = query,
};
