/* The system's time and randomness, the seeded generator, ids, RFC 3339 times. */
#include "coreengine/base/clock.h"
#include "coreengine/base/base_internal.h"
#include "coreengine/base/hash.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define FIRST_DAY INT64_C(-719162) /* 0001-01-01, in days since 1970-01-01 */
#define LAST_DAY  INT64_C(2932896) /* 9999-12-31 */

/* --- clock --- */

#define LOOK_US 10000       /* between two looks at the wall time: a stage reads the clock several times */
#define STEP_US RV_US_PER_S /* the system's clock is set by more than this, or it only runs faster for a while */

static pthread_once_t clock_once = PTHREAD_ONCE_INIT;
static _Atomic int64_t wall_minus_boot_us; /* only grows */
static _Atomic int64_t looked_us;          /* CLOCK_BOOTTIME of the last look at the wall time */

static int64_t read_clock(clockid_t id)
{
    struct timespec ts;
    int rc = clock_gettime(id, &ts);

    assert(rc == 0); /* clocks that every supported kernel has */
    return (int64_t)ts.tv_sec * RV_US_PER_S + ts.tv_nsec / 1000;
}

struct timespec rv_deadline_in(int64_t us)
{
    const int64_t day_us = RV_US_PER_DAY;
    int64_t at_us = read_clock(CLOCK_MONOTONIC) + (us < 0 ? 0 : us > day_us ? day_us : us);

    return (struct timespec){.tv_sec = (time_t)(at_us / RV_US_PER_S), .tv_nsec = (long)(at_us % RV_US_PER_S) * 1000};
}

static void anchor_clock(void)
{
    int64_t wall_us = read_clock(CLOCK_REALTIME);

    atomic_store(&wall_minus_boot_us, wall_us - read_clock(CLOCK_BOOTTIME));
}

/* CLOCK_BOOTTIME goes on while the machine sleeps. A wall time that was set forward since is followed; one that was set
 * back is not. It is read first: a thread that is held up in between finds it early, never ahead. */
static void follow_wall(void)
{
    int64_t wall_us = read_clock(CLOCK_REALTIME), boot_us = read_clock(CLOCK_BOOTTIME), apart_us = wall_us - boot_us;
    int64_t known_us = atomic_load(&wall_minus_boot_us);

    atomic_store(&looked_us, boot_us);
    while (apart_us - known_us > STEP_US)
        if (atomic_compare_exchange_weak(&wall_minus_boot_us, &known_us, apart_us))
            known_us = apart_us;
}

static int64_t system_now_us(void *self)
{
    (void)self;
    pthread_once(&clock_once, anchor_clock);
    int64_t boot_us = read_clock(CLOCK_BOOTTIME);

    if (boot_us - atomic_load(&looked_us) >= LOOK_US)
        follow_wall();
    return atomic_load(&wall_minus_boot_us) + boot_us;
}

struct rv_clock rv_clock_system(void)
{
    return (struct rv_clock){system_now_us, NULL};
}

/* --- randomness and ids --- */

static void system_fill(void *self, void *bytes, size_t len)
{
    unsigned char *p = bytes;

    (void)self;
    while (len) {
        ssize_t n = getrandom(p, len, 0);
        if (n < 0) {
            assert(errno == EINTR); /* nothing else is possible; going on would make ids that collide silently */
            continue;
        }
        p += n;
        len -= (size_t)n;
    }
}

