/* A link, and a server on the same loop that answers its requests in turn. What happens is written down. */
#ifndef RV_TESTS_MCP_WEB_SCENE_H
#define RV_TESTS_MCP_WEB_SCENE_H

#include <uv.h>

#include "coreengine/tools/mcp/http/http.h"
#include "tests/kit/suites.h"
#include "tests/unit/http/server.h"

TCase *link_case(void);
TCase *tokens_case(void);

/* One request that is expected, and the answer to it. */
struct turn {
    const char *want[6]; /* each is in the request; "!x": x is not */
    const char *answer;  /* whole; PORT is the server's port; NULL: none, the connection stays open */
};
struct scene {
    uv_loop_t loop;
    struct server server;
    struct rv_mcp_link link;
    const struct turn *turns;
    size_t n_turns, at;
    char answers[8][8192];
    rv_buf log; /* "message 7", "failed 7 http_status 404", ... */
    size_t n_messages, n_failed;
    bool is_closed;
    bool cancels_in_message; /* and closes */
    char url[200];
};
void scene_open(struct scene *s, const struct turn *turns, size_t n, const struct rv_mcp_web_auth *auth);
/* Of a server that asks on the stream of its own: requests wait for it. */
void scene_open_asking(struct scene *s, const struct turn *turns, size_t n);
void scene_send(struct scene *s, const struct rv_mcp_send *m);
void scene_run(struct scene *s, size_t messages, size_t failures); /* until so many have come */
void scene_turns(struct scene *s);                                 /* until all turns were taken */
void scene_leave(struct scene *s);                                 /* the link is told to close */
void scene_left(struct scene *s);                                  /* until it has, and all turns were taken */
void scene_close(struct scene *s);                                 /* both */
/** So many seconds pass at once, for the loop too. */
void time_passes(int seconds);

#define HEAD(status, type) "HTTP/1.1 " status "\r\nConnection: close\r\nContent-Type: " type "\r\n"

#endif
