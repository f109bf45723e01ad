/* Whole sessions as a model sees them again, with both policies, compared with tests/golden/history. A session's file
 * has the rows as a table of a store would give them. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/messages/rows.h"
#include "tests/unit/messages/suites.h"

#define MAX_ROWS 64

static const char *const sessions[] = {"chat", "tools", "delegated", "damaged", "one-row-tools", "tight"};

/* A member that is a text is taken as it is, anything else as JSON. */
static rv_str view(json_object *row, const char *key)
{
    json_object *value = NULL;

    if (!json_object_object_get_ex(row, key, &value) || !value)
        return (rv_str){NULL, 0};
    return json_object_is_type(value, json_type_string) ? rv_json_str(value) : rv_str_of(json_object_get_string(value));
}

static struct rv_message read_row(json_object *row)
{
    struct rv_message m = {.token_count = RV_UNSET};

    if (!rv_json_get_text(row, "type", &m.type))
        m.type = NULL;
    if (!rv_json_get_text(row, "parent_call_id", &m.parent_call_id))
        m.parent_call_id = NULL;
    if (!rv_json_get_int(row, "token_count", &m.token_count))
        m.token_count = RV_UNSET;
    m.content = view(row, "content");
    m.has_content = m.content.ptr != NULL;
    m.tool_calls = view(row, "tool_calls");
    m.metadata = view(row, "metadata");
    return m;
}

/* Proves p8.10 */
START_TEST(sessions_are_shown_as_in_the_golden_files)
{
    char path[128], name[128];
    struct rv_message rows[MAX_ROWS];
    struct rv_history_opts o;
    char *text;
    json_object *session, *list;
    size_t n;

    snprintf(path, sizeof path, "tests/golden/history/sessions/%s.json", sessions[_i]);
    text = rv_kit_read(path);
    session = rv_kit_json(text);
    free(text);
    ck_assert_int_eq(rv_history_opts_read(rv_json_get_obj(session, "options"), &o, NULL), 0);
    list = rv_json_get_arr(session, "rows");
    n = json_object_array_length(list);
    ck_assert_uint_le(n, MAX_ROWS);
    for (size_t i = 0; i < n; i++)
        rows[i] = read_row(json_object_array_get_idx(list, i));
    for (int policy = 0; policy < RV_N_REPLAY_POLICIES; policy++) {
        rv_buf got = RV_BUF_INIT(1 << 20);
        json_object *messages;
        o.policy = policy;
        messages = history_of(rows, n, &o, false, NULL);
        rv_json_write_pretty(messages, &got);
        rv_buf_putc(&got, '\n');
        snprintf(name, sizeof name, "history/%s.%s.json", sessions[_i],
                 rv_replay_policy_text((enum rv_replay_policy)policy));
        ck_assert_msg(rv_kit_golden(name, rv_buf_cstr(&got)), "%s differs", name);
        json_object_put(messages);
        rv_buf_fini(&got);
    }
    json_object_put(session);
}
END_TEST

TCase *golden_case(void)
{
    TCase *c = tcase_create("golden");

    tcase_add_loop_test(c, sessions_are_shown_as_in_the_golden_files, 0, RV_COUNT(sessions));
    return c;
}
