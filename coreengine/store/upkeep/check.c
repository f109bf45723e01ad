/* Checks that a store is whole, beyond the checks of its database: blobs by their hash, journals and sessions by their
 * numbers. One read transaction sees everything, while others may write. */
#include <string.h>

#include "coreengine/store/search/search_internal.h"
#include "coreengine/store/sql/driver_internal.h"

/* --- Looking at rows: each complains about one --- */

typedef int look_fn(struct rv_report *r, rv_sql_stmt *stmt, const char *const *names, rv_err **err);

static int complain(struct rv_report *r, rv_sql_stmt *stmt, const char *const *names, rv_err **err)
{
    (void)names;
    (void)err;
    store_report_add(r, sql_str_at(stmt, 0));
    return 0;
}

static int complain_of_index(struct rv_report *r, rv_sql_stmt *stmt, const char *const *names, rv_err **err)
{
    (void)names;
    (void)err;
    store_report_add_index(r, sql_str_at(stmt, 0));
    return 0;
}

static int check_vector(struct rv_report *r, rv_sql_stmt *stmt, const char *const *names, rv_err **err)
{
    (void)names;
    (void)err;
    if (!store_vector_is_whole(sql_str_at(stmt, 2), sql_int_at(stmt, 1)))
        store_report_add_index(r, sql_str_at(stmt, 0));
    return 0;
}

static int check_blob(struct rv_report *r, rv_sql_stmt *stmt, const char *const *names, rv_err **err)
{
    rv_str digest = sql_str_at(stmt, 0);
    char name[RV_HASH_MAX] = "?", found[RV_HASH_MAX];

    (void)names;
    (void)err;
    if (digest.len == RV_STORE_DIGEST)
        store_blob_hex((const unsigned char *)digest.ptr, name);
    rv_hash_format(sql_str_at(stmt, 1), found);
    if (strcmp(name, found) != 0) {
        store_report_add(r, RV_STR_LIT("the bytes of a blob are not those of its hash "));
        store_report_add_more(r, rv_str_of(name));
    }
    return 0;
}

static int check_document(struct rv_report *r, rv_sql_stmt *stmt, const char *const *names, rv_err **err)
{
    char found[RV_HASH_MAX];

    (void)names;
    (void)err;
    rv_hash_format(sql_str_at(stmt, 1), found);
    if (!rv_str_is(sql_str_at(stmt, 0), found)) {
        store_report_add(r, RV_STR_LIT("the document of a schema is not that of its checksum: "));
        store_report_add_more(r, sql_str_at(stmt, 2));
    }
    return 0;
}

static void complain_of_column(struct rv_report *r, rv_sql_stmt *stmt, const char *column, const char *type)
{
    store_report_add(r, sql_str_at(stmt, 0));
    store_report_add_more(r, RV_STR_LIT(" has "));
    store_report_add_more(r, rv_str_of(column));
    store_report_add_more(r, RV_STR_LIT(" that is not a JSON "));
    store_report_add_more(r, rv_str_of(type));
}

/* The columns behind the first, which have these names, are JSON objects, or null. Not asked in SQL: there, for want of
 * memory, a text counts as no JSON. */
static int check_objects(struct rv_report *r, rv_sql_stmt *stmt, const char *const *names, rv_err **err)
{
    for (int i = 0; names[i]; i++) {
        rv_str json = sql_str_at(stmt, i + 1);
        rv_err *why = NULL;
        if (store_secret_is(json)) /* store_encryption_check() looks at it */
            continue;
        int rc = json.ptr ? store_check_object("text", json, RV_STORE_MAX_BODY, &why) : 0;
        bool lacks = rc < 0 && rv_err_is(why, RV_E_NOMEM);
        rv_err_free(why);
        if (lacks)
            return RV_FAIL(err, RV_E_NOMEM, "check");
        if (rc == 0 && (!json.ptr || json.len > 0))
            continue;
        complain_of_column(r, stmt, names[i], "object");
    }
    return 0;
}

