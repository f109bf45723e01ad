/* What a step adds to sessions is kept with the step or not at all. */
#include "tests/contract/store/world.h"

#define MAX_TURNS 4

/* An append with turns to r1 or another run, and what it borrows. */
struct step {
    rv_arena *room;
    struct rv_record record;
    struct rv_turn turns[MAX_TURNS];
    struct rv_message rows[MAX_TURNS][WORLD_ROWS];
    struct rv_store_append a;
};

static void step_init(struct step *st, const char *run, int64_t seq)
{
    memset(st, 0, sizeof *st);
    st->room = rv_arena_new(1 << 16);
    st->a = world_append(run, 1, &st->record, seq, "step");
    st->a.turns = st->turns;
}

static struct rv_turn *step_turn(struct step *st, const char *session, const char *prefix, const char *text)
{
    struct rv_turn *turn = &st->turns[st->a.n_turns];

    ck_assert_uint_lt(st->a.n_turns, MAX_TURNS);
    turn->session = session;
    turn->rows = st->rows[st->a.n_turns++];
    turn->n_rows = world_rows(turn->rows, st->room, prefix, text);
    return turn;
}

static void step_fini(struct step *st)
{
    rv_arena_free(st->room);
}

/* A step of one turn. */
static int keep(struct world *w, rv_store *s, const char *run, int64_t seq, const char *session, const char *prefix,
                const char *text)
{
    struct step st;
    int rc;

    step_init(&st, run, seq);
    step_turn(&st, session, prefix, text);
    rc = rv_store_append(s, &st.a, &w->err);
    step_fini(&st);
    return rc;
}

static void make_run_of(struct world *w, const char *id, const char *tenant, const char *user)
{
    struct rv_store_new_run run = world_run(w, id);

    run.tenant = tenant;
    run.user = user;
    OK(rv_store_create_run(w->s, &run, &w->err));
}

/* Proves p8-data.4.3: A turn is written as a whole, and twice is once */
START_TEST(a_turn_makes_its_session_and_adds_to_it)
{
    struct world world, *w = &world;
    struct step st;
    struct rv_turn *turn;
    struct rv_session_row row;

    world_open(w, _i);
    make_run(w, "r1");
    step_init(&st, "r1", 2);
    turn = step_turn(&st, "s1", "a", "user:fourfour assistant:four");
    turn->agent_name = "aide";
    turn->rows[0].run_id = "another";
    OK(rv_store_append(w->s, &st.a, &w->err));
    step_fini(&st);
    MESSAGES("s1", "1:user=fourfour 2:assistant=four");
    SESSION("s1", "chat-s1 chat 3 2 {}");
    OK(rv_store_get_session(w->s, &(struct rv_store_scope){NULL, "u"}, "s1", &row, &w->err));
    ck_assert_str_eq(row.agent_name, "aide");
    ck_assert_int_eq(row.created_us, T0 + 2);
    ck_assert_int_eq(row.updated_us, T0 + 2);
    rv_session_row_fini(&row);
    OK(keep(w, w->s, "r1", 3, "s1", "b", "user:again assistant:there"));
    MESSAGES("s1", "1:user=fourfour 2:assistant=four 3:user=again 4:assistant=there");
    OK(rv_store_get_session(w->s, &operator_scope, "s1", &row, &w->err));
    ck_assert_int_eq(row.created_us, T0 + 2);
    ck_assert_int_eq(row.updated_us, T0 + 3);
    rv_session_row_fini(&row);
    RECORDS("r1", "1:one 2:step 3:step");
    world_close(w);
}
END_TEST

static int see_run_of(void *self, const struct rv_message *m, rv_err **err)
{
    return see_id(self, m->run_id ? m->run_id : "-", err);
}

START_TEST(a_message_knows_the_run_that_wrote_it)
{
    struct world world, *w = &world;
    struct seen seen = SEEN_INIT;
    struct step st;

    world_open(w, _i);
    make_run(w, "r1");
    step_init(&st, "r1", 2);
    step_turn(&st, "s1", "a", "user:x assistant:y")->rows[0].run_id = "parent";
    OK(rv_store_append(w->s, &st.a, &w->err));
    step_fini(&st);
    OK(add_rows(w, "s1", "b", "user:z"));
    OK(rv_store_read_messages(w->s, &operator_scope, &(const struct rv_messages_of){"s1", NULL}, see_run_of, &seen,
                              &w->err));
    SEEN(&seen, "parent r1 -");
    world_close(w);
}
END_TEST

