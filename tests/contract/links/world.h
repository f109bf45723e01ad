/* A link of one of the kinds, and its peer, which does what the name of a request says:
 *
 *   answer   gives the response
 *   three    two notifications before it, one and two (not by REST, where one request has one answer)
 *   silent   gives none
 *   end      ends: the process, or the connection, without a response
 *   large    writes a message that does not end
 *
 * What a callback may never do is checked in each of them, whatever a test looks for. */
#ifndef RV_TESTS_CONTRACT_LINKS_WORLD_H
#define RV_TESTS_CONTRACT_LINKS_WORLD_H

#include <check.h>
#include <uv.h>

#include "coreengine/mcp/mcp.h"
#include "tests/unit/http/server.h"

TCase *links_case(void);

#define PEER_ARGUMENT "peer" /* of this program, which is the peer of a link over stdio then */
/** Serve until the input ends; what main() returns. */
int peer_run(void);

#define MAX_ID 16

struct world;
struct kind {
    const char *name;
    int (*open)(struct world *w, const struct rv_mcp_link_user *user, rv_err **err);
    bool is_one_server; /* its end is that of the link; messages come in one order */
    bool has_one_answer;
};
#define N_KINDS 3
extern const struct kind kinds[N_KINDS];

struct world {
    const struct kind *kind;
    uv_loop_t loop;
    struct rv_mcp_link link;
    struct server server; /* not of stdio */
    char url[64], answer[1000];
    rv_buf order; /* of what came: "1 " a response, "one " a notification */
    size_t n_messages, n_failed;
    int messages[MAX_ID], failed[MAX_ID]; /* of an id; failed[0]: of the link */
    bool is_cancelled[MAX_ID];
    enum rv_mcp_fault fault; /* the last */
    int n_closed;
    bool is_inside, is_closing;    /* a function of the link runs; it is told to end */
    bool is_not_told;              /* that it is closed */
    void (*then)(struct world *w); /* NULL: nothing more; called at the end of each callback */
};
void world_open(struct world *w, int kind);
/** What send gives. */
int world_send(struct world *w, int id, const char *name);
int world_send_raw(struct world *w, const struct rv_mcp_send *m);
void world_cancel(struct world *w, int id);
/** Turns of the loop until so many messages and failures have come. */
void world_wait(struct world *w, size_t n_messages, size_t n_failed);
void world_close(struct world *w); /* only the link; the loop does not turn */
/** Close it, unless it is, and turn the loop until no handle is left: what had to come has come. */
void world_end(struct world *w);

#endif
