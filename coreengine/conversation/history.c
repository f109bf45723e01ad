/* A history while rows are added, newest first: what is shown of each, and whether the budget has room for it.
 *
 * Only what is shown is kept. The first text that does not fit ends the walk; a call of a tool that does not fit is
 * left out with its result, and the walk goes on. The options of a history
 * are kept with a run as JSON, so that its history can be made again. */
#include "coreengine/conversation/messages_internal.h"

#include <json-c/linkhash.h>
#include <stdlib.h>

#define MAX_KEEP ((int64_t)1 << 30) /* code points; twice that has to fit a size_t anywhere */

static void write_limit(rv_jw *w, const char *key, int64_t value)
{
    rv_jw_key(w, key);
    if (value >= 0)
        rv_jw_int(w, value);
    else
        rv_jw_null(w);
}

void rv_history_opts_write(const struct rv_history_opts *o, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "policy", rv_replay_policy_text((enum rv_replay_policy)o->policy));
    write_limit(w, "max_tokens", o->max_tokens);
    write_limit(w, "max_messages", o->max_messages);
    rv_jw_kv_int(w, "since_us", o->since_us);
    rv_jw_kv_int(w, "always_last", o->always_last);
    rv_jw_kv_bool(w, "compress", o->compress);
    rv_jw_kv_int(w, "compress_keep", o->compress_keep);
    rv_jw_kv_bool(w, "count_tool_rows", o->count_tool_rows);
    if (!o->names_keys)
        rv_jw_kv_bool(w, "names_keys", false);
    if (o->compacts)
        rv_jw_kv_bool(w, "compacts", true);
    if (o->version > RV_HISTORY_1) /* the first one has no name */
        rv_jw_kv_int(w, "version", o->version);
    rv_jw_obj_end(w);
}

static int read_count(const char *key, json_object *value, int64_t max, bool may_be_null, int64_t *out, rv_err **err)
{
    if (!value && may_be_null) {
        *out = RV_UNSET;
        return 0;
    }
    if (!rv_json_is_int(value))
        return RV_FAIL(err, RV_E_INVALID, "history option \"%s\" must be an integer, not %s", key,
                       json_object_is_type(value, json_type_int) ? "one beyond 64 bits" : rv_json_type_text(value));
    int64_t n = json_object_get_int64(value);
    if (n < 0 || n > max)
        return RV_FAIL(err, RV_E_INVALID, "history option \"%s\" is out of range", key);
    *out = n;
    return 0;
}

static int read_flag(const char *key, json_object *value, bool *out, rv_err **err)
{
    if (!json_object_is_type(value, json_type_boolean))
        return RV_FAIL(err, RV_E_INVALID, "history option \"%s\" must be a boolean, not %s", key,
                       rv_json_type_text(value));
    *out = json_object_get_boolean(value);
    return 0;
}

static int read_policy(json_object *value, int *out, rv_err **err)
{
    int policy = rv_replay_policy_of(rv_json_str(value));

    if (policy < 0)
        return RV_FAIL(err, RV_E_INVALID, "history option \"policy\" is neither \"%s\" nor \"%s\"",
                       rv_replay_policy_text(RV_REPLAY_SYNTHESISE), rv_replay_policy_text(RV_REPLAY_SKIP));
    *out = policy;
    return 0;
}

static int read_version(const char *key, json_object *value, int *out, rv_err **err)
{
    int64_t version = 0;
    int rc = read_count(key, value, RV_HISTORY_LAST, false, &version, err);

    if (rc == 0 && version < RV_HISTORY_1)
        return RV_FAIL(err, RV_E_INVALID, "history option \"%s\" is out of range", key);
    if (rc == 0)
        *out = (int)version;
    return rc;
}

