/* The formats of strings that are checked: a table of names, what is one, and an example for messages. Each reader
 * takes what it knows off the front of a view and says whether it found it. */
#include <arpa/inet.h>
#include <string.h>

#include "coreengine/tools/schema_internal.h"

#define MAX_NUMBER     9   /* digits of a number that is counted with: it fits an int */
#define MAX_HOST       253 /* bytes of a host name, by RFC 1123 and DNS ... */
#define MAX_LABEL      63  /* ... and of each of its labels, by RFC 1035 */
#define MAX_LOCAL_PART 64  /* bytes in front of the @ of a mailbox, by RFC 5321 */

static bool is_word(char c)
{
    return rv_is_letter(c) || rv_is_digit(c);
}

static bool is_one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

static void skip(rv_str *s, size_t n)
{
    s->ptr += n;
    s->len -= n;
}

static bool take(rv_str *s, const char *set)
{
    if (!s->len || !is_one_of(s->ptr[0], set))
        return false;
    skip(s, 1);
    return true;
}

/* Up to the first of these, which stays; the rest of s if there is none. */
static rv_str take_until(rv_str *s, const char *set)
{
    rv_str part = {s->ptr, 0};

    while (part.len < s->len && !is_one_of(s->ptr[part.len], set))
        part.len++;
    skip(s, part.len);
    return part;
}

/* Exactly n digits (n 0: one or more), from min to max. */
static bool take_number(rv_str *s, size_t n, int min, int max, int *out)
{
    size_t i = 0;

    *out = 0;
    for (; i < s->len && rv_is_digit(s->ptr[i]) && (n == 0 || i < n); i++)
        if (i < MAX_NUMBER)
            *out = *out * 10 + (s->ptr[i] - '0');
    skip(s, i);
    return i > 0 && (n == 0 || i == n) && *out >= min && *out <= max;
}

/* --- times (RFC 3339) --- */

static bool take_date(rv_str *s)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year, month, day;

    if (!take_number(s, 4, 0, 9999, &year) || !take(s, "-") || !take_number(s, 2, 1, 12, &month) || !take(s, "-"))
        return false;
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return take_number(s, 2, 1, days[month - 1] + (month == 2 && is_leap), &day);
}

static bool take_offset(rv_str *s, int *minutes)
{
    int hour, minute, sign;

    *minutes = 0;
    if (take(s, "Zz"))
        return true;
    sign = s->len && s->ptr[0] == '-' ? -1 : 1;
    if (!take(s, "+-") || !take_number(s, 2, 0, 23, &hour) || !take(s, ":") || !take_number(s, 2, 0, 59, &minute))
        return false;
    *minutes = sign * (hour * 60 + minute);
    return true;
}

static bool take_time(rv_str *s)
{
    const int day = 24 * 60;
    int hour, minute, second, unused, offset;

    if (!take_number(s, 2, 0, 23, &hour) || !take(s, ":") || !take_number(s, 2, 0, 59, &minute) || !take(s, ":") ||
        !take_number(s, 2, 0, 60, &second))
        return false;
    if (take(s, ".") && !take_number(s, 0, 0, INT32_MAX, &unused))
        return false;
    if (!take_offset(s, &offset))
        return false;
    int in_utc = (hour * 60 + minute - offset + day) % day;
    return second < 60 || in_utc == day - 1; /* a leap second is the last of a day */
}

static bool is_date(rv_str s)
{
    return take_date(&s) && !s.len;
}

static bool is_time(rv_str s)
{
    return take_time(&s) && !s.len;
}

static bool is_date_time(rv_str s)
{
    return take_date(&s) && take(&s, "Tt") && take_time(&s) && !s.len;
}

/* Numbers with these units, in their order; at least one. */
static bool take_units(rv_str *s, const char *units)
{
    bool has_any = false;
    int unused;

    while (s->len && rv_is_digit(s->ptr[0])) {
        if (!take_number(s, 0, 0, INT32_MAX, &unused) || !s->len || !is_one_of(s->ptr[0], units))
            return false;
        units = strchr(units, s->ptr[0]) + 1;
        skip(s, 1);
        has_any = true;
    }
    return has_any;
}

static bool is_duration(rv_str s)
{
    rv_str weeks;

    if (!take(&s, "P"))
        return false;
    weeks = s;
    if (take_units(&weeks, "W") && !weeks.len)
        return true;
    bool has_days = take_units(&s, "YMD");
    if (take(&s, "T"))
        return take_units(&s, "HMS") && !s.len;
    return has_days && !s.len;
}

/* --- hosts and mailboxes --- */

static bool is_address(rv_str s, int family)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr unused; /* has room for both */

    if (s.len >= sizeof text || memchr(s.ptr, '\0', s.len))
        return false;
    memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    return inet_pton(family, text, &unused) == 1;
}

static bool is_ipv4(rv_str s)
{
    return is_address(s, AF_INET);
}

static bool is_ipv6(rv_str s)
{
    return is_address(s, AF_INET6);
}

static bool is_label(rv_str s)
{
    if (!s.len || s.len > MAX_LABEL || s.ptr[0] == '-' || s.ptr[s.len - 1] == '-')
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!is_word(s.ptr[i]) && s.ptr[i] != '-')
            return false;
    return true;
}

static bool is_hostname(rv_str s)
{
    if (s.len > MAX_HOST)
        return false;
    do {
        if (!is_label(take_until(&s, ".")))
            return false;
    } while (take(&s, "."));
    return true;
}

