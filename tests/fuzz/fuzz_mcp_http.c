/* An answer of a server over HTTP: three bytes choose its status, its kind and how it ends, then its head's text, then
 * its body. Read whole or byte by byte it says the same; what is handed up and kept is bounded, and headers stay one
 * line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/mcp/mcp.h"
#include "tests/kit/fuzz.h"

struct seen {
    size_t n, bytes;
};

static void on_message(void *self, rv_str json)
{
    struct seen *s = self;

    s->n++;
    s->bytes += json.len;
}

struct outcome {
    struct seen seen;
    enum rv_mcp_verdict verdict;
    enum rv_mcp_fault fault;
    bool is_unsent, is_answered;
    int rc;
};

static struct outcome read_answer(const uint8_t *choice, rv_str line, rv_str body, size_t step)
{
    static const int statuses[] = {200, 202, 204, 301, 307, 400, 401, 403, 404, 429, 500, 503, 999};
    static const char *const types[] = {"text/event-stream", "application/json; charset=utf-8", "text/html"};
    const struct rv_mcp_head head = {.status = statuses[choice[0] % RV_COUNT(statuses)],
                                     .content_type =
                                         choice[1] & 4 ? line : rv_str_of(types[choice[1] % RV_COUNT(types)]),
                                     .challenge = line,
                                     .has_session = choice[2] & 1,
                                     .is_modern = choice[2] & 2};
    struct outcome o = {.fault = RV_N_MCP_FAULTS};
    struct rv_mcp_failure f = {.fault = RV_N_MCP_FAULTS};
    struct rv_mcp_answer a;
    rv_buf text = RV_BUF_INIT(2048);

    rv_mcp_answer_init(&a, choice[2] & 4 ? 0 : 7, choice[2] & 8, on_message, &o.seen);
    require(rv_mcp_answer_on_head(&a, &head, NULL) == 0);
    for (size_t at = 0; at < body.len && o.rc == 0 && !a.is_enough; at += step) {
        size_t n = body.len - at < step ? body.len - at : step;
        o.rc = rv_mcp_answer_read(&a, (rv_str){body.ptr + at, n}, NULL);
    }
    require(o.rc == 0 || o.rc == RV_E_LIMIT);
    if (o.rc == 0) {
        o.verdict = rv_mcp_answer_end(&a, choice[2] & 16, &text, &f);
        require(o.verdict != RV_MCP_FAILED || (f.text && f.text[0] && f.fault < RV_N_MCP_FAULTS));
        require(f.body.len <= RV_MCP_MAX_FAILURE);
        require(o.verdict != RV_MCP_CONTINUE || a.events);
    }
    o.fault = f.fault;
    o.is_unsent = f.is_unsent;
    o.is_answered = a.is_answered;
    require(o.seen.bytes <= body.len);
    rv_mcp_answer_fini(&a);
    rv_buf_fini(&text);
    return o;
}

static void require_same(const struct outcome *a, const struct outcome *b)
{
    require(a->rc == b->rc && a->verdict == b->verdict && a->fault == b->fault);
    require(a->is_unsent == b->is_unsent && a->is_answered == b->is_answered);
    require(a->seen.n == b->seen.n && a->seen.bytes == b->seen.bytes);
}

static void try_headers(rv_str line)
{
    struct rv_mcp_headers h = {.n = 0};
    char session[RV_MCP_MAX_SESSION + 1];
    rv_buf value = RV_BUF_INIT(RV_MCP_MAX_HEADER);
    rv_buf word = RV_BUF_INIT(RV_MCP_MAX_HEADER);

    if (rv_mcp_session_read(line, session)) {
        require(strlen(session) == line.len);
        require(rv_mcp_headers_build_stream("2025-11-25", session, "1", &h, NULL) == 0);
    }
    rv_mcp_header_write_value(line, &value);
    if (value.rc == 0 && rv_mcp_headers_add(&h, "Mcp-Param-X", rv_buf_str(&value), NULL) == 0)
        for (const char *p = h.lines[h.n - 1]; *p; p++)
            require((unsigned char)*p >= ' ' && (unsigned char)*p < 0x7F);
    if (rv_mcp_challenge_read(line, "scope", &word))
        require(word.len <= line.len);
    rv_mcp_headers_fini(&h);
    rv_buf_fini(&value);
    rv_buf_fini(&word);
}

RV_FUZZ_TARGET(mcp_http)
{
    if (size < 3)
        return 0;
    const char *text = (const char *)data + 3;
    const char *stop = memchr(text, '\n', size - 3);
    size_t n = stop ? (size_t)(stop - text) : size - 3;
    rv_str line = {text, n}, body = {text + n + (stop != NULL), size - 3 - n - (stop != NULL)};
    struct outcome whole = read_answer(data, line, body, body.len + 1), bytes = read_answer(data, line, body, 1);

    require_same(&whole, &bytes);
    try_headers(line);
    return 0;
}
