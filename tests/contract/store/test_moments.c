/* Chunks of sessions: made once, with the turn that completes them, of that owner's messages alone. */
#include "coreengine/store/store.h"
#include "tests/contract/store/secrets.h"

#define THRESHOLD 10
#define WORDS     "assistant:an-answer-of-forty-characters-or-some-more" /* 10 tokens, with the question 11 */

/* A step of a run of user u: one turn of that session, with a threshold. */
static int keep_turn(struct world *w, rv_store *s, int64_t seq, const char *session, const char *prefix,
                     int64_t threshold)
{
    struct rv_record record;
    struct rv_message rows[WORLD_ROWS];
    rv_arena *room = rv_arena_new(1 << 16);
    struct rv_turn turn = {.session = session, .rows = rows, .moment_token_threshold = threshold};
    struct rv_store_append a = world_append("r1", 1, &record, seq, "step");

    turn.n_rows = world_rows(rows, room, prefix, "user:hello " WORDS);
    a.turns = &turn;
    a.n_turns = 1;
    a.now_us = T0 + seq;
    int rc = rv_store_append(s, &a, &w->err);
    rv_arena_free(room);
    return rc;
}

static int count(void *self, json_object *row, rv_err **err)
{
    (void)row;
    (void)err;
    ++*(int *)self;
    return 0;
}

static int n_moments(struct world *w, rv_store *s, const char *user)
{
    const struct rv_store_scope scope = {NULL, user};
    int n = 0;

    OK(rv_store_find_entities(s, &scope, &(const struct rv_entities_of){"moments", NULL}, count, &n, &w->err));
    return n;
}

static int see_id_of_hit(void *self, const struct rv_key_hit *hit, rv_err **err)
{
    (void)err;
    rv_buf_printf(&((struct seen *)self)->text, "%s", hit->id);
    return 0;
}

static json_object *moment_of(struct world *w, const char *session, int64_t index)
{
    const struct rv_store_scope scope = {NULL, "u"};
    char id[37];
    json_object *row = NULL;

    rv_chunk_make_id(session, index, id);
    OK(rv_store_get_entity(w->s, &scope, "moments", id, &row, &w->err));
    return row;
}

/* Proves p8-data.6: A chunk covers what no chunk covers yet, once, with an id of its own */
START_TEST(a_turn_that_completes_a_chunk_writes_it)
{
    struct world world, *w = &world;
    const struct rv_store_scope owner = {NULL, "u"};
    struct seen seen = SEEN_INIT;
    char name[RV_CHUNK_NAME_MAX + 2], id[37];
    json_object *row;

    world_open(w, _i);
    make_run(w, "r1");
    OK(keep_turn(w, w->s, 2, "s1", "a", 2 * THRESHOLD)); /* 11 of 20 tokens */
    ck_assert_int_eq(n_moments(w, w->s, "u"), 0);
    OK(keep_turn(w, w->s, 3, "s1", "b", 2 * THRESHOLD));
    ck_assert_int_eq(n_moments(w, w->s, "u"), 1);
    row = moment_of(w, "s1", 0);
    snprintf(name, sizeof name, "%s", member(row, "name"));
    ck_assert_str_eq(member(row, "moment_type"), "\"session_chunk\"");
    ck_assert_str_eq(member(row, "source_session_id"), "\"s1\"");
    ck_assert_str_eq(member(row, "user_id"), "\"u\"");
    ck_assert_str_eq(member(row, "previous_moment_keys"), "[]");
    ck_assert_str_eq(member(row, "summary"), "\"an-answer-of-forty-characters-or-some-more\\nan-answer-of-forty-"
                                             "characters-or-some-more\"");
    ck_assert_str_eq(member(row, "metadata"), "{\"message_count\":4,\"token_count\":22,\"chunk_index\":0,"
                                              "\"from_seq\":1,\"through_seq\":4}");
    json_object_put(row);
    OK(keep_turn(w, w->s, 4, "s1", "c", THRESHOLD));
    row = moment_of(w, "s1", 1);
    ck_assert_str_eq(member(row, "metadata"), "{\"message_count\":2,\"token_count\":11,\"chunk_index\":1,"
                                              "\"from_seq\":5,\"through_seq\":6}");
    json_object *previous = json_object_array_get_idx(rv_json_get_arr(row, "previous_moment_keys"), 0);
    ck_assert_uint_eq(rv_json_str(previous).len + 2, strlen(name)); /* which has quotes */
    ck_assert_ptr_nonnull(strstr(name, json_object_get_string(previous)));
    OK(rv_store_lookup(w->s, &owner, rv_json_str(previous), see_id_of_hit, &seen, &w->err));
    rv_chunk_make_id("s1", 0, id);
    SEEN(&seen, id);
    rv_buf_fini(&seen.text);
    json_object_put(row);
    world_close(w);
}
END_TEST

