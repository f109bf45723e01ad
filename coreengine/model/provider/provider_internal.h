/* Shared by the files of provider only: where a request goes, what its answer hints at, how many may go there. */
#ifndef RV_PROVIDER_INTERNAL_H
#define RV_PROVIDER_INTERNAL_H

#include "coreengine/model/provider/provider.h"

#define RV_PROVIDER_MAX_BODY    ((size_t)64 << 20) /* bytes of a request, whatever max_request_bytes says: in memory */
#define RV_PROVIDER_MAX_VALUE   ((size_t)8 << 10)  /* of a key, a header, an address: common servers refuse more */
#define RV_PROVIDER_MAX_HEADERS 32                 /* that options may add: each is sent with every request */
#define RV_PROVIDER_MAX_QUERY   8 /* values of an address, which may be secrets: they have one or two */
/* values of headers and of the address, key, user, password and token */
#define RV_PROVIDER_MAX_SECRETS (RV_PROVIDER_MAX_HEADERS + RV_PROVIDER_MAX_QUERY + 5)

/* --- table.c --- */
enum rv_provider_auth { RV_AUTH_BEARER, RV_AUTH_X_API_KEY, RV_AUTH_API_KEY, RV_N_AUTHS };
/* Differences of a provider or a model; each is a member of struct rv_wire_target. */
enum rv_quirk {
    RV_QUIRK_OLD_MAX_TOKENS = 1 << 0,
    RV_QUIRK_DEVELOPER_ROLE = 1 << 1,
    RV_QUIRK_NO_STREAM_USAGE = 1 << 2,
    RV_QUIRK_NO_PARALLEL_CALLS = 1 << 3,
    RV_QUIRK_NO_SAMPLING = 1 << 4,
    RV_QUIRK_NO_TOOLS = 1 << 5,
    RV_QUIRK_NO_NATIVE_OUTPUT = 1 << 6,
    RV_QUIRK_NO_STRICT_OUTPUT = 1 << 7,
    RV_QUIRK_NO_IMAGES = 1 << 8,
    RV_QUIRK_NO_FILES = 1 << 9,
};
/* Data that is not in the public table. */
struct rv_provider_ways {
    enum rv_provider_auth auth;
    unsigned quirks;           /* enum rv_quirk */
    unsigned elsewhere_quirks; /* at another address than the provider's own, too */
    bool has_deployments;      /* Azure: a model is a path, and the address has a query */
    bool has_organization;     /* OpenAI's headers for organisation and project */
    bool has_developer_role;   /* at its own address, with models that want it */
    int env_port;              /* its variable may hold a host alone: the port then; 0: it may not */
    bool no_embeddings;
};
const struct rv_provider_ways *provider_ways_of(const struct rv_provider_info *info);
/** What a model with this name wants added to, or taken from, the quirks of where it is. at_home: at the provider's own
 * address. */
void provider_model_quirks(const struct rv_provider_info *info, const char *model, bool at_home, unsigned *quirks);
/** The quirk that a key of `quirks` in the options names; 0: none. */
unsigned provider_quirk_of(const char *key);

/* --- endpoint.c: what a role's options say about how it is called, defaults filled in --- */
struct rv_call_options {
    int64_t connect_us, first_byte_us, idle_us;
    int64_t max_attempts, max_retry_wait_us;
    int64_t max_concurrent, requests_per_minute, tokens_per_minute; /* 0: none */
    const char *ca_file, *proxy;                                    /* borrowed from the options; NULL */
};

/* --- url.c --- */
/** An address without a path below it: "http://host:port" of what OLLAMA_HOST and its like may hold. NULL: no memory.
 */
char *provider_url_of_host(rv_arena *a, rv_str host, int port);
/** Check an address. RV_E_INVALID: no http(s), no host, blanks or control characters. *host: with its port. */
RV_MUST_CHECK int provider_url_check(rv_str url, rv_str *host, rv_err **err);
/** base and path, with the base's query at the end and `query` (may be NULL) added; NULL: no memory. */
char *provider_url_join(rv_arena *a, rv_str base, const char *path, const char *query);
/** As it may be shown: no user, no query. NULL: no memory. */
char *provider_url_shown(rv_arena *a, rv_str url);
/** The "user:password" of an address; empty: none. */
rv_str provider_url_user(rv_str url);
/** What stands behind its "?"; empty: nothing. */
rv_str provider_url_query(rv_str url);
/** True if nothing but an optional "/" follows the host. */
bool provider_url_is_bare(rv_str url);
/** text with everything but letters, digits and "-._~" as %XX. NULL: no memory. */
char *provider_url_escape(rv_arena *a, const char *text);

