/* The connection of a handle: what a URL says, how the connection is made and set up, and how it is given up. */
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coreengine/store/postgres/postgres_internal.h"

#define ATTEMPT_MS 10000 /* for one attempt to connect */
#define MAX_PAUSE  1000  /* ms between two of them: a server that is back is found within a second */
#define MAX_PARAMS 64    /* of a connection string: libpq knows fewer */

int64_t store_pg_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 * RV_NS_PER_MS + t.tv_nsec;
}

int64_t store_pg_wait_ms(const struct postgres *st)
{
    return st->wait_ms > 0 ? st->wait_ms : st->busy_ms;
}

void store_pg_sleep_ms(int64_t ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * RV_NS_PER_MS}, NULL);
}

int store_pg_poll(struct postgres *st, short events, int64_t until_ns)
{
    for (;;) {
        struct pollfd fd = {.fd = st->pq->socket(st->conn), .events = events};
        int64_t left_ms =
            until_ns == INT64_MAX ? 60000 : (until_ns - store_pg_now_ns() + RV_NS_PER_MS - 1) / RV_NS_PER_MS;
        if (left_ms <= 0)
            return 0;
        int n = poll(&fd, 1, left_ms > 60000 ? 60000 : (int)left_ms);
        if (n > 0)
            return 1; /* a broken connection shows when it is read */
        if (n < 0 && errno != EINTR)
            return -1;
    }
}

bool store_pg_lacks_memory(const struct postgres *st)
{
    static const char words[] = "out of memory";
    const char *text = st->pq->errorMessage(st->conn);

    for (const char *at = strstr(text, words); at; at = strstr(at + 1, words))
        if ((at == text || at[-1] == '\n') && (at[sizeof words - 1] == '\n' || !at[sizeof words - 1]))
            return true;
    return false;
}

/* --- The URL --- */

static bool is_name(rv_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (!(c == '_' || (c >= 'a' && c <= 'z') || (i > 0 && rv_is_digit(c))))
            return false;
    }
    return name.len > 0 && name.len < RV_PG_NAME_ROOM && !(name.len >= 3 && memcmp(name.ptr, "pg_", 3) == 0);
}

static int take_name(const char *kind, rv_str name, char out[RV_PG_NAME_ROOM], rv_err **err)
{
    if (!is_name(name)) {
        RV_FAIL(err, RV_E_INVALID, "invalid %s \"%.*s\"", kind, (int)(name.len < 80 ? name.len : 80), name.ptr);
        rv_err_set_hint(err,
                        "use lower-case letters, digits and \"_\", at most 63 of them, not beginning with \"pg_\"");
        return RV_E_INVALID;
    }
    memcpy(out, name.ptr, name.len);
    out[name.len] = 0;
    return 0;
}

/* The URL as libpq may see it: without "schema" and "query_role", which are ours. */
static int strip(struct postgres *st, const char *url, rv_buf *out, rv_err **err)
{
    const char *query = strchr(url, '?'), *mark = "?";
    int rc = 0;

    snprintf(st->schema, sizeof st->schema, "%s", RV_PG_SCHEMA_NAME);
    rv_buf_add(out, url, query ? (size_t)(query - url) : strlen(url));
    for (const char *at = query ? query + 1 : ""; *at && rc == 0;) {
        size_t len = strcspn(at, "&");
        if (strncmp(at, "schema=", 7) == 0) {
            rc = take_name("schema", (rv_str){at + 7, len - 7}, st->schema, err);
        } else if (strncmp(at, "query_role=", 11) == 0) {
            rc = take_name("role", (rv_str){at + 11, len - 11}, st->query_role, err);
        } else {
            rv_buf_puts(out, mark);
            rv_buf_add(out, at, len);
            mark = "&";
        }
        at += len + (at[len] == '&');
    }
    return rc < 0 ? rc : rv_buf_check(out, "URL", err);
}

/* A raw @ or / in a password would end up in the name of a host or database, and so in messages. */
static int check_marks(const struct postgres *st, const char *url, rv_err **err)
{
    const char *begin = strstr(url, "://") + 3, *at = strchr(begin, '@'), *slash = strchr(begin, '/');

    if (!at || (!strchr(at + 1, '@') && !(slash && slash < at)))
        return 0;
    RV_FAIL(err, RV_E_INVALID, "\"%s\": an \"@\" or \"/\" stands where it cannot", st->base.path);
    rv_err_set_hint(err, "in names and passwords write %%40 for \"@\" and %%2F for \"/\"");
    return RV_E_INVALID;
}