/* Proves p8-data.4.1 */
START_TEST(a_turn_may_name_its_session_and_change_its_metadata)
{
    struct world world, *w = &world;
    struct step st;
    struct rv_turn *first, *second;

    world_open(w, _i);
    make_run(w, "r1");
    step_init(&st, "r1", 2);
    first = step_turn(&st, "s1", "a", "user:x");
    first->name = "cats";
    OK(rv_json_parse(RV_STR_LIT("{\"a\":1,\"b\":1}"), NULL, &first->metadata, &w->err));
    second = step_turn(&st, "s1", "b", "assistant:y"); /* of the same session, in the same step */
    OK(rv_json_parse(RV_STR_LIT("{\"b\":2}"), NULL, &second->metadata, &w->err));
    step_turn(&st, "s2", "c", "user:z");
    OK(rv_store_append(w->s, &st.a, &w->err));
    json_object_put(first->metadata);
    json_object_put(second->metadata);
    step_fini(&st);
    MESSAGES("s1", "1:user=x 2:assistant=y");
    SESSION("s1", "cats chat 0 2 {\"a\":1,\"b\":2}");
    MESSAGES("s2", "1:user=z");
    world_close(w);
}
END_TEST

START_TEST(a_turn_that_is_written_twice_counts_once)
{
    struct world world, *w = &world;

    world_open(w, _i);
    make_run(w, "r1");
    OK(keep(w, w->s, "r1", 2, "s1", "a", "user:four assistant:four"));
    OK(keep(w, w->s, "r1", 3, "s1", "a", "user:four assistant:four tool_call"));
    MESSAGES("s1", "1:user=four 2:assistant=four 3:tool_call");
    SESSION("s1", "chat-s1 chat 2 3 {}");
    world_close(w);
}
END_TEST

static void told(struct world *w, const struct rv_store_scope *scope, const char *session, const char *text)
{
    const struct rv_message_filter filter = {.limit = 0};
    struct seen seen = SEEN_INIT;

    OK(rv_store_read_messages(w->s, scope, &(const struct rv_messages_of){session, &filter}, see_message, &seen,
                              &w->err));
    SEEN(&seen, text);
}

/* Whose the run is decides, not what the turn says. */
START_TEST(a_run_adds_to_the_sessions_of_its_own_user_alone)
{
    static const struct {
        const char *tenant, *user, *row, *kept;
    } rows[] = {
        {"default", "u", "user:x", "1:user=x"},
        {"default", "v", "user:y", "1:user=y"},
        {"default", "", "user:z", "1:user=z"},
        {"else", "u", "user:w", "1:user=w"},
    };
    struct world world, *w = &world;
    char id[8];

    world_open(w, _i);
    make_session(w, "s1", "u");
    for (size_t i = 0; i < RV_COUNT(rows); i++) {
        snprintf(id, sizeof id, "r%zu", i);
        make_run_of(w, id, rows[i].tenant, rows[i].user);
        OK(keep(w, w->s, id, 2, "s1", "a", rows[i].row));
    }
    for (size_t i = 0; i < RV_COUNT(rows); i++)
        told(w, &(struct rv_store_scope){rows[i].tenant, rows[i].user}, "s1", rows[i].kept);
    OK(rv_store_delete_session(w->s, &(struct rv_store_scope){"default", "u"}, "s1", T0 + 50, &w->err));
    OK(keep(w, w->s, "r0", 3, "s1", "b", "user:late"));
    for (size_t i = 1; i < RV_COUNT(rows); i++)
        told(w, &(struct rv_store_scope){rows[i].tenant, rows[i].user}, "s1", rows[i].kept);
    world_close(w);
}
END_TEST

static void told_of(struct world *w, const char *session, const char *text)
{
    const struct rv_message_filter filter = {.upto_seq = 99, .with_deleted = true};
    struct seen seen = SEEN_INIT;

    OK(rv_store_read_messages(w->s, &operator_scope, &(const struct rv_messages_of){session, &filter}, see_message,
                              &seen, &w->err));
    SEEN(&seen, text);
}

static void end_run(struct world *w, const char *run, int64_t seq)
{
    struct rv_record record;
    struct rv_store_append a = world_append(run, 1, &record, seq, "end");

    a.status = RV_RUN_CANCELLED;
    a.release = true;
    OK(rv_store_append(w->s, &a, &w->err));
}

