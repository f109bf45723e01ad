/* The feed of a user: days with anything in them, each with a summary that is counted, not stored, and its moments. */
#include "coreengine/app/memory.h"

#include "coreengine/base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_US   INT64_C(86400000000)
#define MAX_SEEN 1000 /* sessions that are told apart in one day */

struct day {
    const struct rv_store_scope *scope;
    const struct rv_app_feed *what;
    int64_t newest_us; /* while a day is looked for; 0: none */
    int64_t n_messages, n_tokens, n_moments;
    char *sessions[MAX_SEEN]; /* owned */
    size_t n_sessions;
    json_object *moments; /* owned */
};

static int64_t time_of(json_object *row, const char *key)
{
    int64_t us = 0;

    return rv_time_parse(rv_str_of(rv_json_text_or(row, key, "")), &us, NULL) == 0 ? us : 0;
}

/* A user's own messages: sessions without an owner are of others. */
static bool is_own(const struct day *d, json_object *row)
{
    return !d->scope->user || strcmp(rv_json_text_or(row, "user_id", ""), d->scope->user) == 0;
}

static bool is_in_feed(const struct day *d, json_object *row)
{
    const char *type = rv_json_text_or(row, "moment_type", "");

    if (strcmp(type, RV_CHUNK_TYPE) == 0)
        return false;
    return d->what->include_future || strcmp(type, "reminder") == 0 ||
           time_of(row, "starts_timestamp") <= d->what->now_us;
}

/* --- which day --- */

static int see_message(void *self, json_object *row, rv_err **err)
{
    struct day *d = self;

    (void)err;
    if (!is_own(d, row))
        return 0;
    d->newest_us = time_of(row, "created_at") > d->newest_us ? time_of(row, "created_at") : d->newest_us;
    return RV_STORE_ENOUGH;
}

static int see_moment(void *self, json_object *row, rv_err **err)
{
    struct day *d = self;

    (void)err;
    if (!is_in_feed(d, row))
        return 0;
    d->newest_us = time_of(row, "created_at") > d->newest_us ? time_of(row, "created_at") : d->newest_us;
    return RV_STORE_ENOUGH;
}

/* Days since 1970 of the newest day up to that moment which has anything; -1: none. */
static int find_day(rv_store *store, struct day *d, int64_t until_us, int64_t *out, rv_err **err)
{
    const struct rv_entity_filter before = {.until_us = until_us, .limit = RV_ENTITY_MAX_FIND};

    d->newest_us = 0;
    *out = -1;
    if (until_us <= 0)
        return 0;
    int rc = rv_store_find_entities(store, d->scope, "messages", &before, see_message, d, err);
    if (rc == 0)
        rc = rv_store_find_entities(store, d->scope, "moments", &before, see_moment, d, err);
    if (rc == 0 && d->newest_us > 0)
        *out = d->newest_us / DAY_US;
    return rc;
}

/* --- what it has --- */

static int note_session(struct day *d, const char *session, rv_err **err)
{
    for (size_t i = 0; i < d->n_sessions; i++)
        if (strcmp(d->sessions[i], session) == 0)
            return 0;
    if (d->n_sessions == MAX_SEEN)
        return 0;
    d->sessions[d->n_sessions] = rv_str_dup(rv_str_of(session));
    return d->sessions[d->n_sessions++] ? 0 : RV_FAIL(err, RV_E_NOMEM, "count the sessions of a day");
}

static int count_message(void *self, json_object *row, rv_err **err)
{
    struct day *d = self;
    int64_t tokens = 0;

    if (!is_own(d, row))
        return 0;
    tokens = rv_json_int_or(row, "token_count", 0);
    d->n_messages++;
    d->n_tokens += tokens;
    return note_session(d, rv_json_text_or(row, "session_id", ""), err);
}

static int count_moment(void *self, json_object *row, rv_err **err)
{
    struct day *d = self;

    if (!is_in_feed(d, row))
        return 0;
    d->n_moments++;
    return rv_json_push_ref(d->moments, row, err);
}

static void forget(struct day *d)
{
    for (size_t i = 0; i < d->n_sessions; i++)
        free(d->sessions[i]);
    json_object_put(d->moments);
    d->moments = NULL;
    d->n_sessions = 0;
    d->n_messages = d->n_tokens = d->n_moments = 0;
}

static int count_day(rv_store *store, struct day *d, int64_t day, rv_err **err)
{
    const struct rv_entity_filter of_day = {
        .since_us = day > 0 ? day * DAY_US : 1, .until_us = (day + 1) * DAY_US - 1, .limit = RV_ENTITY_MAX_FIND};

    d->moments = json_object_new_array();
    int rc = d->moments ? rv_store_find_entities(store, d->scope, "messages", &of_day, count_message, d, err)
                        : RV_FAIL(err, RV_E_NOMEM, "tell a day");
    return rc == 0 ? rv_store_find_entities(store, d->scope, "moments", &of_day, count_moment, d, err) : rc;
}

