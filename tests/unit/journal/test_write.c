/* Making a journal, taking it over, being refused, and what a store shows of a run without reading its journal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/journal/journal_internal.h"
#include "tests/unit/journal/live.h"
#include "tests/unit/journal/suites.h"

static rv_store *store;

static void open_store(void)
{
    if (rv_store_open("memory:", NULL, &store, NULL) < 0)
        rv_kit_die("no store");
}

static void close_store(void)
{
    rv_store_close(store);
    store = NULL;
}

static struct rv_run_row row_of(const char *run)
{
    const struct rv_store_scope scope = live_scope();
    struct rv_run_row row;

    ck_assert_int_eq(rv_store_get_run(store, &scope, run, &row, NULL), 0);
    return row;
}

START_TEST(a_new_run_is_owned_and_under_way)
{
    struct live *l = live_new(store, live_pipelines[0], 1, RV_UNSET);
    struct rv_run_row row = row_of(LIVE_RUN);

    ck_assert_str_eq(row.user, "ada");
    ck_assert_str_eq(row.session, "s");
    ck_assert_str_eq(row.pipeline, "t");
    ck_assert_str_eq(row.owner, "here/1");
    ck_assert_str_eq(row.stage, "start");
    ck_assert_int_eq(row.status, RV_RUN_RUNNING);
    ck_assert_int_eq(row.n_records, 1);
    ck_assert_int_eq(row.lease_until_us, LIVE_T0 + RV_LEASE_DEFAULT_US);
    ck_assert_int_eq(rv_journal_lease_until_us(l->j), row.lease_until_us);
    ck_assert_str_eq(rv_journal_run(l->j), LIVE_RUN);
    rv_journal_on_renewed(l->j, 5);
    ck_assert_int_eq(rv_journal_lease_until_us(l->j), 5);
    rv_run_row_fini(&row);
    live_free(l);
    row = row_of(LIVE_RUN);
    ck_assert_ptr_null(row.owner); /* given up: it is not over */
    rv_run_row_fini(&row);
}
END_TEST

START_TEST(a_run_can_be_made_for_others)
{
    struct live *l = live_new(store, live_pipelines[0], 1, RV_UNSET);
    const struct rv_envelope_seed seed = {.raw_input = RV_STR_LIT("hi")};
    struct rv_rand_state bits;
    rv_envelope *env = NULL;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_envelope_new(&seed, rv_rand_seeded(&bits, 9), LIVE_T0, &env, NULL), 0);
    struct rv_journal_start s = {.bundle = live_bundle(store),
                                 .pipeline = l->p,
                                 .begin = {.mode = RV_UNSET},
                                 .env = env,
                                 .parent = LIVE_RUN,
                                 .parent_seq = 1,
                                 .now_us = LIVE_T0};
    ck_assert_int_eq(rv_journal_create(store, &s, NULL, NULL), 0);
    struct rv_run_row row = row_of(rv_envelope_fields(env)->envelope_id);
    ck_assert_ptr_null(row.owner);
    ck_assert_int_eq(row.status, RV_RUN_READY);
    ck_assert_str_eq(row.parent, LIVE_RUN);
    rv_run_row_fini(&row);
    live_must_say(rv_journal_create(store, &s, NULL, &err), RV_E_EXISTS, &err, "begin the journal of run");
    rv_envelope_free(env);
    live_free(l);
}
END_TEST

/* Another run of the pipeline of l, "env_b", that nothing has happened in. */
static void make_run(struct live *l, const struct rv_journal_begin *begin)
{
    json_object *state = rv_kit_json("{'envelope_id':'env_b'}");
    rv_envelope *env = NULL;
    struct rv_rand_state bits;

    ck_assert_int_eq(rv_envelope_load(state, rv_rand_seeded(&bits, 9), LIVE_T0, &env, NULL), 0);
    json_object_put(state);
    const struct rv_journal_start s = {
        .bundle = live_bundle(store), .pipeline = l->p, .env = env, .now_us = LIVE_T0, .begin = *begin};
    ck_assert_int_eq(rv_journal_create(store, &s, NULL, NULL), 0);
    rv_envelope_free(env);
}