/* The same, of JSON arrays. */
static int check_lists(struct rv_report *r, rv_sql_stmt *stmt, const char *const *names, rv_err **err)
{
    for (int i = 0; names[i]; i++) {
        bool lacked = false;
        json_object *list = entity_parse(sql_str_at(stmt, i + 1), json_type_array, &lacked);
        if (lacked) {
            json_object_put(list);
            return RV_FAIL(err, RV_E_NOMEM, "check");
        }
        if (!list)
            complain_of_column(r, stmt, names[i], "array");
        json_object_put(list);
    }
    return 0;
}

/* kind, key of the index, name, id: is that the key of the name? */
static int check_key(struct rv_report *r, rv_sql_stmt *stmt, const char *const *names, rv_err **err)
{
    rv_buf key = RV_BUF_INIT(RV_ENTITY_MAX_KEY), said = RV_BUF_INIT(2 * RV_ENTITY_MAX_KEY);
    rv_str kind = sql_str_at(stmt, 0), has = sql_str_at(stmt, 1), name = sql_str_at(stmt, 2);

    (void)names;
    if (name.ptr)
        rv_match_write_key(name, &key);
    if (key.len == 0)
        rv_buf_add_str(&key, sql_str_at(stmt, 3));
    int rc = rv_buf_check(&key, "key", err);
    if (rc == 0 && !rv_str_eq(rv_buf_str(&key), has)) {
        rv_buf_printf(&said, "a row of %.*s has the key \"%.*s\", not \"%s\"", RV_STR_ARG(kind), RV_STR_ARG(has),
                      rv_buf_cstr(&key));
        store_report_add_index(r, rv_buf_str(&said));
    }
    rv_buf_fini(&key);
    rv_buf_fini(&said);
    return rc;
}

#define KEYS_CURRENT " EXISTS (SELECT 1 FROM counters WHERE name = 'keys' AND value = 1)"
#define NO_ROW(table, more)                                                                                            \
    {                                                                                                                  \
        .sql =                                                                                                         \
            "SELECT 'the key \"' || k.entity_key || '\" of ' || k.kind || ' has no row' FROM keys k LEFT JOIN " table  \
            " e ON e.key = k.row AND e.deleted_us IS NULL AND e.id = k.entity_id AND e.tenant_id = k.tenant_id"        \
            " AND e.user_id = k.user_id WHERE e.key IS NULL AND " more,                                                \
        .each = complain_of_index                                                                                      \
    }
#define NO_KEY(table, kind, more)                                                                                      \
    {                                                                                                                  \
        .sql = "SELECT 'row \"' || e.id || '\" of ' || " kind " || ' has no key' FROM " table " e WHERE e.deleted_us"  \
               " IS NULL AND NOT EXISTS (SELECT 1 FROM keys k WHERE k.kind = " kind " AND k.row = e.key)" more         \
               " AND" KEYS_CURRENT,                                                                                    \
        .each = complain_of_index                                                                                      \
    }
#define KEY_OF(table, kind)                                                                                            \
    {                                                                                                                  \
        .sql = "SELECT k.kind, k.entity_key, e.name, e.id FROM keys k JOIN " table                                     \
               " e ON e.key = k.row AND k.kind = " kind,                                                               \
        .each = check_key                                                                                              \
    }

