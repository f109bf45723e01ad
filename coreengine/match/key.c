/* Keys: one spelling for all ways to write a name. */
#include <stdlib.h>

#include "coreengine/match/match_internal.h"

static rv_str without_spaces(rv_str s)
{
    while (s.len > 0 && s.ptr[0] == ' ') {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && s.ptr[s.len - 1] == ' ')
        s.len--;
    return s;
}

/* What stays of the name, in place. A mark stays behind what it belongs to, and goes with it. */
static void reduce(struct runes *r)
{
    size_t n = 0;
    bool after_letter = false;

    for (size_t i = 0; i < r->n; i++) {
        int32_t c = r->at[i];
        if (c == '-' || c == '_' || match_rune_is_space(c)) {
            after_letter = false;
            if (n == 0 || r->at[n - 1] != '-')
                r->at[n++] = '-';
        } else if (match_rune_is_word(c) || (after_letter && match_rune_is_mark(c))) {
            after_letter = true;
            r->at[n++] = match_rune_fold(c);
        } else {
            after_letter = false;
        }
    }
    r->n = n;
}

static bool is_ascii(const struct runes *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->at[i] >= 0x80)
            return false;
    return true;
}

void rv_match_write_key(rv_str name, rv_buf *out)
{
    struct runes r = {NULL, 0};

    if (out->rc < 0)
        return;
    int rc = match_runes_nfc(without_spaces(name), &r, RV_CODE_ONLY("the buffer keeps the code"));
    if (rc == 0)
        reduce(&r);
    if (rc == 0 && !is_ascii(&r)) /* another case may compose with the mark behind it */
        rc = match_runes_compose(&r, RV_CODE_ONLY("the buffer keeps the code"));
    for (size_t i = 0; rc == 0 && i < r.n; i++) {
        char bytes[4];
        size_t n = match_rune_write(r.at[i], bytes);
        rv_buf_add(out, bytes, n);
    }
    if (rc < 0)
        out->rc = rc;
    match_runes_fini(&r);
}
