/* Rows as tests write them, and histories made of them. */
#ifndef RV_TESTS_MESSAGES_ROWS_H
#define RV_TESTS_MESSAGES_ROWS_H

#include <check.h>

#include "coreengine/conversation/conversation.h"
#include "tests/kit/kit.h"

/* Rows without a number get their place, from 1. */
#define VIEW(text)                                                                                                     \
    {                                                                                                                  \
        (text), sizeof(text) - 1                                                                                       \
    }
#define ROW(kind, text)                                                                                                \
    {                                                                                                                  \
        .type = (kind), .has_content = true, .content = VIEW(text), .token_count = RV_UNSET                            \
    }
#define USER(text)      ROW("user", text)
#define ASSISTANT(text) ROW("assistant", text)
#define CALL(json)                                                                                                     \
    {                                                                                                                  \
        .type = "tool_call", .tool_calls = VIEW(json)                                                                  \
    }
#define RESPONSE(json, text)                                                                                           \
    {                                                                                                                  \
        .type = "tool_response", .tool_calls = VIEW(json), .has_content = true, .content = VIEW(text),                 \
        .token_count = RV_UNSET                                                                                        \
    }
#define TOOL(json, text)                                                                                               \
    {                                                                                                                  \
        .type = "tool", .metadata = VIEW(json), .has_content = true, .content = VIEW(text), .token_count = RV_UNSET    \
    }

/** How many rows there are: those with a type. */
size_t count_rows(const struct rv_message *rows, size_t max);
/** The messages of rows that are given oldest first; n_read, if given, gets how many were read until the history was
 * full. insists: the rest is added all the same. You own them. */
json_object *history_of(const struct rv_message *rows, size_t n, const struct rv_history_opts *o, bool insists,
                        size_t *n_read);
/** One line for each message: "user hi", "assistant hi + id:name{}", "tool id name result" ("tool!": an error).
 * Appended. */
void write_messages(json_object *messages, rv_buf *out);

#endif