/* Half-way means rolled back: the messages are not there without their moment, nor the moment without them. */
START_TEST(a_turn_that_is_undone_leaves_no_moment_and_twice_is_once)
{
    struct world world, *w = &world;
    struct rv_session_row row;
    const struct rv_store_scope owner = {NULL, "u"};
    json_object *again = NULL;

    world_open(w, _i);
    make_run(w, "r1");
    OK(rv_store_begin(w->s, &w->err));
    OK(keep_turn(w, w->s, 2, "s1", "a", THRESHOLD));
    rv_store_rollback(w->s);
    ck_assert_int_eq(n_moments(w, w->s, "u"), 0);
    OK(keep_turn(w, w->s, 2, "s1", "a", THRESHOLD));
    ck_assert_int_eq(n_moments(w, w->s, "u"), 1);
    FAILS(RV_E_STATE, keep_turn(w, w->s, 2, "s1", "a", THRESHOLD)); /* the step is there already */
    OK(keep_turn(w, w->s, 3, "s1", "a", THRESHOLD));                /* rows that are there already */
    OK(rv_store_build_moment(w->s, &owner,
                             &(const struct rv_moment_build){.session = "s1", .threshold = 0, .now_us = T0 + 9}, &again,
                             &w->err));
    ck_assert_ptr_null(again);
    ck_assert_int_eq(n_moments(w, w->s, "u"), 1);
    OK(rv_store_get_session(w->s, &owner, "s1", &row, &w->err));
    ck_assert_ptr_nonnull(strstr(row.metadata.ptr, "\"moment_count\":1"));
    ck_assert_ptr_nonnull(strstr(row.metadata.ptr, "\"through_seq\":2"));
    rv_session_row_fini(&row);
    world_close(w);
}
END_TEST

START_TEST(a_chunk_that_was_deleted_is_not_made_anew)
{
    struct world world, *w = &world;
    const struct rv_store_scope owner = {NULL, "u"};
    char id[37];
    json_object *row = NULL;

    world_open(w, _i);
    make_run(w, "r1");
    OK(keep_turn(w, w->s, 2, "s1", "a", THRESHOLD));
    rv_chunk_make_id("s1", 0, id);
    OK(rv_store_delete_entity(w->s, &owner, &(struct rv_entity_target){"moments", id, T0 + 5}, &w->err));
    OK(rv_store_build_moment(w->s, &owner,
                             &(const struct rv_moment_build){.session = "s1", .threshold = 0, .now_us = T0 + 6}, &row,
                             &w->err));
    ck_assert_ptr_null(row);
    OK(keep_turn(w, w->s, 3, "s1", "b", THRESHOLD));
    ck_assert_int_eq(n_moments(w, w->s, "u"), 1);
    row = moment_of(w, "s1", 1);
    ck_assert_str_eq(member(row, "previous_moment_keys"), "[]");
    json_object_put(row);
    world_close(w);
}
END_TEST

