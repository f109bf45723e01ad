/* reeve query: rows of the store by their keys. */
#include "coreengine/app/query.h"
#include "coreengine/app/rows.h"
#include "coreengine/cli/query/query.h"
#include "coreengine/cli/runs/runs.h"
#include "coreengine/cli/verbs/verbs.h"

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
    size_t n_rows;
    rv_jw w;
};

/* A row that does not exist, or belongs to another user, is left out. */
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
    l->n_rows++;
    rv_jw_obj(&l->w);
    rv_jw_kv_text(&l->w, "entity_type", entity_type);
    rv_jw_key(&l->w, "data");
}

static int take_message(void *self, const struct rv_message *m, rv_err **err)
{
    struct lookup *l = self;

    (void)err;
    begin_row(l, "messages");
    rv_app_message_json(l->session, m, &l->w);
    rv_jw_obj_end(&l->w);
    return 0;
}

static int read_message(struct lookup *l, const char *session, int64_t seq, rv_err **err)
{
    const struct rv_message_filter filter = {.with_children = true, .from_seq = seq, .upto_seq = seq};
    rv_err *cause = NULL;

    l->session = session;
    int rc = rv_store_read_messages(l->store, &l->scope, session, &filter, take_message, l, &cause);
    return found(rc, cause, err);
}

static int look_up_message(struct lookup *l, rv_str key, rv_err **err)
{
    bool is_cut = false;
    rv_str session;
    int64_t seq = 0;

    if (!rv_message_key_read(key, &session, &seq, &is_cut) || !can_be_id(session))
        return 0;
    char *id = rv_str_dup(session);
    if (!id)
        return RV_FAIL(err, RV_E_NOMEM, "look up a message");
    int rc = read_message(l, id, seq, err);
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
        rv_app_session_json(&row, &l->w);
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
        rv_app_schema_json(&row, &l->w);
        rv_jw_obj_end(&l->w);
        rv_schema_row_fini(&row);
    }
    return found(rc, cause, err);
}

/* --- keys without an exact match: compare them without case, blanks and punctuation --- */

struct alike {
    rv_buf wanted; /* that spelling of the key */
    int64_t seq;   /* of the message that it names; 0: none */
    char **names;  /* ids of sessions, or names of agents; owned */
    size_t n, cap;
};

static bool is_alike(const struct alike *a, const char *name)
{
    rv_buf spelt = RV_BUF_INIT(2 * LONGEST_KEY);

    rv_key_normalize(rv_str_of(name), &spelt);
    bool same = spelt.rc == 0 && rv_str_eq(rv_buf_str(&spelt), rv_buf_str(&a->wanted));
    rv_buf_fini(&spelt);
    return same;
}

static bool has_message_alike(const struct alike *a, const char *session)
{
    char key[RV_MESSAGE_MAX_KEY];

    if (a->seq == 0)
        return false;
    rv_message_key(session, a->seq, key);
    return is_alike(a, key);
}

static int gather(struct alike *a, const char *name, rv_err **err)
{
    if (a->n > 0 && strcmp(a->names[a->n - 1], name) == 0) /* an agent may be everybody's and one's own */
        return 0;
    if (a->n == a->cap) {
        size_t cap = a->cap ? 2 * a->cap : 8;
        char **names = realloc(a->names, cap * sizeof *names);
        if (!names)
            return RV_FAIL(err, RV_E_NOMEM, "look up a key");
        a->names = names;
        a->cap = cap;
    }
    a->names[a->n] = rv_str_dup(rv_str_of(name));
    if (!a->names[a->n])
        return RV_FAIL(err, RV_E_NOMEM, "look up a key");
    a->n++;
    return 0;
}

static void forget(struct alike *a)
{
    while (a->n > 0)
        free(a->names[--a->n]);
}

static int take_session(void *self, const struct rv_session_row *row, rv_err **err)
{
    struct alike *a = self;

    return is_alike(a, row->id) || has_message_alike(a, row->id) ? gather(a, row->id, err) : 0;
}

static int take_agent(void *self, const struct rv_schema_row *row, rv_err **err)
{
    return is_alike(self, row->name) ? gather(self, row->name, err) : 0;
}

