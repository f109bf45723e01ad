/* Shared by the files of wire only: one answer while it is read, and what a wire has to bring. */
#ifndef RV_WIRE_INTERNAL_H
#define RV_WIRE_INTERNAL_H

#include "coreengine/model/wire/wire.h"

/* Some servers cut their text between two UTF-16 units, so that one character comes as the escapes of two JSON strings:
 * the first half waits here for the second. */
struct wire_half {
    unsigned high; /* 0: nothing waits */
};

/* The position up to which the brackets of arguments were checked: each byte once, however many pieces they come in. */
struct wire_brackets {
    size_t at;
    unsigned depth;
    bool in_text, is_escaped;
    bool are_closed; /* those that were opened first */
    bool is_none;    /* the text up to the closing bracket is not a JSON object, and no further piece can change that */
};

/* One tool call while its arguments come. */
struct wire_call {
    int64_t key;      /* the provider's index of the call; -1: none */
    rv_buf id, name;  /* id may stay empty: one is made up when the call starts, as it is when another call has it */
    rv_buf sent_id;   /* OpenAI: as the provider wrote it */
    rv_buf arguments; /* text */
    struct wire_half half;
    struct wire_brackets brackets;
    bool is_in_list;     /* OpenAI: the list that is read has given it a piece */
    bool started, ended; /* its deltas were handed out */
};

struct wire_codec;
struct rv_wire_reader {
    struct rv_wire_target target;   /* a copy; its pointers are borrowed */
    const struct wire_codec *codec; /* static */
    rv_llm_delta_fn on_delta;
    void *self;              /* borrowed */
    json_object *tool_names; /* see rv_wire_reader_set_tool_names(); borrowed; NULL: none */
    rv_sse *sse;             /* one of these three frames the body; owned */
    rv_ndjson *ndjson;       /* owned */
    rv_buf whole;
    bool is_whole, is_stranger; /* stranger: neither of the three; its beginning is kept for the message */
    bool has_begun, is_broken;
    bool saw_end;         /* the protocol's own end mark: the rest is not looked at */
    bool may_end;         /* what has to come has come: an end of the stream is a good one from here */
    int broken_kind;      /* enum rv_llm_error */
    bool broken_for_good; /* the provider says that repeating cannot help */
    rv_buf broken_why;
    rv_buf text;
    struct wire_half half, thinking_half;
    bool has_halves;         /* the event that is read holds marks, see half.c */
    rv_buf scratch, joined;  /* a piece of text while it is put together; kept for their memory */
    bool no_short_way;       /* tests: every chunk is parsed to a tree */
    size_t total_bytes;      /* of text, thinking and arguments */
    struct wire_call *calls; /* owned */
    size_t n_calls, cap_calls;
    json_object *blocks; /* Anthropic: thinking blocks to be handed back, as opaque {provider, blocks}; owned */
    int64_t block_index; /* and the block that is open */
    int block_kind;
    rv_buf block_text, block_signature; /* what a thinking block has so far */
    rv_buf block_input;                 /* what the last tool call began with, in place of pieces; empty: nothing */
    int64_t input_index;                /* of that call */
    bool input_has_halves;              /* and of its event */
    size_t block_bytes;                 /* of all that are kept, as JSON */
    struct wire_half block_half;
    int finish; /* enum rv_finish_reason or RV_UNSET */
    struct rv_usage usage;
    bool has_usage, has_false_usage;
    bool knows_input, knows_output; /* a usage said how much was read, and how much was written */
};

/* How the output of a request is asked for, given the abilities of the target. */
enum wire_via { WIRE_VIA_NONE, WIRE_VIA_NATIVE, WIRE_VIA_TOOL, WIRE_VIA_PROMPT };
struct wire_output {
    enum wire_via via;
    json_object *schema; /* without its top-level description; owned by the caller of a codec; NULL: NONE */
};

/* The functions of a wire. Each returns 0 or RV_E_NOMEM; all other errors go through wire_reader_break(). */
struct wire_codec {
    int (*request)(const struct rv_wire_target *t, json_object *request, struct wire_output *output, rv_jw *w,
                   rv_err **err);
    int (*event)(rv_wire_reader *r, rv_str name, rv_str data, rv_err **err); /* one event or line of the stream */
    int (*whole)(rv_wire_reader *r, json_object *reply, rv_err **err);       /* an answer that came at once */
    unsigned takes;                                                          /* enum rv_wire_takes */
    /* the error object of a body or event: *kind is set by the status before and may be changed */
    void (*fault)(json_object *body, int status, int *kind, bool *retryable, rv_buf *text);
};
extern const struct wire_codec wire_of_openai, wire_of_anthropic, wire_of_ollama;
const struct wire_codec *wire_codec_of(enum rv_wire_kind wire);

