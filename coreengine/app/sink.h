/* Decides which text of a turn is shown to people while it arrives. Pure: pieces in, decisions out.
 *
 * When agents ask each other, `child_text` of the asking agent decides whose text is shown. final: that of all agents,
 * but no reply of the asking agent that only repeats what was shown; text that may become such a repetition is held
 * until that is known. child: once an asked agent has spoken and has not failed, the text of the asking agent is not
 * shown any more. parent: text of asked agents is not shown. both: all text is shown. An agent with structured output
 * has data and no text, and text of the agents that it asks belongs to that data. Each reply is a part; parts are kept
 * apart. When agents speak at the same time, the reply of one is shown, and the others are held until it is over. White
 * space at the borders of parts is not shown, all other text once, in the order in which its agent says it. */
#ifndef RV_APP_SINK_H
#define RV_APP_SINK_H

#include "coreengine/agent/agent.h"

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
void rv_chat_sink_turn(struct rv_chat_sink *s); /* a turn begins */
/** A run of the turn begins: origins of earlier ones are gone. */
void rv_chat_sink_run(struct rv_chat_sink *s);
/* The agent that is about to ask a model. */
struct rv_chat_speaker {
    const struct rv_origin *who; /* NULL: the stage's own agent */
    bool is_structured;
    int child_text; /* enum rv_child_text */
    bool resets;    /* child_text_resets */
};
/* who: NULL is the stage's own agent. When memory is short more is shown than is kept, never less. */
void rv_chat_sink_asks(struct rv_chat_sink *s, const struct rv_chat_speaker *speaker);
struct rv_chat_shown rv_chat_sink_piece(struct rv_chat_sink *s, const struct rv_origin *who, int64_t call_id,
                                        rv_str text);
/** Words that were held and can be shown now; to be asked for until there are none, whenever something is over. False:
 *  none. Borrowed until the next call. */
bool rv_chat_sink_next(struct rv_chat_sink *s, const struct rv_origin **who, struct rv_chat_shown *out);
/** The turn is over: no more text comes. */
void rv_chat_sink_end(struct rv_chat_sink *s);
/** The reply is over; failed: the text of the reply is not kept. */
void rv_chat_sink_replied(struct rv_chat_sink *s, const struct rv_origin *who, bool failed);
/** An agent that was asked is done. */
void rv_chat_sink_done(struct rv_chat_sink *s, const struct rv_origin *who, bool failed);

#endif
