/* "Did you mean": edit distance with swaps, case ignored. */
#include "coreengine/base/base_internal.h"

#include <string.h>

#define MAX_NAME 64 /* longer names are not typed by hand */

static unsigned char lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* Insertions, deletions, replacements and swaps of neighbours each count one. */
static unsigned distance(rv_str a, rv_str b)
{
    unsigned rows[3][MAX_NAME + 1];
    unsigned *before = rows[0], *above = rows[1], *row = rows[2];
    size_t i, j;

    for (j = 0; j <= b.len; j++)
        above[j] = (unsigned)j;
    for (i = 1; i <= a.len; i++) {
        unsigned *spare = before;
        row[0] = (unsigned)i;
        for (j = 1; j <= b.len; j++) {
            bool same = lower(a.ptr[i - 1]) == lower(b.ptr[j - 1]);
            unsigned d = above[j - 1] + (same ? 0 : 1);
            if (above[j] + 1 < d)
                d = above[j] + 1;
            if (row[j - 1] + 1 < d)
                d = row[j - 1] + 1;
            if (i > 1 && j > 1 && lower(a.ptr[i - 1]) == lower(b.ptr[j - 2]) &&
                lower(a.ptr[i - 2]) == lower(b.ptr[j - 1]) && before[j - 2] + 1 < d)
                d = before[j - 2] + 1;
            row[j] = d;
        }
        before = above;
        above = row;
        row = spare;
    }
    return above[b.len];
}

const char *rv_nearest(rv_str name, const char *const *names, size_t n)
{
    const char *best = NULL;
    unsigned best_distance = 0;
    size_t i;

    if (name.len == 0 || name.len > MAX_NAME)
        return NULL;
    for (i = 0; i < n; i++) {
        rv_str candidate = rv_str_of(names[i]);
        size_t longer = candidate.len > name.len ? candidate.len : name.len;
        size_t limit = (longer + 1) / 3; /* a third of the letters may be wrong; beyond that it is another word */
        unsigned d;
        if (candidate.len == 0 || candidate.len > MAX_NAME)
            continue;
        d = distance(name, candidate);
        if (d <= limit && (!best || d < best_distance)) {
            best = names[i];
            best_distance = d;
        }
    }
    return best;
}