static int parse(struct postgres *st, const char *url, rv_err **err)
{
    char *why = NULL;
    bool is_secret = strchr(url, '@') || strcasestr(url, "pass");

    st->options = st->pq->conninfoParse(url, &why);
    if (st->options)
        return 0;
    if (!why || strstr(why, "out of memory")) {
        st->pq->freemem(why);
        return RV_FAIL(err, RV_E_NOMEM, "read the URL");
    }
    why[strcspn(why, "\n")] = 0;
    RV_FAIL(err, RV_E_INVALID, "\"%s\": %s", st->base.path, is_secret ? "this URL cannot be read" : why);
    rv_err_set_hint(err, "postgres://USER@HOST:PORT/DATABASE?schema=NAME; each part may be missing");
    st->pq->freemem(why);
    return RV_E_INVALID;
}

int store_pg_read_url(struct postgres *st, const char *url, rv_err **err)
{
    rv_buf stripped = RV_BUF_INIT(RV_STORE_MAX_URL + 1);
    int rc = check_marks(st, url, err);

    if (rc == 0)
        rc = strip(st, url, &stripped, err);
    if (rc == 0)
        rc = parse(st, rv_buf_cstr(&stripped), err);
    rv_buf_fini(&stripped);
    return rc;
}

/* --- Connecting --- */

static void ignore_notice(void *self, const char *text)
{
    (void)self;
    (void)text;
}

/* Options of the URL, and what is always so. */
static void list_options(const struct postgres *st, const char *names[MAX_PARAMS], const char *values[MAX_PARAMS])
{
    static const char *const ours[][2] = {{"client_encoding", "UTF8"},   {"fallback_application_name", "reeve"},
                                          {"gssencmode", "disable"},     {"keepalives_idle", "60"},
                                          {"keepalives_interval", "10"}, {"keepalives_count", "6"}};
    size_t n = 0;

    for (size_t i = 0; i < RV_COUNT(ours); i++, n++) {
        names[n] = ours[i][0];
        values[n] = ours[i][1];
    }
    for (const PQconninfoOption *o = st->options; o->keyword && n < MAX_PARAMS - 1; o++) /* of two, the last counts */
        if (o->val && strcmp(o->keyword, "client_encoding") != 0) {
            names[n] = o->keyword;
            values[n++] = o->val;
        }
    names[n] = values[n] = NULL;
}