static const struct {
    const char *sql;
    look_fn *each;
    const char *names[3];
} looks[] = {
    {.sql = "SELECT 'run \"' || r.id || '\" should have ' || r.n_records || ' records and has ' || count(s.seq)"
            " || ', the last ' || coalesce(max(s.seq), 0) FROM runs r LEFT JOIN records s ON s.run = r.key"
            " GROUP BY r.key HAVING count(s.seq) <> r.n_records OR coalesce(max(s.seq), 0) <> r.n_records"
            " OR coalesce(min(s.seq), 1) <> 1",
     .each = complain},
    {.sql =
         "SELECT 'run \"' || r.id || '\" should have ' || r.n_pending || ' pending interrupts and has ' || count(p.n)"
         " FROM runs r LEFT JOIN pending p ON p.run = r.key GROUP BY r.key HAVING count(p.n) <> r.n_pending",
     .each = complain},
    {.sql = "SELECT 'run \"' || r.id || '\" should have ' || r.n_open || ' open interrupts and has ' || count(i.id)"
            " FROM runs r LEFT JOIN interrupts i ON i.run = r.key AND i.ended_us = 0 GROUP BY r.key"
            " HAVING count(i.id) <> r.n_open",
     .each = complain},
    {.sql = "SELECT 'session \"' || s.id || '\" should have ' || s.n_messages || ' messages and has ' || count(m.seq)"
            " || ', the last ' || coalesce(max(m.seq), 0) FROM sessions s LEFT JOIN messages m ON m.session = s.key"
            " GROUP BY s.key HAVING count(m.seq) <> s.n_messages OR coalesce(max(m.seq), 0) <> s.n_messages"
            " OR coalesce(min(m.seq), 1) <> 1",
     .each = complain},
    {.sql = "SELECT 'session \"' || s.id || '\" should have ' || s.total_tokens || ' tokens and has '"
            " || coalesce(sum(m.token_count), 0) FROM sessions s LEFT JOIN messages m ON m.session = s.key"
            " AND m.parent_call_id IS NULL GROUP BY s.key HAVING coalesce(sum(m.token_count), 0) <> s.total_tokens",
     .each = complain},
    {.sql = "SELECT 'message ' || m.seq || ' of session \"' || s.id || '\" has an impossible number'"
            " FROM messages m JOIN sessions s ON s.key = m.session WHERE m.token_count < 0 OR m.created_us < 0"
            " OR m.input_tokens < 0 OR m.output_tokens < 0 OR m.cost_micro_usd < 0 OR m.latency_ms < 0",
     .each = complain},
    {.sql = "SELECT 'the counter of schemas is missing' WHERE NOT EXISTS (SELECT 1 FROM counters WHERE name ="
            " 'schemas')",
     .each = complain},
    {.sql = "SELECT 'lane ' || l.key || ' of tenant \"' || l.tenant || '\" counts ' || l.n_pending || ' pending and '"
            " || l.n_processing || ' processing tasks and has ' || count(CASE t.status WHEN 'pending' THEN 1 END)"
            " || ' and ' || count(CASE t.status WHEN 'processing' THEN 1 END) FROM lanes l LEFT JOIN tasks t"
            " ON t.lane = l.key AND t.status IN ('pending', 'processing') GROUP BY l.key"
            " HAVING count(CASE t.status WHEN 'pending' THEN 1 END) <> l.n_pending"
            " OR count(CASE t.status WHEN 'processing' THEN 1 END) <> l.n_processing",
     .each = complain},
    {.sql = "SELECT 'lane ' || key || ' of tenant \"' || tenant || '\" has an impossible number' FROM lanes"
            " WHERE vt < 0 OR weight < 1 OR cap < 1",
     .each = complain},
    {.sql = "SELECT 'task \"' || t.id || '\" is in the lane of tenant \"' || l.tenant || '\"' FROM tasks t"
            " JOIN lanes l ON l.key = t.lane WHERE l.tenant <> t.tenant",
     .each = complain},
    {.sql = "SELECT 'task \"' || t.id || '\" should have ' || t.n_events || ' events and has ' || count(e.seq)"
            " || ', the last ' || coalesce(max(e.seq), 0) FROM tasks t LEFT JOIN task_events e ON e.task = t.key"
            " GROUP BY t.key HAVING count(e.seq) <> t.n_events OR coalesce(max(e.seq), 0) <> t.n_events",
     .each = complain},
    {.sql =
         "SELECT 'task \"' || id || '\" is ' || status || ' and has a worker, a lease, an end or a number that does"
         " not fit' FROM tasks WHERE (status = 'processing') <> (worker IS NOT NULL)"
         " OR (status = 'processing') <> (lease_until_us > 0)"
         " OR (status IN ('completed', 'failed', 'cancelled')) <> (completed_us > 0) OR retry_count > max_retries"
         " OR attempt < 0 OR retry_count < 0 OR created_us < 0 OR updated_us < 0 OR scheduled_us < 0 OR started_us < 0"
         " OR completed_us < 0 OR claimed_us < 0 OR lease_until_us < 0",
     .each = complain},
    {.sql = "SELECT 'task \"' || id || '\"', payload, result FROM tasks",
     .each = check_objects,
     .names = {"payload", "result"}},
    {.sql = "SELECT 'schedule \"' || id || '\" has a text or a number that cannot be' FROM schedules WHERE kind NOT IN"
            " ('once', 'cron') OR id = '' OR name = '' OR tenant = '' OR (next_us = 0) <> (look_us = 0) OR next_us < 0 "
            "OR look_us < next_us OR last_us < 0"
            " OR n_fired < 0 OR n_skipped < 0 OR created_us < 0 OR updated_us < 0 OR max_retries < 0",
     .each = complain},
    {.sql = "SELECT 'schedule \"' || id || '\"', payload FROM schedules", .each = check_objects, .names = {"payload"}},
    {.sql = "SELECT hash, data FROM blobs", .each = check_blob},
    {.sql = "SELECT checksum, document, name FROM schemas", .each = check_document},
    {.sql = "SELECT 'schema \"' || name || '\"', json_schema FROM schemas",
     .each = check_objects,
     .names = {"json_schema"}},
    {.sql = "SELECT 'session \"' || id || '\"', metadata FROM sessions", .each = check_objects, .names = {"metadata"}},
    {.sql = "SELECT 'message ' || m.seq || ' of session \"' || s.id || '\"', m.tool_calls, m.metadata FROM messages m"
            " JOIN sessions s ON s.key = m.session WHERE m.tool_calls IS NOT NULL OR m.metadata IS NOT NULL",
     .each = check_objects,
     .names = {"tool_calls", "metadata"}},
    {.sql = "SELECT 'row \"' || id || '\" of ' || kind, fields, metadata FROM entities",
     .each = check_objects,
     .names = {"fields", "metadata"}},
    {.sql = "SELECT 'row \"' || id || '\" of ' || kind, tags, graph_edges FROM entities",
     .each = check_lists,
     .names = {"tags", "graph_edges"}},
    {.sql =
         "SELECT 'row \"' || id || '\" of ' || kind || ' has an impossible number' FROM entities WHERE created_us < 0"
         " OR updated_us < 0 OR deleted_us < 0" /* a clock may be set back between two writes */,
     .each = complain},
    NO_ROW("entities", "k.kind NOT IN ('sessions', 'schemas')"),
    NO_ROW("sessions", "k.kind = 'sessions'"),
    NO_ROW("schemas", "k.kind = 'schemas'"),
    NO_KEY("entities", "e.kind", " AND e.kind <> 'feedback'"),
    NO_KEY("sessions", "'sessions'", ""),
    NO_KEY("schemas", "'schemas'", ""),
    KEY_OF("entities", "e.kind"),
    KEY_OF("sessions", "'sessions'"),
    KEY_OF("schemas", "'schemas'"),
    {.sql = "SELECT 'words of ' || t.kind || ', row ' || t.row || ', have no key' FROM tokens t LEFT JOIN keys k"
            " ON k.kind = t.kind AND k.row = t.row WHERE t.is_gone = 0 AND k.key IS NULL",
     .each = complain_of_index},
    {.sql = "SELECT 'a vector of ' || v.kind || ', row ' || v.row || ', has no row with a text' FROM vectors v"
            " LEFT JOIN tokens t ON t.kind = v.kind AND t.row = v.row AND t.is_gone = 0 AND t.hash <> ''"
            " WHERE t.key IS NULL",
     .each = complain_of_index},
    {.sql = "SELECT 'a vector of ' || kind || ', row ' || row || ', is damaged', dims, vector FROM vectors",
     .each = check_vector},
    {.sql = "SELECT 'the queue of vectors has ' || q.kind || ', row ' || q.row || ', which is gone' FROM embeddings q"
            " LEFT JOIN tokens t ON t.kind = q.kind AND t.row = q.row AND t.is_gone = 0 WHERE t.key IS NULL",
     .each = complain_of_index},
    {.sql = "SELECT 'the queue of vectors has an impossible state for ' || kind || ', row ' || row FROM embeddings"
            " WHERE status NOT IN ('pending', 'processing', 'failed') OR attempts < 0 OR claimed_us < 0"
            " OR (status = 'processing') <> (claimed_us > 0)",
     .each = complain_of_index},
    {.sql =
         "SELECT 'the counter of ' || c.name || ' is missing' FROM (SELECT 'keys' AS name UNION ALL SELECT 'vectors')"
         " c WHERE NOT EXISTS (SELECT 1 FROM counters x WHERE x.name = c.name)",
     .each = complain},
};

