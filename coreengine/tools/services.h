/* Services: what a capability may ask of the engine while one of its entries is called. This is the list of their
 * names, which specifications are checked against; who answers is registered by name elsewhere (README.md of this
 * folder).
 *
 * An ask is a part of the call that makes it: it is not journaled, and it runs under the tenant, user and session of
 * that call. So a service is as repeatable as the call must be: see rv_service_fits(). */
#ifndef RV_SERVICES_H
#define RV_SERVICES_H

#include "envelope/envelope.h"

#define RV_SERVICE_MAX_NAME   64                /* bytes */
#define RV_SERVICE_MAX_ARGS   ((size_t)1 << 20) /* bytes of the arguments of one ask */
#define RV_SERVICE_MAX_ANSWER ((size_t)8 << 20) /* bytes of one answer */
#define RV_SERVICE_MAX_DEPTH  32                /* nesting of arguments */

struct rv_script;
/* What it points to is static. */
struct rv_service_info {
    const char *name;
    enum rv_effect_class effect; /* what asking it again may do */
    bool is_command;             /* its answer is {} */
    int64_t timeout_ms;          /* for one answer */
    const char *summary;         /* one line, for people */
};
/** The i-th, sorted by name. NULL: there are not so many. */
const struct rv_service_info *rv_service_at(size_t i);
const struct rv_service_info *rv_service_find(rv_str name);
/** RV_E_NOT_FOUND: there is no such service; the hint has the nearest one. */
RV_MUST_CHECK int rv_service_check(rv_str name, rv_err **err);
/** RV_E_INVALID: an object of arguments has a member that is none of known; the hint says what there is. args may be
 * any JSON value. */
RV_MUST_CHECK int rv_service_check_args(json_object *args, const char *const *known, size_t n, rv_err **err);
/** May a call that the engine repeats as `of` says ask this service? */
bool rv_service_fits(const struct rv_service_info *s, enum rv_effect_class of);

/* One ask, as it leaves the call. Everything is borrowed until it is answered. */
struct rv_service_ask {
    const char *service;
    rv_str args;                                             /* JSON text; not looked at yet */
    const char *capability, *entry;                          /* who asks: the entry's bare name */
    const char *kind;                                        /* "tool", "hook", ... */
    bool is_declared;                                        /* the entry's specification names the service */
    const char *run_id, *stage, *user_id, *session_id, *key; /* of the call; "" when unknown */
    int64_t call_id;
    int64_t until_us;               /* of the system's clock; RV_NEVER: no limit */
    const struct rv_script *script; /* of the run, set on the loop and used there only; NULL: none */
};

#endif