static int read_option(const char *key, json_object *value, struct rv_history_opts *o, rv_err **err)
{
    rv_str k = rv_str_of(key);

    if (rv_str_is(k, "policy"))
        return read_policy(value, &o->policy, err);
    if (rv_str_is(k, "max_tokens"))
        return read_count(key, value, INT64_MAX, true, &o->max_tokens, err);
    if (rv_str_is(k, "max_messages"))
        return read_count(key, value, INT64_MAX, true, &o->max_messages, err);
    if (rv_str_is(k, "since_us"))
        return read_count(key, value, INT64_MAX, false, &o->since_us, err);
    if (rv_str_is(k, "always_last"))
        return read_count(key, value, INT64_MAX, false, &o->always_last, err);
    if (rv_str_is(k, "compress"))
        return read_flag(key, value, &o->compress, err);
    if (rv_str_is(k, "compress_keep"))
        return read_count(key, value, MAX_KEEP, false, &o->compress_keep, err);
    if (rv_str_is(k, "count_tool_rows"))
        return read_flag(key, value, &o->count_tool_rows, err);
    if (rv_str_is(k, "names_keys"))
        return read_flag(key, value, &o->names_keys, err);
    if (rv_str_is(k, "compacts"))
        return read_flag(key, value, &o->compacts, err);
    if (rv_str_is(k, "version"))
        return read_version(key, value, &o->version, err);
    return RV_FAIL(err, RV_E_INVALID, "\"%s\" is not an option of a history", key);
}