/* Damage that kept something from being read is a problem, too; other failures are passed on. */
static int forgive(struct rv_report *r, int rc, rv_err *why, rv_err **err)
{
    const char *damage = rc < 0 && !rv_err_is(why, RV_E_NOMEM) ? r->st->driver->damage(r->st) : NULL;

    if (damage)
        store_report_add_damage(r, damage);
    if (rc >= 0 || damage) {
        rv_err_free(why);
        return 0;
    }
    rv_err_pass(err, why);
    return rc;
}

/* Look at each row of the query. */
static int look_at(struct rv_report *r, const rv_buf *sql, look_fn *each, const char *const *names, rv_err **err)
{
    rv_sql_stmt *stmt = sql_prepare(r->st, sql);
    rv_err *why = NULL;
    int rc = 1;

    while (rc == 1 && !store_report_is_full(r)) {
        rc = sql_step(stmt, "check", &why);
        if (rc == 1 && each(r, stmt, names, &why) < 0)
            rc = rv_err_code(why);
    }
    rc = forgive(r, rc, why, err);
    sql_finish(stmt);
    return rc;
}

static int look_at_text(struct rv_report *r, const char *text, look_fn *each, const char *const *names, rv_err **err)
{
    rv_buf sql = RV_BUF_INIT(RV_SQL_MAX_TEXT);

    rv_buf_puts(&sql, text);
    int rc = look_at(r, &sql, each, names, err);
    rv_buf_fini(&sql);
    return rc;
}

