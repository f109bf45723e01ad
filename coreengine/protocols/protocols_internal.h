/* What the files of this folder share: what an encoder keeps track of, and what one protocol does with it. track.c
 * reads events and pieces, keeps the rules that all protocols need (each call begins, is complete and has a result
 * once, in this order), and calls the functions of `struct proto_ops`. These append to p->out and never fail: the first
 * failure of an allocation sticks in p->rc, that of the buffer in the buffer, and the public functions look at both. */
#ifndef RV_PROTOCOLS_INTERNAL_H
#define RV_PROTOCOLS_INTERNAL_H

#include "coreengine/app/app.h"
#include "coreengine/protocols/protocols.h"

#include <stdio.h>

/* Where a piece comes from. Texts are borrowed for the call. */
struct rv_protocol_from {
    const char *stage;               /* NULL: not known */
    int64_t call_id;                 /* of the model call */
    const char *agent;               /* that was asked; NULL: the stage's own agent */
    int depth;                       /* of that agent: 1 and up */
    const char *parent_tool_call_id; /* by which it was asked */
    bool is_muted;                   /* not shown to people */
};

/* Who speaks: the agent of a stage, or one that was asked. Lives as long as the encoder. */
struct proto_owner {
    struct rv_origin origin;    /* for the sink; its texts are owned */
    char *visit;                /* owned: which visit of which stage, see write_visit() */
    struct proto_owner *parent; /* borrowed */
    char *asked_by;             /* owned; the id of the call by which it was asked; NULL: a stage's own agent */
    const char *call;           /* the same as clients know it; in the arena of the encoder, as all texts below */
    const char *run;            /* AG-UI: its subagentRunId */
    const char *step;           /* AG-UI: name of the step that is open; NULL: none */
    char *model;                /* owned; that was asked last; NULL: not known */
    int64_t reply;              /* the model call that it was told of last; 0: none */
    bool reply_over;
    bool reply_broke;        /* it comes again under the same number */
    bool is_late;            /* the piece came when the reply was over: it is the object of a structured agent */
    int n_texts, n_thoughts; /* parts of that reply so far */
    size_t told_len;         /* bytes of its text that were told, and their hash */
    uint64_t told_hash;
    bool text_open, thought_open;
    bool is_told; /* clients know that it was asked */
    bool is_over;
    bool is_suspended; /* of a stage's own agent: the visit waits for an answer, and the next one goes on with it */
    bool has_said;     /* text */
};

enum proto_call_state { PROTO_CALL_OPEN, PROTO_CALL_COMPLETE };
/* A tool call that has no result yet. */
struct proto_call {
    char *id;               /* owned; as events have it */
    const char *shown;      /* as clients are told: unique within the stream; id, or in the arena of the encoder */
    char *name;             /* owned */
    struct proto_owner *by; /* borrowed from the encoder */
    int64_t reply;          /* the model call that made it; 0: none did */
    size_t index;           /* within that reply */
    size_t number;          /* of the calls that the client is told, from 0 */
    enum proto_call_state state;
    bool is_client; /* the client runs it */
    bool is_known;  /* an earlier stream began it */
    rv_buf arguments;
};

/* A model, and the tokens that it used in this stream. */
struct proto_usage {
    char *model; /* owned; NULL: not known */
    struct rv_usage usage;
};

/* A question that waits. */
struct proto_question {
    json_object *body; /* owned */
    const char *id;    /* borrowed from it */
};

struct proto_ops {
    void (*begin)(rv_protocol *p);
    void (*text)(rv_protocol *p, struct proto_owner *by, rv_str text);
    void (*thought)(rv_protocol *p, struct proto_owner *by, rv_str text);
    void (*reply_over)(rv_protocol *p, struct proto_owner *by, bool failed);
    void (*call_begins)(rv_protocol *p, struct proto_call *c);
    void (*call_arguments)(rv_protocol *p, struct proto_call *c, rv_str text);
    void (*call_complete)(rv_protocol *p, struct proto_call *c);
    /** result: JSON text of any value. event: NULL for a call that never got a result. */
    void (*call_result)(rv_protocol *p, struct proto_call *c, rv_str result, json_object *event);
    /** The object of an agent with structured output. */
    void (*output)(rv_protocol *p, struct proto_owner *by, json_object *event);
    void (*agent_begins)(rv_protocol *p, struct proto_owner *who);
    void (*agent_over)(rv_protocol *p, struct proto_owner *who, json_object *event);
    void (*stage)(rv_protocol *p, struct proto_owner *root, const char *name, bool begins);
    void (*action)(rv_protocol *p, struct proto_owner *by, json_object *event);
    void (*custom)(rv_protocol *p, struct proto_owner *by, json_object *event);
    void (*question)(rv_protocol *p, const struct proto_question *q);
    void (*end)(rv_protocol *p, const struct rv_protocol_end *end);
    bool can_be_whole;
};
extern const struct proto_ops proto_agui, proto_agui_old, proto_openai, proto_responses, proto_remlight;