struct rv_rand rv_rand_system(void)
{
    return (struct rv_rand){system_fill, NULL};
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

/* xoshiro256** */
static uint64_t next_seeded(struct rv_rand_state *state)
{
    uint64_t *s = state->s;
    uint64_t result = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

/* Bytes are taken from the low end, so that a replay is the same on any machine. */
static void seeded_fill(void *self, void *bytes, size_t len)
{
    unsigned char *p = bytes;
    uint64_t word = 0;
    size_t i;

    for (i = 0; i < len; i++) {
        if (i % 8 == 0)
            word = next_seeded(self);
        p[i] = (unsigned char)(word & 0xFF);
        word >>= 8;
    }
}

struct rv_rand rv_rand_seeded(struct rv_rand_state *state, uint64_t seed)
{
    int i;

    for (i = 0; i < 4; i++) { /* splitmix64: spreads a small seed, and never gives four zeros */
        uint64_t z = seed += RV_GOLDEN;
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        state->s[i] = z ^ (z >> 31);
    }
    return (struct rv_rand){seeded_fill, state};
}

uint64_t rv_rand_u64(struct rv_rand r)
{
    unsigned char b[8];
    uint64_t value = 0;
    int i;

    r.fill(r.self, b, sizeof b);
    for (i = 7; i >= 0; i--)
        value = value << 8 | b[i];
    return value;
}

uint64_t rv_rand_below(struct rv_rand r, uint64_t n)
{
    uint64_t skip, x;

    assert(n > 0);
    skip = (0 - n) % n; /* 2^64 mod n: without it small results would be a little more likely */
    do
        x = rv_rand_u64(r);
    while (x < skip);
    return x % n;
}

void rv_id_make(struct rv_rand r, const char *prefix, char out[RV_ID_MAX])
{
    static const char hex[] = "0123456789abcdef";
    size_t i, len = strlen(prefix);
    uint64_t bits = rv_rand_u64(r);

    assert(len <= 8);
    memcpy(out, prefix, len);
    for (i = 0; i < 16; i++)
        out[len + i] = hex[bits >> (60 - 4 * i) & 15];
    out[len + 16] = '\0';
}

void rv_uuid_format(const unsigned char bytes[16], int version, char out[RV_UUID_MAX])
{
    unsigned char id[16];
    size_t at = 0;

    memcpy(id, bytes, sizeof id);
    id[6] = (unsigned char)((id[6] & 0x0F) | version << 4);
    id[8] = (unsigned char)((id[8] & 0x3F) | 0x80);
    for (size_t i = 0; i < sizeof id; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            out[at++] = '-';
        rv_hex_make(id + i, 1, out + at);
        at += 2;
    }
    out[at] = '\0';
}

void rv_uuid_make(struct rv_rand r, char out[RV_UUID_MAX])
{
    unsigned char bytes[16];

    r.fill(r.self, bytes, sizeof bytes);
    rv_uuid_format(bytes, 4, out);
}

bool rv_uuid_read(rv_str text, char out[RV_UUID_MAX])
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    char small[RV_UUID_MAX];

    if (text.len != sizeof form - 1)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (form[i] == '-' ? text.ptr[i] != '-' : !rv_is_hex(text.ptr[i]))
            return false;
        small[i] = rv_ascii_lower(text.ptr[i]);
    }
    small[text.len] = '\0';
    if (out)
        memcpy(out, small, sizeof small);
    return true;
}

/* --- dates and RFC 3339 --- */

/* Years are taken to begin in March, so that leap days come last. */
int64_t rv_date_days(int64_t year, int month, int day)
{
    int64_t y = year - (month <= 2), era, year_of_era, day_of_year;

    era = (y >= 0 ? y : y - 399) / 400;
    year_of_era = y - era * 400;
    day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

struct rv_date rv_date_of_days(int64_t days)
{
    int64_t era, day_of_era, year_of_era, day_of_year, month;
    struct rv_date date;

    days += 719468;
    era = (days >= 0 ? days : days - 146096) / 146097;
    day_of_era = days - era * 146097;
    year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    month = (5 * day_of_year + 2) / 153;
    date.day = (int)(day_of_year - (153 * month + 2) / 5 + 1);
    date.month = (int)(month < 10 ? month + 3 : month - 9);
    date.year = year_of_era + era * 400 + (date.month <= 2);
    return date;
}

int rv_date_month_days(int64_t year, int month)
{
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && is_leap ? 1 : 0);
}

static void put_digits(char *to, int n, int64_t value)
{
    while (n > 0) {
        to[--n] = (char)('0' + value % 10);
        value /= 10;
    }
}

void rv_time_format(int64_t us, char out[RV_TIME_MAX])
{
    int64_t days, rest;
    struct rv_date date;

    if (us < FIRST_DAY * RV_US_PER_DAY)
        us = FIRST_DAY * RV_US_PER_DAY;
    if (us > (LAST_DAY + 1) * RV_US_PER_DAY - 1)
        us = (LAST_DAY + 1) * RV_US_PER_DAY - 1;
    days = us / RV_US_PER_DAY;
    rest = us % RV_US_PER_DAY;
    if (rest < 0) {
        rest += RV_US_PER_DAY;
        days--;
    }
    date = rv_date_of_days(days);
    memcpy(out, "0000-00-00T00:00:00.000000Z", 28);
    put_digits(out, 4, date.year);
    put_digits(out + 5, 2, date.month);
    put_digits(out + 8, 2, date.day);
    put_digits(out + 11, 2, rest / RV_US_PER_S / 3600);
    put_digits(out + 14, 2, rest / RV_US_PER_S / 60 % 60);
    put_digits(out + 17, 2, rest / RV_US_PER_S % 60);
    put_digits(out + 20, 6, rest % RV_US_PER_S);
}