/* Its run goes on and is told what it was told before; nothing more is kept. When it is over, the words go. */
START_TEST(a_deleted_session_takes_nothing_from_its_runs)
{
    const struct rv_run_filter of_deleted = {.of_deleted_sessions = true};
    struct world world, *w = &world;
    struct seen seen = SEEN_INIT;
    struct rv_run_row row;
    int64_t freed = 0;

    world_open(w, _i);
    make_run_of(w, "r0", "default", "u");
    make_run_of(w, "r1", "default", "v");
    make_session(w, "s", "u");
    OK(keep(w, w->s, "r0", 2, "s", "a", "user:x assistant:y"));
    OK(rv_store_list_runs(w->s, &operator_scope, &of_deleted, see_run, &seen, &w->err));
    SEEN(&seen, "");
    OK(rv_store_delete_session(w->s, &operator_scope, "s", T0 + 50, &w->err));
    OK(keep(w, w->s, "r0", 3, "s", "b", "user:late"));
    RECORDS("r0", "1:one 2:step 3:step");
    told_of(w, "s", "1:user=x 2:assistant=y");
    OK(rv_store_list_runs(w->s, &operator_scope, &of_deleted, see_run, &seen, &w->err));
    SEEN(&seen, "r0");
    OK(rv_store_sweep(w->s, T0 + 60, 0, &freed, &w->err));
    told_of(w, "s", "1:user=x 2:assistant=y");
    end_run(w, "r0", 4);
    OK(rv_store_sweep(w->s, T0 + 70, 0, &freed, &w->err));
    told_of(w, "s", "");
    OK(rv_store_check(w->s, &w->err));
    FAILS(RV_E_NOT_FOUND,
          rv_store_read_messages(w->s, &(struct rv_store_scope){NULL, "v"},
                                 &(const struct rv_messages_of){"s", &(struct rv_message_filter){.with_deleted = true}},
                                 see_message, &seen, &w->err));
    OK(rv_store_get_run(w->s, &operator_scope, "r0", &row, &w->err));
    rv_run_row_fini(&row);
    world_close(w);
}
END_TEST

/* A session's own rows and those of a delegated agent: both are there, one counts. */
/* Proves p8-data.4.1 */
START_TEST(the_tokens_of_children_are_not_the_sessions)
{
    struct world world, *w = &world;
    struct step st;
    struct rv_turn *turn;

    world_open(w, _i);
    make_run(w, "r1");
    step_init(&st, "r1", 2);
    turn = step_turn(&st, "s1", "a", "user:fourfour assistant:fourfourfour assistant:four");
    turn->rows[1].parent_call_id = "call_1";
    OK(rv_store_append(w->s, &st.a, &w->err));
    step_fini(&st);
    SESSION("s1", "chat-s1 chat 3 3 {}");
    world_close(w);
}
END_TEST

START_TEST(a_refused_turn_leaves_nothing_of_its_step)
{
    struct world world, *w = &world;
    struct rv_pending pending = {.id = "i", .kind = "k", .stage = "a"};
    struct rv_session_change half = {.metadata = NULL, .now_us = T0 + 1};
    struct seen seen = SEEN_INIT;
    struct step st;

    world_open(w, _i);
    make_run(w, "r1");
    make_session(w, "full", "u");
    half.metadata = world_half(w, "a");
    OK(rv_store_change_session(w->s, &operator_scope, "full", &half, &w->err));
    json_object_put(half.metadata);
    step_init(&st, "r1", 2);
    step_turn(&st, "s1", "a", "user:x");
    step_turn(&st, "full", "b", "user:y")->metadata = half.metadata = world_half(w, "b");
    st.a.set_pending = true;
    st.a.pending = &pending;
    st.a.n_pending = 1;
    FAILS(RV_E_LIMIT, rv_store_append(w->s, &st.a, &w->err));
    json_object_put(half.metadata);
    st.a.fence = 7;
    st.a.n_turns = 1;
    FAILS(RV_E_STATE, rv_store_append(w->s, &st.a, &w->err));
    st.a.fence = 1;
    st.record.seq = 3;
    FAILS(RV_E_STATE, rv_store_append(w->s, &st.a, &w->err));
    st.record.seq = 2;
    st.turns[0].rows[0].type = "";
    SAYS(RV_E_INVALID, "message 0", rv_store_append(w->s, &st.a, &w->err));
    st.a.turns = NULL;
    FAILS(RV_E_INVALID, rv_store_append(w->s, &st.a, &w->err));
    st.a.n_turns = (size_t)1 << 40;
    FAILS(RV_E_LIMIT, rv_store_append(w->s, &st.a, &w->err));
    step_fini(&st);
    RECORDS("r1", "1:one");
    OK(rv_store_list_pending(w->s, &operator_scope, NULL, see_pending, &seen, &w->err));
    SEEN(&seen, "");
    OK(rv_store_list_sessions(w->s, &operator_scope, NULL, see_session, &seen, &w->err));
    SEEN(&seen, "full");
    MESSAGES("full", "");
    world_close(w);
}
END_TEST

