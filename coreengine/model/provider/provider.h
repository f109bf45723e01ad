/* Providers: from a model role to requests on a wire, and from what comes back to one reply. The module chooses the
 * address and key, how often and after which wait a request is repeated, which role is asked instead, and how many
 * requests run at once. It is pure: time is an argument, and the caller that drives an exchange does the HTTP.
 *
 * One exchange is one model call of a run, through all its attempts:
 *
 *     SEND -> (start the request; feed on_head, on_body, on_end) -> SEND again | WAIT | DONE
 *
 * A request is repeated only where that is safe: before the first piece of the answer was handed out. */
#ifndef RV_PROVIDER_H
#define RV_PROVIDER_H

#include "coreengine/model/http/http.h"
#include "coreengine/model/wire/wire.h"

/* --- What stands behind a model --- */
struct rv_provider_env {
    const char *(*get)(void *self, const char *name); /* an environment variable; NULL: not set. Borrowed */
    void *self;                                       /* borrowed; outlives the providers */
};
/* What it points to is static. */
struct rv_provider_info {
    const char *name; /* "openai", "anthropic", "ollama", "azure", "openrouter", "llamacpp", "vllm", ... */
    const char *description;
    enum rv_wire_kind wire;
    const char *base_url;               /* where nothing else is said; NULL: base_url is required */
    const char *base_url_env, *key_env; /* variables that say it; NULL: none */
    bool needs_key;
};
/** All that are known, sorted by name. */
const struct rv_provider_info *rv_provider_list(size_t *n);
const struct rv_provider_info *rv_provider_find(rv_str name); /* NULL: unknown (or a capability's: "capability.name") */
/** The attachments that its models may get, bits of enum rv_wire_takes; a model may take fewer. */
unsigned rv_provider_takes(const struct rv_provider_info *info);
/** A provider that a capability brings has a dot in its name. */
bool rv_provider_is_capability(const char *name);

/* --- Shared by all runs of a process: places, rates, breakers, by address and key. One thread. --- */
typedef struct rv_providers rv_providers;
rv_providers *rv_providers_new(struct rv_provider_env env); /* NULL: no memory */
void rv_providers_free(rv_providers *p);                    /* after its exchanges */

/* --- Exchanges --- */
typedef struct rv_exchange rv_exchange;
/* A request has failed, and another one follows. What it points to is borrowed for the call. */
struct rv_exchange_retry {
    int64_t attempt, of; /* which request of the role has failed, from 1, and how many the role may have */
    int64_t wait_us;     /* before the next one; a limit of requests may add to it */
    const char *role;    /* that has failed */
    const char *to;      /* the role that is asked instead; NULL: the same role again */
    rv_str error;        /* who failed and how, without secrets; cut if it is long */
    enum rv_failure code;
};
struct rv_exchange_opts {
    const struct rv_pipeline *pipeline; /* borrowed: models by role, with their options and fallbacks */
    const char *role;                   /* borrowed */
    json_object *request; /* coreengine/model/llm/llm.h; shared while another role may be asked; borrowed until the
                             exchange is freed */
    int64_t now_us, deadline_us; /* deadline 0: none */
    uint64_t random;             /* for the jitter of waits */
    bool charged;                /* a budget or a quota counts: do not repeat what may have been charged for */
    rv_llm_delta_fn on_delta;    /* may be NULL */
    /** It waited for its turn, which may have come: ask rv_exchange_next() again, now or soon, since those behind it
     * wait for it. Called from within a function on another exchange, never on its own. May be NULL. */
    void (*on_ready)(void *self);
    void (*on_retry)(void *self, const struct rv_exchange_retry *retry); /* may be NULL */
    void *self;                                                          /* of all three; borrowed */
};
/** Takes nothing. RV_E_NOMEM only: whatever keeps it from being sent (unknown provider, no key, no address) is its
 * reply, there at once. */
RV_MUST_CHECK int rv_exchange_new(rv_providers *p, const struct rv_exchange_opts *opts, rv_exchange **out,
                                  rv_err **err);
enum rv_exchange_want {
    RV_EXCHANGE_SEND, /* start rv_exchange_request() now */
    RV_EXCHANGE_WAIT, /* ask again at *at_us (RV_NEVER: on_ready will tell), or when the request under way has ended */
    RV_EXCHANGE_DONE,
};
enum rv_exchange_want rv_exchange_next(rv_exchange *x, int64_t now_us, int64_t *at_us);
/** After SEND: the request; borrowed until on_end. From here it counts as under way: until it is taken,
 * rv_exchange_next() says SEND again. */
const struct rv_http_request *rv_exchange_request(rv_exchange *x);
/** What came of the request, in this order: its head, pieces of its body, its end, after which rv_exchange_next() says
 *  what is to be done. Arguments are borrowed for the call. Ignored when no request is under way. RV_E_NOMEM; what the
 *  peer did wrong is part of the reply. */
RV_MUST_CHECK int rv_exchange_on_head(rv_exchange *x, const struct rv_http_head *head, int64_t now_us, rv_err **err);
RV_MUST_CHECK int rv_exchange_on_body(rv_exchange *x, rv_str bytes, int64_t now_us, rv_err **err);
RV_MUST_CHECK int rv_exchange_on_end(rv_exchange *x, const struct rv_http_end *end, int64_t now_us, rv_err **err);
/** The answer has all it needs, or is broken for good, and its body goes on: whatever more comes is not looked at, and
 * the request may be ended by rv_exchange_on_end() with RV_HTTP_OK. */
bool rv_exchange_has_answer(const rv_exchange *x);
/** The request could not even be started: counts as unreachable. */
RV_MUST_CHECK int rv_exchange_on_not_sent(rv_exchange *x, const rv_err *why, int64_t now_us, rv_err **err);
/** The same after SEND, as long as the request is not taken: it must not be made, nor any other one. The reply is the
 * failure of the last request, and says why that is not repeated. */
void rv_exchange_refuse(rv_exchange *x, const char *why, int64_t now_us);
const struct rv_llm_reply *rv_exchange_reply(const rv_exchange *x); /* after DONE; borrowed */
/** The role that answered (or failed last), borrowed from the pipeline. */
const char *rv_exchange_role(const rv_exchange *x);
/** Which request of that role is under way, or was the last, from 1. */
int64_t rv_exchange_attempt(const rv_exchange *x);
void rv_exchange_free(rv_exchange *x); /* gives its place back, whatever its state */

/* --- Embeddings: one request, no exchange --- */
struct rv_embed_target {
    struct rv_wire_target wire;
    char *url;      /* owned */
    char **headers; /* owned, n of them */
    size_t n_headers;
};
/** Address and headers for "provider:model". options: as in rv_model_config; may be NULL. RV_E_INVALID: no such
 * provider, no key, no embeddings there. */
RV_MUST_CHECK int rv_provider_find_embed_target(struct rv_provider_env env, const char *provider, const char *model,
                                                json_object *options, struct rv_embed_target *out, rv_err **err);
void rv_embed_target_fini(struct rv_embed_target *t);

#endif
