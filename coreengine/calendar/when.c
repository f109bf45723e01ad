/* Times of schedules that fire once: ISO 8601 text to an instant. Pure. */
#include "coreengine/calendar/calendar.h"

#include <string.h>

#include "coreengine/calendar/calendar_internal.h"

#define MAX_QUOTE 40 /* bytes of the text, in errors: a time with its offset has 35 (RFC 3339) */
#define FORMS     "use a form such as 2026-04-15, 2026-04-15T09:30, 2026-04-15T09:30:00Z or 2026-04-15T09:30+02:00"

struct reader {
    rv_str text, rest; /* the whole, and what is not read yet */
    struct rv_src src;
    rv_err **err;
};

struct fields {
    int year, month, day, hour, minute, second;
    int64_t fraction_us;
    bool has_offset;
    int offset_s;
};

/* An error at a byte of the text. */
#define FAIL(r, at, code, fmt, ...)                                                                                    \
    RV_FAIL_AT((r)->err, (struct rv_src[]){calendar_place_in((r)->src, (r)->text, (at))}, (code),                      \
               "time \"%.*s\": " fmt, RV_STR_ARG(rv_utf8_cut((r)->text, MAX_QUOTE)), ##__VA_ARGS__)

static int wrong_form(const struct reader *r, const char *missing, const char *form)
{
    int rc = FAIL(r, r->rest.ptr, RV_E_PARSE, "%s%s%s is expected%s", r->rest.len ? "" : "it ends where ", missing,
                  form, r->rest.len ? " here" : "");

    rv_err_set_hint(r->err, FORMS);
    return rc;
}

static bool take(struct reader *r, const char *any_of)
{
    if (!r->rest.len || !r->rest.ptr[0] || !strchr(any_of, r->rest.ptr[0]))
        return false;
    r->rest.ptr++;
    r->rest.len--;
    return true;
}

/* Exactly n digits, a number from min to max: a month, ... */
static int read_number(struct reader *r, size_t n, const char *what, int min, int max, int *out)
{
    const char *from = r->rest.ptr;
    int value = 0, rc;

    for (size_t i = 0; i < n; i++) {
        if (!r->rest.len || !rv_is_digit(r->rest.ptr[0]))
            return wrong_form(r, what, n == 4 ? ", four digits," : ", two digits,");
        value = value * 10 + (r->rest.ptr[0] - '0');
        r->rest.ptr++;
        r->rest.len--;
    }
    if (value < min || value > max) {
        rc = FAIL(r, from, RV_E_INVALID, "%s %0*d does not exist (%0*d to %0*d)", what, (int)n, value, (int)n, min,
                  (int)n, max);
        rv_err_set_hint(r->err, "the nearest is %0*d", (int)n, value < min ? min : max);
        return rc;
    }
    *out = value;
    return 0;
}

static int read_separator(struct reader *r, bool is_compact, const char *any_of, const char *what)
{
    return is_compact || take(r, any_of) ? 0 : wrong_form(r, what, "");
}

static int read_date(struct reader *r, bool is_compact, struct fields *f)
{
    const char *day;
    int rc = read_number(r, 4, "year", 1, 9999, &f->year), last;

    if (rc == 0)
        rc = read_separator(r, is_compact, "-", "\"-\"");
    if (rc == 0)
        rc = read_number(r, 2, "month", 1, 12, &f->month);
    if (rc == 0)
        rc = read_separator(r, is_compact, "-", "\"-\"");
    day = r->rest.ptr;
    if (rc == 0)
        rc = read_number(r, 2, "day", 1, 31, &f->day);
    if (rc < 0)
        return rc;
    last = rv_date_month_days(f->year, f->month);
    if (f->day > last) {
        rc = FAIL(r, day, RV_E_INVALID, "this month has %d days", last);
        rv_err_set_hint(r->err, "its last day is %04d-%02d-%02d", f->year, f->month, last);
    }
    return rc;
}

static int read_fraction(struct reader *r, struct fields *f)
{
    int n = 0;

    if (!take(r, "."))
        return 0;
    for (; n < 9 && r->rest.len && rv_is_digit(r->rest.ptr[0]); n++) {
        if (n < 6)
            f->fraction_us = f->fraction_us * 10 + (r->rest.ptr[0] - '0');
        r->rest.ptr++;
        r->rest.len--;
    }
    if (n == 0)
        return wrong_form(r, "a digit", "");
    for (; n < 6; n++)
        f->fraction_us *= 10;
    return 0;
}

static int read_time(struct reader *r, bool is_compact, struct fields *f)
{
    int rc = read_number(r, 2, "hour", 0, 23, &f->hour);

    if (rc == 0)
        rc = read_separator(r, is_compact, ":", "\":\"");
    if (rc == 0)
        rc = read_number(r, 2, "minute", 0, 59, &f->minute);
    if (rc < 0 || (!is_compact && !take(r, ":")))
        return rc;
    rc = read_number(r, 2, "second", 0, 59, &f->second);
    return rc < 0 ? rc : read_fraction(r, f);
}

static int read_offset(struct reader *r, struct fields *f)
{
    int hours, minutes, sign, rc;

    f->has_offset = true;
    if (take(r, "Zz"))
        return 0;
    sign = take(r, "-") ? -1 : 1;
    if (sign > 0 && !take(r, "+"))
        return wrong_form(r, "Z, an offset such as +02:00, or the end", "");
    rc = read_number(r, 2, "hour", 0, 23, &hours);
    if (rc == 0)
        rc = read_separator(r, false, ":", "\":\"");
    if (rc == 0)
        rc = read_number(r, 2, "minute", 0, 59, &minutes);
    if (rc == 0)
        f->offset_s = sign * (hours * 3600 + minutes * 60);
    return rc;
}

static int read_fields(struct reader *r, struct fields *f)
{
    bool is_compact = r->text.len > 4 && r->text.ptr[4] != '-';
    int rc = read_date(r, is_compact, f);

    if (rc < 0 || (r->rest.len == 0 && !is_compact))
        return rc;
    rc = read_separator(r, false, is_compact ? "T" : "Tt ", "\"T\" and a time");
    if (rc == 0)
        rc = read_time(r, is_compact, f);
    if (rc < 0 || r->rest.len == 0)
        return rc;
    rc = read_offset(r, f);
    return rc == 0 && r->rest.len ? wrong_form(r, "the end", "") : rc;
}

/* The instant of the fields on the clocks of the zone. */
static int on_clocks(const struct reader *r, const rv_zone *zone, int64_t local_us, int64_t *out_us)
{
    int64_t instants[2];
    char shown[RV_TIME_MAX];
    int rc;

    if (rv_zone_from_local(zone, local_us, instants) > 0) {
        *out_us = instants[0];
        return 0;
    }
    rc = FAIL(r, r->text.ptr, RV_E_INVALID, "the clocks of %s are set forward past it", rv_zone_name(zone));
    rv_zone_format(zone, instants[0], shown);
    rv_err_set_hint(r->err, "the first time after the gap is %s", shown);
    return rc;
}

static int in_the_past(const struct reader *r, const rv_zone *zone, int64_t now_us, rv_err **err)
{
    char now[RV_TIME_MAX], next[RV_TIME_MAX];
    int rc;

    rv_zone_format(zone, now_us, now);
    rv_zone_format(zone, (calendar_floor_div(now_us, RV_US_PER_MIN) + 1) * RV_US_PER_MIN, next);
    rc = FAIL(r, r->text.ptr, RV_E_STATE, "it is in the past; now is %s", now);
    rv_err_set_hint(err, "the next full minute is %s", next);
    return rc;
}

int rv_when_parse(rv_str text, const rv_zone *zone, int64_t now_us, const struct rv_src *src, struct rv_when *out,
                  rv_err **err)
{
    struct reader r = {.src = src ? *src : (struct rv_src){NULL, 1, 1}, .err = err};
    struct fields f = {0};
    struct rv_when when;
    int rc;

    r.text = rv_str_trim(text);
    r.src.col += text.len ? (int)(r.text.ptr - text.ptr) : 0;
    r.rest = r.text = r.text.ptr ? r.text : RV_STR_LIT("");
    rc = read_fields(&r, &f);
    if (rc < 0)
        return rc;
    when.local_us =
        (rv_date_days(f.year, f.month, f.day) * RV_S_PER_DAY + f.hour * 3600 + f.minute * 60 + f.second) * RV_US_PER_S +
        f.fraction_us;
    if (f.has_offset)
        when.us = when.local_us - f.offset_s * RV_US_PER_S;
    else
        rc = on_clocks(&r, zone, when.local_us, &when.us);
    if (rc == 0 && (when.us < CALENDAR_FIRST_US || when.us > CALENDAR_LAST_US)) {
        rc = FAIL(&r, r.text.ptr, RV_E_INVALID, "it does not exist in the calendar");
        rv_err_set_hint(err, "the last time is 9999-12-31T23:59:59Z");
    }
    if (rc == 0 && when.us <= now_us)
        rc = in_the_past(&r, zone, now_us, err);
    if (rc == 0)
        *out = when;
    return rc;
}
