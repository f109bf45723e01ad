/* Times in SQL. Columns of times are texts that sort; now(), intervals and literals become such texts here, so that no
 * database computes with times and both agree. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/rem/sql_internal.h"

#define MAX_UNITS 10000000 /* of an interval: as weeks far more than the years 1 to 9999 have, and no overflow */

static int64_t days_of(int64_t us)
{
    int64_t days = us / RV_US_PER_DAY;

    return us % RV_US_PER_DAY < 0 ? days - 1 : days;
}

/* YYYY-MM-DD, then nothing, or T or a blank and HH:MM[:SS[.ffffff]] with Z, an offset or nothing (UTC). */
bool rem_sql_read_time(rv_str text, int64_t *us, bool *is_date)
{
    char full[64];
    size_t n = text.len;

    if (n < 10 || n > 40 || text.ptr[4] != '-' || text.ptr[7] != '-')
        return false;
    memcpy(full, text.ptr, n);
    *is_date = n == 10;
    if (*is_date)
        return rv_day_parse(text, us);
    full[10] = full[10] == ' ' ? 'T' : full[10];
    if (n == 16 || (n > 16 && full[16] != ':')) { /* no seconds */
        memmove(full + 19, full + 16, n - 16);
        memcpy(full + 16, ":00", 3);
        n += 3;
    }
    if (n > 3 && (full[n - 3] == '+' || full[n - 3] == '-') && n > 19) { /* an offset of hours */
        memcpy(full + n, ":00", 3);
        n += 3;
    }
    if (full[n - 1] != 'Z' && full[n - 1] != 'z' && !(n > 6 && (full[n - 6] == '+' || full[n - 6] == '-')))
        full[n++] = 'Z';
    return rv_time_read((rv_str){full, n}, us);
}

int rem_sql_write_time(struct sql *p, struct sql_operand *o, bool as_date)
{
    char text[RV_TIME_MAX];
    const char *literal;

    rv_time_format(o->us, text); /* ...ffffffZ */
    literal = as_date ? rem_sql_print(p, "'%.10s'", text) : rem_sql_print(p, "'%.26s+00:00'", text);
    if (!literal)
        return rem_no_memory(&p->s);
    rem_sql_replace(p, o->first, o->last, literal);
    if (as_date)
        o->us = days_of(o->us) * RV_US_PER_DAY;
    o->type = as_date ? SQL_DATE : SQL_TIME;
    o->form = SQL_PRIMARY;
    o->has_us = true;
    return 0;
}

/* The other side of a column of times or dates. */
static int match_one(struct sql *p, const struct sql_operand *column, struct sql_operand *o)
{
    bool is_date = column->type == SQL_DATE, reads_date;

    if ((column->type != SQL_TIME && column->type != SQL_DATE) || column->has_us)
        return 0;
    if (o->form == SQL_LITERAL && o->type == SQL_TEXT && o->first == o->last &&
        rem_sql_read_time(rem_sql_at(p, o->first)->value, &o->us, &reads_date))
        o->has_us = true;
    return o->has_us ? rem_sql_write_time(p, o, is_date) : 0;
}

int rem_sql_match_times(struct sql *p, struct sql_operand *a, struct sql_operand *b)
{
    int rc = match_one(p, a, b);

    return rc < 0 ? rc : match_one(p, b, a);
}

/* --- intervals --- */

static const struct {
    const char *name;
    int months;
    int64_t us;
} units[] = {
    {"microsecond", 0, 1},
    {"millisecond", 0, 1000},
    {"second", 0, RV_US_PER_S},
    {"sec", 0, RV_US_PER_S},
    {"minute", 0, 60 * RV_US_PER_S},
    {"min", 0, 60 * RV_US_PER_S},
    {"hour", 0, 3600 * RV_US_PER_S},
    {"day", 0, RV_US_PER_DAY},
    {"week", 0, 7 * RV_US_PER_DAY},
    {"month", 1, 0},
    {"mon", 1, 0},
    {"year", 12, 0},
};

static bool find_unit(rv_str word, size_t *out)
{
    for (size_t i = 0; i < RV_COUNT(units); i++)
        if (rem_is_word(word, units[i].name) || (word.len > 1 && (word.ptr[word.len - 1] | 0x20) == 's' &&
                                                 rem_is_word((rv_str){word.ptr, word.len - 1}, units[i].name))) {
            *out = i;
            return true;
        }
    return false;
}

/* The next "3 days" of an interval; a unit behind the literal counts for a number alone. */
static bool next_part(rv_str *text, rv_str unit_behind, long *n, size_t *unit)
{
    bool minus = text->len && text->ptr[0] == '-';
    size_t i = text->len && (text->ptr[0] == '-' || text->ptr[0] == '+') ? 1 : 0, from = i;
    rv_str word;

    for (*n = 0; i < text->len && rv_is_digit(text->ptr[i]) && *n < MAX_UNITS; i++)
        *n = *n * 10 + (text->ptr[i] - '0');
    if (i == from || *n >= MAX_UNITS)
        return false;
    *n = minus ? -*n : *n;
    *text = rv_str_trim((rv_str){text->ptr + i, text->len - i});
    for (i = 0; i < text->len && rv_is_letter(text->ptr[i]);)
        i++;
    word = (rv_str){text->ptr, i};
    *text = rv_str_trim((rv_str){text->ptr + i, text->len - i});
    return find_unit(word.len ? word : unit_behind, unit);
}

/* The same day of another month, or its last one. */
static int64_t add_months(int64_t us, int64_t months)
{
    int64_t days = days_of(us), in_day = us - days * RV_US_PER_DAY, m;
    struct rv_date d = rv_date_of_days(days);
    int last;

    m = d.year * 12 + (d.month - 1) + months;
    d.year = m / 12;
    d.month = (int)(m % 12) + 1;
    if (m < 12 || d.year > 9999)
        return INT64_MIN;
    last = rv_date_month_days(d.year, d.month);
    return rv_date_days(d.year, d.month, d.day < last ? d.day : last) * RV_US_PER_DAY + in_day;
}

int rem_sql_add_interval(struct sql *p, const struct sql_operand *interval, int sign, int64_t *us)
{
    const struct sql_token *t = rem_sql_at(p, interval->first);
    rv_str text, unit_behind = {NULL, 0};
    int64_t result = *us, min_us = rv_date_days(1, 1, 1) * RV_US_PER_DAY,
            max_us = rv_date_days(10000, 1, 1) * RV_US_PER_DAY;
    int rc;

    if (t->kind == SQL_WORD) { /* INTERVAL '1 day', INTERVAL '1' DAY */
        if (interval->last == interval->first + 2)
            unit_behind = rem_sql_at(p, interval->last)->value;
        t++;
    }
    text = rv_str_trim(t->value);
    do {
        long n;
        size_t unit;
        if (!next_part(&text, unit_behind, &n, &unit)) {
            rc = SQL_FAIL(p, (size_t)(t - p->tokens), RV_REM_BAD_NUMBER, "\"%.*s\" is not an interval",
                          REM_QUOTE(t->value));
            rv_err_set_hint(p->s.err, "write a number and a unit, such as '7 days' or '2 hours 30 minutes'");
            return rc;
        }
        result = units[unit].months ? add_months(result, (int64_t)sign * n * units[unit].months)
                                    : result + (int64_t)sign * n * units[unit].us;
        if (result < min_us || result >= max_us)
            return SQL_FAIL(p, (size_t)(t - p->tokens), RV_REM_OUT_OF_RANGE, "the time is not in the years 1 to 9999");
    } while (text.len);
    *us = result;
    return 0;
}
