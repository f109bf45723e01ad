/* Turns on a loop that the caller runs: begun, told of, answered and cancelled without waiting. */
#include "tests/unit/chat/world.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define OWNER "test/0/1/1"

/* What on_turn was told, a line each; and what it does then. */
struct host {
    struct world w;
    uv_loop_t loop;
    rv_buf told;
    const char *next;                 /* message to begin from the callback; NULL: none */
    const struct rv_response *answer; /* to give from the callback when the turn waits; NULL: none */
};

static void on_turn(void *self, rv_chat *chat, const struct rv_chat_turn *turn, int rc, const rv_err *err)
{
    struct host *h = self;
    const char *next = h->next;

    if (rc < 0)
        rv_buf_printf(&h->told, "error %d: %s\n", rc, rv_err_text(err));
    else
        rv_buf_printf(&h->told, "%s %s: %.*s\n", turn->agent, rv_run_status_text(turn->status), RV_STR_ARG(turn->text));
    h->next = NULL;
    if (rc == 0 && turn->status == RV_RUN_INTERRUPTED && h->answer)
        ck_assert_int_eq(rv_chat_begin(chat, RV_STR_LIT(""), h->answer, NULL), 0);
    else if (next)
        ck_assert_int_eq(rv_chat_begin(chat, rv_str_of(next), NULL, NULL), 0);
}

static void host_init(struct host *h, const char *agent, const char *script, const char *const *files)
{
    rv_err *err = NULL;

    *h = (struct host){.told = RV_BUF_INIT(1 << 20)};
    world_init(&h->w, script, files);
    ck_assert_int_eq(uv_loop_init(&h->loop), 0);
    rv_engine_free(h->w.engine);
    const struct rv_engine_opts opts = {.loop = &h->loop, .store = h->w.store, .owner = OWNER};
    ck_assert_msg(rv_engine_new(&opts, &h->w.engine, &err) == 0, "%s", rv_kit_err_take(err));
    world_chat(&h->w, agent, NULL, "alice");
    h->w.opts.on_turn = on_turn;
    h->w.opts.self = h;
    h->w.opts.on_event = NULL;
    h->w.opts.on_delta = NULL;
    h->w.opts.on_piece = NULL;
    rv_chat_free(h->w.chat);
    ck_assert_int_eq(rv_chat_new(&h->w.opts, &h->w.chat, &err), 0);
}

static void host_run(struct host *h)
{
    ck_assert_int_eq(uv_run(&h->loop, UV_RUN_DEFAULT), 0);
}

static void host_fini(struct host *h)
{
    rv_chat_free(h->w.chat);
    h->w.chat = NULL;
    rv_engine_free(h->w.engine);
    h->w.engine = NULL;
    host_run(h);
    ck_assert_int_eq(uv_loop_close(&h->loop), 0);
    world_fini(&h->w);
    rv_buf_fini(&h->told);
}

START_TEST(a_turn_is_told_by_the_loop_and_the_next_begins_there)
{
    struct host h;
    rv_err *err = NULL;

    host_init(&h, "sample-agent", "models: {sample-agent: [{text: one}, {text: two}]}", NULL);
    h.next = "second";
    ck_assert_int_eq(rv_chat_begin(h.w.chat, RV_STR_LIT("first"), NULL, &err), 0);
    ck_assert_uint_eq(h.told.len, 0); /* nothing is told before it returns */
    ck_assert_int_eq(rv_chat_begin(h.w.chat, RV_STR_LIT("too soon"), NULL, &err), RV_E_STATE);
    rv_err_free(err);
    host_run(&h);
    ck_assert_str_eq(rv_buf_cstr(&h.told), "sample-agent completed: one\nsample-agent completed: two\n");
    char *rows = world_rows(&h.w, false);
    ck_assert_str_eq(rows, "user first\nassistant[sample-agent] one\nuser second\nassistant[sample-agent] two\n");
    free(rows);
    host_fini(&h);
}
END_TEST

static const char cleaner[] = "models:\n"
                              "  cleaner:\n"
                              "    - {text: I clean., tool_calls: [{id: c1, name: wipe, arguments: {}}]}\n"
                              "    - {text: clean}\n"
                              "tools: {wipe: {risk: destructive, description: d, calls: [{result: {n: 1}}]}}\n";