/* graph 8.2: stages inside of stages have the stages that lead to them in front. */
START_TEST(a_begin_names_stages_inside_of_stages)
{
    static const char text[] = "name: t\nagents:\n  - {name: a, set: {v: 1}}\n  - {name: sub, pipeline: in.yaml}\n";
    char *dir = rv_kit_tmpdir(), *file = rv_kit_path(dir, "in.yaml");
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;
    struct rv_journal_begin got,
        begin = {.mode = RV_UNSET, .has_script = true, .scripted_inner = rv_kit_json("['sub/x']")};
    rv_buf body = RV_BUF_INIT(4096);
    int64_t now_us = 0;

    rv_kit_write(file, "name: in\nagents: [{name: x, set: {v: 1}}]\n");
    ck_assert_int_eq(rv_pipeline_parse(rv_str_of(text), "t.yaml", dir, findings, &p, NULL), 0);
    ck_assert(p->is_sound);
    for (int i = 0; i < 2; i++) {
        rv_buf_clear(&body);
        journal_record_put_begin(&begin, p, 1, &body);
        const struct rv_record record = {.kind = RV_RECORD_BEGIN, .body = rv_buf_str(&body)};
        int rc = journal_record_get_begin(&record, p, &got, &now_us, NULL);
        ck_assert_int_eq(rc, i == 0 ? 0 : RV_E_STATE);
        if (rc == 0) {
            ck_assert_str_eq(json_object_to_json_string_ext(got.scripted_inner, JSON_C_TO_STRING_PLAIN),
                             "[\"sub\\/x\"]");
            rv_journal_begin_fini(&got);
        }
        json_object_put(begin.scripted_inner);
        begin.scripted_inner = rv_kit_json("['sub/gone']");
    }
    rv_journal_begin_fini(&begin);
    rv_buf_fini(&body);
    rv_pipeline_free(p);
    rv_findings_free(findings);
    free(file);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

START_TEST(a_begin_is_read_as_it_was_written)
{
    struct live *l = live_new(store, live_pipelines[4], 1, RV_UNSET);
    const struct rv_store_scope scope = live_scope();
    const bool scripted[6] = {false, true, false, false, true, false};
    struct rv_journal_begin got, begin = {.mode = RV_MODE_PARALLEL,
                                          .use_mocks = true,
                                          .has_script = true,
                                          .answers_from_script = true,
                                          .is_script_blind = true,
                                          .max_parallel = 3,
                                          .scripted = scripted,
                                          .script_at = rv_kit_json("{'models':{'a':[1,3]},'answers':1}")};

    make_run(l, &begin);
    ck_assert_int_eq(rv_journal_read_begin(store, &scope, "env_b", l->p, &got, NULL), 0);
    ck_assert_ptr_null(got.scripted_inner);
    ck_assert_int_eq(got.rules, RV_RULES_LAST);
    ck_assert_int_eq(got.mode, RV_MODE_PARALLEL);
    ck_assert(got.use_mocks && got.has_script && got.answers_from_script && got.is_script_blind);
    ck_assert_uint_eq(got.max_parallel, 3);
    for (size_t i = 0; i < RV_COUNT(scripted); i++)
        ck_assert_int_eq(got.scripted[i], scripted[i]);
    ck_assert(rv_json_equal(got.script_at, begin.script_at));
    rv_journal_begin_fini(&got);
    rv_journal_begin_fini(&begin);
    ck_assert_int_eq(rv_journal_read_begin(store, &scope, "none", l->p, &got, NULL), RV_E_NOT_FOUND);
    live_free(l);
}
END_TEST

START_TEST(rules_of_before_are_kept)
{
    struct live *l = live_new(store, live_pipelines[4], 1, RV_UNSET);
    const struct rv_store_scope scope = live_scope();
    const struct rv_journal_begin begin = {.rules = RV_RULES_1, .mode = RV_UNSET};
    struct rv_journal_begin got;

    make_run(l, &begin);
    ck_assert_int_eq(rv_journal_read_begin(store, &scope, "env_b", l->p, &got, NULL), 0);
    ck_assert_int_eq(got.rules, RV_RULES_1);
    rv_journal_begin_fini(&got);
    live_free(l);
}
END_TEST

START_TEST(an_end_frees_the_run_and_nobody_takes_it_then)
{
    const struct rv_store_scope scope = live_scope();
    struct live *l = live_new(store, live_pipelines[0], 1, RV_UNSET);
    rv_journal *j = NULL;
    rv_err *err = NULL;

    live_start(l);
    struct rv_run_row row = row_of(LIVE_RUN);
    ck_assert_int_eq(row.status, RV_RUN_RUNNING);
    ck_assert_str_eq(row.stage, "a");
    rv_run_row_fini(&row);
    ck_assert_int_eq(live_reply(l, "{\"v\":1}", NULL), 0);
    row = row_of(LIVE_RUN);
    ck_assert_int_eq(row.status, RV_RUN_COMPLETED);
    ck_assert_ptr_null(row.owner);
    ck_assert_int_eq(row.n_records, 4);
    rv_run_row_fini(&row);
    live_must_say(rv_journal_open(store, &scope, LIVE_RUN,
                                  &(struct rv_journal_claim){.owner = "there/2", .now_us = l->now_us}, &j, &err),
                  RV_E_STATE, &err, "run \"env_live\" is over (completed)");
    live_free(l);
}
END_TEST

START_TEST(who_lost_the_run_writes_nothing_more)
{
    const struct rv_store_scope scope = live_scope();
    struct live *l = live_new(store, live_pipelines[1], 1, RV_UNSET);
    int64_t late = LIVE_T0 + RV_LEASE_DEFAULT_US + 1;
    rv_journal *other = NULL;
    rv_err *err = NULL;

    live_start(l);
    live_must_say(rv_journal_open(store, &scope, LIVE_RUN,
                                  &(struct rv_journal_claim){.owner = "there/2", .now_us = LIVE_T0 + 1}, &other, &err),
                  RV_E_STATE, &err, "here/1");
    ck_assert_int_eq(rv_journal_open(store, &scope, LIVE_RUN,
                                     &(struct rv_journal_claim){.owner = "there/2", .now_us = late}, &other, NULL),
                     0);
    ck_assert_int_eq(rv_journal_seq(other), 4); /* begin, start, the hook's started, owner */
    live_must_say(live_reply(l, "{}", &err), RV_E_STATE, &err, "there/2");
    struct rv_run_row row = row_of(LIVE_RUN);
    ck_assert_int_eq(row.n_records, 4);
    ck_assert_str_eq(row.owner, "there/2");
    rv_run_row_fini(&row);
    const struct rv_event again = {.kind = RV_EVENT_CANCEL, .now_us = late};
    live_must_say(rv_journal_step(l->j, &again, &l->fx, l->run, &err), RV_E_STATE, &err, "recover the run");
    live_free(l); /* and takes the new owner nothing away */
    row = row_of(LIVE_RUN);
    ck_assert_str_eq(row.owner, "there/2");
    rv_run_row_fini(&row);
    rv_journal_free(other);
}
END_TEST

START_TEST(an_owner_that_is_gone_is_not_waited_for)
{
    const struct rv_store_scope scope = live_scope();
    struct live *l = live_new(store, live_pipelines[0], 1, RV_UNSET);
    const struct rv_store_claim c = {.now_us = LIVE_T0, .until_us = LIVE_T0 + 100, .owner = NULL};
    struct rv_store_claim dead = c;
    char me[RV_OWNER_MAX], gone[RV_OWNER_MAX];
    rv_journal *j = NULL;
    int64_t fence;

    rv_owner_make_name(me);
    snprintf(gone, sizeof gone, "%.*s/4000000/1", (int)(strchr(strchr(me, '/') + 1, '/') - me), me);
    dead.owner = gone;
    dead.dead = "here/1";
    ck_assert_int_eq(rv_store_claim(store, &scope, LIVE_RUN, &dead, &fence, NULL), 0);
    ck_assert_int_eq(rv_journal_open(store, &scope, LIVE_RUN,
                                     &(struct rv_journal_claim){.owner = me, .now_us = LIVE_T0 + 1}, &j, NULL),
                     0);
    rv_journal_free(j);
    live_free(l);
}
END_TEST

/* A record of an event, as some owner would have written it. */
static void append_event(const char *body, int64_t seq, int64_t fence)
{
    const struct rv_record r = {.seq = seq, .kind = RV_RECORD_EVENT, .body = rv_str_of(body)};
    const struct rv_store_append a = {.run = LIVE_RUN,
                                      .fence = fence,
                                      .records = &r,
                                      .n_records = 1,
                                      .now_us = LIVE_T0,
                                      .status = RV_RUN_RUNNING,
                                      .stage = "a"};

    ck_assert_int_eq(rv_store_append(store, &a, NULL), 0);
}

static void take_over_times(int n)
{
    const struct rv_store_scope scope = live_scope();

    for (int i = 0; i < n; i++) {
        rv_journal *j = NULL;
        ck_assert_int_eq(rv_journal_open(store, &scope, LIVE_RUN,
                                         &(struct rv_journal_claim){.owner = "there/2", .now_us = LIVE_T0}, &j, NULL),
                         0);
        rv_journal_free(j);
    }
}

static int64_t takeovers(void)
{
    const struct rv_store_scope scope = live_scope();
    struct rv_run_row row = row_of(LIVE_RUN);
    int64_t n = -1;

    ck_assert_int_eq(rv_journal_count_takeovers(store, &scope, &row, &n, NULL), 0);
    rv_run_row_fini(&row);
    return n;
}

START_TEST(takeovers_without_progress_are_counted)
{
    struct live *l = live_new(store, live_pipelines[0], 1, RV_UNSET);
    struct rv_run_row row;

    live_start(l);
    live_free(l);
    ck_assert_int_eq(takeovers(), 0);
    take_over_times(3);
    ck_assert_int_eq(takeovers(), 3);
    row = row_of(LIVE_RUN);
    append_event("{\"event\":\"recover\",\"now_us\":1}", row.n_records + 1, row.fence);
    rv_run_row_fini(&row);
    take_over_times(67); /* more than is read at once */
    ck_assert_int_eq(takeovers(), 70);
    row = row_of(LIVE_RUN);
    append_event("{\"event\":\"tool_done\",\"now_us\":1}", row.n_records + 1, row.fence);
    rv_run_row_fini(&row);
    ck_assert_int_eq(takeovers(), 0);
    take_over_times(1);
    ck_assert_int_eq(takeovers(), 1);
}
END_TEST

START_TEST(a_paused_run_shows_what_it_waits_for)
{
    const struct rv_store_scope scope = live_scope();
    struct live *l = live_new(store,
                              "name: t\nmodels: {r: scripted}\nagents:\n"
                              "  - {name: a, has_llm: true, model_role: r, routing_rules: "
                              "[{condition: v, value: 1, target: clarification}]}\n",
                              1, RV_UNSET);
    rv_journal *j = NULL;
    rv_err *err = NULL;

    live_start(l);
    ck_assert_int_eq(live_reply(l, "{\"v\":1,\"clarification_question\":\"which?\"}", NULL), 0);
    struct rv_run_row row = row_of(LIVE_RUN);
    ck_assert_int_eq(row.status, RV_RUN_INTERRUPTED);
    ck_assert_int_eq(row.n_pending, 1);
    ck_assert_ptr_null(row.owner);
    ck_assert_int_eq(row.expires_us, rv_envelope_interrupt(rv_run_envelope(l->run)).expires_at_us);
    rv_run_row_fini(&row);
    const struct rv_event cancel = {.kind = RV_EVENT_CANCEL, .now_us = l->now_us};
    live_must_say(rv_journal_step(l->j, &cancel, &l->fx, l->run, &err), RV_E_STATE, &err, "open its journal again");
    ck_assert_int_eq(rv_journal_open(store, &scope, LIVE_RUN,
                                     &(struct rv_journal_claim){.owner = "there/2", .now_us = l->now_us}, &j, NULL),
                     0);
    ck_assert_int_eq(rv_journal_seq(j), 4); /* no OWNER record: an answer follows */
    rv_journal_free(l->j);
    l->j = j;
    const struct rv_event answer = {
        .kind = RV_EVENT_ANSWER, .now_us = ++l->now_us, .response = {.text = RV_STR_LIT("that")}};
    ck_assert_int_eq(live_step(l, &answer, NULL), 0);
    row = row_of(LIVE_RUN);
    ck_assert_int_eq(row.n_pending, 0);
    ck_assert_int_eq(row.status, RV_RUN_RUNNING);
    rv_run_row_fini(&row);
    live_free(l);
}
END_TEST

START_TEST(who_answers_by_itself_keeps_the_run_through_a_pause)
{
    struct live *l = live_new(store, live_pipelines[0], 1, RV_UNSET);

    rv_journal_hold(l->j, true);
    live_start(l);
    ck_assert_int_eq(live_reply(l, "{\"outcome\":\"clarify\"}", NULL), 0);
    struct rv_run_row row = row_of(LIVE_RUN);
    ck_assert_int_eq(row.status, RV_RUN_INTERRUPTED);
    ck_assert_int_eq(row.n_pending, 1);
    ck_assert_str_eq(row.owner, "here/1");
    rv_run_row_fini(&row);
    const struct rv_event answer = {
        .kind = RV_EVENT_ANSWER, .now_us = ++l->now_us, .response = {.text = RV_STR_LIT("that")}};
    ck_assert_int_eq(live_step(l, &answer, NULL), 0);
    ck_assert_int_eq(live_reply(l, "{\"outcome\":\"clarify\"}", NULL), 0);
    live_check_at(l, rv_journal_seq(l->j), false);
    live_free(l);
    row = row_of(LIVE_RUN);
    ck_assert_ptr_null(row.owner);
    rv_run_row_fini(&row);
}
END_TEST

/* --- pending rows of stages that ran side by side --- */

struct rows {
    rv_buf text;
};

static int add_row(void *self, const struct rv_pending *p, rv_err **err)
{
    struct rows *r = self;
    json_object *body = NULL;
    const char *id = "", *stage = "";

    (void)err;
    ck_assert_int_eq(rv_json_parse(p->body, NULL, &body, NULL), 0);
    ck_assert(rv_json_get_text(body, "id", &id) && rv_json_get_text(body, "stage", &stage));
    ck_assert_str_eq(id, p->id);
    ck_assert_str_eq(stage, p->stage);
    rv_buf_printf(&r->text, "%s:%s:%.*s ", p->stage, p->kind, RV_STR_ARG(p->text));
    json_object_put(body);
    return 0;
}

/* Proves 8.6/pending */
START_TEST(interrupts_that_are_queued_are_listed_behind_the_pending_one)
{
    const struct rv_store_scope scope = live_scope();
    struct rows r = {.text = RV_BUF_INIT(4096)};
    struct live *l = live_new(store,
                              "name: t\ndefault_run_mode: parallel\nmodels: {r: scripted}\nagents:\n"
                              "  - {name: a, stage_order: 1, has_llm: true, model_role: r}\n"
                              "  - {name: b, stage_order: 2, has_llm: true, model_role: r}\n"
                              "  - {name: c, stage_order: 3, has_llm: true, model_role: r}\n",
                              1, RV_UNSET);

    live_start(l);
    ck_assert_int_eq(live_reply(l, "{\"outcome\":\"clarify\",\"clarification_question\":\"a?\"}", NULL), 0);
    ck_assert_int_eq(live_reply(l, "{\"outcome\":\"confirm\",\"confirmation_message\":\"b!\"}", NULL), 0);
    ck_assert_int_eq(live_reply(l, "{\"outcome\":\"clarify\",\"clarification_question\":\"c?\"}", NULL), 0);
    ck_assert_int_eq(rv_store_list_pending(store, &scope, LIVE_RUN, add_row, &r, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&r.text), "a:clarification:a? b:confirmation:b! c:clarification:c? ");
    rv_buf_fini(&r.text);
    live_free(l);
}
END_TEST

/* The run moved on to b before it waited; the row says who asked. */
START_TEST(a_question_of_a_hook_is_listed_with_the_stage_that_asked)
{
    const struct rv_store_scope scope = live_scope();
    struct rows r = {.text = RV_BUF_INIT(4096)};
    struct live *l = live_new(store,
                              "name: t\nmodels: {r: scripted}\nagents:\n"
                              "  - {name: a, stage_order: 1, has_llm: true, model_role: r, post_process: x.post, "
                              "default_next: b}\n"
                              "  - {name: b, stage_order: 2, has_llm: true, model_role: r}\n",
                              1, RV_UNSET);

    live_start(l);
    ck_assert_int_eq(live_reply(l, "{}", NULL), 0);
    ck_assert_int_eq(live_reply(l,
                                "{\"envelope\":{\"interrupt_pending\":true,\"interrupt\":{\"kind\":"
                                "\"clarification\",\"id\":\"int_1\",\"question\":\"which?\",\"data\":{},"
                                "\"created_at\":\"2023-11-14T22:13:20Z\"}}}",
                                NULL),
                     0);
    ck_assert_int_eq(rv_run_status(l->run), RV_RUN_INTERRUPTED);
    ck_assert_str_eq(rv_envelope_fields(rv_run_envelope(l->run))->current_stage, "b");
    ck_assert_int_eq(rv_store_list_pending(store, &scope, LIVE_RUN, add_row, &r, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&r.text), "a:clarification:which? ");
    rv_buf_fini(&r.text);
    live_free(l);
}
END_TEST

/* --- what is too long for a row --- */

static char *long_text(const char *before, size_t n, const char *after)
{
    rv_buf b = RV_BUF_INIT(LIVE_MAX_TEXT);

    rv_buf_puts(&b, before);
    for (size_t i = 0; i < n; i++)
        rv_buf_putc(&b, 'x');
    rv_buf_puts(&b, after);
    return rv_buf_steal(&b, NULL);
}

static int look_at_row(void *self, const struct rv_pending *p, rv_err **err)
{
    (void)err;
    ck_assert_uint_le(p->text.len, 65536);
    ck_assert_uint_le(p->body.len, RV_STORE_MAX_QUESTION);
    ck_assert_ptr_nonnull(memmem(p->body.ptr, p->body.len, "\"shortened\":true", 16));
    ++*(int *)self;
    return 0;
}

START_TEST(a_long_question_and_a_long_answer_are_no_trouble)
{
    const struct rv_store_scope scope = live_scope();
    char *question = long_text("{\"outcome\":\"clarify\",\"clarification_question\":\"", 3 << 20, "\"}");
    char *answer = long_text("", 2 << 20, "");
    struct live *l = live_new(store, live_pipelines[0], 1, RV_UNSET);
    int n_rows = 0;

    live_start(l);
    ck_assert_int_eq(live_reply(l, question, NULL), 0);
    ck_assert_int_eq(rv_run_status(l->run), RV_RUN_INTERRUPTED);
    ck_assert_int_eq(rv_store_list_pending(store, &scope, LIVE_RUN, look_at_row, &n_rows, NULL), 0);
    ck_assert_int_eq(n_rows, 1);
    live_hand_over(l);
    const struct rv_event ev = {
        .kind = RV_EVENT_ANSWER, .now_us = ++l->now_us, .response = {.text = rv_str_of(answer)}};
    ck_assert_int_eq(live_step(l, &ev, NULL), 0);
    live_check_at(l, rv_journal_seq(l->j), false);
    free(question);
    free(answer);
    live_free(l);
}
END_TEST

/* The longest texts that a wire lets through, of bytes that take the most room: cut off, or complete. Sanitizers take
 * half a minute for them, and see as much in an eighth. */
START_TEST(whatever_a_model_said_is_kept)
{
    const size_t n = RV_LLM_MAX_REPLY / rv_kit_stride(8);
    char *partial = malloc(n), *calls = malloc(4 * n), *opaque = malloc(n / 2);
    struct live *l = live_new(store, live_pipelines[2], 1, RV_UNSET);

    ck_assert(partial && calls && opaque);
    memset(partial, 1, n);
    memset(calls, '\\', 4 * n);
    memset(opaque, '"', n / 2);
    live_start(l);
    struct rv_event ev = {
        .kind = RV_EVENT_LLM_DONE, .now_us = ++l->now_us, .call_id = l->calls[0].id, .llm = RV_LLM_ANSWER_NONE};
    if (_i == 0) {
        ev.failed = true;
        ev.error = RV_STR_LIT("cut");
        ev.reply = (rv_str){partial, n};
    } else {
        ev.llm.tool_calls = (rv_str){calls, 4 * n};
        ev.llm.opaque = (rv_str){opaque, n / 2};
    }
    ck_assert_int_eq(live_step(l, &ev, NULL), 0);
    live_check_at(l, rv_journal_seq(l->j), false);
    live_free(l);
    free(partial);
    free(calls);
    free(opaque);
}
END_TEST

START_TEST(a_stage_that_a_hook_made_up_may_be_long)
{
    char *text = long_text("{\"envelope\":{\"current_stage\":\"", 5000, "\"}}");
    struct live *l = live_new(store, live_pipelines[1], 1, RV_UNSET);

    live_start(l);
    while (l->n_calls > 0)
        ck_assert_int_eq(live_reply(l, l->calls[0].kind == RV_EFFECT_CALL_HOOK ? text : "{\"v\":1}", NULL), 0);
    live_check_at(l, rv_journal_seq(l->j), false);
    free(text);
    live_free(l);
}
END_TEST

TCase *write_case(void)
{
    TCase *tc = tcase_create("write");

    tcase_add_checked_fixture(tc, open_store, close_store);
    tcase_add_test(tc, a_new_run_is_owned_and_under_way);
    tcase_add_test(tc, a_run_can_be_made_for_others);
    tcase_add_test(tc, a_begin_names_stages_inside_of_stages);
    tcase_add_test(tc, a_begin_is_read_as_it_was_written);
    tcase_add_test(tc, rules_of_before_are_kept);
    tcase_add_test(tc, an_end_frees_the_run_and_nobody_takes_it_then);
    tcase_add_test(tc, who_lost_the_run_writes_nothing_more);
    tcase_add_test(tc, an_owner_that_is_gone_is_not_waited_for);
    tcase_add_test(tc, takeovers_without_progress_are_counted);
    tcase_add_test(tc, a_paused_run_shows_what_it_waits_for);
    tcase_add_test(tc, who_answers_by_itself_keeps_the_run_through_a_pause);
    tcase_add_test(tc, interrupts_that_are_queued_are_listed_behind_the_pending_one);
    tcase_add_test(tc, a_question_of_a_hook_is_listed_with_the_stage_that_asked);
    tcase_add_test(tc, a_long_question_and_a_long_answer_are_no_trouble);
    tcase_add_loop_test(tc, whatever_a_model_said_is_kept, 0, 2);
    tcase_add_test(tc, a_stage_that_a_hook_made_up_may_be_long);
    return tc;
}