struct rv_protocol {
    struct rv_protocol_opts opts;
    const struct proto_ops *ops; /* static */
    /* of the call under way */
    rv_buf *out; /* borrowed for the call */
    rv_jw w;
    int64_t now_us;
    bool has_block; /* something was appended, and its last block may get the id */
    int rc;         /* sticky */
    /* of the stream */
    bool has_begun, is_over, is_broken;
    struct proto_owner **owners; /* owned */
    size_t n_owners, cap_owners;
    struct proto_owner *main;  /* made for what says nothing of its visit; borrowed: one of the owners */
    struct proto_call **calls; /* owned */
    size_t n_calls, cap_calls, n_told_calls;
    struct proto_usage *usage; /* owned */
    size_t n_usage, cap_usage;
    struct proto_question *questions; /* owned */
    size_t n_questions, cap_questions;
    rv_index names; /* that were given out */
    rv_arena *room; /* for them; dies with the encoder; owned */
    rv_buf said;    /* all text that was told, with an empty line between parts */
    /* flat protocols: one text out of many speakers */
    struct rv_chat_sink sink;
    rv_buf thoughts; /* of a whole answer */
    bool said_role;
    int64_t sequence;       /* RESPONSES: number of the next event */
    int64_t n_items;        /* RESPONSES: items of the output so far */
    int64_t text_item;      /* RESPONSES: index of the item of text that is open; -1: none */
    rv_buf item_text;       /* RESPONSES: its text */
    json_object *items;     /* RESPONSES: the output so far; OPENAI: calls of the client; owned */
    json_object *seen;      /* REMLIGHT: payload of the last observation; owned */
    const char *responding; /* REMLIGHT: the asked agent that spoke last; NULL: none; borrowed from an owner */
};

/* frame.c */
/** The prefix and the id of the answer, which is the run's, and of a later answer has its ordinal. */
#define PROTO_MAX_ANSWER_ID 512 /* bytes: a prefix, a run's id and two numbers */
void proto_answer_id(const rv_protocol *p, const char *prefix, char out[PROTO_MAX_ANSWER_ID]);

/* block.c */
void proto_block(rv_protocol *p, const char *event); /* event NULL: the block has no name; "data: " follows */
void proto_block_end(rv_protocol *p);
void proto_line(rv_protocol *p, const char *data);                    /* a whole block that is not JSON */
void proto_kv_opt(rv_protocol *p, const char *key, const char *text); /* left out where text is NULL */
/** rv_buf_check() for buffers of the encoder's own: a failure sticks in p->rc. */
void proto_keep(rv_protocol *p, const rv_buf *b);
const char *proto_member(json_object *event, const char *key); /* NULL: it is not there, or no text */
/** value as the text that clients are given: a text as it is, else compact JSON. */
void proto_value_text(rv_str json, rv_buf *out);
/** Sum of what was used in this stream; the end's where it says more. */
struct rv_usage proto_usage_sum(const rv_protocol *p, const struct rv_protocol_end *end);
const char *proto_end_message(const struct rv_protocol_end *end);
const char *proto_end_code(const struct rv_protocol_end *end);
bool proto_end_is_error(const struct rv_protocol_end *end);

/* track.c */
void proto_track_event(rv_protocol *p, json_object *event);
void proto_track_delta(rv_protocol *p, const struct rv_protocol_from *from, const struct rv_llm_delta *d);
void proto_track_broken(rv_protocol *p);
/** Before the end: calls that were cut off are complete, and those that never got one have a result. */
void proto_track_end(rv_protocol *p, const struct rv_protocol_end *end);

/* missed.c */
#define PROTO_NO_TEXT RV_FNV_START /* the hash of no text */
void proto_note_text(struct proto_owner *o, rv_str text);
/** Before the event of a reply: the rest, which no piece has told. */
void proto_track_missed(rv_protocol *p, json_object *event, const struct rv_protocol_reply *reply);

