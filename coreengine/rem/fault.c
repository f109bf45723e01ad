/* Faults of a query: their words, their places. */
#include <string.h>

#include "coreengine/rem/rem_internal.h"

static const struct {
    const char *word;
    int code;
} faults[RV_REM_N_FAULTS] = {[RV_REM_OK] = {"ok", 0},
#define X(name, word, code, meaning) [RV_REM_##name] = {(word), (code)},
                             RV_REM_FAULTS(X)
#undef X
};

const char *rv_rem_fault_text(enum rv_rem_fault_code code)
{
    return code >= RV_REM_OK && code < RV_REM_N_FAULTS ? faults[code].word : "internal_error";
}

int rem_code(enum rv_rem_fault_code code)
{
    return faults[code].code;
}

struct rv_src rem_mark(const struct rem_source *s, const char *at, enum rv_rem_fault_code code)
{
    struct rv_src src = s->start;
    const char *line = s->text.ptr;

    for (const char *p = line; p < at; p++)
        if (*p == '\n') {
            src.line++;
            src.col = 1;
            line = p + 1;
        }
    src.col += at > line ? (int)rv_utf8_count((rv_str){line, (size_t)(at - line)}) : 0;
    if (s->fault)
        *s->fault = (struct rv_rem_fault){code, src.line, src.col};
    return src;
}

int rem_check_text(const struct rem_source *s)
{
    const char *nul;
    size_t bad;

    if (s->text.len > RV_REM_MAX_BYTES)
        return REM_FAIL(s, s->text.ptr, RV_REM_TOO_LONG, "query of %zu bytes: at most %zu are allowed", s->text.len,
                        RV_REM_MAX_BYTES);
    if (!rv_utf8_valid(s->text, &bad)) {
        struct rem_source valid = *s;
        valid.text.len = bad;
        return REM_FAIL(&valid, s->text.ptr + bad, RV_REM_BAD_TEXT, "query is not UTF-8 at byte %zu", bad);
    }
    nul = s->text.len ? memchr(s->text.ptr, '\0', s->text.len) : NULL;
    if (nul)
        return REM_FAIL(s, nul, RV_REM_BAD_TEXT, "query contains a NUL character");
    return 0;
}

bool rem_is_word(rv_str s, const char *word)
{
    return s.len == strlen(word) && strncasecmp(s.ptr, word, s.len) == 0;
}

int rem_no_memory(const struct rem_source *s)
{
    return RV_FAIL(s->err, RV_E_NOMEM, "read a query");
}
