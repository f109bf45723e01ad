/* The feed of a user: days with anything in them, each with a summary that is counted, not stored, and its moments. */
#include "coreengine/app/memory.h"

#include "coreengine/base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct feed {
    const struct rv_store_scope *scope;
    const struct rv_app_feed *what;
    struct rv_message_day *days; /* with messages, newest first; owned */
    size_t n_days;
    int64_t moment_us; /* while a day is looked for: of the newest moment; 0: none */
};

struct day {
    const struct feed *feed;
    struct rv_message_day counts; /* of its messages */
    int64_t n_moments;
    json_object *moments; /* the newest of them, at most RV_ENTITY_MAX_FIND; owned */
};

static int64_t time_of(json_object *row, const char *key)
{
    int64_t us = 0;

    return rv_time_read(rv_str_of(rv_json_text_or(row, key, "")), &us) ? us : 0;
}

static bool is_in_feed(const struct rv_app_feed *what, json_object *row)
{
    const char *type = rv_json_text_or(row, "moment_type", "");

    if (strcmp(type, RV_CHUNK_TYPE) == 0)
        return false;
    return what->include_future || strcmp(type, "reminder") == 0 || time_of(row, "starts_timestamp") <= what->now_us;
}

/* --- which day --- */

static int take_day(void *self, const struct rv_message_day *day, rv_err **err)
{
    struct feed *f = self;

    (void)err;
    f->days[f->n_days++] = *day;
    return f->n_days == (size_t)f->what->days ? RV_STORE_ENOUGH : 0;
}

static int list_days(rv_store *store, struct feed *f, int64_t until_us, rv_err **err)
{
    f->days = calloc((size_t)f->what->days, sizeof *f->days);
    if (!f->days)
        return RV_FAIL(err, RV_E_NOMEM, "tell a feed");
    return until_us < 0 ? 0 : rv_store_list_message_days(store, f->scope, until_us, take_day, f, err);
}

static int see_moment(void *self, json_object *row, rv_err **err)
{
    struct feed *f = self;

    (void)err;
    if (!is_in_feed(f->what, row))
        return 0;
    f->moment_us = time_of(row, "created_at");
    return RV_STORE_ENOUGH;
}

/* The newest day up to that moment which has anything; its number is -1 when there is none. */
static int find_day(rv_store *store, struct feed *f, int64_t until_us, struct rv_message_day *out, rv_err **err)
{
    const struct rv_entity_filter before = {.until_us = until_us, .limit = RV_ENTITY_ALL};
    size_t i = 0;

    *out = (struct rv_message_day){.day = -1};
    if (until_us <= 0)
        return 0;
    f->moment_us = 0;
    int rc =
        rv_store_find_entities(store, f->scope, &(const struct rv_entities_of){"moments", &before}, see_moment, f, err);
    while (i < f->n_days && f->days[i].day * RV_US_PER_DAY > until_us)
        i++;
    if (i < f->n_days)
        *out = f->days[i];
    if (f->moment_us > 0 && f->moment_us / RV_US_PER_DAY > out->day)
        *out = (struct rv_message_day){.day = f->moment_us / RV_US_PER_DAY};
    return rc;
}

/* --- what it has --- */

static int count_moment(void *self, json_object *row, rv_err **err)
{
    struct day *d = self;

    if (!is_in_feed(d->feed->what, row))
        return 0;
    return d->n_moments++ < RV_ENTITY_MAX_FIND ? rv_json_push_ref(d->moments, row, err) : 0;
}

static int count_moments(rv_store *store, struct day *d, rv_err **err)
{
    const int64_t day = d->counts.day;
    const struct rv_entity_filter of_day = {.since_us = day > 0 ? day * RV_US_PER_DAY : 1,
                                            .until_us = (day + 1) * RV_US_PER_DAY - 1,
                                            .limit = RV_ENTITY_ALL};

    d->moments = json_object_new_array();
    if (!d->moments)
        return RV_FAIL(err, RV_E_NOMEM, "tell a day");
    return rv_store_find_entities(store, d->feed->scope, &(const struct rv_entities_of){"moments", &of_day},
                                  count_moment, d, err);
}

/* --- how it is told --- */

static void write_title(int64_t day, int64_t now_us, rv_buf *out)
{
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct rv_date date = rv_date_of_days(day);
    int64_t ago = now_us / RV_US_PER_DAY - day;

    if (ago == 0)
        rv_buf_puts(out, "Today");
    else if (ago == 1)
        rv_buf_puts(out, "Yesterday");
    else
        rv_buf_printf(out, "%s %d", months[date.month - 1], date.day);
}

