/* One report while it is made. */
#ifndef RV_APP_CONFORM_INTERNAL_H
#define RV_APP_CONFORM_INTERNAL_H

#include "coreengine/app/check.h"

struct conform_finding {
    struct conform_finding *next; /* owned by the list */
    enum rv_conform_rule rule;
    char *entry, *text; /* owned */
};

struct conform {
    size_t checked[RV_N_CONFORM_RULES], kept[RV_N_CONFORM_RULES];
    struct conform_finding *findings, **end; /* owned */
    int rc;                                  /* sticky: memory is short */
};

/** One thing that a rule holds for: kept, or not and why. */
void app_conform_note(struct conform *c, enum rv_conform_rule rule, bool is_kept, const char *entry, const char *fmt,
                      ...) RV_PRINTF(5, 6);
void app_conform_keep(struct conform *c, enum rv_conform_rule rule); /* one that was kept */
/** A broken rule by the message of who found it: the loader, or the judge of a call. */
void app_conform_note_err(struct conform *c, enum rv_conform_rule otherwise, const char *entry, const rv_err *why);

/* calls.c: what happens in calls. cap: one element of rv_app_build_capabilities(). */
RV_MUST_CHECK int app_conform_calls(struct conform *c, rv_plugins *p, json_object *cap, rv_err **err);

#endif
