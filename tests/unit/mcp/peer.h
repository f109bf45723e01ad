/* A client, and the peer that a test plays for it. */
#ifndef RV_TESTS_UNIT_MCP_PEER_H
#define RV_TESTS_UNIT_MCP_PEER_H

#include "coreengine/mcp/mcp.h"
#include "tests/unit/mcp/suites.h"

#define SECOND ((int64_t)1000000)

/* A client, and the last thing that it said of each kind. */
struct peer {
    rv_mcp_client *client;
    int64_t now_us;
    int64_t sent_id;  /* of the last request that was sent */
    char sent[40000]; /* the last message that was sent */
    char method[64];  /* its method; "": an answer */
    char version[32]; /* told to the transport with it */
    bool is_modern;
    int n_sent, n_done, n_ready, n_dead, n_changed, n_notes, n_forgotten, n_progress;
    int64_t done_ask, ttl_ms, sample_ask;
    int n_samples;
    char result[4000], code[64], text[5000]; /* of the last DONE or DEAD */
    bool is_unsent, is_timeout, asks;
    double progress;
};

#define INITIALIZED "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}}}"
#define DISCOVERED  "{\"supportedVersions\":[\"2030-01-01\",\"2026-07-28\"],\"capabilities\":{\"tools\":{}}}"
#define NO_METHOD   "{\"jsonrpc\":\"2.0\",\"id\":@,\"error\":{\"code\":-32601,\"message\":\"no\"}}"

void peer_drain(struct peer *p);
void peer_say(struct peer *p, const char *fmt, ...) RV_PRINTF(2, 3);
void peer_say_of(struct peer *p, const char *text);
void peer_answer(struct peer *p, const char *result);
void peer_wait_until(struct peer *p, int64_t now_us);
void peer_begin(struct peer *p, enum rv_mcp_era era, bool is_http);
void peer_be_legacy(struct peer *p);
void peer_be_modern(struct peer *p);
int64_t peer_ask_for(struct peer *p, const char *method, const char *params, const char *list, int64_t timeout_us);
int64_t peer_call(struct peer *p);
void peer_end(struct peer *p);

#endif
