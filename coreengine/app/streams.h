/* Streams of clients, kept as lines while they go on: what a client was told, in the order in which it was told, in
 * groups that are in the store before a client is sent anything of them (coreengine/store/clients.h). Each line is one
 * of
 *
 *   open {...}    what the stream is made with; the first line
 *   17            the event 17 of the run's journal
 *   {...}         a piece of a model's answer, or an event that no journal has
 *   again 17      another process goes on: the journal has the events up to 17, and calls under way are made again
 *   end {...}     how it ended; the last line
 *
 * A writer has a thread with a handle of the store of its own, which writes what has come from all streams meanwhile as
 * one transaction. Nothing here waits for it. */
#ifndef RV_APP_STREAMS_H
#define RV_APP_STREAMS_H

#include "coreengine/agent/agent.h"
#include "coreengine/app/workspace.h"
#include "coreengine/store/store.h"

/** The stream of a run without a chat: its lines are numbers of events, pieces and "again". Its id is out. */
#define RV_APP_STREAM_ID (RV_STORE_MAX_ID + 16) /* room for that id: of the run, with an ending */
void rv_app_stream_of_run(const char *run, char out[RV_APP_STREAM_ID]);

#define RV_APP_STREAM_KEPT_US  (5 * RV_US_PER_MIN) /* how long a stream is kept beyond its end, when nothing is said */
#define RV_APP_STREAM_NOT_KEPT INT64_C(-1)         /* it goes with its end, or soon after */

typedef struct rv_app_streams rv_app_streams; /* the writer */
typedef struct rv_app_stream rv_app_stream;   /* one stream that is written here; used by one thread */

struct rv_app_streams_opts {
    const struct rv_app *app; /* borrowed */
    int64_t
        kept_us; /* streams are kept that long beyond their end; 0: RV_APP_STREAM_KEPT_US; or RV_APP_STREAM_NOT_KEPT */
};
RV_MUST_CHECK int rv_app_streams_new(const struct rv_app_streams_opts *opts, rv_app_streams **out, rv_err **err);
/** Writes what has come, and ends the thread. All streams are closed before. NULL is fine. */
void rv_app_streams_free(rv_app_streams *w);

struct rv_app_stream_opts {
    const char *id;    /* of the stream's row; copied */
    const char *owner; /* as the row has it; copied */
    bool is_whole;     /* no client waits for pieces: they are written with the event behind them */
    /** On the writer's thread, in order: these lines are in the store (rc 0; part borrowed, its lines are those of
     * `lines`, which may be taken with rv_buf_steal()); or they are not, and nothing more will be (part NULL). more:
     * that of another stream is called at once behind it. Calls nothing of this header. May be NULL. */
    void (*on_kept)(void *self, const struct rv_stream_part *part, rv_buf *lines, bool more, int rc, const rv_err *err);
    void *self; /* borrowed; outlives the stream */
};
RV_MUST_CHECK int rv_app_stream_new(rv_app_streams *w, const struct rv_app_stream_opts *opts, rv_app_stream **out,
                                    rv_err **err);
/** line: of docs/reference/events.md. */
void rv_app_stream_on_event(rv_app_stream *st, rv_str line);
/** Adjacent pieces of one text become one. stage: its name; may be NULL. */
void rv_app_stream_on_delta(rv_app_stream *st, const char *stage, const struct rv_delta_from *from,
                            const struct rv_llm_delta *d);
/** word: "open", "end"; "": a line that is JSON already. */
void rv_app_stream_note(rv_app_stream *st, const char *word, rv_str json);
void rv_app_stream_on_again(rv_app_stream *st, int64_t seq);
/** Bytes that are not in the store yet. */
size_t rv_app_stream_waiting(rv_app_stream *st);
/** on_kept is not called any more. What has come is written, and then: */
enum rv_app_stream_close {
    RV_APP_STREAM_LEAVES, /* no end: another process goes on with the turn, or this one in another way */
    RV_APP_STREAM_GIVES,  /* any process may go on: the row has the owner RV_APP_STREAM_NOBODY */
    RV_APP_STREAM_ENDS,   /* the stream has ended; one that lacks lines is given */
};
#define RV_APP_STREAM_NOBODY "-"
void rv_app_stream_close(rv_app_stream *st, enum rv_app_stream_close how);

