/* Each allocation of what makes the bytes of clients from lines of streams fails once: no crash, no leak, and the code
 * says no memory. */
#include "coreengine/server/pieces_internal.h"
#include "coreengine/server/view_internal.h"
#include "tests/kit/fault.h"
#include "tests/kit/fault_loop.h"
#include "tests/kit/suites.h"

#define LINES "1\n{\"type\":\"delta\",\"kind\":\"text\",\"stage\":\"a\",\"call_id\":1,\"text\":\"Good\"}\n2\n"

static int follow_deltas(void)
{
    static const rv_str event = RV_STR_LIT("{\"seq\":1,\"type\":\"llm_call_start\"}");
    const struct rv_stream_part part = {.n = 1, .first = 1, .lines = RV_STR_LIT(LINES)};
    const struct srv_piece_cursor from = {0, 0};
    struct srv_pieces *p = srv_pieces_new(&from, false);
    rv_buf out = RV_BUF_INIT(4096);
    int rc = p ? 0 : RV_E_NOMEM;

    for (int64_t seq = 1; seq <= 3 && rc == 0; seq++)
        rc = srv_pieces_event(p, seq, event, NULL);
    if (rc == 0)
        rc = srv_pieces_lines(p, &part, &out, NULL);
    if (rc == 0)
        rc = srv_pieces_flush(p, &out, NULL);
    srv_pieces_free(p);
    rv_buf_fini(&out);
    return rc;
}

/* The same lines as a chat: behind the first line, with an event that the protocol tells. */
static int view_agui(void)
{
    static const rv_str event = RV_STR_LIT("{\"seq\":1,\"type\":\"stage_started\",\"stage\":\"a\",\"visit\":1}");
    const struct rv_protocol_opts opts = {
        .kind = RV_PROTOCOL_AGUI, .run_id = "r", .session_id = "s", .model = "m", .created_us = 1};
    struct srv_view *v = srv_view_new(NULL);
    rv_buf lines = RV_BUF_INIT(4096), out = RV_BUF_INIT(65536);
    int rc = v ? 0 : RV_E_NOMEM;

    rv_buf_puts(&lines, "open ");
    srv_view_open_write(&opts, 1, 0, &lines);
    rv_buf_puts(&lines, "\n" LINES);
    if (rc == 0)
        rc = rv_buf_check(&lines, "lines", NULL);
    const struct rv_stream_part part = {.n = 1, .first = 1, .at_us = 1, .lines = rv_buf_str(&lines)};
    for (int64_t seq = 1; seq <= 2 && rc == 0; seq++)
        rc = srv_view_event(v, seq, event, NULL, NULL);
    if (rc == 0)
        rc = srv_view_lines(v, &part, &out, NULL);
    srv_view_free(v);
    rv_buf_fini(&lines);
    rv_buf_fini(&out);
    return rc;
}

static const struct rv_fault_scenario scenarios[] = {{"follow_deltas", follow_deltas}, {"view_agui", view_agui}};

START_TEST(every_allocation_may_fail)
{
    rv_fault_each(&scenarios[_i], 3);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fault_server");
    TCase *c = tcase_create("loops");

    tcase_add_loop_test(c, every_allocation_may_fail, 0, RV_COUNT(scenarios));
    suite_add_tcase(s, c);
    return rv_kit_run(s);
}
