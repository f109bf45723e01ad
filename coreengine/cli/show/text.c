/* Texts of others as a terminal or a shell may have them (nothing in them moves the cursor, turns the text around or
 * ends a word; what strips text for people is here and nowhere else); spans of time and moments, as people read and
 * write them. */
#include "coreengine/cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_SPAN_US (INT64_MAX / 2) /* 146,000 years: now and a span are a number still */

void cli_write_word(const char *word, rv_buf *b)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,";

    if (word[0] && word[strspn(word, plain)] == '\0') {
        rv_buf_puts(b, word);
        return;
    }
    rv_buf_putc(b, '\'');
    for (; *word; word++)
        if (*word == '\'')
            rv_buf_puts(b, "'\\''");
        else
            rv_buf_putc(b, *word);
    rv_buf_putc(b, '\'');
}

/* Bytes of a character at i that a terminal or a reader would be led astray by: controls (C0 but line feed and tab,
 * DEL, C1), those that turn the direction of text around or mark it, and the separators of lines other than a line
 * feed. 0: an ordinary one. */
static size_t unsafe(rv_str text, size_t i)
{
    const unsigned char *c = (const unsigned char *)text.ptr + i;
    size_t left = text.len - i;

    size_t control = rv_utf8_control(text.ptr + i, left);
    if (control)
        return c[0] == '\n' || c[0] == '\t' ? 0 : control;
    if (left > 1 && c[0] == 0xd8 && c[1] == 0x9c) /* U+061C */
        return 2;
    if (left < 3 || c[0] != 0xe2)
        return 0;
    bool marks = c[1] == 0x80 && (c[2] == 0x8e || c[2] == 0x8f);     /* U+200E, U+200F */
    bool separates = c[1] == 0x80 && (c[2] == 0xa8 || c[2] == 0xa9); /* U+2028, U+2029 */
    return marks || separates || rv_utf8_reorders(text.ptr + i, left) ? 3 : 0;
}

/* line, tab: what stands for them. */
static void write_as(rv_str text, const char *line, const char *tab, rv_buf *b)
{
    for (size_t i = 0; i < text.len;) {
        size_t n = unsafe(text, i);
        bool ends_line = text.ptr[i] == '\r' && i + 1 < text.len && text.ptr[i + 1] == '\n';
        if (text.ptr[i] == '\n' || text.ptr[i] == '\t')
            rv_buf_puts(b, text.ptr[i] == '\n' ? line : tab);
        else if (n == 0)
            rv_buf_putc(b, text.ptr[i]);
        else if (!ends_line)
            rv_buf_putc(b, ' ');
        i += n ? n : 1;
    }
}

void cli_write_safe(rv_str text, rv_buf *b)
{
    write_as(text, "\n", "\t", b);
}

void cli_write_lines(rv_str text, rv_buf *b)
{
    write_as(text, "\n  ", "\t", b);
}

void cli_write_preview(rv_str text, size_t max, rv_buf *b)
{
    rv_str shown = rv_utf8_cut(text, max);

    write_as(shown, " ", " ", b);
    if (shown.len < text.len)
        rv_buf_puts(b, "...");
}

void cli_write_code(const char *code, rv_buf *b)
{
    enum rv_failure failure = RV_FAILURE_NONE;

    if (code)
        rv_buf_printf(b, "  [%s]", code);
    rv_buf_putc(b, '\n');
    if (code && rv_failure_of(rv_str_of(code), &failure, NULL) == 0 && rv_failure_remedy(failure)[0])
        rv_buf_printf(b, "  hint: %s\n", rv_failure_remedy(failure));
}

/* --- time --- */

void cli_write_duration(rv_buf *b, int64_t us)
{
    if (us < 0)
        us = 0;
    if (us < 1000)
        rv_buf_printf(b, "%lld us", (long long)us);
    else if (us < RV_US_PER_S)
        rv_buf_printf(b, "%lld ms", (long long)(us / 1000));
    else
        rv_buf_printf(b, "%lld.%lld s", (long long)(us / RV_US_PER_S), (long long)(us / 100000 % 10));
}

const char *cli_plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

void cli_write_age(rv_buf *b, int64_t us)
{
    static const struct {
        int64_t unit_us, below;
        const char *text;
    } units[] = {{RV_US_PER_S, 100, "s"},
                 {RV_US_PER_MIN, 100, "min"},
                 {RV_US_PER_HOUR, 48, "h"},
                 {RV_US_PER_DAY, INT64_MAX, "d"}};
    size_t i = 0;

    while (us / units[i].unit_us >= units[i].below)
        i++;
    rv_buf_printf(b, "%lld %s", (long long)(us > 0 ? us / units[i].unit_us : 0), units[i].text);
}

void cli_write_moment(rv_buf *b, int64_t us)
{
    char text[RV_TIME_MAX];

    rv_time_format(us, text); /* 2026-11-21T21:05:00.123456Z */
    rv_buf_printf(b, "%.10s %.8s", text, text + 11);
}

int cli_parse_duration(const char *text, int64_t *out_us, rv_err **err)
{
    static const struct {
        const char *unit;
        int64_t us;
    } units[] = {{"s", RV_US_PER_S},
                 {"min", RV_US_PER_MIN},
                 {"h", RV_US_PER_HOUR},
                 {"d", RV_US_PER_DAY},
                 {"w", 7 * RV_US_PER_DAY}};
    char *end = NULL;
    long long n = strtoll(text, &end, 10);

    for (size_t i = 0; end != text && i < RV_COUNT(units); i++)
        if (strcmp(end, units[i].unit) == 0 && n >= 0 && n <= MAX_SPAN_US / units[i].us) {
            *out_us = n * units[i].us;
            return 0;
        }
    int rc = RV_FAIL(err, RV_E_INVALID, "invalid duration \"%s\"", text);
    rv_err_set_hint(err, "use a whole number and a unit, such as 90s, 15min, 12h, 30d or 4w");
    return rc;
}

int cli_zone_minutes(void)
{
    time_t now = time(NULL);
    struct tm local;

    return localtime_r(&now, &local) ? (int)(local.tm_gmtoff / 60) : 0;
}

void cli_write_bytes(rv_buf *b, int64_t bytes)
{
    static const char *const units[] = {"bytes", "KB", "MB", "GB", "TB"};
    size_t unit = 0;
    int64_t whole = bytes > 0 ? bytes : 0, tenth = 0;

    while (whole >= 1000 && unit + 1 < RV_COUNT(units)) {
        tenth = whole % 1000 / 100;
        whole /= 1000;
        unit++;
    }
    if (unit)
        rv_buf_printf(b, "%lld.%lld %s", (long long)whole, (long long)tenth, units[unit]);
    else
        rv_buf_printf(b, "%lld bytes", (long long)whole);
}

void cli_put_line(rv_buf *b, const char *label, const char *text)
{
    if (!text || !*text)
        return;
    rv_buf_printf(b, "%-*s", RV_CLI_LABEL, label);
    cli_write_lines(rv_str_of(text), b);
    rv_buf_putc(b, '\n');
}

void cli_put_moment(rv_buf *b, const char *label, int64_t us)
{
    if (us <= 0)
        return;
    rv_buf_printf(b, "%-*s", RV_CLI_LABEL, label);
    cli_write_moment(b, us);
    rv_buf_putc(b, '\n');
}
