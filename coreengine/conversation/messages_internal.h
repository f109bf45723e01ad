/* Shared by the files of messages only: texts as they may be shown, calls of tools as rows have them, and a history
 * while it is put together. */
#ifndef RV_MESSAGES_INTERNAL_H
#define RV_MESSAGES_INTERNAL_H

#include "coreengine/conversation/messages.h"

#define MESSAGE_MAX_TEXT   RV_JSON_MAX_BYTES /* of a row that is shown: more than any model takes in */
#define MESSAGE_MAX_RESULT ((size_t)1 << 20) /* of a tool, as the engine keeps them; so are arguments */
#define MESSAGE_MAX_ID     41                /* of a call, with its NUL: one provider refuses more than 40 bytes */
#define MESSAGE_MAX_NAME   65                /* of a tool, with its NUL */
#define MESSAGE_MAX_DIGITS 21                /* of an int64_t, with its NUL */

/* messages.c */
#define MESSAGE_POINTS_PER_TOKEN 4               /* p8-data 4.4 */
bool conversation_message_is_blank(rv_str text); /* what wires take for no text */
/** Returns text; when text is not UTF-8, writes its valid parts to room and returns those. */
rv_str conversation_message_clean(rv_str text, rv_buf *room);
/** Decimal digits with a NUL; the number of digits. */
size_t conversation_message_digits(int64_t i, char out[MESSAGE_MAX_DIGITS]);

/* history_calls.c: what a row says of a call. Anything may be missing or wrong. */
struct call_parts {
    char id[MESSAGE_MAX_ID];     /* legal; "": none */
    char name[MESSAGE_MAX_NAME]; /* legal; "": none */
    rv_buf arguments;            /* text of a JSON object, if asked for */
    bool has_arguments;          /* the row has the member, whatever is in it */
};
void conversation_message_call_fini(struct call_parts *c);

/* An item that is shown: a text, or a call of a tool with its result. */
struct shown {
    const char *role; /* of a text, static; NULL: a call */
    rv_buf text;      /* or the result */
    struct call_parts call;
    bool is_error, is_one_row;
    int64_t seq;        /* of the row: of the call's, where there is one */
    int64_t created_us; /* of a text's row */
    size_t run;         /* calls that stand directly behind each other have the same; 0: a call on its own */
    size_t age;         /* of the call: greater is older */
    int64_t tokens;     /* set aside for it */
};

/* A result whose call is still to come: it stands further back. */
struct waiting {
    char id[MESSAGE_MAX_ID], name[MESSAGE_MAX_NAME];
    struct shown *shown; /* one of the items; borrowed; NULL: it did not fit, so its call is left out, too */
};

struct rv_history {
    char *session; /* owned */
    struct rv_history_opts opts;
    struct shown **items; /* newest first; owned */
    size_t n_items, cap_items;
    struct waiting *waiting; /* newest first; owned */
    size_t n_waiting, cap_waiting;
    int64_t tokens, n_rows; /* of the limits, used up or set aside; only counted where there is a limit */
    int64_t n_shown;        /* rows */
    size_t n_runs, n_calls; /* so far */
    bool is_in_run;         /* the row before was a call */
    bool failed_has_part;   /* rows of a failed turn were seen, behind its question */
    bool is_full;
    json_object *moments; /* borrowed; NULL: none */
};

/* history.c */
/** A row that is not shown. As p8 counts, it takes room all the same. */
RV_MUST_CHECK int history_pass(struct rv_history *h, const struct rv_message *row);
bool history_fits(const struct rv_history *h, int64_t tokens);
/** What does not fit. Where all rows count it ends the walk, as any other; else it is just left out. */
void history_leave_out(struct rv_history *h);
/** One more item, for one row: counted, empty, the caller's to fill (on failure, too). */
RV_MUST_CHECK int history_push(struct rv_history *h, int64_t tokens, struct shown **out, rv_err **err);
void history_charge(struct rv_history *h, int64_t tokens); /* one more row of an item */
void history_drop(struct rv_history *h, struct shown *s);  /* an item of one row, and what was set aside for it */

/* history_calls.c: rows of tools */
RV_MUST_CHECK int history_add_call(struct rv_history *h, const struct rv_message *row, rv_err **err);
RV_MUST_CHECK int history_add_response(struct rv_history *h, const struct rv_message *row, rv_err **err);
RV_MUST_CHECK int history_add_tool(struct rv_history *h, const struct rv_message *row, rv_err **err);

#endif
