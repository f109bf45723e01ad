/* The rows that are kept of a turn. */
#include <stdio.h>
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

/* Proves p8.16: Rows of a turn in their order, with their columns
 * Proves p8.W7: The row has what people were shown; of a structured output its JSON, with the words that were said
 * beside it
 * Proves p8.W32: Results are kept as JSON
 * Proves remlight.12: Arguments and results are kept each in its row; nothing is shortened in the store
 * Proves remlight.19/5 */
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
    else if (getenv("SHOW"))
        printf("== %s\n%s\n%s\n", s->name, rows, rv_buf_cstr(&r->events));
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
