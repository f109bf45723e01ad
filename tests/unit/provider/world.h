/* A pipeline of models made by hand, an environment, virtual time, and a driver that plays the server: what it answers
 * is a list. */
#ifndef RV_TESTS_PROVIDER_WORLD_H
#define RV_TESTS_PROVIDER_WORLD_H

#include "coreengine/model/provider/provider.h"
#include "tests/kit/kit.h"

#define START_US   INT64_C(1790000000000000) /* 2026-09-21T14:13:20Z */
#define S          INT64_C(1000000)
#define MS         INT64_C(1000)
#define KEY        "sk-test-0123456789abcdef"
#define MAX_MODELS 8
#define MAX_SENDS  64

#define HELLO                                                                                                          \
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"},\"finish_reason\":null}]}\n\n"                 \
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"                                  \
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":3,\"total_tokens\":15}}\n\n"          \
    "data: [DONE]\n\n"
#define HALF "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"},\"finish_reason\":null}]}\n\n"

/* What the server does with one request. */
struct answer {
    int status;          /* 0: no head comes */
    const char *headers; /* "name: value\nname: value"; NULL: none */
    const char *type;    /* NULL: by the status */
    const char *body;    /* NULL: HELLO for 200, an error object else */
    enum rv_http_fault fault;
    bool was_sent;
    int64_t took_us;
    bool is_refused;  /* the driver could not even start it */
    const char *text; /* of the end; NULL: a usual one */
};

struct world {
    rv_providers *providers;
    struct rv_pipeline pipeline;
    struct rv_model_config models[MAX_MODELS];
    const struct rv_model_config *fallbacks[MAX_MODELS][MAX_MODELS];
    const char *fallback_names[MAX_MODELS][MAX_MODELS];
    json_object *request;
    const char *env[32]; /* name, value, name, value, NULL */
    /* of the exchange that was driven last */
    int64_t now_us;
    int64_t sent_at[MAX_SENDS];
    char *urls[MAX_SENDS], *bodies[MAX_SENDS];
    size_t n_sent;
    struct rv_http_request last; /* numbers only */
    rv_buf deltas;               /* texts, one after the other */
    size_t n_ready;
    rv_buf retries; /* "ROLE ATTEMPT/OF waits US: ERROR (CODE)" or "ROLE -> TO: ERROR (CODE)", a line each */
};
void world_init(struct world *w);
void world_fini(struct world *w);
/** A role; options: JSON as of rv_kit_json(), or NULL. */
struct rv_model_config *world_model(struct world *w, const char *role, const char *provider, const char *model,
                                    const char *options);
/** role asks these instead, in order. */
void world_fallback(struct world *w, const char *role, const char *first, const char *second);
struct rv_exchange_opts world_opts(struct world *w, const char *role);
/** opts NULL: those of the role "default". */
rv_exchange *world_exchange(struct world *w, const struct rv_exchange_opts *opts);
/** Feed one answer to a request that is under way. */
void world_answer(struct world *w, rv_exchange *x, const struct answer *a);
/** To the end; the last answer repeats. */
void world_drive(struct world *w, rv_exchange *x, const struct answer *answers, size_t n);
/** What is said when it failed. */
const char *world_error(const rv_exchange *x);
void world_fill_head(struct rv_http_head *head, const struct answer *a, char *storage, size_t size);

#endif