/* --- endpoint.c --- */
struct rv_endpoint {
    rv_arena *arena;                     /* owned: everything below lives in it, or is borrowed from the options */
    const struct rv_provider_info *info; /* static */
    struct rv_wire_target target;
    struct rv_call_options call;
    const char *url, *address, *host; /* address: base as it may be shown; host: with its port */
    const char **headers;
    size_t n_headers;
    rv_str secrets[RV_PROVIDER_MAX_SECRETS]; /* never to be seen in a text */
    size_t n_secrets;
    char gate[RV_HASH_MAX]; /* names address and key */
};
/* What it points to is borrowed for the life of the endpoint. */
struct rv_endpoint_want {
    const char *provider, *model;
    json_object *options; /* may be NULL */
    bool is_embedding;
};
/** RV_E_DENIED: no key. RV_E_INVALID: no such provider, no or a bad address, a bad header. Zeroes out first. */
RV_MUST_CHECK int provider_endpoint_init(struct rv_endpoint *out, struct rv_provider_env env,
                                         const struct rv_endpoint_want *want, rv_err **err);
void provider_endpoint_fini(struct rv_endpoint *e);

/* --- hints.c: what the headers of an answer hint at --- */
struct rv_hints {
    int64_t retry_after_us;  /* -1: nothing, or nothing sensible */
    int should_retry;        /* 1, 0; -1: not said */
    int64_t closed_until_us; /* a limit is used up until then; 0: none is */
    char request_id[128];    /* printable; "" none */
    char location[256];      /* of a redirection, without its query; "" none */
};
void provider_hints_read(const struct rv_http_head *head, int64_t now_us, int64_t max_wait_us, struct rv_hints *out);

/* --- limits.c: is it worth asking? --- */
#define RV_BREAKER_OPENS 5
struct rv_breaker {
    int64_t failed_at[RV_BREAKER_OPENS]; /* a ring */
    int64_t n_failures;                  /* in a row */
    int last_kind;                       /* enum rv_llm_error */
    bool is_open, is_probed;             /* is_probed: half open, one exchange tries */
    int64_t probe_at_us;
};

/* --- limits.c: one gate for each address and key, shared by all exchanges --- */
struct rv_ticket {
    struct rv_gate *gate;          /* borrowed from the providers */
    struct rv_ticket *prev, *next; /* in the queue */
    bool is_queued, is_inside, is_probe, is_told;
    int64_t places; /* that there are, for whom waits; 0: any number */
    int64_t tokens; /* that were taken for it */
    void (*on_ready)(void *self);
    void *self; /* borrowed */
};
struct rv_gate {
    struct rv_gate *next; /* owned by the providers */
    char id[RV_HASH_MAX];
    int64_t in_flight, n_waiting;
    struct rv_ticket *first, *last;                            /* borrowed, first come first served */
    int64_t requests_full_us, tokens_full_us, closed_until_us; /* when the buckets are full again */
    bool is_waking, wake_again;
    struct rv_breaker breaker;
};
enum rv_gate_verdict { RV_GATE_IN, RV_GATE_LATER, RV_GATE_REFUSED };
/** *at_us: when to ask again; RV_NEVER: on_ready tells. */
enum rv_gate_verdict provider_gate_enter(struct rv_ticket *t, const struct rv_call_options *limits, int64_t tokens,
                                         int64_t now_us, int64_t *at_us);
/** Out of the queue or the place, whichever it is in. Follow it by provider_gate_wake(), last of all. */
void provider_gate_leave(struct rv_ticket *t);
/** Tell the first exchange of the queue that there may be a place: calls its on_ready. */
void provider_gate_wake(struct rv_gate *g);
/** What the attempt that ended says of its address, for all that go there. After provider_gate_leave(). */
void provider_gate_told(rv_exchange *x);

