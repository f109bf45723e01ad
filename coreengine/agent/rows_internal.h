/* Shared by the files that make the rows of a turn: rows.c, row_calls.c, visible.c. */
#ifndef RV_ROWS_INTERNAL_H
#define RV_ROWS_INTERNAL_H

#include "coreengine/agent/agent_internal.h"

/* The rows that are being made. */
struct rows {
    const rv_visit *v; /* borrowed */
    enum rv_turn_status status;
    bool is_lean;           /* the turn is larger than what is kept of one: long values are left out */
    struct rv_turn *turn;   /* owned */
    struct rv_message row;  /* the one being made; its texts are copied when it ends */
    rv_buf calls, metadata; /* its JSON texts */
    rv_jw w;                /* on one of them */
    int64_t n;
    size_t visible_at; /* up to where `visible` has its rows */
    char id[RV_UUID_MAX], trace[RV_HASH_MAX], span[RV_HASH_MAX];
    char parent[RV_HASH_MAX]; /* what the id of the parent's call is shortened to */
};

/* rows.c */
void agent_row_begin(struct rows *r, enum rv_message_type type, int64_t at_us);
void agent_row_content(struct rows *r, rv_str text);
rv_jw *agent_row_json(struct rows *r,
                      rv_buf *text); /* its `calls` or `metadata` begins: an object, the caller ends it */
/** {name, id without its end. */
rv_jw *agent_row_call(struct rows *r, rv_str name, rv_str id);
/** The arguments of that call: a value that is nested too deep for a row is kept as {"raw": text}. */
RV_MUST_CHECK int agent_row_arguments(rv_jw *w, json_object *value, rv_err **err);
void agent_row_end(struct rows *r);

/* visible.c */
/** The row of the text before the calls of that message of the turn, if it has some that was shown. */
void agent_row_before_calls(struct rows *r, size_t turn);
/** Append the text that was shown to people but is not in such rows. */
void agent_rows_answer(const rv_visit *v, rv_buf *out);

/* row_calls.c */
/** Every call of the turn with its result, and what the agents that were asked did. */
RV_MUST_CHECK int agent_rows_calls(struct rows *r, rv_err **err);
/** The row of a result. */
void agent_row_response(struct rows *r, rv_str name, rv_str id, rv_str content, bool is_error);

#endif
