/* The rows that are kept of a turn. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/turns/room.h"

/* The id of a chained call follows from the run; in tables it is %C. */
static void name_chain(char *rows)
{
    for (char *at = strstr(rows, "\"id\":\""); at; at = strstr(at + 6, "\"id\":\"")) {
        char *end = strchr(at + 6, '"');
        if (end - (at + 6) != 36)
            continue;
        memcpy(at + 6, "%C", 2);
        memmove(at + 8, end, strlen(end) + 1);
    }
}

static void check_columns(struct room *r)
{
    const struct scene *s = r->scene;
    char *columns = room_columns(r), *at = strstr(columns, "\"words\":\"");

    if (s->n_errors >= 0)
        ck_assert_msg(room_count(columns, "\"is_error\":true") == (size_t)s->n_errors, "%s:\n%s", s->name, columns);
    if (s->words)
        ck_assert_msg(room_count(columns, "\"words\":") == (s->words[0] ? 1 : 0), "%s:\n%s", s->name, columns);
    if (s->words && s->words[0])
        ck_assert_msg(at && strncmp(at + 9, s->words, strlen(s->words)) == 0 && at[9 + strlen(s->words)] == '"',
                      "%s:\n%s", s->name, columns);
    free(columns);
}

/* The end of the run. Who reads its events can tell a limit from a provider's failure (p8 W2). */
static void check_end(struct room *r, const char *rows)
{
    const struct scene *s = r->scene;
    const char *status = rv_run_status_text(rv_run_status(r->run)), *events = rv_buf_cstr(&r->events);
    char *state = room_state(r);

    if (s->status)
        ck_assert_msg(strcmp(status, s->status) == 0, "%s: %s", s->name, status);
    if (s->says)
        ck_assert_msg(strstr(rows, s->says) || strstr(room_output(r, "errors"), s->says) || strstr(state, s->says),
                      "%s:\n%s\n%s", s->name, rows, state);
    if (s->n_requests >= 0)
        ck_assert_msg(room_count(events, "\"type\":\"llm_call_start\"") == (size_t)s->n_requests, "%s:\n%s", s->name,
                      events);
    if (s->reason)
        ck_assert_msg(strstr(room_output(r, "terminal_reason"), s->reason), "%s: %s", s->name,
                      room_output(r, "terminal_reason"));
    if (s->reason && (strstr(s->says, "limits.") || strstr(s->says, "max_")))
        ck_assert_msg(strstr(events, "\"error_type\":\"LimitError\""), "%s: %s", s->name, events);
    free(state);
}

/* Proves p8.16: Rows of a turn in their order, with their columns
 * Proves p8.W7: The row has what people were shown; of a structured output its JSON, with the words that were said
 * beside it
 * Proves p8.W32: Results are kept as JSON
 * Proves remlight.12: Arguments and results are kept each in its row; nothing is shortened in the store
 * Proves remlight.19/5
 * Proves p8.W2: Limits of document, stage and settings hold wherever the agent works; the error has a type of its
 * own and names the key
 * Proves remlight.19/16: Below an agent, too: depth, repeats, model calls, money and time are bounded and shared;
 * tokens are bounded for each agent by itself
 * Proves p8.8
 * Proves p8.W23 */
START_TEST(a_turn_becomes_these_rows) /* p8 16, 17; remlight 10, 12 */
{
    const struct scene *s = room_scene_at(_i);
    struct room *r = room_new(s, NULL);

    room_start(r);
    room_go(r);
    char *rows = room_rows(r);
    name_chain(rows);
    if (s->rows)
        ck_assert_msg(strcmp(rows, s->rows) == 0, "%s\n%s\nwanted:\n%s", s->name, rows, s->rows);
    if (s->rows_have)
        ck_assert_msg(strstr(rows, s->rows_have), "%s:\n%s", s->name, rows);
    if (s->n_errors >= 0) /* each call that is not made has its error */
        ck_assert_msg(room_count(rows, "tool_call[") + room_count(rows, "tool_call<") ==
                          room_count(rows, "tool_response[") + room_count(rows, "tool_response<"),
                      "%s:\n%s", s->name, rows);
    check_end(r, rows);
    check_columns(r);
    free(rows);
    room_free(r);
}
END_TEST

Suite *rows_suite(void)
{
    Suite *s = suite_create("rows");
    TCase *tc = tcase_create("rows");

    tcase_add_loop_test(tc, a_turn_becomes_these_rows, 0, room_count_scenes());
    suite_add_tcase(s, tc);
    return s;
}
