/* Levels and scopes: words in, sets out. */
#include <string.h>

#include "coreengine/identity/identity_internal.h"

static const char *const levels[] = {
    [RV_LEVEL_USER] = "user", [RV_LEVEL_TENANT] = "tenant", [RV_LEVEL_MASTER] = "master"};
RV_EACH_HAS_ROW(levels, RV_N_LEVELS);
static const char all_words[] =
#define X(name, word, meaning) word ", "
    RV_SCOPES(X)
#undef X
        "all, usual, read";
static const char *const words[] = {
#define X(name, word, meaning) word,
    RV_SCOPES(X)
#undef X
        "all",
    "usual", "read"};

const char *rv_level_text(enum rv_level level)
{
    return levels[level];
}

int rv_level_of(rv_str word)
{
    for (int i = 0; i < RV_N_LEVELS; i++)
        if (rv_str_is(word, levels[i]))
            return i;
    return RV_UNSET;
}

const char *rv_scope_text(enum rv_api_scope scope)
{
    return words[scope];
}

static uint32_t readers(void)
{
    uint32_t set = 0;

    for (int i = 0; i < RV_N_SCOPE; i++)
        if (strstr(words[i], ":read"))
            set |= UINT32_C(1) << i;
    return set;
}

uint32_t identity_scope_bit(rv_str word)
{
    for (int i = 0; i < RV_N_SCOPE; i++)
        if (rv_str_is(word, words[i]))
            return UINT32_C(1) << i;
    return 0;
}

/* 0: it is not a word. */
static uint32_t set_of(rv_str word)
{
    uint32_t one = identity_scope_bit(word);

    return one                        ? one
           : rv_str_is(word, "all")   ? RV_SCOPES_ALL
           : rv_str_is(word, "usual") ? RV_SCOPES_USUAL
           : rv_str_is(word, "read")  ? readers()
                                      : 0;
}

int rv_scopes_parse(rv_str list, uint32_t *out, rv_err **err)
{
    uint32_t set = 0;
    rv_str word;

    while ((word = identity_list_next(&list)).len > 0) {
        uint32_t one = set_of(word);
        if (!one) {
            const char *near = rv_nearest(word, words, RV_COUNT(words));
            RV_FAIL(err, RV_E_INVALID, "unknown scope \"%.*s\"", RV_STR_ARG(rv_utf8_cut(word, 40)));
            if (near)
                rv_err_set_hint(err, "did you mean \"%s\"?", near);
            else
                rv_err_set_hint(err, "scopes: %s", all_words);
            return RV_E_INVALID;
        }
        set |= one;
    }
    *out = set;
    return 0;
}

void rv_scopes_write(uint32_t scopes, rv_buf *out)
{
    bool later = false;

    for (int i = 0; i < RV_N_SCOPE; i++)
        if (scopes >> i & 1) {
            rv_buf_printf(out, "%s%s", later ? " " : "", words[i]);
            later = true;
        }
}
