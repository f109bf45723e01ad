/* A query: its mode and its operands (p8-data 8.1 to 8.3), and the rows of the store that they name. A quote opens only
 * where a word begins; a comma inside quotes belongs to the key. */
#include "coreengine/app/query.h"

#include "coreengine/app/rows.h"
#include "coreengine/match/match.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_KEY_BYTES ((size_t)4096)
#define MAX_ROWS      ((size_t)256 << 20)

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static rv_str next_word(rv_str *rest)
{
    *rest = rv_str_trim(*rest);
    rv_str word = {rest->ptr, 0};

    while (word.len < rest->len && !is_blank(rest->ptr[word.len]))
        word.len++;
    rest->ptr += word.len;
    rest->len -= word.len;
    return word;
}

static bool is_word(rv_str word, const char *text)
{
    return word.len == strlen(text) && strncasecmp(word.ptr, text, word.len) == 0;
}

static int other_mode(rv_str word, rv_err **err)
{
    static const char *const known[] = {"SEARCH", "FUZZY", "TRAVERSE", "SQL"};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < RV_COUNT(known); i++)
        if (is_word(word, known[i]))
            rc = RV_FAIL(err, RV_E_INVALID, "%s is not available yet", known[i]);
    if (rc == 0 && word.len == 0)
        rc = RV_FAIL(err, RV_E_INVALID, "the query is empty");
    else if (rc == 0)
        rc = RV_FAIL(err, RV_E_INVALID, "unknown mode \"%.*s\"", RV_STR_ARG(rv_utf8_cut(word, 64)));
    rv_err_hint(err,
                "there is LOOKUP KEY[, KEY...]: a message (session-ID-msg-N), a session by its id, an agent by its "
                "name");
    return rc;
}

/* What stands in quotes, without them. */
static int add_quoted(rv_str text, size_t *at, rv_buf *key, rv_err **err)
{
    char quote = text.ptr[*at];

    for (size_t i = *at + 1; i < text.len; i++) {
        if (text.ptr[i] == quote) {
            *at = i + 1;
            return 0;
        }
        if (quote == '"' && text.ptr[i] == '\\' && i + 1 < text.len && strchr("\"\\", text.ptr[i + 1]))
            i++;
        rv_buf_putc(key, text.ptr[i]);
    }
    return RV_FAIL(err, RV_E_INVALID, "the quote at column %zu is not closed", *at + 1);
}

/* Up to a comma; blanks between words become one. */
static int read_key(rv_str text, size_t *at, rv_buf *key, rv_err **err)
{
    bool begins = true, blank = false;
    int rc = 0;

    while (rc == 0 && *at < text.len && text.ptr[*at] != ',') {
        char c = text.ptr[*at];
        if (is_blank(c)) {
            blank = true;
            begins = true;
            (*at)++;
            continue;
        }
        if (blank && key->len)
            rv_buf_putc(key, ' ');
        blank = false;
        if (begins && (c == '"' || c == '\'')) {
            rc = add_quoted(text, at, key, err);
        } else {
            rv_buf_putc(key, c);
            (*at)++;
        }
        begins = false;
    }
    return rc == 0 ? rv_buf_check(key, "key of a query", err) : rc;
}

int rv_query_parse(rv_str text, struct rv_query *out, rv_err **err)
{
    int rc = 0;

    memset(out, 0, sizeof *out);
    if (!rv_utf8_valid(text, NULL))
        return RV_FAIL(err, RV_E_INVALID, "the query is not valid UTF-8");
    rv_str word = next_word(&text);
    if (is_word(word, "REM"))
        word = next_word(&text);
    if (!is_word(word, "LOOKUP"))
        return other_mode(word, err);
    for (size_t at = 0; rc == 0 && at < text.len; at++) { /* over the comma */
        if (out->n_keys == RV_QUERY_MAX_KEYS) {
            rc = RV_FAIL(err, RV_E_LIMIT, "more than %d keys", RV_QUERY_MAX_KEYS);
            break;
        }
        rv_buf *key = &out->keys[out->n_keys++];
        rv_buf_init(key, MAX_KEY_BYTES);
        rc = read_key(text, &at, key, err);
        if (key->len == 0) {
            rv_buf_fini(key);
            out->n_keys--;
        }
    }
    if (rc == 0 && out->n_keys == 0)
        rc = RV_FAIL(err, RV_E_INVALID, "LOOKUP requires at least one key");
    if (rc < 0)
        rv_query_fini(out);
    return rc;
}

void rv_query_fini(struct rv_query *q)
{
    for (size_t i = 0; i < q->n_keys; i++)
        rv_buf_fini(&q->keys[i]);
    q->n_keys = 0;
}

/* --- the rows that it means --- */

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

    rv_match_key(rv_str_of(name), &spelt);
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
    if (!rv_has_room(&a->names, &a->cap, a->n + 1, sizeof *a->names))
        return RV_FAIL(err, RV_E_NOMEM, "look up a key");
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

    rv_match_key(key, &a.wanted);
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

int rv_query_look_up(rv_store *store, const struct rv_store_scope *scope, const struct rv_query *q, json_object **out,
                     rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = MAX_ROWS};
    rv_buf json = RV_BUF_INIT(MAX_ROWS);
    struct lookup l = {.store = store, .scope = *scope, .w = rv_jw_on(&json)};
    int rc = 0;

    rv_jw_arr(&l.w);
    for (size_t i = 0; i < q->n_keys && rc == 0; i++) {
        size_t before = l.n_rows;
        rc = look_up_exactly(&l, rv_buf_str(&q->keys[i]), rv_buf_cstr(&q->keys[i]), err);
        if (rc == 0 && l.n_rows == before)
            rc = look_up_alike(&l, rv_buf_str(&q->keys[i]), err);
    }
    rv_jw_arr_end(&l.w);
    if (rc == 0)
        rc = rv_buf_check(&json, "rows", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&json), &opts, out, err);
    rv_buf_fini(&json);
    return rc;
}
