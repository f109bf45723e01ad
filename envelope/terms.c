/* The words of the field as tables: everything here is made from the lists of terms.h, so a new word is one row there.
 */
#include "envelope/terms.h"

#include <assert.h>
#include <string.h>

#define MAX_WORDS  64 /* of the longest list, for the hint's stack array; asserted below */
#define MAX_QUOTED 64 /* bytes of an offending text that a message repeats: it stays on one line of a terminal */

#define TERM_ROW(name, text, meaning)       {text, meaning},
#define TERM_TABLE(tag, prefix, list, kind) static const struct rv_term tag##_terms[] = {list(TERM_ROW)};
RV_TERM_TYPES(TERM_TABLE)

#define TERM_LIST(tag, prefix, list, kind) {#tag, kind, tag##_terms, RV_COUNT(tag##_terms)},
static const struct rv_term_list lists[] = {RV_TERM_TYPES(TERM_LIST)};

#define TERM_FITS(tag, prefix, list, kind)                                                                             \
    _Static_assert(RV_COUNT(tag##_terms) <= MAX_WORDS && (int)RV_COUNT(tag##_terms) == (int)RV_N_##prefix, #tag);

RV_TERM_TYPES(TERM_FITS)

enum list_index {
#define TERM_INDEX(tag, prefix, list, kind) LIST_##tag,
    RV_TERM_TYPES(TERM_INDEX)
};

static int unknown_word(const struct rv_term_list *list, rv_str text, rv_err **err)
{
    const char *names[MAX_WORDS];
    const char *near;
    char legal[1024] = "";
    size_t used = 0;
    rv_str quoted = rv_utf8_cut(text, MAX_QUOTED);
    int rc;

    for (size_t i = 0; i < list->n; i++) {
        size_t len = strlen(list->terms[i].text);

        names[i] = list->terms[i].text;
        assert(used + len + 3 <= sizeof legal);
        if (used > 0) {
            memcpy(legal + used, ", ", 2);
            used += 2;
        }
        memcpy(legal + used, names[i], len + 1);
        used += len;
    }
    rc = RV_FAIL(err, RV_E_INVALID, "unknown %s \"%.*s%s\": legal are %s", list->kind, RV_STR_ARG(quoted),
                 quoted.len < text.len ? "..." : "", legal);
    near = rv_nearest(text, names, list->n);
    if (near)
        rv_err_set_hint(err, "did you mean \"%s\"?", near);
    return rc;
}

static int find_word(const struct rv_term_list *list, rv_str text)
{
    for (size_t i = 0; i < list->n; i++)
        if (rv_str_is(text, list->terms[i].text))
            return (int)i;
    return -1;
}

#define TERM_FUNCTIONS(tag, prefix, list, kind)                                                                        \
    const char *rv_##tag##_text(enum rv_##tag v)                                                                       \
    {                                                                                                                  \
        return (size_t)v < RV_COUNT(tag##_terms) ? tag##_terms[(size_t)v].text : NULL;                                 \
    }                                                                                                                  \
    int rv_##tag##_of(rv_str text, enum rv_##tag *out, rv_err **err)                                                   \
    {                                                                                                                  \
        int i = find_word(&lists[LIST_##tag], text);                                                                   \
                                                                                                                       \
        if (i < 0)                                                                                                     \
            return unknown_word(&lists[LIST_##tag], text, err);                                                        \
        *out = (enum rv_##tag)i;                                                                                       \
        return 0;                                                                                                      \
    }
RV_TERM_TYPES(TERM_FUNCTIONS)

const struct rv_term_list *rv_term_lists(size_t *n)
{
    *n = RV_COUNT(lists);
    return lists;
}

/* The three predicates are lists of their own: no two of them are complements (rule 2.1). */
#define BIT(o) (1U << (RV_OUTCOME_##o))
static bool outcome_in(enum rv_outcome o, unsigned set)
{
    return (size_t)o < RV_N_OUTCOME && (set >> (unsigned)o & 1U) != 0;
}

bool rv_outcome_is_terminal(enum rv_outcome o)
{
    return outcome_in(o, BIT(ERROR) | BIT(CLARIFY) | BIT(CONFIRM) | BIT(TERMINATE));
}

bool rv_outcome_is_success(enum rv_outcome o)
{
    return outcome_in(o, BIT(SUCCESS) | BIT(SKIP) | BIT(PARTIAL));
}

bool rv_outcome_requires_loop(enum rv_outcome o)
{
    return outcome_in(o, BIT(REPLAN) | BIT(LOOP_BACK));
}

int rv_tool_status_parse(rv_str text, enum rv_tool_status *out, rv_err **err)
{
    rv_str word = rv_str_trim(text);
    char lower[16];
    int i = -1;

    if (word.len < sizeof lower) {
        for (size_t k = 0; k < word.len; k++)
            lower[k] = rv_ascii_lower(word.ptr[k]);
        i = find_word(&lists[LIST_tool_status], (rv_str){lower, word.len});
    }
    if (i < 0)
        return unknown_word(&lists[LIST_tool_status], text, err);
    *out = (enum rv_tool_status)i;
    return 0;
}

enum rv_effect_class rv_effect_class_of_risk(enum rv_risk risk)
{
    if (risk == RV_RISK_READ_ONLY)
        return RV_EFFECT_SAFE;
    /* Deleting twice leaves the same state; writing twice may not. */
    return risk == RV_RISK_DESTRUCTIVE ? RV_EFFECT_IDEMPOTENT : RV_EFFECT_NON_IDEMPOTENT;
}

enum rv_reason_class rv_reason_class_for(enum rv_reason reason)
{
    switch (reason) {
    case RV_REASON_COMPLETED:
    case RV_REASON_BREAK:
        return RV_REASON_CLASS_COMPLETED;
    case RV_REASON_MAX_ITERATIONS:
    case RV_REASON_MAX_LLM_CALLS:
    case RV_REASON_MAX_HOPS:
    case RV_REASON_MAX_LOOP:
    case RV_REASON_MAX_VISITS:
    case RV_REASON_MAX_ITEMS:
    case RV_REASON_BUDGET:
    case RV_REASON_QUOTA:
        return RV_REASON_CLASS_BOUNDS_EXCEEDED;
    case RV_REASON_USER_CANCELLED:
    case RV_REASON_TOOL_FAILED:
    case RV_REASON_LLM_FAILED:
    case RV_REASON_EXPRESSION:
    case RV_REASON_TEMPLATE:
    case RV_REASON_JOIN:
    case RV_REASON_POLICY:
        return RV_REASON_CLASS_FAILED;
    case RV_REASON_NONE:
    case RV_N_REASON:
        break;
    }
    return RV_REASON_CLASS_NONE;
}

bool rv_risk_needs_confirmation(enum rv_risk risk)
{
    return risk == RV_RISK_DESTRUCTIVE || risk == RV_RISK_HIGH || risk == RV_RISK_CRITICAL;
}

#define FAILURE_REMEDY(X, name, whose, text, meaning, remedy) [RV_FAILURE_##name] = (remedy),
const char *rv_failure_remedy(enum rv_failure f)
{
    static const char *const remedies[] = {RV_FAILURE_ROWS(FAILURE_REMEDY, )};

    return (size_t)f < RV_COUNT(remedies) ? remedies[(size_t)f] : NULL;
}

enum rv_failure rv_failure_of_err(const rv_err *err)
{
    return rv_err_is(err, RV_E_DISK)      ? RV_FAILURE_DISK_FULL
           : rv_err_is(err, RV_E_FILES)   ? RV_FAILURE_NO_DESCRIPTORS
           : rv_err_is(err, RV_E_THREADS) ? RV_FAILURE_NO_THREADS
                                          : RV_FAILURE_NONE;
}
