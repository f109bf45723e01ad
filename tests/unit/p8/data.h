/* p8 with a store that its tools ask for, as in a run: each call says who asks. */
#ifndef P8_TEST_DATA_H
#define P8_TEST_DATA_H

#include "coreengine/app/app.h"
#include "coreengine/store/store.h"
#include "tests/unit/p8/room.h"

struct data {
    struct room room;
    struct rv_app app;
    struct rv_app_services services;
    char *path;
    const char *user, *session, *key; /* of the calls; "" when unknown */
    const char *web;                  /* what the search engine answers with; NULL: it is away */
    const char *script;               /* what models answer, as text; NULL: none */
    rv_buf web_request;               /* what it was sent last */
    int n_web;
    bool is_denied; /* the engine refuses all asks */
    /* What happens before each ask of a tool; NULL: nothing. */
    void (*before_ask)(struct data *d, const char *service);
    const char *stale; /* a service that is always told that another was faster; NULL: none */
    int n_asked;
};
void data_begin(struct data *d, bool isolated);
void data_begin_with(struct data *d, bool isolated, const char *config); /* config: JSON text, NULL */
void data_end(struct data *d);
/** Ask a service as a capability of the user would. The answer is appended. */
RV_MUST_CHECK int data_ask(struct data *d, const char *service, const char *args, rv_buf *answer, rv_err **err);
/** Call a tool; the reply is its text until the next call. A tool that throws fails the test. */
const char *data_call(struct data *d, const char *tool, const char *args);
/** The same; the reply has to have that part. */
void data_has(struct data *d, const char *tool, const char *args, const char *part);
/** Rows of a kind into the store, by an operator who names the owner in each. */
void data_put(struct data *d, const char *kind, const char *rows);
void data_agent(struct data *d, const char *document); /* for everybody */
/** Text of what a user of a tenant (NULL: the default one) finds of a kind; free() it. */
char *data_find(struct data *d, const char *tenant, const char *user, const char *kind);

/** Tools that work with what a user has. */
extern const char *const data_tools[];
extern const size_t data_n_tools;
/** Arguments that may suit one of them, from a seed. */
void data_write_args(rv_buf *out, uint64_t *seed);
#define DATA_ID "11111111-1111-4111-8111-111111111111" /* some of them name */

#endif
