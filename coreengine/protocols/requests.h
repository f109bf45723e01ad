/* Requests of clients, read into one struct of a turn. Bodies are hostile: size, depth and counts are capped, and an
 * error names the member and what is legal. Members that are not known are ignored, as clients send more than they
 * need. Pure: no I/O, no clock. */
#ifndef RV_REQUESTS_H
#define RV_REQUESTS_H

#include "coreengine/protocols/protocols.h"

#define RV_REQUEST_MAX_BYTES    ((size_t)10 << 20) /* of a body: images are inside */
#define RV_REQUEST_MAX_DEPTH    64                 /* nesting */
#define RV_REQUEST_MAX_MESSAGES 10000              /* of a transcript */
#define RV_REQUEST_MAX_TEXT     ((size_t)1 << 20)  /* bytes of the new message */
#define RV_REQUEST_MAX_TOOLS    128                /* of the client */
#define RV_REQUEST_MAX_RESULTS  RV_LLM_MAX_TOOL_CALLS
#define RV_REQUEST_MAX_ANSWERS  64  /* of one request; a run has fewer open questions */
#define RV_REQUEST_MAX_ID       200 /* bytes of an id of a thread, run, message, call or interrupt */
#define RV_REQUEST_MAX_PATH     128 /* bytes of the path of a member, as "messages[3].content[0].type" */

/* The result of a tool that the client ran. Texts are borrowed from the request. */
struct rv_request_result {
    const char *call_id; /* borrowed from the request */
    rv_str content;      /* text, or JSON text of what was not a text */
    const char *error;   /* NULL: it succeeded */
    rv_buf room;         /* owned: what content borrows from */
};
/* An answer to a question that waits. What it points to is borrowed from the request. */
struct rv_request_answer {
    const char *interrupt_id;    /* borrowed from the request */
    bool is_cancelled;           /* the person wants to give none */
    json_object *payload;        /* as it came; NULL: none */
    struct rv_response response; /* the same for the engine */
};

/* Texts and values are borrowed from the request itself. NULL: not given. */
struct rv_request {
    enum rv_protocol_kind kind; /* AGUI_OLD: a body of AG-UI without protocolVersion */
    const char *thread_id, *run_id, *parent_run_id;
    const char *protocol_version;
    const char *model; /* as the client wrote it */
    const char *user;  /* that the body names; not who asks */
    const char *previous_response_id;
    bool is_unsupported; /* after a failure */
    bool stream, tells_usage;
    /* What is new: a message of the user, results of the client's tools, answers. May all be missing. */
    bool has_message;
    const char *message_id;
    rv_buf text;
    json_object *attachments; /* as in llm.h; NULL: none */
    struct rv_request_result *results;
    size_t n_results;
    struct rv_request_answer *answers;
    size_t n_answers;
    json_object *tools; /* of the client: [{name, description?, parameters}], as in llm.h; NULL: none */
    /* What came before, for callers that keep no session for this client: messages as in llm.h without system messages,
     * and these as one text. A caller that keeps one ignores both. */
    json_object *history;
    rv_buf system;
    /* Of the model call */
    bool has_temperature;
    double temperature;
    int64_t max_tokens; /* 0: not given */
    bool has_seed;
    int64_t seed;
    const char *tool_choice;      /* "auto", "required", "none" */
    const char *tool_named;       /* with "required": that one */
    json_object *response_schema; /* that the answer has to fit */
    /* AG-UI */
    json_object *state, *context, *forwarded;
    json_object *metadata; /* OpenAI */
    json_object *body;     /* owned: the rest borrows from it */
    json_object *made;     /* owned: values that were made from the body */
};
/* Parameters of OpenAI's that decide about the answer and that no agent has are refused, unless they say what holds
 * anyway. Attachments are data: URLs, or base64: the server fetches nothing for clients. */
/** Read a body for the endpoint of that family: AGUI (which tells AGUI_OLD by itself), OPENAI, RESPONSES, REMLIGHT.
 *  @param path gets the path of the member that is wrong, "" where it is the whole body
 *  @return RV_E_INVALID (out->is_unsupported: what it asks for can never be had), RV_E_PARSE (no JSON; the text has
 * line and column), RV_E_LIMIT (too large, too many), RV_E_NOMEM
 */
RV_MUST_CHECK int rv_request_read(enum rv_protocol_kind kind, rv_str body, struct rv_request *out,
                                  char path[RV_REQUEST_MAX_PATH], rv_err **err);
void rv_request_fini(struct rv_request *r);

#endif