/* Exactly n digits off the front. */
static bool take_digits(rv_str *s, size_t n, int *out)
{
    int value = 0;
    size_t i;

    if (s->len < n)
        return false;
    for (i = 0; i < n; i++) {
        if (s->ptr[i] < '0' || s->ptr[i] > '9')
            return false;
        value = value * 10 + (s->ptr[i] - '0');
    }
    s->ptr += n;
    s->len -= n;
    *out = value;
    return true;
}

static bool take_any(rv_str *s, const char *chars, char *out)
{
    if (!s->len || !s->ptr[0] || !strchr(chars, s->ptr[0]))
        return false;
    *out = s->ptr[0];
    s->ptr++;
    s->len--;
    return true;
}

static bool take_fraction(rv_str *s, int64_t *out_us)
{
    int64_t us = 0;
    int n = 0, digit;
    char point;

    *out_us = 0;
    if (!take_any(s, ".", &point))
        return true;
    while (n < 9 && take_digits(s, 1, &digit)) {
        if (n++ < 6)
            us = us * 10 + digit;
    }
    if (n == 0)
        return false;
    for (; n < 6; n++)
        us *= 10;
    *out_us = us;
    return true;
}

static bool take_offset(rv_str *s, int *out_minutes)
{
    int hours, minutes;
    char sign, colon;

    *out_minutes = 0;
    if (take_any(s, "Zz", &sign))
        return true;
    if (!take_any(s, "+-", &sign) || !take_digits(s, 2, &hours) || !take_any(s, ":", &colon) ||
        !take_digits(s, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *out_minutes = (hours * 60 + minutes) * (sign == '-' ? -1 : 1);
    return true;
}

static bool take_day(rv_str *s, int *y, int *m, int *d)
{
    char c;

    return take_digits(s, 4, y) && take_any(s, "-", &c) && take_digits(s, 2, m) && take_any(s, "-", &c) &&
           take_digits(s, 2, d);
}

static bool is_in_calendar(int y, int m, int d)
{
    return y >= 1 && m >= 1 && m <= 12 && d >= 1 && d <= rv_date_month_days(y, m);
}

bool rv_day_parse(rv_str text, int64_t *out_us)
{
    int y, m, d;

    if (!take_day(&text, &y, &m, &d) || text.len > 0 || !is_in_calendar(y, m, d))
        return false;
    *out_us = rv_date_days(y, m, d) * RV_US_PER_DAY;
    return true;
}

int rv_time_parse(rv_str text, int64_t *out_us, rv_err **err)
{
    int y, m, d, hour, minute, second, offset;
    int64_t fraction_us, seconds;
    rv_str s = text;
    char c;
    bool exists;

    if (!take_day(&s, &y, &m, &d) || !take_any(&s, "Tt ", &c) || !take_digits(&s, 2, &hour) || !take_any(&s, ":", &c) ||
        !take_digits(&s, 2, &minute) || !take_any(&s, ":", &c) || !take_digits(&s, 2, &second) ||
        !take_fraction(&s, &fraction_us) || !take_offset(&s, &offset) || s.len != 0)
        return RV_FAIL(err, RV_E_PARSE, "time \"%.*s\" is not of the form 2026-01-31T12:00:00Z",
                       RV_STR_ARG(rv_utf8_cut(text, RV_TIME_MAX)));
    exists = is_in_calendar(y, m, d) && hour < 24 && minute < 60 && second <= 60;
    seconds = exists ? rv_date_days(y, m, d) * RV_S_PER_DAY + hour * 3600 + (minute - offset) * 60 + second : 0;
    exists = exists && (second < 60 || seconds % RV_S_PER_DAY == 0); /* a leap second ends a day of UTC */
    if (!exists || seconds < FIRST_DAY * RV_S_PER_DAY || seconds >= (LAST_DAY + 1) * RV_S_PER_DAY)
        return RV_FAIL(err, RV_E_PARSE, "time \"%.*s\" does not exist in the calendar", RV_STR_ARG(text));
    *out_us = seconds * RV_US_PER_S + fraction_us; /* a leap second (60) is the first one of the next minute */
    return 0;
}

bool rv_time_read(rv_str text, int64_t *out_us)
{
    return rv_time_parse(text, out_us, RV_CODE_ONLY("it fails in one way: the text is not a time")) == 0;
}
