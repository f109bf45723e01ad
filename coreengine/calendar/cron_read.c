/* Cron expressions: text to sets of numbers. Pure. What a set means for a date is in cron.c.
 *
 * Refused on purpose are the extensions of single programs, a sixth field, L, W, # and ?: where they are known at all
 * they mean different things. */
#include <string.h>

#include "coreengine/calendar/calendar.h"
#include "coreengine/calendar/calendar_internal.h"

#define N_FIELDS  5  /* minute, hour, day, month, day of the week */
#define MAX_QUOTE 80 /* bytes of the expression, in errors: a line of a terminal */

enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY };

static const char *const month_names[] = {"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                                          "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
static const char *const weekday_names[] = {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};

static const struct field {
    const char *name;
    int min, max, count; /* weekdays: 7 is 0 too */
    const char *const *names;
    int n_names; /* the first stands for min */
} fields[N_FIELDS] = {
    {"minute", 0, 59, 60, NULL, 0},
    {"hour", 0, 23, 24, NULL, 0},
    {"day", 1, 31, 31, NULL, 0},
    {"month", 1, 12, 12, month_names, RV_COUNT(month_names)},
    {"weekday", 0, 7, 7, weekday_names, RV_COUNT(weekday_names)},
};

static const struct {
    const char *name, *meaning;
} macros[] = {
    {"@hourly", "0 * * * *"},  {"@daily", "0 0 * * *"},  {"@midnight", "0 0 * * *"}, {"@weekly", "0 0 * * 0"},
    {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"},
};

struct reader {
    rv_str text; /* the whole expression */
    struct rv_src src;
    const struct field *field;
    rv_err **err;
};

/* An error at a byte of the text. */
#define FAIL(r, at, code, fmt, ...)                                                                                    \
    RV_FAIL_AT((r)->err, (struct rv_src[]){calendar_place_in((r)->src, (r)->text, (at))}, (code),                      \
               "cron expression \"%.*s\": " fmt, RV_STR_ARG(rv_utf8_cut((r)->text, MAX_QUOTE)), ##__VA_ARGS__)

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool equals_in_any_case(rv_str a, const char *b)
{
    return a.len == strlen(b) && strncasecmp(a.ptr, b, a.len) == 0;
}

static bool take(rv_str *s, char c)
{
    if (!s->len || s->ptr[0] != c)
        return false;
    s->ptr++;
    s->len--;
    return true;
}

/* The part before the next stop, which is taken too. */
static rv_str take_until(rv_str *s, char stop, bool *stopped)
{
    const char *end = s->len ? memchr(s->ptr, stop, s->len) : NULL;
    rv_str part = {s->ptr, end ? (size_t)(end - s->ptr) : s->len};

    *stopped = end != NULL;
    s->ptr += part.len + *stopped;
    s->len -= part.len + *stopped;
    return part;
}

/* --- values --- */

static int unknown_word(const struct reader *r, rv_str word)
{
    const struct field *f = r->field;
    const char *near = f->names ? rv_nearest(word, f->names, (size_t)f->n_names) : NULL;
    char upper[4] = {0};
    int rc;

    if (word.len == 0)
        return FAIL(r, word.ptr, RV_E_PARSE, "a number is missing in the field %s (%d to %d)", f->name, f->min, f->max);
    for (size_t i = 0; i < 3 && i < word.len; i++) /* "monday" begins as its name does */
        upper[i] = word.ptr[i] >= 'a' && word.ptr[i] <= 'z' ? (char)(word.ptr[i] - 'a' + 'A') : word.ptr[i];
    for (int i = 0; i < f->n_names && word.len >= 3; i++)
        if (strcmp(upper, f->names[i]) == 0)
            near = f->names[i];
    rc = FAIL(r, word.ptr, RV_E_PARSE, "\"%.*s\" is not a value of the field %s (%d to %d%s%s%s%s)",
              RV_STR_ARG(rv_utf8_cut(word, MAX_QUOTE)), f->name, f->min, f->max, f->names ? ", or " : "",
              f->names ? f->names[0] : "", f->names ? " to " : "", f->names ? f->names[f->n_names - 1] : "");
    if (near)
        rv_err_set_hint(r->err, "write %s", near);
    else if (rv_str_is(word, "?"))
        rv_err_set_hint(r->err, "write * for a field that may have any value");
    else
        rv_err_set_hint(r->err,
                        "a field is * or a list of numbers and ranges, each range with an optional step: 1,10-20/5");
    return rc;
}

/* A number or a name of the field. */
static int read_value(const struct reader *r, rv_str word, int *out)
{
    const struct field *f = r->field;
    int value = 0, rc;

    for (int i = 0; i < f->n_names; i++)
        if (equals_in_any_case(word, f->names[i])) {
            *out = f->min + i;
            return 0;
        }
    for (size_t i = 0; i < word.len; i++) {
        if (!rv_is_digit(word.ptr[i]))
            return unknown_word(r, word);
        if (value <= f->max)
            value = value * 10 + (word.ptr[i] - '0');
    }
    if (word.len == 0)
        return unknown_word(r, word);
    if (value < f->min || value > f->max) {
        rc = FAIL(r, word.ptr, RV_E_INVALID, "%s %.*s is out of range (%d to %d)", f->name,
                  RV_STR_ARG(rv_utf8_cut(word, MAX_QUOTE)), f->min, f->max);
        rv_err_set_hint(r->err, "the nearest %s is %d", f->name, value < f->min ? f->min : f->max);
        return rc;
    }
    *out = value;
    return 0;
}

/* What its field begins again with: each step counts from there. */
static const char *cycle_of(const struct field *f)
{
    static const char *const cycles[] = {
        [MINUTE] = "hour", [HOUR] = "day", [DAY] = "month", [MONTH] = "year", [WEEKDAY] = "week"};
    RV_EACH_HAS_ROW(cycles, N_FIELDS);

    return cycles[f - fields];
}

static int read_step(const struct reader *r, rv_str word, int *out)
{
    const struct field *f = r->field;
    int value = 0, rc;
    size_t i;

    for (i = 0; i < word.len && rv_is_digit(word.ptr[i]); i++)
        if (value <= f->count)
            value = value * 10 + (word.ptr[i] - '0');
    if (i == 0 || i < word.len)
        return FAIL(r, word.ptr, RV_E_PARSE, "\"/\" is followed by a number, the step (1 to %d)", f->count);
    if (value < 1 || value > f->count) {
        rc = FAIL(r, word.ptr, RV_E_INVALID, "step %.*s of the field %s is out of range (1 to %d)",
                  RV_STR_ARG(rv_utf8_cut(word, MAX_QUOTE)), f->name, f->count);
        rv_err_set_hint(r->err, "the nearest step is %d; a step counts within the field and begins again with each %s",
                        value < 1 ? 1 : f->count, cycle_of(f));
        return rc;
    }
    *out = value;
    return 0;
}

/* 22-2 as two ranges: 22-23,0-2. */
static int reversed_range(const struct reader *r, rv_str range, int low, int high)
{
    const struct field *f = r->field;
    int first = f == &fields[WEEKDAY] ? 1 : f->min; /* the day behind 7 */
    int rc = FAIL(r, range.ptr, RV_E_INVALID, "range %.*s of the field %s goes backwards",
                  RV_STR_ARG(rv_utf8_cut(range, MAX_QUOTE)), f->name);

    if (low == f->max)
        rv_err_set_hint(r->err, high <= first ? "write %d,%d" : "write %d,%d-%d", low, first, high);
    else if (high < first)
        rv_err_set_hint(r->err, "write %d-%d", low, f->max);
    else if (high == first)
        rv_err_set_hint(r->err, "write %d-%d,%d", low, f->max, first);
    else
        rv_err_set_hint(r->err, "write %d-%d,%d-%d", low, f->max, first, high);
    return rc;
}

/* One element of a list: *, 5, 1-5, each of the ranges with an optional /step. */
static int read_element(const struct reader *r, rv_str element, uint64_t *set, bool *has_star)
{
    const struct field *f = r->field;
    bool has_step, has_range;
    rv_str rest = element, range = take_until(&rest, '/', &has_step), last = range;
    rv_str first = take_until(&last, '-', &has_range);
    int low = f->min, high = f->min + f->count - 1, step = 1, rc = 0;

    if (rv_str_is(range, "*")) {
        *has_star = true;
    } else {
        rc = read_value(r, first, &low);
        high = low;
        if (rc == 0 && has_range)
            rc = read_value(r, last, &high);
        if (rc == 0 && f == &fields[WEEKDAY] && has_range && high == 0 && low > 0 && equals_in_any_case(last, "SUN"))
            high = 7; /* FRI-SUN */
        if (rc == 0 && high < low)
            rc = reversed_range(r, range, low, high);
        if (rc == 0 && has_step && !has_range) {
            rc = FAIL(r, rest.ptr - 1, RV_E_PARSE, "a step follows \"*\" or a range, not the single %s %d", f->name,
                      low);
            rv_err_set_hint(r->err, "write %d-%d/%.*s", low, f->min + f->count - 1, RV_STR_ARG(rv_utf8_cut(rest, 8)));
        }
    }
    if (rc == 0 && has_step)
        rc = read_step(r, rest, &step);
    for (int i = low; rc == 0 && i <= high; i += step)
        *set |= UINT64_C(1) << (f == &fields[WEEKDAY] ? i % 7 : i);
    return rc;
}

static int read_field(const struct reader *r, rv_str word, uint64_t *set, bool *has_star)
{
    bool more = true;
    int rc = 0;

    while (rc == 0 && more) {
        rv_str element = take_until(&word, ',', &more);
        rc = read_element(r, element, set, has_star);
    }
    return rc;
}

/* --- the whole --- */

/* The words of the text, and how many there are; those that do not fit are counted only. */
static size_t split(rv_str text, rv_str words[N_FIELDS + 1])
{
    size_t n = 0, i = 0;

    while (i < text.len) {
        size_t from = i;
        while (i < text.len && !is_blank(text.ptr[i]))
            i++;
        if (i > from && n++ <= N_FIELDS)
            words[n - 1] = (rv_str){text.ptr + from, i - from};
        while (i < text.len && is_blank(text.ptr[i]))
            i++;
    }
    return n;
}

static int wrong_count(const struct reader *r, const rv_str *words, size_t n)
{
    static const char *const missing[] = {" * * * * *", " * * * *", " * * *", " * *", " *"};
    const char *at = n > N_FIELDS ? words[N_FIELDS].ptr : r->text.ptr + r->text.len;
    int rc;

    if (words[0].len && words[0].ptr[0] == '@')
        return FAIL(r, words[1].ptr, RV_E_PARSE, "a macro has no fields behind it");
    rc =
        FAIL(r, at, RV_E_PARSE, "%zu field%s instead of five: minute, hour, day, month, weekday", n, n == 1 ? "" : "s");

    if (n > N_FIELDS)
        rv_err_set_hint(r->err, "fields for seconds and years are not supported");
    else
        rv_err_set_hint(r->err, "write \"%.*s%s\"", RV_STR_ARG(rv_utf8_cut(r->text, MAX_QUOTE)),
                        missing[n] + (n == 0 ? 1 : 0));
    return rc;
}

/* Five fields, whose words are in r->text. */
static int read_fields(struct reader *r, const rv_str *words, struct rv_cron *out)
{
    uint64_t sets[N_FIELDS] = {0};
    bool has_star[N_FIELDS] = {false};

    for (size_t i = 0; i < N_FIELDS; i++) {
        int rc;
        r->field = &fields[i];
        rc = read_field(r, words[i], &sets[i], &has_star[i]);
        if (rc < 0)
            return rc;
    }
    *out = (struct rv_cron){
        .minutes = sets[MINUTE],
        .hours = (uint32_t)sets[HOUR],
        .days = (uint32_t)sets[DAY],
        .months = (uint16_t)sets[MONTH],
        .weekdays = (uint8_t)sets[WEEKDAY],
        .any_day = rv_str_is(words[DAY], "*"),
        .any_weekday = rv_str_is(words[WEEKDAY], "*"),
        .has_fixed_times = !has_star[MINUTE] && !has_star[HOUR],
    };
    return 0;
}

/* 30 February: refused here, not after a search of eight years. */
static int check_dates(const struct reader *r, const rv_str *words, const struct rv_cron *c)
{
    int first_day = __builtin_ctz(c->days), longest = 0, rc;

    for (int month = 1; month <= 12; month++)
        if (c->months >> month & 1 && rv_date_month_days(2000, month) > longest)
            longest = rv_date_month_days(2000, month);
    if (c->any_day || !c->any_weekday || first_day <= longest)
        return 0;
    rc = FAIL(r, words[DAY].ptr, RV_E_INVALID, "day %d never comes in the month%s %.*s", first_day,
              c->months & (c->months - 1) ? "s" : "", RV_STR_ARG(rv_utf8_cut(words[MONTH], MAX_QUOTE)));
    rv_err_set_hint(r->err, "the last day there is %d", longest);
    return rc;
}

/* The five fields that a macro stands for; empty: unknown, and *rc says so. */
static rv_str macro_meaning(const struct reader *r, rv_str word, int *rc)
{
    const char *names[RV_COUNT(macros)], *near;

    for (size_t i = 0; i < RV_COUNT(macros); i++) {
        names[i] = macros[i].name;
        if (equals_in_any_case(word, names[i]))
            return rv_str_of(macros[i].meaning);
    }
    if (equals_in_any_case(word, "@reboot")) {
        *rc = FAIL(r, word.ptr, RV_E_INVALID, "a schedule fires at times, and @reboot does not name one");
        rv_err_set_hint(r->err, "start the run where the machine starts its services, or use @hourly");
        return (rv_str){NULL, 0};
    }
    near = rv_nearest(word, names, RV_COUNT(names));
    *rc = FAIL(r, word.ptr, RV_E_PARSE, "unknown macro \"%.*s\"", RV_STR_ARG(rv_utf8_cut(word, MAX_QUOTE)));
    if (near)
        rv_err_set_hint(r->err, "did you mean %s?", near);
    else
        rv_err_set_hint(r->err, "use @hourly, @daily, @weekly, @monthly, @yearly or five fields");
    return (rv_str){NULL, 0};
}

int rv_cron_parse(rv_str text, const struct rv_src *src, struct rv_cron *out, rv_err **err)
{
    struct reader r = {.src = src ? *src : (struct rv_src){NULL, 1, 1}, .err = err};
    rv_str words[N_FIELDS + 1] = {{NULL, 0}};
    struct rv_cron cron;
    int rc = 0;
    size_t n;

    while (text.len && is_blank(text.ptr[0])) {
        RV_IGNORE(!take(&text, text.ptr[0]), "it is there");
        r.src.col++;
    }
    while (text.len && is_blank(text.ptr[text.len - 1]))
        text.len--;
    r.text = text.ptr ? text : RV_STR_LIT("");
    if (text.len > RV_CRON_MAX_TEXT)
        return FAIL(&r, r.text.ptr, RV_E_LIMIT, "more than %d bytes", RV_CRON_MAX_TEXT);
    n = split(r.text, words);
    if (n == 1 && words[0].ptr[0] == '@') {
        rv_str meaning = macro_meaning(&r, words[0], &rc);
        if (rc < 0)
            return rc;
        n = split(meaning, words);
    }
    if (n != N_FIELDS)
        return wrong_count(&r, words, n);
    rc = read_fields(&r, words, &cron);
    if (rc == 0)
        rc = check_dates(&r, words, &cron);
    if (rc == 0)
        *out = cron;
    return rc;
}