static int summary_of(const struct day *d, json_object **out, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    const struct rv_message_day *of = &d->counts;
    json_object *o = json_object_new_object(), *metadata;
    struct rv_date date = rv_date_of_days(of->day);
    rv_buf text = RV_BUF_INIT(1000);
    char name[48], id[RV_UUID_MAX];

    snprintf(name, sizeof name, "daily-%04lld-%02d-%02d", (long long)date.year, date.month, date.day);
    rv_entity_make_id("sessions", rv_str_of(name), d->feed->scope->user, id);
    write_title(of->day, d->feed->what->now_us, &text);
    rv_buf_printf(&text, ": %lld messages across %lld session(s), %lld tokens. %lld moment(s).",
                  (long long)of->n_messages, (long long)of->n_sessions, (long long)of->n_tokens,
                  (long long)d->n_moments);
    b.rc = o ? rv_buf_check(&text, "the summary of a day", err) : RV_FAIL(err, RV_E_NOMEM, "tell a day");
    rv_json_build_text(&b, o, "name", name);
    rv_json_build_text(&b, o, "moment_type", "daily_summary");
    rv_json_build_buf(&b, o, "summary", &text);
    rv_json_build_text(&b, o, "date", name + sizeof "daily-" - 1);
    rv_json_build_text(&b, o, "source_session_id", id);
    metadata = rv_json_build(&b, o, "metadata", json_object_new_object());
    rv_json_build_int(&b, metadata, "message_count", of->n_messages);
    rv_json_build_int(&b, metadata, "session_count", of->n_sessions);
    rv_json_build_int(&b, metadata, "total_tokens", of->n_tokens);
    rv_json_build_int(&b, metadata, "moment_count", d->n_moments);
    rv_buf_fini(&text);
    if (b.rc == 0)
        *out = o;
    else
        json_object_put(o);
    return b.rc;
}

static int tell_day(rv_store *store, struct day *d, json_object *to, rv_err **err)
{
    json_object *summary = NULL;
    int rc = count_moments(store, d, err);

    if (rc == 0)
        rc = summary_of(d, &summary, err);
    if (rc == 0)
        rc = rv_json_push_take(to, summary, err);
    for (size_t i = 0; rc == 0 && i < json_object_array_length(d->moments); i++)
        rc = rv_json_push_ref(to, json_object_array_get_idx(d->moments, i), err);
    json_object_put(d->moments);
    return rc;
}

/* The last moment of that day. */
static int cursor_of(const struct rv_app_feed *opts, int64_t *until_us, rv_err **err)
{
    int64_t us;

    *until_us = INT64_C(253402300799) * RV_US_PER_S; /* of the year 9999 */
    if (!opts->before_date)
        return 0;
    if (!rv_day_parse(rv_str_of(opts->before_date), &us))
        return RV_FAIL(err, RV_E_INVALID, "\"%.40s\" is not a date: write YYYY-MM-DD", opts->before_date);
    *until_us = us + RV_US_PER_DAY - 1;
    return 0;
}

int rv_app_feed(rv_store *store, const struct rv_store_scope *scope, const struct rv_app_feed *opts, json_object **out,
                rv_err **err)
{
    struct feed f = {.scope = scope, .what = opts};
    json_object *list = json_object_new_array();
    int64_t until_us = 0;
    int rc = list ? cursor_of(opts, &until_us, err) : RV_FAIL(err, RV_E_NOMEM, "tell a feed");

    if (rc == 0 && (opts->days < 1 || opts->days > RV_APP_MAX_DAYS))
        rc = RV_FAIL(err, RV_E_INVALID, "a feed has from 1 to %d days, not %lld", RV_APP_MAX_DAYS,
                     (long long)opts->days);
    if (rc == 0)
        rc = list_days(store, &f, until_us, err);
    for (int64_t i = 0; rc == 0 && i < opts->days; i++) {
        struct day d = {.feed = &f};
        rc = find_day(store, &f, until_us, &d.counts, err);
        if (rc < 0 || d.counts.day < 0)
            break;
        rc = tell_day(store, &d, list, err);
        until_us = d.counts.day * RV_US_PER_DAY - 1;
    }
    free(f.days);
    if (rc == 0)
        *out = list;
    else
        json_object_put(list);
    return rc;
}