/* Words that were deleted are not remembered; the rest is. */
START_TEST(a_chunk_forgets_a_deleted_message_and_goes_with_its_session)
{
    struct world world, *w = &world;
    const struct rv_store_scope owner = {NULL, "u"};
    struct rv_session_row session;
    char id[37];
    json_object *row = NULL;

    world_open(w, _i);
    make_session(w, "s1", "u");
    OK(add_rows(w, "s1", "a", "user:hello assistant:secret user:again assistant:public"));
    OK(rv_store_build_moment(
        w->s, &owner, &(const struct rv_moment_build){.session = "s1", .threshold = 0, .now_us = T0}, &row, &w->err));
    ck_assert_str_eq(member(row, "summary"), "\"secret\\npublic\"");
    json_object_put(row);
    OK(add_rows(w, "s1", "b", "assistant:later"));
    OK(rv_store_build_moment(
        w->s, &owner, &(const struct rv_moment_build){.session = "s1", .threshold = 0, .now_us = T0}, &row, &w->err));
    json_object_put(row);
    OK(rv_store_delete_message(w->s, &owner, "s1", 2, T0 + 1, &w->err));
    row = moment_of(w, "s1", 0);
    ck_assert_str_eq(member(row, "summary"), "\"public\"");
    json_object_put(row);
    OK(rv_store_get_session(w->s, &owner, "s1", &session, &w->err));
    ck_assert_ptr_nonnull(strstr(session.metadata.ptr, "\"latest_summary\":\"later\""));
    rv_session_row_fini(&session);
    OK(rv_store_delete_message(w->s, &owner, "s1", 5, T0 + 2, &w->err));
    OK(rv_store_get_session(w->s, &owner, "s1", &session, &w->err));
    ck_assert_ptr_nonnull(strstr(session.metadata.ptr, "\"latest_summary\":\"\""));
    rv_session_row_fini(&session);
    json_object_put(put_one(w, &owner, "moments", "{\"name\":\"note\",\"source_session_id\":\"s1\"}", T0));
    OK(rv_store_delete_session(w->s, &owner, "s1", T0 + 3, &w->err));
    ck_assert_int_eq(n_moments(w, w->s, "u"), 1); /* the note is the user's own */
    rv_chunk_make_id("s1", 0, id);
    FAILS(RV_E_NOT_FOUND, rv_store_get_entity(w->s, &owner, "moments", id, &row, &w->err));
    world_close(w);
}
END_TEST

/* What the chunk covers is hidden from a client, and not from the engine. */
START_TEST(a_chunk_that_clients_cannot_read_forgets_as_well)
{
    struct world world, *w = &world;
    const struct rv_store_scope owner = {NULL, "u"};
    struct rv_session_row session;
    json_object *row = NULL;

    world_open(w, _i);
    use_keys(w, ONE);
    set_mode(w, RV_ENCRYPTION_CLIENT);
    make_session(w, "s1", "u");
    OK(add_rows(w, "s1", "a", "user:hello assistant:secret user:again assistant:public"));
    OK(rv_store_build_moment(
        w->s, &owner, &(const struct rv_moment_build){.session = "s1", .threshold = 0, .now_us = T0}, &row, &w->err));
    json_object_put(row);
    OK(rv_store_delete_message(w->s, &owner, "s1", 2, T0 + 1, &w->err));
    row = moment_of(w, "s1", 0);
    ck_assert_ptr_nonnull(strstr(member(row, "summary"), "reeve-enc1:")); /* only the engine's own look reveals it */
    json_object_put(row);
    rv_store_reveal(w->s, true);
    row = moment_of(w, "s1", 0);
    ck_assert_str_eq(member(row, "summary"), "\"public\"");
    json_object_put(row);
    OK(rv_store_get_session(w->s, &owner, "s1", &session, &w->err));
    ck_assert_ptr_nonnull(strstr(session.metadata.ptr, "\"latest_summary\":\"public\""));
    rv_session_row_fini(&session);
    world_close(w);
}
END_TEST

static json_object *notes_of(struct world *w, const char *user, const char *session, int64_t max)
{
    const struct rv_store_scope scope = {NULL, user};
    const struct rv_moment_opts opts = {.max_inject = max, .max_tokens = 1500};
    json_object *notes = NULL;

    OK(rv_store_note_moments(w->s, &scope, session,
                             &(const struct rv_moment_notes){.opts = &opts, .covers_tokens = RV_UNSET}, &notes,
                             &w->err));
    return notes;
}

