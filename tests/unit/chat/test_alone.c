/* One turn of a session at a time, over processes. */
#include "tests/unit/chat/world.h"

#include <stdlib.h>
#include <string.h>

#define SESSION "5a0f7c1e-0000-4000-8000-000000000001"
#define SCRIPT  "models: {sample-agent: [{text: one}, {text: two}, {text: three}, {text: four}]}"
#define OTHER   "elsewhere/0/1/1"

static const struct rv_store_scope alice = {NULL, "alice"};

static void say_fails(struct world *w, const char *why)
{
    struct rv_chat_turn turn;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_chat_send(w->chat, RV_STR_LIT("hi"), NULL, &turn, &err), RV_E_STATE);
    char *text = rv_kit_err_take(err);
    ck_assert_msg(strstr(text, why), "%s", text);
    free(text);
}

static void says(struct world *w, const char *answer)
{
    struct rv_chat_turn turn;
    rv_err *err = NULL;
    int rc = rv_chat_send(w->chat, RV_STR_LIT("hi"), NULL, &turn, &err);

    ck_assert_msg(rc == 0, "%s", rv_kit_err_take(err));
    ck_assert_str_eq(turn.text.ptr, answer);
}

static void take_for(struct world *w, const char *owner, int64_t us, bool wanted)
{
    char by[RV_STORE_MAX_ID + 1];
    const int64_t now_us = rv_engine_now_us(w->engine);
    const struct rv_turn_place place = {SESSION, owner, now_us, now_us + us, NULL};
    bool is_mine;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_store_take_turn(w->store, &alice, &place, &is_mine, by, &err), 0);
    ck_assert_msg(is_mine == wanted, "%s has it", by);
}

static void take(struct world *w, const char *owner, bool wanted)
{
    take_for(w, owner, 60 * RV_US_PER_S, wanted);
}

static void leave(struct world *w, const char *owner)
{
    rv_err *err = NULL;

    ck_assert_int_eq(
        rv_store_leave_turn(w->store, &alice, &(const struct rv_turn_place){SESSION, owner, 0, 0, NULL}, &err), 0);
}

START_TEST(a_turn_that_begins_elsewhere_has_the_place)
{
    char dead[RV_OWNER_MAX];
    struct world w;

    world_init(&w, SCRIPT, NULL);
    world_chat(&w, "sample-agent", SESSION, "alice");
    take(&w, OTHER, true);
    say_fails(&w, "session \"" SESSION "\" has a turn under way");
    say_fails(&w, "wait for its end, or cancel its run");
    take(&w, OTHER, true); /* it was not taken away */
    leave(&w, OTHER);
    says(&w, "one");
    take(&w, OTHER, true); /* the turn has left it */
    leave(&w, OTHER);
    rv_owner_make_name(dead);
    *strrchr(dead, '/') = '\0'; /* the mark */
    memcpy(strrchr(dead, '/'), "/1", 3);
    take(&w, dead, true);
    says(&w, "two");                                /* its process is gone */
    world_chat(&w, "sample-agent", SESSION, "bob"); /* another session of that id */
    take(&w, OTHER, true);
    says(&w, "three");
    world_fini(&w);
}
END_TEST

START_TEST(a_message_waits_for_the_place)
{
    struct world w;

    world_init(&w, SCRIPT, NULL);
    world_chat(&w, "sample-agent", SESSION, "alice");
    w.opts.waits_us = 60 * RV_US_PER_S;
    world_watch(&w, &w.opts);
    take_for(&w, OTHER, 60 * RV_US_PER_MS, true);
    says(&w, "one");
    take(&w, OTHER, true);
    w.opts.waits_us = 2 * RV_US_PER_MS;
    world_watch(&w, &w.opts);
    say_fails(&w, "has a turn under way");
    world_fini(&w);
}
END_TEST

/* A run of the bundle of the turn before. */
static void add_run(struct world *w, const char *id, const char *bundle, const char *owner, int64_t lease_us)
{
    const struct rv_record first = {.seq = 1, .body = RV_STR_LIT("{}")};
    char hash[RV_HASH_MAX];
    struct rv_store_new_run run = {.id = id,
                                   .user = "alice",
                                   .session = SESSION,
                                   .pipeline = "chat",
                                   .bundle = bundle ? bundle : hash,
                                   .status = owner ? RV_RUN_RUNNING : RV_RUN_READY,
                                   .stage = "a",
                                   .owner = owner,
                                   .now_us = rv_engine_now_us(w->engine),
                                   .lease_until_us = owner ? rv_engine_now_us(w->engine) + lease_us : 0,
                                   .records = &first,
                                   .n_records = 1};
    rv_err *err = NULL;

    ck_assert_int_eq(rv_store_put_blob(w->store, RV_STR_LIT("no bundle"), hash, &err), 0);
    ck_assert_int_eq(rv_store_create_run(w->store, &run, &err), 0);
}