/* --- how it is told --- */

static void write_title(int64_t day, int64_t now_us, rv_buf *out)
{
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct rv_date date = rv_date_of_days(day);
    int64_t ago = now_us / DAY_US - day;

    if (ago == 0)
        rv_buf_puts(out, "Today");
    else if (ago == 1)
        rv_buf_puts(out, "Yesterday");
    else
        rv_buf_printf(out, "%s %d", months[date.month - 1], date.day);
}

static json_object *summary_of(const struct day *d, int64_t day, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *o = json_object_new_object(), *metadata;
    struct rv_date date = rv_date_of_days(day);
    rv_buf text = RV_BUF_INIT(1000);
    char name[48], id[RV_UUID_MAX];

    snprintf(name, sizeof name, "daily-%04lld-%02d-%02d", (long long)date.year, date.month, date.day);
    rv_entity_id("sessions", rv_str_of(name), d->scope->user, id);
    write_title(day, d->what->now_us, &text);
    rv_buf_printf(&text, ": %lld messages across %zu session(s), %lld tokens. %lld moment(s).",
                  (long long)d->n_messages, d->n_sessions, (long long)d->n_tokens, (long long)d->n_moments);
    if (!o) {
        RV_IGNORE(RV_FAIL(err, RV_E_NOMEM, "tell a day"), "told by NULL");
        rv_buf_fini(&text);
        return NULL;
    }
    b.rc = rv_buf_check(&text, "the summary of a day", err);
    rv_json_build_text(&b, o, "name", name);
    rv_json_build_text(&b, o, "moment_type", "daily_summary");
    rv_json_build_text(&b, o, "summary", rv_buf_cstr(&text));
    rv_json_build_text(&b, o, "date", name + sizeof "daily-" - 1);
    rv_json_build_text(&b, o, "source_session_id", id);
    metadata = rv_json_build(&b, o, "metadata", json_object_new_object());
    rv_json_build_int(&b, metadata, "message_count", d->n_messages);
    rv_json_build_int(&b, metadata, "session_count", (int64_t)d->n_sessions);
    rv_json_build_int(&b, metadata, "total_tokens", d->n_tokens);
    rv_json_build_int(&b, metadata, "moment_count", d->n_moments);
    rv_buf_fini(&text);
    if (b.rc == 0)
        return o;
    json_object_put(o);
    return NULL;
}

static int tell_day(const struct day *d, int64_t day, json_object *to, rv_err **err)
{
    json_object *summary = summary_of(d, day, err);
    int rc = summary ? rv_json_push_take(to, summary, err) : RV_E_NOMEM;

    for (size_t i = 0; i < json_object_array_length(d->moments) && rc == 0; i++)
        rc = rv_json_push_ref(to, json_object_array_get_idx(d->moments, i), err);
    return rc;
}

/* The last moment of that day. */
static int cursor_of(const struct rv_app_feed *opts, int64_t *until_us, rv_err **err)
{
    char text[64];
    int64_t us = 0;

    *until_us = INT64_C(253402300799) * 1000000; /* of the year 9999 */
    if (!opts->before_date)
        return 0;
    snprintf(text, sizeof text, "%.32sT00:00:00Z", opts->before_date);
    if (strlen(opts->before_date) != 10 || rv_time_parse(rv_str_of(text), &us, NULL) < 0)
        return RV_FAIL(err, RV_E_INVALID, "\"%.40s\" is not a date: write YYYY-MM-DD", opts->before_date);
    *until_us = us + DAY_US - 1;
    return 0;
}

int rv_app_feed(rv_store *store, const struct rv_store_scope *scope, const struct rv_app_feed *opts, json_object **out,
                rv_err **err)
{
    struct day d = {.scope = scope, .what = opts};
    json_object *list = json_object_new_array();
    int64_t until_us = 0, day = 0;
    int rc = list ? cursor_of(opts, &until_us, err) : RV_FAIL(err, RV_E_NOMEM, "tell a feed");

    if (rc == 0 && (opts->days < 1 || opts->days > RV_APP_MAX_DAYS))
        rc = RV_FAIL(err, RV_E_INVALID, "a feed has from 1 to %d days, not %lld", RV_APP_MAX_DAYS,
                     (long long)opts->days);
    for (int64_t i = 0; i < opts->days && rc == 0; i++) {
        rc = find_day(store, &d, until_us, &day, err);
        if (rc < 0 || day < 0)
            break;
        rc = count_day(store, &d, day, err);
        if (rc == 0)
            rc = tell_day(&d, day, list, err);
        forget(&d);
        until_us = day * DAY_US - 1;
    }
    if (rc == 0)
        *out = list;
    else
        json_object_put(list);
    return rc;
}
