/* TZif files, version 2 and later (RFC 9636): bytes in, a zone out. Pure.
 *
 * A file is a header and a block with 32-bit times, which are skipped, then both again with 64-bit times, then the rule
 * for later years as a line of text. Files may be damaged: every count is checked against the bytes that are left. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/calendar/calendar_internal.h"

#define HEADER_BYTES 44  /* RFC 8536, section 3.1 */
#define TYPE_BYTES   6   /* RFC 8536, section 3.2: offset, daylight saving, index of the name */
#define MAX_TYPES    256 /* of offsets: their index is one byte of the file */
/* Times beyond this are not moments of any zone; files begin at -2^59. Offsets can be added without overflow. */
#define FARTHEST_S (INT64_C(1) << 60)

struct header {
    unsigned char version;
    size_t n_utc_flags, n_std_flags, n_leaps, n_changes, n_types, n_chars;
};

/* The parts of the second block, as they are in the file. */
struct block {
    const unsigned char *times, *indices, *types;
};

static uint64_t big_endian(const unsigned char *p, size_t n)
{
    uint64_t value = 0;

    while (n--)
        value = value << 8 | *p++;
    return value;
}

static int64_t time_at(const struct block *b, size_t i)
{
    return (int64_t)big_endian(b->times + i * 8, 8);
}

static int offset_of_type(const struct block *b, size_t i)
{
    return (int32_t)big_endian(b->types + i * TYPE_BYTES, 4);
}

static bool read_header(rv_str *rest, struct header *h)
{
    const unsigned char *p = (const unsigned char *)rest->ptr;
    size_t *const counts[] = {&h->n_utc_flags, &h->n_std_flags, &h->n_leaps, &h->n_changes, &h->n_types, &h->n_chars};

    if (rest->len < HEADER_BYTES || memcmp(p, "TZif", 4) != 0)
        return false;
    h->version = p[4];
    for (size_t i = 0; i < RV_COUNT(counts); i++) {
        *counts[i] = (size_t)big_endian(p + 20 + 4 * i, 4);
        if (*counts[i] > rest->len)
            return false;
    }
    rest->ptr += HEADER_BYTES;
    rest->len -= HEADER_BYTES;
    return true;
}

/* The block behind a header, with times of time_bytes. No sum overflows: each count is below RV_ZONE_MAX_BYTES. */
static bool take_block(rv_str *rest, const struct header *h, size_t time_bytes, struct block *out)
{
    const unsigned char *p = (const unsigned char *)rest->ptr;
    size_t size = h->n_changes * (time_bytes + 1) + h->n_types * TYPE_BYTES + h->n_chars +
                  h->n_leaps * (time_bytes + 4) + h->n_std_flags + h->n_utc_flags;

    if (size > rest->len)
        return false;
    out->times = p;
    out->indices = p + h->n_changes * time_bytes;
    out->types = out->indices + h->n_changes;
    rest->ptr += size;
    rest->len -= size;
    return true;
}

/* Why the block cannot be used; NULL: it can. */
static const char *block_fault(const struct header *h, const struct block *b)
{
    if (h->n_leaps > 0)
        return "it counts leap seconds";
    if (h->n_types == 0 || h->n_types > MAX_TYPES)
        return "its number of offsets is not 1 to 256";
    for (size_t i = 0; i < h->n_types; i++)
        if (offset_of_type(b, i) <= ZONE_MIN_OFFSET_S || offset_of_type(b, i) >= ZONE_MAX_OFFSET_S)
            return "an offset is not between -25 and 26 hours";
    for (size_t i = 0; i < h->n_changes; i++) {
        if (b->indices[i] >= h->n_types)
            return "a change leads to an offset that is not in the file";
        if (time_at(b, i) < -FARTHEST_S || time_at(b, i) > FARTHEST_S || (i && time_at(b, i) <= time_at(b, i - 1)))
            return "its changes are not in order";
    }
    return NULL;
}

/* The rule between two line feeds; without one the last offset stays. */
static bool read_rule(rv_str rest, int last_s, struct zone_rule *out)
{
    if (rest.len < 2 || rest.ptr[0] != '\n' || rest.ptr[rest.len - 1] != '\n')
        return false;
    if (rest.len == 2) {
        *out = (struct zone_rule){.std_s = last_s, .dst_s = last_s};
        return true;
    }
    return calendar_zone_rule_parse((rv_str){rest.ptr + 1, rest.len - 2}, out);
}

static int damaged(rv_str name, const char *why, rv_err **err)
{
    return RV_FAIL(err, RV_E_PARSE, "the file of time zone \"%.*s\" cannot be used: %s", RV_STR_ARG(name), why);
}

int rv_zone_parse(rv_str name, rv_str bytes, rv_zone **out, rv_err **err)
{
    rv_str rest = bytes;
    struct header h;
    struct block b;
    const char *fault;
    rv_zone *zone;

    if (rv_zone_check_name(name, err) < 0)
        return RV_E_INVALID;
    if (bytes.len > RV_ZONE_MAX_BYTES)
        return RV_FAIL(err, RV_E_LIMIT, "the file of time zone \"%.*s\" has more than %zu bytes", RV_STR_ARG(name),
                       RV_ZONE_MAX_BYTES);
    if (!read_header(&rest, &h))
        return damaged(name, "it is not a TZif file", err);
    if (h.version < '2')
        return damaged(name, "it is of version 1, without 64-bit times", err);
    if (!take_block(&rest, &h, 4, &b) || !read_header(&rest, &h) || !take_block(&rest, &h, 8, &b))
        return damaged(name, "it is cut off", err);
    fault = block_fault(&h, &b);
    if (fault)
        return damaged(name, fault, err);

    zone = calloc(1, sizeof *zone + h.n_changes * sizeof zone->changes[0]);
    if (!zone)
        return RV_FAIL(err, RV_E_NOMEM, "read time zone \"%.*s\"", RV_STR_ARG(name));
    memcpy(zone->name, name.ptr, name.len);
    zone->first_s = offset_of_type(&b, 0);
    zone->n_changes = h.n_changes;
    for (size_t i = 0; i < h.n_changes; i++)
        zone->changes[i] = (struct zone_change){time_at(&b, i), offset_of_type(&b, b.indices[i])};
    if (!read_rule(rest, h.n_changes ? zone->changes[h.n_changes - 1].offset_s : zone->first_s, &zone->rule)) {
        rv_zone_free(zone);
        return damaged(name, "the rule for later years is missing or not of the form of POSIX", err);
    }
    *out = zone;
    return 0;
}