/* --- Decides which text of a turn is shown to people while it arrives. Pure: pieces in, decisions out.
 *
 * When agents ask each other, `child_text` of the asking agent decides whose text is shown. final: that of all agents,
 * but no reply of the asking agent that only repeats what was shown; text that may become such a repetition is held
 * until that is known. child: once an asked agent has spoken and has not failed, the text of the asking agent is not
 * shown any more. parent: text of asked agents is not shown. both: all text is shown. An agent with structured output
 * has data and no text, and text of the agents that it asks belongs to that data. Each reply is a part; parts are kept
 * apart. When agents speak at the same time, the reply of one is shown, and the others are held until it is over. White
 * space at the borders of parts is not shown, all other text once, in the order in which its agent says it. --- */
struct rv_chat_shown {
    bool is_shown;    /* false: nothing to be written now */
    bool begins_part; /* a blank line comes before it */
    bool new_speaker; /* the speaker has changed since the piece before, or this is the first piece */
    rv_str gap, text; /* to be written in this order; gap is white space that was held back, borrowed until the next
                         piece */
};

struct rv_chat_author;
struct rv_chat_part; /* words that are held */
struct rv_chat_said;
/* The replies of asked agents in a turn: a reply of the agent that asked may repeat them. */
struct rv_chat_told {
    struct rv_chat_said *items; /* owned */
    size_t n, cap;
};
struct rv_chat_sink {
    struct rv_chat_author *authors; /* owned */
    size_t n_authors, cap_authors;
    struct rv_chat_part *parts; /* in the order in which they began; owned */
    size_t n_parts, cap_parts;
    struct rv_chat_told told;     /* by asked agents, in this run */
    bool is_taken;                /* the reply of `last` is shown, the others are held */
    rv_buf spoken;                /* of the part that was handed out last */
    const struct rv_origin *last; /* whose the last piece was; borrowed until the run ends */
    int64_t last_call;            /* 0: the next piece begins a part in any case */
    bool has_said;                /* in this turn */
    rv_buf gap, held;             /* white space: handed out, held back until words follow it */
};
#define RV_CHAT_SINK_MAX_GAP 4096 /* bytes of white space in a row; more are not shown */

void rv_chat_sink_init(struct rv_chat_sink *s);
void rv_chat_sink_fini(struct rv_chat_sink *s);
void rv_chat_sink_on_turn(struct rv_chat_sink *s); /* a turn begins */
/** A run of the turn begins: origins of earlier ones are gone. */
void rv_chat_sink_on_run(struct rv_chat_sink *s);
/* The agent that is about to ask a model. */
struct rv_chat_speaker {
    const struct rv_origin *who; /* borrowed from the run; NULL: the stage's own agent */
    bool is_structured;
    int child_text; /* enum rv_child_text */
    bool resets;    /* child_text_resets */
};
/* who: NULL is the stage's own agent. When memory is short more is shown than is kept, never less. */
void rv_chat_sink_on_ask(struct rv_chat_sink *s, const struct rv_chat_speaker *speaker);
struct rv_chat_shown rv_chat_sink_on_piece(struct rv_chat_sink *s, const struct rv_origin *who, int64_t call_id,
                                           rv_str text);
/** Words that were held and can be shown now; to be asked for until there are none, whenever something is over. False:
 *  none. Borrowed until the next call. */
bool rv_chat_sink_next(struct rv_chat_sink *s, const struct rv_origin **who, struct rv_chat_shown *out);
/** The turn is over: no more text comes. */
void rv_chat_sink_on_end(struct rv_chat_sink *s);
/** The reply is over; failed: the text of the reply is not kept. */
void rv_chat_sink_on_reply(struct rv_chat_sink *s, const struct rv_origin *who, bool failed);
/** An agent that was asked is done. */
void rv_chat_sink_on_done(struct rv_chat_sink *s, const struct rv_origin *who, bool failed);

#endif