static bool is_atom(rv_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!is_word(s.ptr[i]) && !is_one_of(s.ptr[i], "!#$%&'*+-/=?^_`{|}~"))
            return false;
    return s.len > 0;
}

static bool take_quoted(rv_str *s)
{
    if (!take(s, "\""))
        return false;
    while (s->len && s->ptr[0] >= ' ' && s->ptr[0] <= '~' && s->ptr[0] != '"') {
        if (s->ptr[0] == '\\' && (s->len < 2 || s->ptr[1] < ' ' || s->ptr[1] > '~'))
            return false;
        skip(s, s->ptr[0] == '\\' ? 2 : 1);
    }
    return take(s, "\"");
}

static bool take_local_part(rv_str *s)
{
    if (s->len && s->ptr[0] == '"')
        return take_quoted(s);
    do {
        if (!is_atom(take_until(s, ".@")))
            return false;
    } while (take(s, "."));
    return true;
}

static bool is_email(rv_str s)
{
    rv_str before = s;

    if (!take_local_part(&s) || before.len - s.len > MAX_LOCAL_PART || !take(&s, "@"))
        return false;
    if (!s.len || s.ptr[0] != '[')
        return is_hostname(s);
    if (s.ptr[s.len - 1] != ']')
        return false;
    s = (rv_str){s.ptr + 1, s.len - 2};
    return s.len > 5 && strncmp(s.ptr, "IPv6:", 5) == 0 ? is_ipv6((rv_str){s.ptr + 5, s.len - 5}) : is_ipv4(s);
}

/* --- addresses of things (RFC 3986) --- */

#define UNRESERVED "-._~"
#define DELIMITERS "!$&'()*+,;="

/* Of letters, digits, these and %XX. */
static bool is_made_of(rv_str s, const char *set)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '%') {
            if (s.len - i < 3 || !rv_is_hex(s.ptr[i + 1]) || !rv_is_hex(s.ptr[i + 2]))
                return false;
            i += 2;
        } else if (!is_word(s.ptr[i]) && !is_one_of(s.ptr[i], set)) {
            return false;
        }
    }
    return true;
}

static bool is_port(rv_str s)
{
    int unused;
    return !s.len || (take_number(&s, 0, 0, UINT16_MAX, &unused) && !s.len);
}

static bool is_authority(rv_str s)
{
    rv_str rest = s, user = take_until(&rest, "@");

    if (take(&rest, "@")) {
        if (!is_made_of(user, UNRESERVED DELIMITERS ":"))
            return false;
        s = rest;
    }
    if (take(&s, "[")) {
        if (!is_ipv6(take_until(&s, "]")) || !take(&s, "]"))
            return false;
    } else if (!is_made_of(take_until(&s, ":"), UNRESERVED DELIMITERS)) {
        return false;
    }
    return take(&s, ":") ? is_port(s) : !s.len;
}

/* What may follow a scheme: [//authority] path [?query] [#fragment]. */
static bool is_relative(rv_str s)
{
    if (s.len >= 2 && s.ptr[0] == '/' && s.ptr[1] == '/') {
        skip(&s, 2);
        if (!is_authority(take_until(&s, "/?#")))
            return false;
    }
    if (!is_made_of(take_until(&s, "?#"), UNRESERVED DELIMITERS ":@/"))
        return false;
    if (take(&s, "?") && !is_made_of(take_until(&s, "#"), UNRESERVED DELIMITERS ":@/?"))
        return false;
    return !take(&s, "#") || is_made_of(s, UNRESERVED DELIMITERS ":@/?");
}

static bool take_scheme(rv_str *s)
{
    size_t n = 0;

    while (n < s->len && (n ? is_word(s->ptr[n]) || is_one_of(s->ptr[n], "+-.") : rv_is_letter(s->ptr[n])))
        n++;
    if (!n || n == s->len || s->ptr[n] != ':')
        return false;
    skip(s, n + 1);
    return true;
}

static bool is_uri(rv_str s)
{
    return take_scheme(&s) && is_relative(s);
}

static bool is_uri_reference(rv_str s)
{
    rv_str rest = s, segment = take_until(&rest, "/?#");

    if (is_uri(s))
        return true;
    return !memchr(segment.ptr, ':', segment.len) && is_relative(s); /* what has one there needs a scheme */
}

static bool is_uuid(rv_str s)
{
    return rv_uuid_read(s, NULL);
}

/* --- the table --- */

static const struct rv_schema_format formats[] = {
    {"date-time", is_date_time, "2026-03-09T16:05:00Z"},
    {"date", is_date, "2026-03-09"},
    {"time", is_time, "16:05:00Z"},
    {"duration", is_duration, "P1DT12H30M"},
    {"email", is_email, "ada@example.com"},
    {"hostname", is_hostname, "www.example.com"},
    {"ipv4", is_ipv4, "192.0.2.1"},
    {"ipv6", is_ipv6, "2001:db8::1"},
    {"uri", is_uri, "https://example.com/a?b=c"},
    {"uri-reference", is_uri_reference, "/a?b=c"},
    {"uuid", is_uuid, "0b8f4c1e-2d6a-4f0e-9c3b-5a7d1e9f2c48"},
};

const struct rv_schema_format *tools_schema_format_of(rv_str name)
{
    for (size_t i = 0; i < RV_COUNT(formats); i++)
        if (rv_str_is(name, formats[i].name))
            return &formats[i];
    return NULL;
}