struct rv_providers {
    struct rv_provider_env env;
    struct rv_gate *gates; /* owned list */
};
struct rv_gate *provider_providers_gate(rv_providers *p, const struct rv_endpoint *e); /* NULL: no memory */

/* --- exchange: exchange.c, attempt.c, retry.c, report.c --- */
enum rv_exchange_state { RV_EXCHANGE_PLACE, RV_EXCHANGE_SENT, RV_EXCHANGE_BACKOFF, RV_EXCHANGE_OVER };
struct rv_exchange {
    rv_providers *providers; /* borrowed */
    struct rv_exchange_opts opts;
    struct rv_rand_state rand_state;
    struct rv_rand rand; /* reads rand_state */
    enum rv_exchange_state state;
    int64_t now_us; /* of the call under way */

    const struct rv_model_config *asked, *model; /* of the role that was asked, and that is; borrowed */
    size_t next_fallback;
    struct rv_endpoint endpoint;
    rv_buf body;
    json_object *tool_names; /* rv_wire_build_tool_names() of the body; owned; NULL: none */
    struct rv_http_request http;
    bool is_taken; /* the driver has it */
    struct rv_ticket ticket;
    int64_t attempts, role_attempts; /* sent in all, and of this role */
    int64_t sent_us;                 /* the first of all; times of the answer count from here */
    int64_t wait_until_us, queued_us;
    bool is_refused;         /* no further request may be made, to whichever role */
    char why_no_repeat[400]; /* "": the attempts are used up, or repeating cannot help */

    /* the attempt */
    int64_t first_token_us;
    int status;     /* 0: no head came */
    bool was_local; /* it failed by us or by our deadline: says nothing of the server */
    bool attempt_may_be_billed;
    rv_wire_reader *reader; /* owned */
    rv_buf error_body, content_type;
    struct rv_hints hints;
    bool has_begun; /* a piece of the answer has come */

    bool may_be_billed, any_retryable; /* of any attempt so far */
    struct rv_llm_reply reply;
    rv_buf story;              /* how the roles that were asked before failed */
    struct rv_llm_reply nomem; /* made at the start, so that there always is a reply */
    bool is_nomem;
};

/* attempt.c: one request and its answer. */
void provider_attempt_start(rv_exchange *x);
RV_MUST_CHECK int provider_attempt_head(rv_exchange *x, const struct rv_http_head *head, rv_err **err);
RV_MUST_CHECK int provider_attempt_body(rv_exchange *x, rv_str bytes, rv_err **err);
/** Makes x->reply from it. */
RV_MUST_CHECK int provider_attempt_end(rv_exchange *x, const struct rv_http_end *end, rv_err **err);
void provider_attempt_fini(rv_exchange *x);

/* retry.c */
/** Tells whether to repeat the failed attempt; x->wait_until_us is then the time. */
bool provider_retry_wanted(rv_exchange *x);

/** Tells whether another role may be asked instead. */
bool provider_fallback_wanted(const rv_exchange *x);
/** The next role that is there; NULL: none is left. */
const struct rv_model_config *provider_fallback_next(rv_exchange *x);
/** The request as that model is asked it; *out is the caller's. */
RV_MUST_CHECK int provider_fallback_request(const struct rv_model_config *asked, const struct rv_model_config *model,
                                            json_object *request, json_object **out, rv_err **err);

/* report.c: texts of failures */
/** Replace x->reply by a failure of ours. */
#define rv_report_fail(x, kind, ...) provider_report_fail_at((x), (kind), __FILE__, __LINE__, __VA_ARGS__)
void provider_report_fail_at(rv_exchange *x, enum rv_llm_error kind, const char *c_file, int c_line, const char *fmt,
                             ...) RV_PRINTF(5, 6);
/** Say in x->reply's error who failed, where and how often, and hide the secrets. */
RV_MUST_CHECK int provider_report_role(rv_exchange *x, rv_err **err);
/** Tell on_retry of the failure that x->reply has; next: the role that is asked instead; NULL: this one again. */
void provider_report_retry(const rv_exchange *x, const struct rv_model_config *next);
/** Keep what this role's failure was for the end, should the next one fail too. */
void provider_report_remember(rv_exchange *x);
/** The last failure, and those before it. */
RV_MUST_CHECK int provider_report_end(rv_exchange *x, rv_err **err);

#endif
