/* Shared by the files that write the rows of a turn: rows.c, row_calls.c, visible.c. */
#ifndef RV_ROWS_INTERNAL_H
#define RV_ROWS_INTERNAL_H

#include "coreengine/agent/agent_internal.h"

/* The rows that are being written. */
struct rows {
    const rv_visit *v;
    enum rv_turn_status status;
    bool is_lean; /* the turn is larger than what is kept of one: long values are left out */
    rv_buf text;  /* JSON objects with commas between */
    rv_jw w;
    int64_t n;
    size_t visible_at; /* up to where what was said has its rows */
    char trace[RV_HASH_MAX], span[RV_HASH_MAX];
};

/* rows.c */
void rv_row_begin(struct rows *r, enum rv_message_type type, int64_t at_us);
void rv_row_end(struct rows *r);

/* visible.c */
/** The row of what was said before the calls of that message of the turn, if something was. */
void rv_row_words(struct rows *r, size_t turn);
/** Append the text that was shown to people but is not in such rows. */
void rv_rows_answer(const rv_visit *v, rv_buf *out);

/* row_calls.c */
/** Every call of the turn with its result, and what the agents that were asked did. */
RV_MUST_CHECK int rv_rows_calls(struct rows *r, rv_err **err);
/** The row of a result. call: {name, id}. */
void rv_row_response(struct rows *r, json_object *call, rv_str content, bool is_error);

#endif