int rv_history_opts_read(json_object *json, struct rv_history_opts *out, rv_err **err)
{
    struct rv_history_opts o = RV_HISTORY_OPTS_INIT;

    if (!json_object_is_type(json, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "the options of a history must be an object, not %s",
                       rv_json_type_text(json));
    json_object_object_foreach (json, key, value) {
        int rc = read_option(key, value, &o, err);
        if (rc < 0)
            return rc;
    }
    *out = o;
    return 0;
}

void rv_history_compact(struct rv_history_opts *o, enum rv_compaction compaction)
{
    o->compress = compaction == RV_COMPACTION_SHORTEN;
    o->compacts = compaction == RV_COMPACTION_MOMENTS;
}

int rv_history_opts_check(const struct rv_history_opts *o, rv_err **err)
{
    const char *bad = o->since_us < 0                                       ? "since_us"
                      : o->always_last < 0                                  ? "always_last"
                      : o->compress_keep < 0 || o->compress_keep > MAX_KEEP ? "compress_keep"
                                                                            : NULL;

    return bad ? RV_FAIL(err, RV_E_INVALID, "history option \"%s\" is out of range", bad) : 0;
}

#define OBSERVATION "[Observation] "

int rv_history_new(const char *session, const struct rv_history_opts *opts, rv_history **out, rv_err **err)
{
    rv_history *h;

    if (opts->policy < 0 || opts->policy >= RV_N_REPLAY_POLICIES)
        return RV_FAIL(err, RV_E_INVALID, "a history has no replay policy %d", opts->policy);
    if (!rv_utf8_valid(rv_str_of(session), NULL))
        return RV_FAIL(err, RV_E_INVALID, "the id of a session is not UTF-8");
    h = calloc(1, sizeof *h);
    if (!h)
        return RV_FAIL(err, RV_E_NOMEM, "begin a history");
    h->opts = *opts;
    h->session = rv_str_dup(rv_str_of(session));
    if (!h->session) {
        free(h);
        return RV_FAIL(err, RV_E_NOMEM, "begin a history");
    }
    *out = h;
    return 0;
}

static void free_shown(struct shown *s)
{
    rv_buf_fini(&s->text);
    conversation_message_call_fini(&s->call);
    free(s);
}

void rv_history_set_moments(rv_history *h, json_object *notes)
{
    h->moments = notes;
}

void rv_history_free(rv_history *h)
{
    if (!h)
        return;
    for (size_t i = 0; i < h->n_items; i++)
        free_shown(h->items[i]);
    free(h->items);
    free(h->waiting);
    free(h->session);
    free(h);
}

/* --- the budget --- */

bool history_fits(const struct rv_history *h, int64_t tokens)
{
    const struct rv_history_opts *o = &h->opts;

    return (o->max_tokens < 0 || tokens <= o->max_tokens - h->tokens) &&
           (o->max_messages < 0 || h->n_rows < o->max_messages);
}

/* Sums are kept only where they have a limit, so they never grow beyond it. */
static void use_up(struct rv_history *h, int64_t tokens, int64_t rows)
{
    if (h->opts.max_tokens >= 0)
        h->tokens += tokens;
    if (h->opts.max_messages >= 0)
        h->n_rows += rows;
}

/* The turn has begun before its calls were seen: results that wait stand alone. */
static void history_settle(struct rv_history *h)
{
    h->n_waiting = 0;
}

/* The walk has ended before that: they are left out, for their calls may well be there. */
static void forget_waiting(struct rv_history *h)
{
    for (size_t i = 0; i < h->n_waiting; i++)
        if (h->waiting[i].shown)
            history_drop(h, h->waiting[i].shown);
    h->n_waiting = 0;
}

static void end_walk(struct rv_history *h)
{
    forget_waiting(h);
    h->is_full = true;
}

void history_leave_out(struct rv_history *h)
{
    if (h->opts.count_tool_rows)
        end_walk(h);
}

void history_charge(struct rv_history *h, int64_t tokens)
{
    use_up(h, tokens, 1);
    h->n_shown++;
}

int history_push(struct rv_history *h, int64_t tokens, struct shown **out, rv_err **err)
{
    struct shown *s;

    if (!rv_has_room(&h->items, &h->cap_items, h->n_items + 1, sizeof *h->items))
        return RV_FAIL(err, RV_E_NOMEM, "keep a row of a history");
    s = calloc(1, sizeof *s);
    if (!s)
        return RV_FAIL(err, RV_E_NOMEM, "keep a row of a history");
    rv_buf_init(&s->text, MESSAGE_MAX_TEXT);
    s->tokens = tokens;
    h->items[h->n_items++] = s;
    history_charge(h, tokens);
    *out = s;
    return 0;
}

void history_drop(struct rv_history *h, struct shown *s)
{
    size_t at = h->n_items;

    while (at > 0 && h->items[at - 1] != s)
        at--;
    for (; at < h->n_items; at++)
        h->items[at - 1] = h->items[at];
    h->n_items--;
    use_up(h, -s->tokens, -1);
    h->n_shown--;
    free_shown(s);
}

/* --- rows --- */

static rv_str content_of(const struct rv_message *row)
{
    return row->has_content ? row->content : (rv_str){NULL, 0};
}

int history_pass(struct rv_history *h, const struct rv_message *row)
{
    int64_t tokens = row->token_count >= 0 ? row->token_count : rv_tokens_estimate(content_of(row));

    if (!h->opts.count_tool_rows)
        return 0;
    if (history_fits(h, tokens))
        use_up(h, tokens, 1);
    else
        end_walk(h);
    return 0;
}

/* Whether the text of that row was made shorter, in room. */
static bool shorten(const struct rv_history *h, const struct rv_message *row, enum rv_message_type type, rv_str text,
                    rv_buf *room)
{
    char key[RV_MESSAGE_MAX_KEY];

    if (type != RV_MESSAGE_ASSISTANT || !h->opts.compress || h->opts.compacts || h->n_shown < h->opts.always_last ||
        h->opts.compress_keep < 0)
        return false;
    rv_message_make_key(h->session, row->seq, key);
    return rv_message_compress(text, h->opts.names_keys ? key : NULL, (size_t)h->opts.compress_keep, room);
}

static const char *role_of(enum rv_message_type type)
{
    if (type == RV_MESSAGE_ASSISTANT)
        return "assistant";
    return type == RV_MESSAGE_SYSTEM || type == RV_MESSAGE_MEMORY ? "system" : "user";
}

static int push_text(struct rv_history *h, const struct rv_message *row, enum rv_message_type type, rv_str text,
                     bool is_changed, rv_err **err)
{
    rv_str before = type == RV_MESSAGE_OBSERVATION ? RV_STR_LIT(OBSERVATION) : (rv_str){NULL, 0};
    int64_t tokens = row->token_count;
    struct shown *s = NULL;
    int rc;

    if (tokens < 0 || is_changed)
        tokens = (int64_t)((rv_utf8_count(before) + rv_utf8_count(text)) / MESSAGE_POINTS_PER_TOKEN);
    if (before.len + text.len > MESSAGE_MAX_TEXT || !history_fits(h, tokens)) {
        end_walk(h);
        return 0;
    }
    h->is_in_run = false;
    rc = history_push(h, tokens, &s, err);
    if (rc < 0)
        return rc;
    s->role = role_of(type);
    s->seq = row->seq;
    s->created_us = row->created_us;
    rv_buf_add_str(&s->text, before);
    rv_buf_add_str(&s->text, text);
    return rv_buf_check(&s->text, "a row of a history", err);
}

static int add_text(struct rv_history *h, const struct rv_message *row, enum rv_message_type type, rv_err **err)
{
    rv_buf cleaned = RV_BUF_INIT(SIZE_MAX / 2), shorter = RV_BUF_INIT(SIZE_MAX / 2);
    rv_str text = content_of(row);
    bool is_changed = false;
    int rc;

    if (type == RV_MESSAGE_USER) {
        history_settle(h);
        h->is_in_run = false;
    }
    if (conversation_message_is_blank(text)) /* providers refuse it */
        return history_pass(h, row);
    text = conversation_message_clean(text, &cleaned);
    is_changed = cleaned.len > 0;
    rc = rv_buf_check(&cleaned, "a row of a history", err);
    if (rc == 0 && shorten(h, row, type, text, &shorter)) {
        rc = rv_buf_check(&shorter, "a row of a history", err);
        text = rv_buf_str(&shorter);
        is_changed = true;
    }
    if (rc == 0)
        rc = push_text(h, row, type, text, is_changed, err);
    rv_buf_fini(&cleaned);
    rv_buf_fini(&shorter);
    return rc;
}

/* Something came of a turn that failed: words, or calls. Rows come newest first, so its question is still to come. */
static bool is_part_of_failed(const struct rv_message *row, int type)
{
    return rv_turn_status_of(rv_str_of(row->status)) == RV_TURN_FAILED &&
           (type == RV_MESSAGE_TOOL_CALL || type == RV_MESSAGE_TOOL_RESPONSE || type == RV_MESSAGE_TOOL ||
            (type == RV_MESSAGE_ASSISTANT && !conversation_message_is_blank(content_of(row))));
}

/* A message of which nothing came but a failure. Each later turn would fail by it, too. */
static bool is_failed_message(struct rv_history *h, const struct rv_message *row, int type)
{
    bool had_part = h->failed_has_part;

    if (type != RV_MESSAGE_USER) {
        h->failed_has_part = had_part || is_part_of_failed(row, type);
        return false;
    }
    h->failed_has_part = false;
    return h->opts.version >= RV_HISTORY_2 && !had_part && rv_turn_status_of(rv_str_of(row->status)) == RV_TURN_FAILED;
}

static int add_row(struct rv_history *h, const struct rv_message *row, rv_err **err)
{
    rv_str word = rv_str_of(row->type);
    int type = word.len ? rv_message_type_of(word) : RV_MESSAGE_USER; /* p8-agents 10/11 */
    bool shows_tools = h->opts.policy == RV_REPLAY_SYNTHESISE;

    if (type < 0 || (row->parent_call_id && row->parent_call_id[0]))
        return history_pass(h, row);
    if (is_failed_message(h, row, type)) { /* the turn begins there all the same */
        history_settle(h);
        h->is_in_run = false;
        return history_pass(h, row);
    }
    switch ((enum rv_message_type)type) {
    case RV_MESSAGE_USER:
    case RV_MESSAGE_ASSISTANT:
    case RV_MESSAGE_SYSTEM:
    case RV_MESSAGE_OBSERVATION:
    case RV_MESSAGE_MEMORY:
        return add_text(h, row, (enum rv_message_type)type, err);
    case RV_MESSAGE_TOOL_CALL:
        return shows_tools ? history_add_call(h, row, err) : history_pass(h, row);
    case RV_MESSAGE_TOOL_RESPONSE:
        return shows_tools ? history_add_response(h, row, err) : history_pass(h, row);
    case RV_MESSAGE_TOOL:
        return shows_tools ? history_add_tool(h, row, err) : history_pass(h, row);
    case RV_MESSAGE_THINK:
    case RV_MESSAGE_TOOL_RESULT:
    case RV_N_MESSAGE_TYPES:
        break;
    }
    return history_pass(h, row);
}

int rv_history_add(rv_history *h, const struct rv_message *row, bool *full, rv_err **err)
{
    int rc = 0;

    if (!h->is_full && (h->opts.max_tokens == 0 || row->created_us < h->opts.since_us))
        end_walk(h);
    if (!h->is_full)
        rc = add_row(h, row, err);
    if (rc < 0)
        return rc;
    if (h->opts.max_messages >= 0 && h->n_rows >= h->opts.max_messages && h->n_waiting == 0)
        h->is_full = true;
    *full = h->is_full;
    return 0;
}
