/* Any lines from a server, at any times: each ask ends at most once, what waits for the caller stays small, and a dead
 * connection says nothing more. The first byte chooses the era and the transport. */
#include <stdlib.h>

#include "coreengine/mcp/mcp.h"
#include "tests/kit/fuzz.h"

#define N_ASKS      6
#define MAX_SAMPLES 3

struct seen {
    int n_done[N_ASKS + 1], n_ready, n_dead, n_samples;
};

static void drain(rv_mcp_client *c, struct seen *s)
{
    const struct rv_mcp_out *o;
    int n = 0;

    while ((o = rv_mcp_client_next(c)) != NULL) {
        require(s->n_dead == 0);
        require(++n < 200);
        if (o->kind == RV_MCP_OUT_DONE) {
            require(o->ask > 0 && o->ask <= N_ASKS && s->n_done[o->ask]++ == 0);
            require((o->trouble.code == NULL) == (o->result != NULL) || !o->trouble.code);
        }
        require(o->kind != RV_MCP_OUT_SEND || !memchr(o->send.body.ptr, '\n', o->send.body.len));
        s->n_dead += o->kind == RV_MCP_OUT_DEAD;
        if (o->kind == RV_MCP_OUT_SAMPLE) { /* every other one is refused */
            int64_t of = o->ask, sample = o->id;
            json_object *result = s->n_samples++ % 2 ? json_object_new_object() : NULL;
            require(sample > 0 && sample <= MAX_SAMPLES && s->n_done[of] == 0);
            require(rv_mcp_client_answer_sample(c, of, sample, result, "no", NULL) == 0);
            json_object_put(result);
        }
    }
}

RV_FUZZ_TARGET(mcp_client)
{
    json_object *roots = size && (data[0] & 16) ? json_object_new_array() : NULL;
    const struct rv_mcp_client_opts opts = {.server = "s",
                                            .era = size ? data[0] % 3 : 0,
                                            .roots = roots,
                                            .is_http = size && (data[0] & 4),
                                            .elicits = size && (data[0] & 8),
                                            .max_samples = size && (data[0] & 32) ? MAX_SAMPLES : 0};
    rv_mcp_client *c = NULL;
    struct seen seen = {0};
    int64_t now_us = 1, ask;

    require(rv_mcp_client_new(&opts, now_us, &c, NULL) == 0);
    for (int i = 0; i < N_ASKS; i++)
        require(rv_mcp_client_ask(c,
                                  &(struct rv_mcp_ask){.method = i % 2 ? "tools/call" : "tools/list",
                                                       .list = i % 2 ? NULL : "tools",
                                                       .is_repeatable = i == 1,
                                                       .timeout_us = 1000000 * (i + 1),
                                                       .wants_progress = i % 2},
                                  now_us, &ask, NULL) == 0);
    drain(c, &seen);
    for (size_t at = 1; at < size;) {
        const uint8_t *stop = memchr(data + at, '\n', size - at);
        size_t len = stop ? (size_t)(stop - data) - at : size - at;
        require(rv_mcp_client_on_message(c, (rv_str){(const char *)data + at, len}, NULL) == 0);
        drain(c, &seen);
        if (len == 0) { /* an empty line: time passes */
            now_us += 700000;
            require(rv_mcp_client_tick(c, now_us, NULL) == 0);
            drain(c, &seen);
        }
        at += len + 1;
    }
    require(rv_mcp_client_tick(c, now_us + 100000000, NULL) == 0);
    drain(c, &seen);
    for (int i = 1; i <= N_ASKS; i++)
        require(seen.n_done[i] == 1);
    rv_mcp_client_free(c);
    json_object_put(roots);
    return 0;
}
