/* Zones for the cases: those of the system, and files that are made here. */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/calendar/suites.h"

const rv_zone *zone_named(const char *name)
{
    static rv_zones *zones;
    const rv_zone *zone;
    rv_err *err = NULL;

    if (!zones)
        zones = rv_zones_new(NULL);
    if (rv_zones_get(zones, rv_str_of(name), &zone, &err) < 0)
        rv_kit_die("%s", rv_kit_err_take(err));
    return zone;
}

int64_t instant(const char *text)
{
    int64_t us;

    if (rv_time_parse(rv_str_of(text), &us, NULL) < 0)
        rv_kit_die("not a time: %s", text);
    return us;
}

static void put_number(rv_buf *b, uint64_t value, int n_bytes)
{
    while (n_bytes-- > 0)
        rv_buf_putc(b, (char)(n_bytes < 8 ? value >> 8 * n_bytes & 0xff : 0));
}

static void put_header(rv_buf *b, const struct tzif *f, bool is_empty)
{
    rv_buf_puts(b, "TZif");
    rv_buf_putc(b, f->version ? f->version : '2');
    put_number(b, 0, 15);
    put_number(b, 0, 4);
    put_number(b, 0, 4);
    put_number(b, is_empty ? 0 : f->n_leaps, 4);
    put_number(b, is_empty ? 0 : f->n_changes, 4);
    put_number(b, is_empty ? 1 : f->n_offsets, 4);
    put_number(b, 4, 4);
}

rv_str tzif_bytes(const struct tzif *f)
{
    rv_buf b = RV_BUF_INIT(4096);
    size_t len;
    char *bytes;

    put_header(&b, f, true);
    put_number(&b, 0, 6);
    rv_buf_add(&b, "LMT", 4);
    put_header(&b, f, false);
    for (uint32_t i = 0; i < f->n_changes; i++)
        put_number(&b, (uint64_t)f->changes[i].at_s, 8);
    for (uint32_t i = 0; i < f->n_changes; i++)
        put_number(&b, f->changes[i].type, 1);
    for (uint32_t i = 0; i < f->n_offsets; i++) {
        put_number(&b, (uint32_t)f->offsets[i], 4);
        put_number(&b, 0, 2);
    }
    rv_buf_add(&b, "LMT", 4);
    for (uint32_t i = 0; i < f->n_leaps; i++)
        put_number(&b, 0, 12);
    rv_buf_puts(&b, f->rule);
    bytes = rv_buf_steal(&b, &len);
    return (rv_str){bytes, len};
}
