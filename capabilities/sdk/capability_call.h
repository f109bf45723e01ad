/* Reply, fail and ask in a capability, also of engines that are older than this header. capability.h includes this. */
#ifndef RV_CAPABILITY_CALL_H
#define RV_CAPABILITY_CALL_H

#include "capability.h"
#include "capability_write.h"

/** fail() with a formatted text (cut at 1 KiB). */
RV_CAP_PRINTF(3, 4)
static inline int rv_cap_failf(struct rv_cap_call *call, const char *type, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return call->fail(call, type, text);
}

/** Reply with it and free it, whatever happens: `return rv_cap_reply(call, &out)`. */
static inline int rv_cap_reply(struct rv_cap_call *call, struct rv_cap_out *out)
{
    const char *text = rv_cap_text(out);
    int rc = text ? call->reply(call, text)
                  : rv_cap_failf(call, "ExecutionError", "the answer cannot be written: %s", out->failed);

    rv_cap_out_fini(out);
    return rc;
}

/** Ask with it, and free it; NULL: without arguments. As call->ask(), also of an engine that has no services. */
static inline int rv_cap_ask(struct rv_cap_call *call, const char *service, struct rv_cap_out *args,
                             const char **answer)
{
    const char *text = args ? rv_cap_text(args) : "{}";
    int rc = 1;

    if (!text)
        *answer = "{\"type\":\"ExecutionError\",\"message\":\"the arguments of a service cannot be written\"}";
    else if (!RV_CAP_HAS(call, ask))
        *answer = "{\"type\":\"UnavailableError\",\"message\":\"this engine has no services\"}";
    else
        rc = call->ask(call, service, text, answer);
    if (args)
        rv_cap_out_fini(args);
    return rc;
}

/** Fail as an ask did that gave this answer: `return rv_cap_fail_asked(call, answer)`. */
static inline int rv_cap_fail_asked(struct rv_cap_call *call, const char *answer)
{
    char type[65], *message = rv_cap_strdup(rv_cap_get(answer, "message"));
    int rc;

    rv_cap_str(rv_cap_get(answer, "type"), type, sizeof type);
    rc = call->fail(call, type, message ? message : "a service failed");
    free(message);
    return rc;
}

/** call->progress(), also of an engine that has none. */
static inline int rv_cap_progress(struct rv_cap_call *call, double done, double total, const char *text)
{
    return RV_CAP_HAS(call, progress) ? call->progress(call, done, total, text) : call->cancelled(call);
}

#endif
