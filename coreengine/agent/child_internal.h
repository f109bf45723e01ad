/* Shared by the files about agents that were asked: visit_child.c, child_result.c. */
#ifndef RV_CHILD_INTERNAL_H
#define RV_CHILD_INTERNAL_H

#include "coreengine/agent/agent_internal.h"

struct child {
    struct rv_visit_shared shared;
    struct rv_conversation conversation;
    rv_envelope *env; /* owned */
    rv_visit *visit;  /* owned */
    int64_t timeout_us;
};

/* child_result.c */
/** Why it failed, or NULL; *type is then the error's. The text is in `why`. */
const char *rv_child_fault(const struct child *c, rv_buf *why, const char **type);
/** The outcome of the call of that agent, as an entry of `results`. c NULL: it never began. error NULL: it answered. */
RV_MUST_CHECK int rv_child_result(rv_visit *v, size_t index, const char *agent, const struct child *c, const char *type,
                                  const char *error, int64_t ms, json_object **entry, rv_err **err);

#endif