static int look_up_sessions_alike(struct lookup *l, struct alike *a, rv_err **err)
{
    const struct rv_session_filter all = {0};

    int rc = rv_store_list_sessions(l->store, &l->scope, &all, take_session, a, err);
    for (size_t i = 0; i < a->n && rc == 0; i++) {
        if (has_message_alike(a, a->names[i]))
            rc = read_message(l, a->names[i], a->seq, err);
        if (rc == 0 && is_alike(a, a->names[i]))
            rc = look_up_session(l, a->names[i], err);
    }
    forget(a);
    return rc;
}

static int look_up_agents_alike(struct lookup *l, struct alike *a, rv_err **err)
{
    int rc = rv_store_list_schemas(l->store, &l->scope, AGENT_KIND, take_agent, a, err);

    for (size_t i = 0; i < a->n && rc == 0; i++)
        rc = look_up_agent(l, a->names[i], err);
    forget(a);
    return rc;
}

static int look_up_alike(struct lookup *l, rv_str key, rv_err **err)
{
    struct alike a = {.wanted = RV_BUF_INIT(2 * LONGEST_KEY)};
    bool is_cut = false;
    rv_str session;

    rv_key_normalize(key, &a.wanted);
    int rc = a.wanted.rc == RV_E_NOMEM ? RV_FAIL(err, RV_E_NOMEM, "look up a key") : 0;
    if (rc == 0 && a.wanted.rc == 0 && a.wanted.len > 0) { /* a longer key cannot exist */
        if (!rv_message_key_read(rv_buf_str(&a.wanted), &session, &a.seq, &is_cut) || is_cut)
            a.seq = 0;
        rc = look_up_sessions_alike(l, &a, err);
        if (rc == 0)
            rc = look_up_agents_alike(l, &a, err);
    }
    forget(&a);
    free(a.names);
    rv_buf_fini(&a.wanted);
    return rc;
}

static int look_up_exactly(struct lookup *l, rv_str key, const char *text, rv_err **err)
{
    int rc = look_up_message(l, key, err);

    if (rc < 0 || !can_be_id(key))
        return rc;
    rc = look_up_session(l, text, err);
    return rc == 0 ? look_up_agent(l, text, err) : rc;
}

static int look_up(struct lookup *l, const struct rv_query *q, rv_err **err)
{
    int rc = 0;

    rv_jw_arr(&l->w);
    for (size_t i = 0; i < q->n_keys && rc == 0; i++) {
        size_t before = l->n_rows;
        rc = look_up_exactly(l, rv_buf_str(&q->keys[i]), rv_buf_cstr(&q->keys[i]), err);
        if (rc == 0 && l->n_rows == before)
            rc = look_up_alike(l, rv_buf_str(&q->keys[i]), err);
    }
    rv_jw_arr_end(&l->w);
    return rc;
}

static int write_rows(const struct rv_cli_args *args, rv_str json, rv_buf *out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_APP_MAX_TEXT};
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
    rv_buf json = RV_BUF_INIT(RV_APP_MAX_TEXT), text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    struct lookup l = {.scope = rv_cli_scope(args), .w = rv_jw_on(&json)};
    struct rv_query q;
    rv_err *err = NULL;
    int status;

    if (rv_query_parse(rv_str_of(args->words[0]), &q, &err) < 0)
        return rv_cli_report(cli, err);
    if (!rv_cli_runs_open(cli, RV_APP_STORE_READ, &l.store, &status)) {
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
    {"format", 'f', "FORMAT", "output format (default json)", "json table", false},
    RV_CLI_STORE_OPTION,
    RV_CLI_USER_OPTION,
    RV_CLI_TENANT_OPTION,
};

const struct rv_cli_verb rv_verb_query = {
    .name = "query",
    .args = "QUERY",
    .summary = "look up rows of the store by their keys",
    .text =
        "LOOKUP KEY[, KEY...] prints whole rows in the order of the keys: a message by the key that a shortened\n"
        "message names (session-ID-msg-N), a session by its id, an agent by its name. A key that contains commas is\n"
        "quoted. If no row has exactly that key, case, blanks and punctuation are ignored. Rows that do not exist,\n"
        "and rows of other users, are left out.",
    .examples = "reeve query \"LOOKUP session-2f6c0c5e-9a39-5f1c-8d0e-0c5a53a8a1d2-msg-7\" | jq -r '.[].data.content'\n"
                "reeve query \"LOOKUP general, sample-agent\" --format table",
    .options = options,
    .n_options = RV_COUNT(options),
    .min_words = 1,
    .max_words = 1,
    .run = query,
};