/* reader.c */
/* reader.c, calls.c: what the codecs tell of the answer. Text is given to the caller in whole UTF-8 sequences. */
RV_MUST_CHECK int wire_reader_text(rv_wire_reader *r, rv_str text, rv_err **err);
/** The same of a member that is to be a text: NULL is none, and a value of another type breaks the answer. */
RV_MUST_CHECK int wire_reader_said(rv_wire_reader *r, json_object *value, rv_err **err);
RV_MUST_CHECK int wire_reader_thinking(rv_wire_reader *r, rv_str text, rv_err **err);
/** The call with that key, made when it is new (with key -1 always); NULL (with rc in *rc: 0 when the reply was broken
 * for having too many). The pointer dies with the next new call. */
struct wire_call *wire_reader_call(rv_wire_reader *r, int64_t key, int *rc, rv_err **err);
/** Hands out its start, once, when it has a name. */
RV_MUST_CHECK int wire_reader_call_starts(rv_wire_reader *r, struct wire_call *c, rv_err **err);
RV_MUST_CHECK int wire_reader_arguments(rv_wire_reader *r, struct wire_call *c, rv_str text, rv_err **err);
/** The same, from arguments that came as a value. */
RV_MUST_CHECK int wire_reader_arguments_object(rv_wire_reader *r, struct wire_call *c, json_object *arguments,
                                               rv_err **err);
void wire_reader_call_ends(rv_wire_reader *r, struct wire_call *c);
/** Tells whether its arguments are one complete object by now; RV_E_NOMEM only. */
RV_MUST_CHECK int wire_reader_call_is_complete(struct wire_call *c, bool *is, rv_err **err);
/** At the end of the answer: those that are kept, as the JSON of a reply; none leaves out empty. */
RV_MUST_CHECK int wire_reader_end_calls(rv_wire_reader *r, rv_buf *out, size_t *n_kept, rv_err **err);
void wire_reader_finish(rv_wire_reader *r, int finish);
/** A count of usage; without the member, or where it is null, *n stays, and the result is false. A whole number counts
 * however it is written (4000.0). Any other value is not a count: *n is then one that wire_reader_usage() refuses. */
bool wire_reader_count(json_object *usage, const char *key, int64_t *n);
bool wire_is_count(int64_t n); /* that a journal can hold */
/** With one impossible count the answer has no usage from then on: a journal could not hold it. Nor has it any until
 * knows_input and knows_output are set: what is not said is not 0. */
void wire_reader_usage(rv_wire_reader *r, const struct rv_usage *totals);
/** Record that the answer is broken, and why; only the first reason is kept. */
void wire_reader_break(rv_wire_reader *r, enum rv_llm_error kind, const char *fmt, ...) RV_PRINTF(3, 4);
/** The same by an error object of the provider in the middle of the stream: the codec's fault() reads it, with status 0
 * and the kind "overloaded" to start from. */
RV_MUST_CHECK int wire_reader_fault(rv_wire_reader *r, json_object *body, rv_err **err);
/** Parse one JSON object of the stream, capped; *out NULL (and the reply broken) when it is none. */
RV_MUST_CHECK int wire_reader_json(rv_wire_reader *r, rv_str text, json_object **out, rv_err **err);

#define WIRE_MAX_WHOLE (2 * RV_LLM_MAX_REPLY) /* of an answer that comes at once: its text with escapes */
#define WIRE_MAX_WHY   ((size_t)8 << 10)      /* of why an answer is broken: WIRE_MAX_SHOWN, and words */
/** Hand out a piece of the answer itself. */
void wire_reader_hand(rv_wire_reader *r, struct rv_llm_delta d);
/** Count n more bytes; false (and the reply broken): they are too many. */
bool wire_reader_fits(rv_wire_reader *r, size_t n);

/* half.c */
/** The JSON text with each half of a surrogate pair that stands alone replaced by a mark; *has false: there is none,
 * and out is left alone. */
void wire_half_mark(rv_str json, rv_buf *out, bool *has);
/** text with its marks joined, to each other and to what waits in h; a half that will never be whole is U+FFFD. Either
 * text itself or a view of scratch, whose failure the caller checks. */
rv_str wire_half_join(struct wire_half *h, bool has_marks, rv_str text, rv_buf *scratch);
/** At the end: true when a half still waits; what stands for it then. */
bool wire_half_is_lost(struct wire_half *h, rv_str *lost);

/* fault.c */
/** The meaning of a bad status; *retryable: whether the same request may succeed later. */
enum rv_llm_error wire_fault_kind(int status, bool *retryable);
/** Has the answer an "error"? Some servers write "", {} or false beside each good one. */
bool wire_says_error(json_object *body);
#define WIRE_MAX_SHOWN 300 /* bytes of an answer that a message shows: three or four lines of a terminal */
/** Append the beginning of arbitrary bytes on one line; bytes that are not text are replaced. */
void wire_show(rv_str bytes, rv_buf *out);
/** "provider:model". Appended. */
void wire_name_target(const struct rv_wire_target *t, rv_buf *out);

/** The string under key; empty for anything else. */
static inline rv_str wire_text(json_object *obj, const char *key)
{
    json_object *part = NULL;

    return json_object_object_get_ex(obj, key, &part) ? rv_json_str(part) : (rv_str){NULL, 0};
}

/* body.c: pieces of requests that wires share */
/** Fills in out, whose schema is the caller's, even when it fails. */
RV_MUST_CHECK int wire_body_output(const struct rv_wire_target *t, json_object *request, struct wire_output *out,
                                   rv_err **err);