/* "...FATAL:  28P01: password ...": libpq has the code of a refused connection in its text only. */
static void split_reason(char *text, char state[6])
{
    state[0] = 0;
    text[strcspn(text, "\n")] = 0;
    for (char *at = strstr(text, ":  "); at; at = strstr(at + 3, ":  ")) {
        size_t n = strspn(at + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        if (n == 5 && at[8] == ':' && at[9] == ' ') {
            memcpy(state, at + 3, 5);
            state[5] = 0;
            memmove(at + 2, at + 10, strlen(at + 10) + 1);
            at[1] = ' ';
            return;
        }
    }
}

static int fail_attempt(struct postgres *st, const char *what, char state[6], rv_err **err)
{
    char text[RV_PG_WHY];
    int rc;

    snprintf(text, sizeof text, "%s", what ? what : st->pq->errorMessage(st->conn));
    split_reason(text, state);
    if (strstr(text, "no password supplied")) /* libpq's own, before the server can refuse */
        memcpy(state, "28P01", sizeof "28P01");
    store_pg_disconnect(st, text);
    if (*state)
        return store_pg_fail_state(st, state, text, "connect", err);
    bool is_url = strncmp(text, "invalid ", strlen("invalid ")) == 0; /* libpq's word for a port, sslmode, ... */
    rc = strstr(text, "out of memory") ? RV_E_NOMEM : is_url ? RV_E_INVALID : RV_E_IO;
    RV_FAIL(err, rc, "\"%s\": %s", st->base.path, text);
    if (is_url)
        rv_err_set_hint(
            err, "postgres://USER@HOST:PORT/DATABASE?schema=NAME; PGPORT, PGSSLMODE, ... count for what it leaves out");
    else
        rv_err_set_hint(err, "is the server running, and does it listen there? `pg_isready` asks it");
    return rc;
}

static int attempt(struct postgres *st, int64_t until_ns, char state[6], rv_err **err)
{
    const char *names[MAX_PARAMS], *values[MAX_PARAMS];
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;

    state[0] = 0;
    list_options(st, names, values);
    st->conn = st->pq->connectStartParams(names, values, 0);
    if (!st->conn)
        return RV_FAIL(err, RV_E_NOMEM, "\"%s\": connect", st->base.path);
    st->pq->setErrorVerbosity(st->conn, PQERRORS_VERBOSE);
    st->pq->setNoticeProcessor(st->conn, ignore_notice, NULL);
    if (st->pq->status(st->conn) == CONNECTION_BAD)
        return fail_attempt(st, NULL, state, err);
    while (next != PGRES_POLLING_OK) {
        if (store_pg_poll(st, next == PGRES_POLLING_READING ? POLLIN : POLLOUT, until_ns) <= 0)
            return fail_attempt(st, "no answer from the server in time", state, err);
        next = st->pq->connectPoll(st->conn);
        if (next == PGRES_POLLING_FAILED)
            return fail_attempt(st, NULL, state, err);
        if (next != PGRES_POLLING_OK && store_pg_lacks_memory(st))
            return fail_attempt(st, "out of memory", state, err);
    }
    st->pq->setErrorVerbosity(st->conn, PQERRORS_DEFAULT);
    if (st->pq->setnonblocking(st->conn, 1) < 0 || !st->pq->enterPipelineMode(st->conn))
        return fail_attempt(st, NULL, state, err);
    return 0;
}

/* A server that starts, ends or is full is worth waiting for; one that is not there only if it was there before. */
static bool is_worth_waiting(const char *state, int rc, bool opening)
{
    if (rc == RV_E_NOMEM)
        return false;
    if (!*state)
        return !opening;
    return strcmp(state, "57P03") == 0 || strcmp(state, "53300") == 0 ||
           (!opening && (strncmp(state, "57P", 3) == 0 || strncmp(state, "08", 2) == 0));
}

/* Tables are joined by their indexes: a plan that was made while a table was small is kept when it is large. A role or
 * a database may have other settings than those that statements are written for: a backslash in a string, numbers. */
static int set_up(struct postgres *st, rv_err **err)
{
    char path[RV_PG_NAME_ROOM + 16], lock[24], statement[24];
    const char *args[] = {path, lock, statement, st->sync == RV_STORE_SYNC_FULL ? "on" : "off"};
    PGresult *res = NULL;

    snprintf(path, sizeof path, "\"%s\", pg_temp", st->schema);
    snprintf(lock, sizeof lock, "%lld", (long long)store_pg_wait_ms(st));
    snprintf(statement, sizeof statement, "%lld", (long long)store_pg_wait_ms(st) + RV_PG_STATEMENT_MS);
    int rc = store_pg_ask(
        st,
        &(const struct pg_question){
            .sql = "SELECT set_config('search_path', $1, false), set_config('lock_timeout', $2, false),"
                   " set_config('statement_timeout', $3, false), set_config('synchronous_commit', $4, false),"
                   " set_config('idle_in_transaction_session_timeout', '30000', false),"
                   " set_config('TimeZone', 'UTC', false), (SELECT count(set_config(s.name, w.value, false))"
                   " FROM pg_settings s JOIN (VALUES ('enable_hashjoin', 'off'), ('enable_mergejoin', 'off'),"
                   " ('standard_conforming_strings', 'on'), ('transform_null_equals', 'off'),"
                   " ('extra_float_digits', '1')) AS w (name, value) ON w.name = s.name)",
            .n = (int)RV_COUNT(args),
            .args = args,
            .what = "set up"},
        &res, err);
    st->pq->clear(res);
    return rc;
}

int store_pg_connect(struct postgres *st, int64_t until_ns, bool opening, rv_err **err)
{
    char state[6];

    for (int64_t pause_ms = 10;; pause_ms = pause_ms < MAX_PAUSE / 2 ? pause_ms * 2 : MAX_PAUSE) {
        rv_err *why = NULL;
        int64_t now = store_pg_now_ns(), attempt_ns = now + ATTEMPT_MS * RV_NS_PER_MS;
        int rc = attempt(st, attempt_ns < until_ns || opening ? attempt_ns : until_ns, state, &why);
        if (rc == 0) {
            st->n_conn++;
            rc = set_up(st, &why);
            if (rc == 0)
                return 0;
            store_pg_disconnect(st, rv_err_text(why));
        }
        now = store_pg_now_ns();
        if (now >= until_ns || !is_worth_waiting(state, rc, opening)) {
            rv_err_pass(err, why);
            return rc;
        }
        rv_err_free(why);
        int64_t left_ms = (until_ns - now) / RV_NS_PER_MS + 1;
        int64_t ms = pause_ms / 2 + (int64_t)rv_rand_below(rv_rand_system(), (uint64_t)pause_ms);
        store_pg_sleep_ms(ms < left_ms ? ms : left_ms);
    }
}

void store_pg_disconnect(struct postgres *st, const char *why)
{
    if (why && why != st->why) {
        snprintf(st->why, sizeof st->why, "%s", why);
        st->why[strcspn(st->why, "\n")] = 0;
    }
    st->pq->clear(st->asked);
    st->asked = NULL;
    st->n_sent = st->n_read = 0;
    st->sent_bytes = 0;
    st->transaction = PG_IDLE;
    st->is_spoilt = false;
    st->recounts = st->recounts || st->owes_disk;
    st->pq->finish(st->conn);
    st->conn = NULL;
}