static const char *const cleaners[] = {"cleaner.yaml", "type: object\nname: cleaner\ndescription: d\ntools: [wipe]\n",
                                       NULL};

START_TEST(a_turn_that_waits_is_answered_from_the_callback)
{
    const struct rv_response yes = {.has_approved = true, .approved = true};
    struct host h;

    host_init(&h, "cleaner", cleaner, cleaners);
    h.answer = &yes;
    ck_assert_int_eq(rv_chat_begin(h.w.chat, RV_STR_LIT("clean up"), NULL, NULL), 0);
    host_run(&h);
    ck_assert_str_eq(rv_buf_cstr(&h.told), "cleaner interrupted: \ncleaner completed: I clean.\n\nclean\n");
    host_fini(&h);
}
END_TEST

/* The turn that waits is ended by a run of its own before the message is heard. */
START_TEST(a_message_ends_the_turn_that_waits)
{
    struct host h;

    host_init(&h, "cleaner", cleaner, cleaners);
    h.next = "never mind";
    ck_assert_int_eq(rv_chat_begin(h.w.chat, RV_STR_LIT("clean up"), NULL, NULL), 0);
    host_run(&h);
    ck_assert_str_eq(rv_buf_cstr(&h.told), "cleaner interrupted: \ncleaner completed: clean\n");
    char *rows = world_rows(&h.w, false);
    ck_assert_ptr_nonnull(strstr(rows, "user(cancelled) clean up\n"));
    ck_assert_ptr_nonnull(strstr(rows, "user never mind\nassistant[cleaner] clean\n"));
    free(rows);
    host_fini(&h);
}
END_TEST

START_TEST(a_router_is_asked_without_waiting)
{
    struct host h;

    host_init(&h, "router",
              "models:\n"
              "  router: [{json: {agent: sample-agent, reason: asked for, confidence: 0.9}}]\n"
              "  sample-agent: [{text: at your service}]\n",
              NULL);
    ck_assert_int_eq(rv_chat_begin(h.w.chat, RV_STR_LIT("help"), NULL, NULL), 0);
    host_run(&h);
    ck_assert_str_eq(rv_buf_cstr(&h.told), "sample-agent completed: at your service\n");
    host_fini(&h);
}
END_TEST

START_TEST(a_turn_is_cancelled_and_told_as_cancelled)
{
    struct host h;

    host_init(&h, "sample-agent", "models: {sample-agent: [{text: late, delay_ms: 60000}]}", NULL);
    ck_assert_int_eq(rv_chat_begin(h.w.chat, RV_STR_LIT("hi"), NULL, NULL), 0);
    rv_engine_cancel_all(h.w.engine);
    host_run(&h);
    ck_assert_str_eq(rv_buf_cstr(&h.told), "sample-agent cancelled: \n");
    host_fini(&h);
}
END_TEST

/* Freeing a chat in the middle of a turn leaves the loop without work. */
START_TEST(a_chat_that_is_freed_tells_nothing)
{
    struct host h;

    host_init(&h, "sample-agent", "models: {sample-agent: [{text: late, delay_ms: 60000}]}", NULL);
    ck_assert_int_eq(rv_chat_begin(h.w.chat, RV_STR_LIT("hi"), NULL, NULL), 0);
    rv_chat_free(h.w.chat);
    h.w.chat = NULL;
    host_run(&h);
    ck_assert_uint_eq(h.told.len, 0);
    host_fini(&h);
}
END_TEST

Suite *loop_suite(void)
{
    Suite *s = suite_create("loop");
    TCase *t = tcase_create("loop");

    tcase_add_test(t, a_turn_is_told_by_the_loop_and_the_next_begins_there);
    tcase_add_test(t, a_turn_that_waits_is_answered_from_the_callback);
    tcase_add_test(t, a_message_ends_the_turn_that_waits);
    tcase_add_test(t, a_router_is_asked_without_waiting);
    tcase_add_test(t, a_turn_is_cancelled_and_told_as_cancelled);
    tcase_add_test(t, a_chat_that_is_freed_tells_nothing);
    suite_add_tcase(s, t);
    return s;
}