/* owners.c */
void proto_fail(rv_protocol *p, int rc); /* the first one sticks */
/** Whose an event or a piece is; made when it is not known yet. NULL: p->rc says why. */
struct proto_owner *proto_owner_of(rv_protocol *p, json_object *event);
struct proto_owner *proto_owner_of_reply(rv_protocol *p, const struct rv_protocol_from *from);
struct proto_call *proto_call_find(const rv_protocol *p, const char *visit, const char *id); /* NULL: it is settled */
/** A name that nothing else in this stream has: base, else base~2, ... NULL: no memory. Lives as long as p. */
const char *proto_name(rv_protocol *p, const char *base);
bool proto_was_said(const rv_protocol *p, rv_str text);
void proto_said(rv_protocol *p, rv_str text, bool begins_part);

/* agui.c: what both forms of AG-UI have */
void proto_agui_event(rv_protocol *p, const char *type); /* begins a block: {"type", "timestamp"? */
void proto_agui_event_end(rv_protocol *p);
#define PROTO_MAX_MESSAGE_ID 512 /* bytes: 300 of a run's id, two numbers and a word */
/** kind "": the text, "r": reasoning; n: which part of the reply, from 1. */
const char *proto_agui_message(const rv_protocol *p, const struct proto_owner *by, const char *kind, int n,
                               char out[PROTO_MAX_MESSAGE_ID]);
void proto_agui_result_head(rv_protocol *p, struct proto_call *c, rv_str result);
void proto_agui_action(rv_protocol *p, struct proto_owner *by, json_object *event);
void proto_agui_custom(rv_protocol *p, struct proto_owner *by, json_object *event);
void proto_agui_interrupt(rv_protocol *p, const struct proto_question *q);
void proto_agui_begin(rv_protocol *p);
void proto_agui_over(rv_protocol *p, const char *type); /* RUN_FINISHED, with both ids; left open */
/** A whole message. */
void proto_agui_answer(rv_protocol *p, const struct rv_protocol_end *end);

/* flat.c: the text of all speakers as one text */
void proto_flat_text(rv_protocol *p, struct proto_owner *by, rv_str text,
                     void (*say)(rv_protocol *p, const struct rv_origin *who, rv_str text));
void proto_flat_replied(rv_protocol *p, struct proto_owner *by, bool failed,
                        void (*say)(rv_protocol *p, const struct rv_origin *who, rv_str text));
void proto_flat_done(rv_protocol *p, struct proto_owner *by, bool failed,
                     void (*say)(rv_protocol *p, const struct rv_origin *who,
                                 rv_str text)); /* nothing of them follows */
void proto_flat_end(rv_protocol *p, const struct rv_protocol_end *end,
                    void (*say)(rv_protocol *p, const struct rv_origin *who, rv_str text));
/** The questions that were told, as text behind the answer. */
void proto_flat_questions(rv_protocol *p, void (*say)(rv_protocol *p, const struct rv_origin *who, rv_str text));
/* named.c: REMLight's named events; of OPENAI chunks that have them as `reeve_event` */
void proto_named_progress(rv_protocol *p, int step, const char *label, const char *name);
void proto_named_call(rv_protocol *p, const struct proto_call *c, const char *status, rv_str result,
                      json_object *event);
void proto_named_output(rv_protocol *p, struct proto_owner *by, json_object *event);
void proto_named_action(rv_protocol *p, struct proto_owner *by, json_object *event);
void proto_named_question(rv_protocol *p, const struct proto_question *q);
void proto_named_metadata(rv_protocol *p, const struct rv_protocol_end *end);
void proto_named_error(rv_protocol *p, const struct rv_protocol_end *end);
void proto_named_done(rv_protocol *p, const char *reason);

/* openai.c */
void proto_chunk_head(rv_protocol *p); /* {"id", "object", "created", "model"; left open */
/** The arguments of a tool call as a text that is valid JSON. */
void proto_arguments(const struct proto_call *c, rv_buf *out);
/** Is the client told of the call while it is made? Of those that the engine makes, where it asked for them. */
bool proto_call_is_told(const rv_protocol *p, const struct proto_call *c);
/** At the end: the calls that the client is to make. Before the run waits for them, each may go back to the model. */
void proto_tell_waiting(rv_protocol *p, const struct rv_protocol_end *end,
                        void (*tell)(rv_protocol *p, struct proto_call *c));
/** The arguments of a call, in parts that a block can have. */
void proto_each_part(rv_protocol *p, const struct proto_call *c,
                     void (*tell)(rv_protocol *p, const struct proto_call *c, rv_str words));

/* --- fault.c --- */
/** The result of a call that gave no data, of its event. */
void proto_write_failure(json_object *event, rv_buf *out);

#endif