/* Proves p8-data.23/7 */
START_TEST(moments_of_other_owners_are_never_told)
{
    static const char *const others[] = {"ada", "bob", ""};
    struct world world, *w = &world;
    json_object *row = NULL, *notes;

    world_open(w, _i);
    for (size_t i = 0; i < RV_COUNT(others); i++) { /* all have a session of the same id */
        const struct rv_store_scope scope = {NULL, others[i]};
        make_session(w, "tale", others[i]);
        struct rv_message m = world_message("m1", "assistant", others[i][0] ? others[i] : "none");
        const struct rv_turn turn = {.session = "tale", .rows = &m, .n_rows = 1};
        OK(rv_store_add_messages(w->s, &scope, &turn, T0, &w->err));
        OK(rv_store_build_moment(w->s, &scope,
                                 &(const struct rv_moment_build){.session = "tale", .threshold = 0, .now_us = T0 + 1},
                                 &row, &w->err));
        ck_assert_str_eq(json_object_get_string(json_object_object_get(row, "summary")),
                         others[i][0] ? others[i] : "none");
        json_object_put(row);
    }
    for (size_t i = 0; i < RV_COUNT(others); i++) {
        notes = notes_of(w, others[i], "tale", 3);
        ck_assert_uint_eq(json_object_array_length(notes), 1);
        const char *text = json_object_get_string(json_object_object_get(json_object_array_get_idx(notes, 0), "text"));
        ck_assert_ptr_nonnull(strstr(text, others[i][0] ? others[i] : "none"));
        json_object_put(notes);
    }
    ck_assert_ptr_null(notes_of(w, "eve", "tale", 3));
    ck_assert_int_eq(n_moments(w, w->s, "eve"), 1); /* the one without an owner */
    FAILS(RV_E_NOT_FOUND,
          rv_store_build_moment(w->s, &(struct rv_store_scope){NULL, "eve"},
                                &(const struct rv_moment_build){.session = "tale", .threshold = 0, .now_us = T0}, &row,
                                &w->err));
    FAILS(RV_E_NOT_FOUND,
          rv_store_build_moment(w->s, &elsewhere,
                                &(const struct rv_moment_build){.session = "tale", .threshold = 0, .now_us = T0}, &row,
                                &w->err));
    world_close(w);
}
END_TEST

/* A name has 24 bits of the session: a lookup has to find the chunk of the right session all the same. */
START_TEST(a_name_that_is_taken_becomes_a_longer_one)
{
    struct world world, *w = &world;
    char name[RV_CHUNK_NAME_MAX], text[300];
    json_object *row;

    world_open(w, _i);
    make_run(w, "r1");
    struct rv_message m = world_message("x", "user", "");
    rv_chunk_make_name("s1", m.created_us ? m.created_us : T0 + 2, 0, 6, name);
    snprintf(text, sizeof text, "{\"name\":\"%s\",\"moment_type\":\"note\",\"user_id\":\"u\"}", name);
    json_object_put(put_one(w, &(struct rv_store_scope){NULL, "u"}, "moments", text, T0));
    OK(keep_turn(w, w->s, 2, "s1", "a", THRESHOLD));
    row = moment_of(w, "s1", 0);
    ck_assert_uint_gt(strlen(member(row, "name")), strlen(name) + 40);
    json_object_put(row);
    world_close(w);
}
END_TEST

/* Rows that nothing was said in: a summary of nothing is a text (Q7). */
START_TEST(a_chunk_without_answers_has_an_empty_summary)
{
    struct world world, *w = &world;
    const struct rv_store_scope owner = {NULL, "u"};
    json_object *row = NULL;

    world_open(w, _i);
    make_session(w, "s1", "u");
    OK(add_rows(w, "s1", "a", "user:hello tool_call assistant user:again"));
    OK(rv_store_build_moment(
        w->s, &owner, &(const struct rv_moment_build){.session = "s1", .threshold = 0, .now_us = T0}, &row, &w->err));
    ck_assert_str_eq(member(row, "summary"), "\"\"");
    json_object_put(row);
    row = notes_of(w, "u", "s1", 3);
    ck_assert_ptr_nonnull(strstr(json_object_to_json_string(row), "[Session context]"));
    json_object_put(row);
    world_close(w);
}
END_TEST

Suite *moments_suite(void)
{
    Suite *s = suite_create("moments");
    TCase *tc = tcase_create("moments");

    tcase_add_loop_test(tc, a_turn_that_completes_a_chunk_writes_it, first_store_impl, n_store_impls);
    tcase_add_loop_test(tc, a_turn_that_is_undone_leaves_no_moment_and_twice_is_once, first_store_impl, n_store_impls);
    tcase_add_loop_test(tc, a_chunk_that_was_deleted_is_not_made_anew, first_store_impl, n_store_impls);
    tcase_add_loop_test(tc, a_chunk_forgets_a_deleted_message_and_goes_with_its_session, first_store_impl,
                        n_store_impls);
    tcase_add_loop_test(tc, a_chunk_that_clients_cannot_read_forgets_as_well, first_store_impl, n_store_impls);
    tcase_add_loop_test(tc, moments_of_other_owners_are_never_told, first_store_impl, n_store_impls);
    tcase_add_loop_test(tc, a_name_that_is_taken_becomes_a_longer_one, first_store_impl, n_store_impls);
    tcase_add_loop_test(tc, a_chunk_without_answers_has_an_empty_summary, first_store_impl, n_store_impls);
    suite_add_tcase(s, tc);
    return s;
}
