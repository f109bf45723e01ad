/* Wires: the protocols that models are spoken to in. A request of ours becomes an HTTP body; the bytes of an answer
 * become deltas and a reply. Pure: bytes in, values out; no I/O, no clock.
 *
 * Three of them: OpenAI Chat Completions (and what is compatible with it), Anthropic Messages, Ollama. What one server
 * does differently is data in its target, never a branch on a name. Answers are hostile until parsed: sizes, depth and
 * counts are capped, and whatever is wrong ends in an error kind of envelope/terms.h. */
#ifndef RV_WIRE_H
#define RV_WIRE_H

#include "coreengine/base/base.h"
#include "coreengine/model/llm/llm.h"

#define RV_WIRE_MAX_EVENT ((size_t)4 << 20)  /* bytes of a server-sent event or line: far above what providers send */
#define RV_WIRE_MAX_ERROR ((size_t)64 << 10) /* bytes of an error body: its beginning says what is wrong */

/* --- Who is spoken to --- */
enum rv_wire_kind { RV_WIRE_OPENAI, RV_WIRE_ANTHROPIC, RV_WIRE_OLLAMA, RV_N_WIRES };
/* All pointers borrowed and constant while a call lives. Zeroed members are the wire's own ways. */
struct rv_wire_target {
    enum rv_wire_kind wire;
    const char *provider, *model; /* for messages; model also for the wire */
    bool old_max_tokens;          /* OPENAI: "max_tokens", not "max_completion_tokens" */
    bool developer_role;          /* OPENAI: the system text has the role "developer" */
    bool no_stream_usage;         /* OPENAI: "stream_options" is refused */
    bool no_parallel_calls;       /* ask for one tool call at a time, where that can be said */
    bool no_sampling;             /* temperature and seed are refused: leave them out */
    bool no_tools;                /* the model cannot call tools: a request with tools is RV_E_INVALID */
    bool no_native_output;        /* it has no mode for structured output */
    bool no_strict_output;        /* OPENAI: never ask for the strict mode of schemas */
    bool no_images, no_files;     /* a request with such attachments is RV_E_INVALID */
    json_object *extra_body;      /* members added to the body, over ours; NULL: none */
};
/** The path below the base address: "/chat/completions", "/v1/messages", "/api/chat". Static. */
const char *rv_wire_path(enum rv_wire_kind wire);

/* What a protocol has a place for, as bits. */
enum rv_wire_takes {
    RV_WIRE_IMAGE_DATA = 1 << 0,
    RV_WIRE_IMAGE_URL = 1 << 1,
    RV_WIRE_FILE_DATA = 1 << 2,
    RV_WIRE_FILE_URL = 1 << 3,
};
unsigned rv_wire_takes(enum rv_wire_kind wire); /* of enum rv_wire_takes */

/** The body of a streaming request, compact JSON, appended. Only what the request has is sent. The schema of structured
 * output loses its top-level description (prompts have it). via "auto" is native where the target can, else by the
 * output tool, else (no tools either) by words in the prompt. In OpenAI's strict mode, which is asked for where the
 * schema can be said in it, the model writes null for what the schema lets it leave out.
 *  @return RV_E_INVALID: this wire cannot express the request (the text says why), RV_E_LIMIT, RV_E_NOMEM */
RV_MUST_CHECK int rv_wire_write_request(const struct rv_wire_target *t, json_object *request, rv_buf *body,
                                        rv_err **err);

/* --- The answer --- */
typedef struct rv_wire_reader rv_wire_reader;
/** For one answer with a good status. content_type decides how the body is framed: text/event-stream,
 * application/x-ndjson or application/json (the whole reply at once). on_delta may be NULL. */
RV_MUST_CHECK int rv_wire_reader_new(const struct rv_wire_target *t, rv_str content_type, rv_llm_delta_fn on_delta,
                                     void *self, rv_wire_reader **out, rv_err **err);
/** The tools of a request whose names its wire cannot say: an object of the names that are sent, with those they stand
 * for. *out is the caller's; NULL: there are none. RV_E_NOMEM. */
RV_MUST_CHECK int rv_wire_build_tool_names(const struct rv_wire_target *t, json_object *request, json_object **out,
                                           rv_err **err);
/** A call of a name that was sent is one of the name that it stands for. names: of the answered request; borrowed until
 * the reader is freed; may be NULL. */
void rv_wire_reader_set_tool_names(rv_wire_reader *r, json_object *names);
/** More of the body. RV_E_NOMEM only: whatever else is wrong is kept for the end, and the rest is not looked at. */
RV_MUST_CHECK int rv_wire_read(rv_wire_reader *r, rv_str bytes, rv_err **err);
/** True once nothing more can change the reply: it is broken, or its end mark was seen. */
bool rv_wire_is_done(const rv_wire_reader *r);
/** The body is over. why NULL: it ended as it should; else what cut it, for the message (kind: connection, timeout or
 * cancelled). out is initialised by the callee. A stream without its end mark is a failure (protocol) with the text
 * that came. A reply that is cut off by its length keeps only the tool calls that are surely complete. Deltas
 * are handed out here too: ends of tool calls that the wire does not mark, the finish reason of a good reply and, where
 * the answer came at once, all of them. */
RV_MUST_CHECK int rv_wire_end(rv_wire_reader *r, const char *why, enum rv_llm_error kind, struct rv_llm_reply *out,
                              rv_err **err);
void rv_wire_reader_free(rv_wire_reader *r);

/** An answer with a bad status: kind, provider's own text, retryable (of 408, 409, 429 without a used-up quota, 5xx).
 * body may be anything: HTML of a proxy is shown by its first bytes. out is initialised by the callee. */
RV_MUST_CHECK int rv_wire_read_fault(const struct rv_wire_target *t, int status, rv_str content_type, rv_str body,
                                     struct rv_llm_reply *out, rv_err **err);

/* --- Embeddings (OpenAI style /embeddings, Ollama /api/embed) --- */
const char *rv_wire_embed_path(enum rv_wire_kind wire); /* NULL: it has none */
/** dimensions 0: the model's own. */
RV_MUST_CHECK int rv_wire_embed_write_request(const struct rv_wire_target *t, const rv_str *texts, size_t n,
                                              int64_t dimensions, rv_buf *body, rv_err **err);
struct rv_embeddings {
    float *values; /* n rows of dims; owned */
    size_t n, dims;
    struct rv_usage usage;
    bool has_usage; /* else the provider told none that can be believed */
};
/** n: how many were asked for; fewer, more, rows of different length or non-finite numbers are RV_E_PARSE. */
RV_MUST_CHECK int rv_wire_embed_read(const struct rv_wire_target *t, rv_str body, size_t n, struct rv_embeddings *out,
                                     rv_err **err);
void rv_embeddings_fini(struct rv_embeddings *e);

#endif
