/* The words of the simulation: faults and invariants, and lists of faults. */
#include "coreengine/sim/sim_internal.h"

#include <string.h>

#define TEXT(n, t, m)    t,
#define MEANING(n, t, m) m,
static const char *const fault_texts[] = {RV_SIM_FAULTS(TEXT)};
static const char *const invariant_texts[] = {RV_SIM_INVARIANTS(TEXT)};
static const char *const invariant_meanings[] = {RV_SIM_INVARIANTS(MEANING)};

const char *rv_sim_fault_text(enum rv_sim_fault fault)
{
    return fault_texts[fault];
}

const char *rv_sim_invariant_text(enum rv_sim_invariant inv)
{
    return invariant_texts[inv];
}

const char *rv_sim_invariant_meaning(enum rv_sim_invariant inv)
{
    return invariant_meanings[inv];
}

/* A fault, or all of a family: "crash" is crash-before, crash-after, ... */
static unsigned one(rv_str word)
{
    unsigned bits = 0;

    if (rv_str_is(word, "all"))
        return RV_SIM_ALL_FAULTS;
    for (size_t i = 0; i < RV_N_SIM_FAULTS; i++) {
        rv_str text = rv_str_of(fault_texts[i]);
        bool family = text.len > word.len && text.ptr[word.len] == '-' && memcmp(text.ptr, word.ptr, word.len) == 0;
        if (rv_str_eq(text, word) || family)
            bits |= 1u << i;
    }
    return bits;
}

int rv_sim_faults_of(rv_str text, unsigned *out, rv_err **err)
{
    unsigned bits = 0;

    for (size_t at = 0; at <= text.len;) {
        const char *comma = at < text.len ? memchr(text.ptr + at, ',', text.len - at) : NULL;
        size_t end = comma ? (size_t)(comma - text.ptr) : text.len;
        rv_str word = rv_str_trim((rv_str){text.ptr + at, end - at});
        unsigned found = word.len ? one(word) : 0;
        if (!found && !rv_str_is(word, "none")) {
            rv_str shown = rv_utf8_cut(word, 40);
            const char *near = rv_nearest(word, fault_texts, RV_N_SIM_FAULTS);
            int rc = RV_FAIL(err, RV_E_INVALID, "there is no fault \"%.*s\"", RV_STR_ARG(shown));
            if (near)
                rv_err_hint(err, "did you mean \"%s\"?", near);
            else
                rv_err_hint(err, "faults are model, tool, hook, person, cancel, crash and zombie, or all, or none");
            return rc;
        }
        bits |= found;
        at = end + 1;
    }
    *out = bits;
    return 0;
}