START_TEST(a_group_keeps_the_turns_of_many_runs)
{
    struct world world, *w = &world;
    rv_store *other;
    struct seen seen = SEEN_INIT;
    json_object *halves[2];
    struct step st;

    world_open(w, _i);
    make_run(w, "r1");
    make_run_of(w, "r2", "default", "v");
    make_session(w, "theirs", "v");
    OK(rv_store_begin(w->s, &w->err));
    OK(keep(w, w->s, "r1", 2, "s1", "a", "user:x"));
    step_init(&st, "r1", 3); /* its records are written before its second turn turns out to be too much */
    step_turn(&st, "s1", "b", "user:never")->metadata = halves[0] = world_half(w, "a");
    step_turn(&st, "s1", "c", "user:never")->metadata = halves[1] = world_half(w, "b");
    FAILS(RV_E_LIMIT, rv_store_append(w->s, &st.a, &w->err));
    step_fini(&st);
    json_object_put(halves[0]);
    json_object_put(halves[1]);
    FAILS(RV_E_NOT_FOUND, add_rows(w, "nowhere", "b", "user:never"));
    OK(keep(w, w->s, "r2", 2, "theirs", "a", "user:y"));
    OK(keep(w, w->s, "r1", 3, "s1", "c", "assistant:z"));
    OK(add_rows(w, "s1", "d", "observation:w"));
    MESSAGES("s1", "1:user=x 2:assistant=z 3:observation=w"); /* whoever writes it sees it */
    if (w->impl->is_shared) {
        other = world_other(w);
        OK(rv_store_list_sessions(other, &operator_scope, NULL, see_session, &seen, &w->err));
        SEEN(&seen, "theirs");
        rv_store_close(other);
    }
    OK(rv_store_commit(w->s, &w->err));
    MESSAGES("s1", "1:user=x 2:assistant=z 3:observation=w");
    MESSAGES("theirs", "1:user=y");
    RECORDS("r1", "1:one 2:step 3:step");
    RECORDS("r2", "1:one 2:step");
    world_close(w);
}
END_TEST

/* Proves p8.W33 */
START_TEST(a_rollback_undoes_turns_sessions_and_schemas)
{
    struct world world, *w = &world;
    const struct rv_session_change change = {.name = "changed", .mode = "eval", .now_us = T0 + 9};
    const struct rv_schema_row schema = {.name = "n", .kind = "agent", .source = "person", .document = RV_STR_LIT("d")};
    struct rv_schema_row old = schema, row;
    struct rv_store_stats before, after;

    world_open(w, _i);
    make_run(w, "r1");
    OK(keep(w, w->s, "r1", 2, "s1", "a", "user:four assistant:four"));
    make_session(w, "s2", "u");
    old.name = "old";
    OK(rv_store_put_schema(w->s, &old, RV_SCHEMA_PUT, T0, NULL, &w->err));
    OK(rv_store_read_stats(w->s, &before, &w->err));
    OK(rv_store_begin(w->s, &w->err));
    OK(keep(w, w->s, "r1", 3, "s1", "b", "user:more assistant:more"));
    OK(keep(w, w->s, "r1", 4, "s3", "c", "user:new"));
    OK(add_rows(w, "s1", "d", "user:x user:x user:x user:x user:x user:x user:x user:x user:x"));
    OK(rv_store_change_session(w->s, &operator_scope, "s1", &change, &w->err));
    OK(rv_store_delete_session(w->s, &operator_scope, "s2", T0 + 9, &w->err));
    OK(rv_store_delete_session(w->s, &operator_scope, "s3", T0 + 9, &w->err));
    OK(rv_store_put_schema(w->s, &schema, RV_SCHEMA_PUT, T0, NULL, &w->err));
    OK(rv_store_delete_schema(w->s, &operator_scope, "agent", "n", T0, &w->err));
    old.document = RV_STR_LIT("other");
    OK(rv_store_put_schema(w->s, &old, RV_SCHEMA_PUT, T0 + 3, NULL, &w->err));
    OK(rv_store_delete_schema(w->s, &operator_scope, "agent", "old", T0 + 4, &w->err));
    rv_store_rollback(w->s);
    OK(rv_store_read_stats(w->s, &after, &w->err));
    ck_assert_int_eq(after.sessions, before.sessions);
    ck_assert_int_eq(after.messages, before.messages);
    ck_assert_int_eq(after.schemas, before.schemas);
    ck_assert_int_eq(after.records, before.records);
    MESSAGES("s1", "1:user=four 2:assistant=four");
    SESSION("s1", "chat-s1 chat 2 2 {}");
    SESSION("s2", "chat-s2 chat 0 0 {}");
    OK(rv_store_find_schema(w->s, &operator_scope, "agent", "old", &row, &w->err));
    ck_assert(rv_str_is(row.document, "d"));
    rv_schema_row_fini(&row);
    make_session(w, "s3", "v"); /* its id is free again */
    OK(keep(w, w->s, "r1", 3, "s1", "b", "user:later"));
    MESSAGES("s1", "1:user=four 2:assistant=four 3:user=later");
    world_close(w);
}
END_TEST