/* --- Numbers that make a row unreadable, see store_check_numbers() --- */

static void put_bounds(rv_buf *sql, const char *const *columns, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rv_buf_printf(sql, "%s%s NOT BETWEEN 0 AND %lld", i ? " OR " : "", columns[i], (long long)RV_STORE_MAX_NUMBER);
}

static int check_runs(struct rv_report *r, rv_err **err)
{
    static const char *const numbers[] = {"parent_seq", "created_us", "updated_us",     "expires_us",
                                          "n_records",  "fence",      "lease_until_us", "n_pending"};
    rv_buf sql = RV_BUF_INIT(RV_SQL_MAX_TEXT);

    rv_buf_puts(&sql, "SELECT 'run \"' || id || '\" has an impossible status or number' FROM runs WHERE status NOT "
                      "IN (''");
    for (int i = 0; i < RV_N_RUN; i++)
        rv_buf_printf(&sql, ", '%s'", rv_run_status_text((enum rv_run_status)i));
    rv_buf_puts(&sql, ") OR ");
    put_bounds(&sql, numbers, RV_COUNT(numbers));
    int rc = look_at(r, &sql, complain, NULL, err);
    rv_buf_fini(&sql);
    return rc;
}

static int check_tasks(struct rv_report *r, rv_err **err)
{
    rv_buf sql = RV_BUF_INIT(RV_SQL_MAX_TEXT);

    rv_buf_puts(&sql, "SELECT 'task \"' || id || '\" has a status that cannot be' FROM tasks WHERE status NOT IN (''");
    for (int i = 0; i < RV_N_TASK; i++)
        rv_buf_printf(&sql, ", '%s'", rv_task_status_text((enum rv_task_status)i));
    rv_buf_puts(&sql, ")");
    int rc = look_at(r, &sql, complain, NULL, err);
    rv_buf_fini(&sql);
    return rc;
}

