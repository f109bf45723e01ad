/* Runs that clients watch: see follow.c. */
#ifndef RV_SERVER_FOLLOW_INTERNAL_H
#define RV_SERVER_FOLLOW_INTERNAL_H

#include "coreengine/server/body_internal.h"

struct srv_told;
enum srv_follow_form { SRV_FOLLOW_EVENTS, SRV_FOLLOW_LINES, SRV_FOLLOW_RESULT, SRV_FOLLOW_CHAT };
struct srv_follow_ask {
    char run[RV_STORE_MAX_ID + 1];
    char tenant[RV_IDENTITY_MAX_ID + 1], user[RV_IDENTITY_MAX_ID + 1];
    bool has_user;
    int64_t from;  /* number of the first event that is sent */
    bool deltas;   /* with the pieces of model calls; EVENTS and LINES */
    int64_t piece; /* that many behind the event before `from` are not sent; INT64_MAX: none is */
    enum srv_follow_form form;
    struct srv_told *told; /* CHAT, of follow_chat.c: taken by srv_follows_ask(), owned from then on; NULL: none */
    bool until_waits;      /* ends when the run waits for an answer, too */
};
RV_MUST_CHECK int srv_follows_new(struct srv_server *s, struct srv_follows **out, rv_err **err);
void srv_follows_ask(struct srv_follows *f, struct srv_call *c, const struct srv_follow_ask *ask); /* on the loop */
void srv_follows_stop(struct srv_follows *f);
void srv_follows_free(struct srv_follows *f);

/* --- runs.c --- */
/** The number of the last event of a run; 0: none. */
RV_MUST_CHECK int srv_run_last_event(struct srv_call *c, const char *run, int64_t *out, rv_err **err);

#endif