/* Interleaved, with a store of their own each: no seq is given twice or left out. */
START_TEST(many_handles_number_one_session_without_gaps)
{
    struct world world, *w = &world;
    rv_store *other;
    struct rv_session_row row;
    rv_buf want = RV_BUF_INIT(1 << 16);

    world_open(w, _i);
    other = w->impl->is_shared ? world_other(w) : w->s;
    make_run(w, "r1");
    make_run(w, "r2");
    for (int i = 0; i < 20; i++) {
        char a[16], b[16];
        snprintf(a, sizeof a, "a%d-", i);
        snprintf(b, sizeof b, "b%d-", i);
        OK(keep(w, w->s, "r1", 2 + i, "s1", a, "user:a assistant:b"));
        OK(keep(w, other, "r2", 2 + i, "s1", b, "user:c"));
        rv_buf_printf(&want, "%s%d:user=a %d:assistant=b %d:user=c", i ? " " : "", 3 * i + 1, 3 * i + 2, 3 * i + 3);
    }
    MESSAGES("s1", rv_buf_cstr(&want));
    OK(rv_store_get_session(other, &operator_scope, "s1", &row, &w->err));
    ck_assert_int_eq(row.n_messages, 60);
    rv_session_row_fini(&row);
    if (other != w->s)
        rv_store_close(other);
    rv_buf_fini(&want);
    world_close(w);
}
END_TEST

START_TEST(what_was_kept_survives_closing)
{
    struct world world, *w = &world;

    world_open(w, _i);
    make_run(w, "r1");
    OK(keep(w, w->s, "r1", 2, "s1", "a", "user:four assistant:four"));
    if (w->impl->is_shared) {
        rv_store_close(w->s);
        w->s = world_other(w);
    }
    MESSAGES("s1", "1:user=four 2:assistant=four");
    OK(rv_store_delete_run(w->s, &operator_scope, "r1", NULL, T0 + 1000, &w->err));
    MESSAGES("s1", "1:user=four 2:assistant=four"); /* the conversation is not its runs */
    world_close(w);
}
END_TEST

Suite *turns_suite(void)
{
    Suite *suite = suite_create("turns");
    TCase *tc = tcase_create("turns");

    ADD(tc, a_turn_makes_its_session_and_adds_to_it);
    ADD(tc, a_message_knows_the_run_that_wrote_it);
    ADD(tc, a_turn_may_name_its_session_and_change_its_metadata);
    ADD(tc, a_turn_that_is_written_twice_counts_once);
    ADD(tc, a_run_adds_to_the_sessions_of_its_own_user_alone);
    ADD(tc, a_deleted_session_takes_nothing_from_its_runs);
    ADD(tc, the_tokens_of_children_are_not_the_sessions);
    ADD(tc, a_refused_turn_leaves_nothing_of_its_step);
    ADD(tc, a_group_keeps_the_turns_of_many_runs);
    ADD(tc, a_rollback_undoes_turns_sessions_and_schemas);
    ADD(tc, many_handles_number_one_session_without_gaps);
    ADD(tc, what_was_kept_survives_closing);
    suite_add_tcase(suite, tc);
    return suite;
}
