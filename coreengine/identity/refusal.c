/* Refusals: what a caller is told (RFC 6750), and what the log is told. */
#include <stdio.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/identity/identity_internal.h"

#define CHALLENGE "Bearer realm=\"reeve\""

int identity_refuse(struct rv_refusal *refusal, int status, const char *code, const char *detail)
{
    *refusal = (struct rv_refusal){.status = status, .code = code};
    snprintf(refusal->detail, sizeof refusal->detail, "%s", detail);
    if (status == 400)
        snprintf(refusal->authenticate, sizeof refusal->authenticate, CHALLENGE ", error=\"%s\"", code);
    return RV_E_DENIED;
}

int identity_refuse_token(struct rv_refusal *refusal, const char *code, const char *detail)
{
    identity_refuse(refusal, 401, code ? code : "unauthenticated", detail);
    if (code)
        snprintf(refusal->authenticate, sizeof refusal->authenticate, CHALLENGE ", error=\"%s\"", code);
    else
        snprintf(refusal->authenticate, sizeof refusal->authenticate, CHALLENGE);
    return RV_E_DENIED;
}

void identity_refuse_reason(struct rv_refusal *refusal, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    rv_vformat(refusal->reason, sizeof refusal->reason, fmt, args);
    va_end(args);
    /* A value that was cut is cut between characters. */
    refusal->reason[rv_utf8_cut(rv_str_of(refusal->reason), sizeof refusal->reason - 1).len] = 0;
}

int64_t rv_refusal_retry_s(const struct rv_refusal *refusal)
{
    int64_t s = (refusal->retry_us + RV_US_PER_S - 1) / RV_US_PER_S;

    return s < 1 ? 1 : s;
}

int rv_identity_needs(const struct rv_identity *identity, enum rv_api_scope scope, struct rv_refusal *refusal)
{
    if (identity->scopes >> scope & 1)
        return 0;
    identity_refuse(refusal, 403, "insufficient_scope", "");
    snprintf(refusal->detail, sizeof refusal->detail, "this needs the scope \"%s\"", rv_scope_text(scope));
    snprintf(refusal->authenticate, sizeof refusal->authenticate,
             CHALLENGE ", error=\"insufficient_scope\", scope=\"%s\"", rv_scope_text(scope));
    identity_refuse_reason(refusal, "the scope %s is missing", rv_scope_text(scope));
    return RV_E_DENIED;
}

void rv_refuse_quota(struct rv_refusal *refusal, const char *why, int64_t again_us, int64_t now_us)
{
    identity_refuse(refusal, 429, "quota_exceeded", "");
    rv_str text = rv_utf8_cut(rv_str_of(why), sizeof refusal->detail - 1);
    identity_text_keep(text, refusal->detail, sizeof refusal->detail);
    refusal->retry_us = again_us > now_us ? again_us - now_us : 0;
}

void rv_refuse_drain(struct rv_refusal *refusal, int64_t wait_us)
{
    identity_refuse(refusal, 503, "draining", "the server is about to stop; ask again");
    refusal->retry_us = wait_us;
}

struct rv_store_scope rv_identity_scope(const struct rv_identity *identity)
{
    return (struct rv_store_scope){.tenant = identity->tenant,
                                   .user = identity->level == RV_LEVEL_USER ? identity->user : NULL};
}

int identity_refuse_malformed(struct rv_refusal *refusal, const char *what)
{
    identity_refuse(refusal, 400, "invalid_request", what);
    identity_refuse_reason(refusal, "%s", what);
    return RV_E_DENIED;
}