static int check_numbers(struct rv_report *r, const char *kind, const char *table, const char *const *numbers, size_t n,
                         rv_err **err)
{
    rv_buf sql = RV_BUF_INIT(RV_SQL_MAX_TEXT);

    rv_buf_printf(&sql, "SELECT '%s \"' || id || '\" has an impossible number' FROM %s WHERE ", kind, table);
    put_bounds(&sql, numbers, n);
    int rc = look_at(r, &sql, complain, NULL, err);
    rv_buf_fini(&sql);
    return rc;
}

static int check_sessions(struct rv_report *r, rv_err **err)
{
    static const char *const numbers[] = {"total_tokens", "n_messages", "created_us", "updated_us"};

    return check_numbers(r, "session", "sessions", numbers, RV_COUNT(numbers), err);
}

static int check_api_keys(struct rv_report *r, rv_err **err)
{
    static const char *const numbers[] = {"created_us", "expires_us", "used_us", "revoked_us"};

    return check_numbers(r, "API key", "api_keys", numbers, RV_COUNT(numbers), err);
}

static int look_at_all(struct rv_report *r, rv_err **err)
{
    int rc = r->st->driver->check(r->st, r, err);

    if (rc == 0)
        rc = check_runs(r, err);
    if (rc == 0)
        rc = check_sessions(r, err);
    if (rc == 0)
        rc = check_api_keys(r, err);
    if (rc == 0)
        rc = check_tasks(r, err);
    for (size_t i = 0; i < RV_COUNT(looks) && rc == 0; i++)
        rc = look_at_text(r, looks[i].sql, looks[i].each, looks[i].names, err);
    if (rc < 0 || r->n > r->n_index) /* rows that are damaged cannot be compared with their index */
        return rc;
    rv_err *why = NULL;
    rc = store_keys_compare(r, &why);
    return forgive(r, rc, why, err);
}

static bool report_text(void *self, const char *what)
{
    store_report_add(self, rv_str_of(what));
    return store_report_is_full(self);
}

int store_upkeep_check(struct sql_store *st, rv_err **err)
{
    struct rv_report r = {.st = st, .text = RV_BUF_INIT(2 * RV_REPORT_BYTES)};
    bool began = false;
    rv_err *why = NULL;
    int rc = sql_begin_read(st, &began, err);

    st->as_kept = true;
    if (rc == 0)
        rc = look_at_all(&r, err);
    st->as_kept = false;
    if (rc == 0) {
        rc = store_encryption_check(st, report_text, &r, &why);
        rc = forgive(&r, rc, why, err);
    }
    sql_end_read(st, began);
    if (rc == 0 && r.n > r.n_shown)
        rv_buf_printf(&r.text, "\n  and %d more", r.n - r.n_shown);
    if (rc == 0)
        rc = rv_buf_check(&r.text, "list of damages", err);
    if (rc == 0 && r.n > 0) {
        rc = RV_FAIL(err, RV_E_IO, "\"%s\" is damaged, %d%s %s:%s", sql_path(st), r.n,
                     store_report_is_full(&r) ? " or more" : "", r.n == 1 ? "fault" : "faults", rv_buf_cstr(&r.text));
        rv_err_set_hint(err,
                        r.n_index == r.n
                            ? "`reeve entities reindex` writes what rows are found by again, from the rows"
                            : "end what uses it, and restore it from a backup; `reeve store backup` makes backups");
    }
    rv_buf_fini(&r.text);
    return rc;
}