/** The words that ask for JSON of that schema (WIRE_VIA_PROMPT); appended. */
void wire_body_ask_for_json(json_object *schema, rv_buf *text);
/** Calls fn for system (role "system"), examples, history, prompt (role "user") and turns, in this order, as messages.
 * message is NULL for the system text and for the prompt, which are texts only. */
typedef int (*rv_body_message_fn)(void *self, const char *role, json_object *message, rv_str content, rv_err **err);
RV_MUST_CHECK int wire_body_messages(json_object *request, rv_body_message_fn fn, void *self, rv_err **err);
/** The member "messages", one by one as above. */
RV_MUST_CHECK int wire_body_write_messages(const struct rv_wire_target *t, json_object *request, rv_body_message_fn fn,
                                           void *self, rv_jw *w, rv_err **err);
/** Append the text of a prompt. ask: the schema that it has to ask for in words; NULL: none. */
RV_MUST_CHECK int wire_body_prompt(rv_str content, json_object *ask, rv_buf *out, rv_err **err);
/** The member "content" of a prompt, as above. */
RV_MUST_CHECK int wire_body_write_prompt(rv_str content, json_object *ask, rv_jw *w, rv_err **err);
/** RV_E_INVALID: a tool cannot return output of that schema. */
RV_MUST_CHECK int wire_body_check_output_tool(json_object *schema, rv_err **err);
/** An array of the tools, each as {type: "function", function}. output_schema: of the output tool, which is one more;
 * NULL: none. Ollama reads parameters member by member, so that a tool without them has empty ones, and references give
 * way to what they name. */
RV_MUST_CHECK int wire_body_write_tools(const struct rv_wire_target *t, json_object *tools, json_object *output_schema,
                                        rv_jw *w, rv_err **err);
/** Members of extra_body over those written: call it at the end of the body's object. Keys it will write must be left
 * out by wire_body_has_extra(). */
bool wire_body_has_extra(const struct rv_wire_target *t, const char *key);
/** Writes the key, unless the target has a value of its own for it. */
bool wire_body_key(const struct rv_wire_target *t, rv_jw *w, const char *key);
void wire_body_write_extra(const struct rv_wire_target *t, rv_jw *w);
/** The member "tool_calls" of a message, beside those tools. For Ollama their arguments are values, and their type is
 * not said. */
RV_MUST_CHECK int wire_body_write_calls(const struct rv_wire_target *t, json_object *tools, json_object *calls,
                                        rv_jw *w, rv_err **err);
/** The arguments of a call as an object; {} for a text that is none: it was answered with an error, and the turn has to
 * be sayable all the same. */
RV_MUST_CHECK int wire_body_write_arguments(rv_str text, rv_jw *w, rv_err **err);

/* parts.c: images and files of a prompt */
struct wire_attachment {
    bool is_image;
    rv_str url, data, media_type, name; /* url or data, the other is empty; media_type of data is not; borrowed */
};
/** RV_E_INVALID: the target does not take one of the request's attachments, or it is malformed. */
RV_MUST_CHECK int wire_parts_check(const struct rv_wire_target *t, unsigned takes, json_object *request, rv_err **err);
/** The attachments of a request; NULL: none. */
json_object *wire_parts_of(json_object *request);
/** One of those that were checked. */
struct wire_attachment wire_parts_at(json_object *attachments, size_t i);

/* openai.c, anthropic.c, anthropic_messages.c: requests */
RV_MUST_CHECK int wire_openai_request(const struct rv_wire_target *t, json_object *request, struct wire_output *output,
                                      rv_jw *w, rv_err **err);
RV_MUST_CHECK int wire_anthropic_request(const struct rv_wire_target *t, json_object *request,
                                         struct wire_output *output, rv_jw *w, rv_err **err);
/** The members "system" and "messages". ask: the schema that the prompt has to ask for in words; NULL: none. */
RV_MUST_CHECK int wire_anthropic_messages(const struct rv_wire_target *t, json_object *request, json_object *ask,
                                          rv_jw *w, rv_err **err);

/* openai_chunk.c */
/** True: data is a chunk of the stream that holds nothing but one piece of text or of thinking, or nothing at all, and
 * here it is, a view of data or of scratch. False: it may be anything, parse it. */
bool wire_openai_short_chunk(rv_str data, rv_buf *scratch, rv_str *text, bool *is_thinking);

/* strict.c */
/** The schema in the strict subset of OpenAI's structured outputs; *out NULL: the subset cannot express it. */
RV_MUST_CHECK int wire_schema_to_strict(json_object *schema, json_object **out, rv_err **err);

/* tool_names.c */
#define WIRE_MAX_TOOL_NAME 128 /* bytes of the name of a tool, as Anthropic takes it */
/** How the wire says that name of a tool: the name itself, or out. tools: the others of the request, of which it has to
 * differ; NULL: none. */
rv_str wire_tool_name(const struct rv_wire_target *t, json_object *tools, rv_str name, char out[WIRE_MAX_TOOL_NAME]);

#endif
