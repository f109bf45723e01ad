/* What handlers take from a request where a mistake must not be passed over. */
#ifndef RV_SERVER_BODY_INTERNAL_H
#define RV_SERVER_BODY_INTERNAL_H

#include "coreengine/server/server_internal.h"

/* --- call.c --- */
/** A parameter that is true or false, also written 1 and 0. RV_E_INVALID: another word. */
RV_MUST_CHECK int srv_call_bool(const struct srv_call *c, const char *name, bool *inout, rv_err **err);
/** The value of a header, the caller's; *out NULL: there is none, or it is empty. */
RV_MUST_CHECK int srv_call_dup_header(const struct srv_call *c, const char *name, char **out, rv_err **err);
/** The Idempotency-Key, the caller's, NULL: none; and the hash of the request, with the session that its path names,
 * "": none. RV_E_INVALID: the key is too long. */
RV_MUST_CHECK int srv_call_key(const struct srv_call *c, const char *session, char **key, char hash[RV_HASH_MAX],
                               rv_err **err);
RV_MUST_CHECK int srv_call_dup_arg(const struct srv_call *c, size_t i, char **out, rv_err **err);
/* Members of the body that may be absent: another type is refused, never passed over. */
RV_MUST_CHECK int srv_body_text(const struct srv_call *c, const char *key, bool is_needed, const char **out,
                                rv_err **err); /* *out borrowed; NULL: absent */
RV_MUST_CHECK int srv_body_int(const struct srv_call *c, const char *key, int64_t least, int64_t most, int64_t *inout,
                               rv_err **err);
RV_MUST_CHECK int srv_body_bool(const struct srv_call *c, const char *key, bool *inout, rv_err **err);

/* --- describe.c --- */
/** The members of a body, by the schema that a route takes: an unknown one is RV_E_INVALID, with the nearest one as the
 * hint, but where a body may have more ("+"); so is a text with a NUL, but for content. */
RV_MUST_CHECK int srv_body_check(const char *takes, json_object *body, rv_err **err);
/** Tells whether what a route takes has a schema, which is as strict as the route says. */
bool srv_body_is_known(const char *takes);

/* --- routes.c --- */
/** Has it the parameter `user`, by which operators say whose rows they mean? Those about sessions and other rows, whose
 * ids each user has for themselves. */
bool srv_route_has_user(const struct srv_route *r);
/** RV_E_INVALID: a parameter that the route does not have, or one that comes twice. Clients of other servers may send
 * more where their interface is served. */
RV_MUST_CHECK int srv_route_check_query(const struct srv_route *r, const struct rv_httpd_request *req, rv_err **err);

#endif