static void other_run(struct world *w, const char *id, const char *bundle, int64_t lease_us)
{
    add_run(w, id, bundle, OTHER, lease_us);
}

/* A worker begins it later. */
START_TEST(a_run_that_is_queued_stays)
{
    const struct rv_store_scope all = {0};
    struct rv_run_row row, queued;
    struct world w;
    rv_err *err = NULL;

    world_init(&w, SCRIPT, NULL);
    world_chat(&w, "sample-agent", SESSION, "alice");
    struct rv_chat_turn t = world_say(&w, "hi");
    ck_assert_int_eq(rv_store_get_run(w.store, &all, t.run_id, &row, &err), 0);
    add_run(&w, "env_queued", row.bundle, NULL, 0);
    says(&w, "two");
    ck_assert_int_eq(rv_store_get_run(w.store, &all, "env_queued", &queued, &err), 0);
    ck_assert_int_eq(queued.status, RV_RUN_READY);
    ck_assert_int_eq(queued.fence, 1); /* no process has taken it */
    rv_run_row_fini(&queued);
    rv_run_row_fini(&row);
    world_fini(&w);
}
END_TEST

START_TEST(a_turn_that_goes_on_elsewhere_is_waited_for)
{
    const struct rv_store_scope all = {0};
    struct rv_run_row row;
    struct world w;
    rv_err *err = NULL;

    world_init(&w, SCRIPT, NULL);
    world_chat(&w, "sample-agent", SESSION, "alice");
    struct rv_chat_turn t = world_say(&w, "hi");
    ck_assert_int_eq(rv_store_get_run(w.store, &all, t.run_id, &row, &err), 0);
    other_run(&w, "env_pipeline", NULL, 60 * RV_US_PER_S); /* no turn: it goes on beside */
    says(&w, "two");
    other_run(&w, "env_other", row.bundle, 60 * RV_US_PER_S);
    say_fails(&w, "has a turn under way: run \"env_other\"");
    take(&w, OTHER, true); /* who was refused leaves the place */
    leave(&w, OTHER);
    ck_assert_int_eq(rv_store_release(w.store, "env_other", 1, &err), 0);
    says(&w, "three");
    rv_run_row_fini(&row);
    world_fini(&w);
}
END_TEST

/* An answer and a message that come to two processes: one of them. */
START_TEST(an_answer_begins_in_the_place_of_a_turn)
{
    const char *files[] = {"cleaner.yaml", "type: object\nname: cleaner\ndescription: d\ntools: [wipe]\n", NULL};
    const struct rv_response yes = {.has_approved = true, .approved = true};
    struct rv_chat_turn turn;
    struct world w;
    rv_err *err = NULL;

    world_init(
        &w,
        "models: {cleaner: [{text: I clean., tool_calls: [{id: c1, name: wipe, arguments: {}}]}, {text: clean}]}\n"
        "tools: {wipe: {risk: destructive, description: d, calls: [{result: {n: 1}}]}}\n",
        files);
    world_chat(&w, "cleaner", SESSION, "alice");
    ck_assert_int_eq(world_say(&w, "clean up").status, RV_RUN_INTERRUPTED);
    take(&w, OTHER, true); /* a turn that waits has no place */
    ck_assert_int_eq(rv_chat_answer(w.chat, &yes, &turn, &err), RV_E_STATE);
    char *why = rv_kit_err_take(err);
    ck_assert_msg(strstr(why, "has a turn under way"), "%s", why);
    free(why);
    err = NULL;
    leave(&w, OTHER);
    ck_assert_msg(rv_chat_check_answer(w.chat, &yes, &err) == 0, "%s", rv_kit_err_take(err));
    ck_assert_msg(rv_chat_answer(w.chat, &yes, &turn, &err) == 0, "%s", rv_kit_err_take(err));
    ck_assert_str_eq(turn.text.ptr, "I clean.\n\nclean");
    take(&w, OTHER, true);
    world_fini(&w);
}
END_TEST

Suite *alone_suite(void)
{
    Suite *s = suite_create("alone");
    TCase *tc = tcase_create("alone");

    tcase_add_test(tc, a_turn_that_begins_elsewhere_has_the_place);
    tcase_add_test(tc, a_message_waits_for_the_place);
    tcase_add_test(tc, an_answer_begins_in_the_place_of_a_turn);
    tcase_add_test(tc, a_run_that_is_queued_stays);
    tcase_add_test(tc, a_turn_that_goes_on_elsewhere_is_waited_for);
    suite_add_tcase(s, tc);
    return s;
}
