/* Messages: what is kept of one, in which order, and how they are walked. */
#include "tests/contract/store/world.h"

static int copy_first(void *self, const struct rv_message *m, rv_err **err)
{
    rv_buf *out = self;

    (void)err;
#define OR_DASH(text) ((text) ? (text) : "-")
    rv_buf_printf(out, "%s %lld %s %d [%.*s] [%.*s] %lld %s %s %s %s %s %lld %lld %lld %lld %s %s [%.*s] %lld", m->id,
                  (long long)m->seq, m->type, m->has_content, RV_STR_ARG(m->content), RV_STR_ARG(m->tool_calls),
                  (long long)m->token_count, OR_DASH(m->agent_name), OR_DASH(m->model), OR_DASH(m->trace_id),
                  OR_DASH(m->span_id), OR_DASH(m->run_id), (long long)m->input_tokens, (long long)m->output_tokens,
                  (long long)m->cost_micro_usd, (long long)m->latency_ms, OR_DASH(m->status),
                  OR_DASH(m->parent_call_id), RV_STR_ARG(m->metadata), (long long)m->created_us);
#undef OR_DASH
    return RV_STORE_ENOUGH;
}

START_TEST(everything_of_a_message_is_kept)
{
    const struct {
        struct rv_message m;
        const char *want;
    } rows[] = {
        {{.id = "m1",
          .type = "assistant",
          .has_content = true,
          .content = RV_STR_LIT("h\u00e9 'x' \"y\""),
          .tool_calls = RV_STR_LIT("{\"name\":\"f\",\"id\":\"c1\"}"),
          .token_count = 12,
          .agent_name = "aide",
          .model = "openai:m",
          .trace_id = "t",
          .span_id = "sp",
          .run_id = "run",
          .input_tokens = 3,
          .output_tokens = 4,
          .cost_micro_usd = 5,
          .latency_ms = 6,
          .status = "failed",
          .parent_call_id = "call",
          .metadata = RV_STR_LIT("{\"a\":1}"),
          .created_us = 77},
         "m1 1 assistant 1 [h\u00e9 'x' \"y\"] [{\"name\":\"f\",\"id\":\"c1\"}] 12 aide openai:m t sp run 3 4 5 6 "
         "failed "
         "call [{\"a\":1}] 77"},
        {{.id = "m2",
          .type = "tool_call",
          .content = RV_STR_LIT("not looked at"),
          .token_count = RV_UNSET,
          .input_tokens = RV_UNSET,
          .latency_ms = RV_UNSET},
         "m2 2 tool_call 0 [] [] 0 - - - - - -1 0 0 -1 - - [] 1700000000000001"},
        {{.id = "m3",
          .type = "user",
          .has_content = true,
          .content = RV_STR_LIT("hello world!"),
          .token_count = RV_UNSET},
         "m3 3 user 1 [hello world!] [] 3 - - - - - 0 0 0 0 - - [] 1700000000000001"},
        {{.id = "m4", .type = "user", .has_content = true, .token_count = RV_UNSET},
         "m4 4 user 1 [] [] 0 - - - - - 0 0 0 0 - - [] 1700000000000001"},
        {{.id = "m5",
          .type = "user",
          .has_content = true,
          .content = RV_STR_LIT("assistant text \u00e9"),
          .token_count = 0},
         "m5 5 user 1 [assistant text \u00e9] [] 0 - - - - - 0 0 0 0 - - [] 1700000000000001"},
    };
    struct world world, *w = &world;

    world_open(w, _i);
    make_session(w, "s1", "u");
    for (size_t i = 0; i < RV_COUNT(rows); i++) {
        struct rv_message m = rows[i].m;
        struct rv_turn turn = {.session = "s1", .rows = &m, .n_rows = 1};
        const struct rv_message_filter last = {.newest_first = true, .with_children = true};
        rv_buf got = RV_BUF_INIT(10000);
        OK(rv_store_add_messages(w->s, &operator_scope, &turn, T0 + 1, &w->err));
        OK(rv_store_read_messages(w->s, &operator_scope, &(const struct rv_messages_of){"s1", &last}, copy_first, &got,
                                  &w->err));
        ck_assert_str_eq(rv_buf_cstr(&got), rows[i].want);
        rv_buf_fini(&got);
    }
    SESSION("s1", "chat-s1 chat 3 5 {}"); /* a child's tokens are not the session's */
    world_close(w);
}
END_TEST

/* Proves remlight.12 */
START_TEST(a_long_content_is_kept_whole)
{
    struct world world, *w = &world;
    const size_t len = 3000000;
    char *text = malloc(len);
    struct rv_message m = world_message("m1", "user", "");
    struct rv_turn turn = {.session = "s1", .rows = &m, .n_rows = 1};
    struct seen seen = {.text = RV_BUF_INIT(4000000)};

    world_open(w, _i);
    make_session(w, "s1", "u");
    ck_assert_ptr_nonnull(text);
    memset(text, 'y', len);
    text[1000] = 0; /* a NUL is a character like others */
    m.content = (rv_str){text, len};
    OK(rv_store_add_messages(w->s, &operator_scope, &turn, T0, &w->err));
    text[1000] = 'y';
    m.id = "m2";
    OK(rv_store_add_messages(w->s, &operator_scope, &turn, T0, &w->err));
    SESSION("s1", "chat-s1 chat 1500000 2 {}");
    OK(rv_store_read_messages(w->s, &operator_scope,
                              &(const struct rv_messages_of){"s1", &(struct rv_message_filter){.from_seq = 2}},
                              see_message, &seen, &w->err));
    ck_assert_uint_eq(seen.text.len, len + strlen("2:user="));
    rv_buf_fini(&seen.text);
    free(text);
    world_close(w);
}
END_TEST

static int check_metadata_size(void *self, const struct rv_message *m, rv_err **err)
{
    (void)err;
    ck_assert_uint_eq(m->metadata.len, *(const size_t *)self);
    return 0;
}

/* A picture stands in the metadata of its message, which may be larger than that of a session. */
START_TEST(a_message_keeps_the_files_that_belong_to_it)
{
    static const char head[] = "{\"attachments\":[{\"data\":\"", tail[] = "\"}]}";
    struct world world, *w = &world;
    size_t len = 4 * RV_STORE_MAX_META;
    char *text = malloc(RV_STORE_MAX_PARTS + 1);
    struct rv_message m = world_message("m1", "user", "look");
    struct rv_turn turn = {.session = "s1", .rows = &m, .n_rows = 1};

    world_open(w, _i);
    make_session(w, "s1", "u");
    ck_assert_ptr_nonnull(text);
    memset(text, 'A', RV_STORE_MAX_PARTS + 1);
    memcpy(text, head, strlen(head));
    memcpy(text + len - strlen(tail), tail, strlen(tail));
    m.metadata = (rv_str){text, len};
    OK(rv_store_add_messages(w->s, &operator_scope, &turn, T0, &w->err));
    OK(rv_store_read_messages(w->s, &operator_scope,
                              &(const struct rv_messages_of){"s1", &(struct rv_message_filter){0}}, check_metadata_size,
                              &len, &w->err));
    m.id = "m2";
    m.metadata.len = RV_STORE_MAX_PARTS + 1;
    SAYS(RV_E_LIMIT, "metadata", rv_store_add_messages(w->s, &operator_scope, &turn, T0, &w->err));
    free(text);
    world_close(w);
}
END_TEST

static const struct {
    struct rv_message_filter filter;
    int stop_at;
    const char *want;
} walks[] = {
    {{0}, 0, "1:user=a 2:assistant=b 5:user=e 6:tool_call 7:assistant=g"},
    {{.with_children = true}, 0, "1:user=a 2:assistant=b 3:assistant=c 4:tool_call 5:user=e 6:tool_call 7:assistant=g"},
    {{.newest_first = true}, 0, "7:assistant=g 6:tool_call 5:user=e 2:assistant=b 1:user=a"},
    {{.newest_first = true, .with_children = true, .limit = 4}, 0, "7:assistant=g 6:tool_call 5:user=e 4:tool_call"},
    {{.newest_first = true, .limit = 4}, 0, "7:assistant=g 6:tool_call 5:user=e 2:assistant=b"},
    {{.limit = 2}, 0, "1:user=a 2:assistant=b"},
    {{.from_seq = 2}, 0, "2:assistant=b 5:user=e 6:tool_call 7:assistant=g"},
    {{.from_seq = 3, .upto_seq = 5}, 0, "5:user=e"},
    {{.from_seq = 3, .upto_seq = 5, .newest_first = true, .with_children = true},
     0,
     "5:user=e 4:tool_call 3:assistant=c"},
    {{.upto_seq = 2, .newest_first = true}, 0, "2:assistant=b 1:user=a"},
    {{.from_seq = 8}, 0, ""},
    {{.from_seq = INT64_MAX}, 0, ""},
    {{.from_seq = 5, .upto_seq = 4}, 0, ""},
    {{.upto_seq = 100}, 0, "1:user=a 2:assistant=b 5:user=e 6:tool_call 7:assistant=g"},
    {{.newest_first = true}, 2, "7:assistant=g 6:tool_call"},
    {{0}, 1, "1:user=a"},
};

START_TEST(a_walk_gives_what_the_filter_says)
{
    struct world world, *w = &world;
    struct rv_message rows[WORLD_ROWS];
    rv_arena *room = rv_arena_new(1 << 16);
    struct rv_turn turn = {.session = "s1", .rows = rows};

    world_open(w, _i);
    make_session(w, "s1", "u");
    make_session(w, "s2", "u");
    OK(add_rows(w, "s2", "m", "user:x user:x user:x user:x user:x user:x user:x user:x user:x"));
    turn.n_rows = world_rows(rows, room, "m", "user:a assistant:b assistant:c tool_call user:e tool_call assistant:g");
    rows[2].parent_call_id = rows[3].parent_call_id = "call";
    OK(rv_store_add_messages(w->s, &operator_scope, &turn, T0 + 1, &w->err));
    for (size_t i = 0; i < RV_COUNT(walks); i++) {
        struct seen seen = SEEN_INIT;
        seen.stop_at = walks[i].stop_at;
        seen.code = RV_STORE_ENOUGH;
        OK(rv_store_read_messages(w->s, &operator_scope, &(const struct rv_messages_of){"s1", &walks[i].filter},
                                  see_message, &seen, &w->err));
        SEEN(&seen, walks[i].want);
    }
    rv_arena_free(room);
    world_close(w);
}
END_TEST

static int fail_walk(void *self, const struct rv_message *m, rv_err **err)
{
    (void)self;
    return RV_FAIL(err, RV_E_TOOL, "at %lld", (long long)m->seq);
}

static int use_store(void *self, const struct rv_message *m, rv_err **err)
{
    struct world *w = self;
    struct rv_session_row row;

    (void)m;
    return rv_store_get_session(w->s, &operator_scope, "s1", &row, err);
}

START_TEST(what_a_callback_says_ends_the_walk)
{
    struct world world, *w = &world;

    world_open(w, _i);
    make_session(w, "s1", "u");
    OK(add_rows(w, "s1", "m", "user:a user:b"));
    SAYS(RV_E_TOOL, "at 1",
         rv_store_read_messages(w->s, &operator_scope, &(const struct rv_messages_of){"s1", NULL}, fail_walk, NULL,
                                &w->err));
    SAYS(RV_E_STATE, "may not use it",
         rv_store_read_messages(w->s, &operator_scope, &(const struct rv_messages_of){"s1", NULL}, use_store, w,
                                &w->err));
    MESSAGES("s1", "1:user=a 2:user=b");
    world_close(w);
}
END_TEST

/* Proves p8-data.4.3 */
START_TEST(a_message_that_is_there_is_passed_over)
{
    struct world world, *w = &world;
    struct rv_message twice[2];
    struct rv_turn turn = {.session = "s1", .rows = twice, .n_rows = 2};

    world_open(w, _i);
    make_session(w, "s1", "u");
    make_session(w, "s2", "v");
    OK(add_rows(w, "s1", "m", "user:four assistant:fourfour"));
    OK(add_rows(w, "s1", "m", "user:never assistant:never user:third"));
    MESSAGES("s1", "1:user=four 2:assistant=fourfour 3:user=third");
    SESSION("s1", "chat-s1 chat 4 3 {}");
    twice[0] = twice[1] = world_message("n", "user", "once");
    OK(rv_store_add_messages(w->s, &operator_scope, &turn, T0, &w->err));
    MESSAGES("s1", "1:user=four 2:assistant=fourfour 3:user=third 4:user=once");
    SESSION("s1", "chat-s1 chat 5 4 {}");
    OK(add_rows(w, "s2", "m", "user:own")); /* another session's ids are its own matter */
    MESSAGES("s2", "1:user=own");
    world_close(w);
}
END_TEST

START_TEST(a_turn_names_its_session_and_merges_metadata)
{
    struct world world, *w = &world;
    struct rv_turn turn = {.session = "s1", .name = "about cats", .agent_name = "other"};

    world_open(w, _i);
    make_session(w, "s1", "u");
    OK(rv_json_parse(RV_STR_LIT("{\"routing\":{\"a\":1},\"k\":1}"), NULL, &turn.metadata, &w->err));
    OK(rv_store_add_messages(w->s, &operator_scope, &turn, T0 + 7, &w->err)); /* without a message */
    SESSION("s1", "about cats chat 0 0 {\"routing\":{\"a\":1},\"k\":1}");
    json_object_put(turn.metadata);
    turn.name = NULL;
    OK(rv_json_parse(RV_STR_LIT("{\"routing\":{\"b\":2}}"), NULL, &turn.metadata, &w->err));
    OK(rv_store_add_messages(w->s, &operator_scope, &turn, T0 + 8, &w->err));
    SESSION("s1", "about cats chat 0 0 {\"routing\":{\"b\":2},\"k\":1}");
    json_object_put(turn.metadata);
    world_close(w);
}
END_TEST

static void read_as(struct world *w, const struct rv_message_filter *filter, const char *want, int line)
{
    struct seen seen = {.text = RV_BUF_INIT(10000)};

    must_ok(w,
            rv_store_read_messages(w->s, &operator_scope, &(const struct rv_messages_of){"s1", filter}, see_message,
                                   &seen, &w->err),
            "read", line);
    ck_assert_msg(strcmp(rv_buf_cstr(&seen.text), want) == 0, "line %d: \"%s\"", line, rv_buf_cstr(&seen.text));
    rv_buf_fini(&seen.text);
}

START_TEST(one_message_is_deleted_and_the_others_keep_their_numbers)
{
    const struct rv_message_filter before = {.with_deleted = true, .told_us = T0 + 9};
    const struct rv_message_filter after = {.with_deleted = true, .told_us = T0 + 10};
    const struct rv_store_scope other = {.user = "v"};
    struct rv_message_filter first = {.limit = 1};
    struct world world, *w = &world;

    world_open(w, _i);
    make_session(w, "s1", "u");
    OK(add_rows(w, "s1", "m", "user:a assistant:b user:c"));
    FAILS(RV_E_NOT_FOUND, rv_store_delete_message(w->s, &other, "s1", 2, T0 + 10, &w->err));
    SAYS(RV_E_NOT_FOUND, "has no message 4", rv_store_delete_message(w->s, &operator_scope, "s1", 4, T0 + 10, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_delete_message(w->s, &operator_scope, "s1", 0, T0 + 10, &w->err));
    OK(rv_store_begin(w->s, &w->err));
    OK(rv_store_delete_message(w->s, &operator_scope, "s1", 1, T0 + 10, &w->err));
    rv_store_rollback(w->s);
    OK(rv_store_delete_message(w->s, &operator_scope, "s1", 2, T0 + 10, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_delete_message(w->s, &operator_scope, "s1", 2, T0 + 11, &w->err));
    MESSAGES("s1", "1:user=a 3:user=c");
    read_as(w, &before, "1:user=a 2:assistant=b 3:user=c", __LINE__); /* as a run was told it before */
    read_as(w, &after, "1:user=a 3:user=c", __LINE__);
    first.newest_first = true;
    read_as(w, &first, "3:user=c", __LINE__);
    OK(add_rows(w, "s1", "n", "user:d"));
    MESSAGES("s1", "1:user=a 3:user=c 4:user=d");
    OK(rv_store_check(w->s, &w->err));
    OK(rv_store_sweep(w->s, T0 + 100, 0, NULL, &w->err));
    read_as(w, &before, "1:user=a 2:assistant 3:user=c 4:user=d", __LINE__); /* its words are gone */
    OK(rv_store_check(w->s, &w->err));
    world_close(w);
}
END_TEST

START_TEST(a_message_takes_only_what_can_be_one)
{
    static char too_long[RV_STORE_MAX_ID + 2];
    static const struct {
        struct rv_message m;
        int code;
        const char *part;
    } rows[] = {
#define ROW(code, part, id_, type_, ...) {{.id = (id_), .type = (type_), __VA_ARGS__}, (code), (part)}
        ROW(RV_E_INVALID, "no id given", NULL, "user", .seq = 0),
        ROW(RV_E_INVALID, "id is empty", "", "user", .seq = 0),
        ROW(RV_E_LIMIT, "longer than", too_long, "user", .seq = 0),
        ROW(RV_E_INVALID, "type is empty", "m1", "", .seq = 0),
        ROW(RV_E_INVALID, "content is not UTF-8", "m1", "user", .has_content = true, .content = RV_STR_LIT("\xff")),
        ROW(RV_E_INVALID, "content has a length and no bytes", "m1", "user", .has_content = true, .content = {NULL, 3}),
        ROW(RV_E_LIMIT, "content", "m1", "user", .has_content = true, .content = {"x", RV_STORE_MAX_VALUE + 1}),
        ROW(RV_E_INVALID, "tool_calls is not a JSON object", "m1", "user", .tool_calls = RV_STR_LIT("[]")),
        ROW(RV_E_INVALID, "tool_calls is not a JSON object", "m1", "user", .tool_calls = RV_STR_LIT("{\"a\"}")),
        ROW(RV_E_INVALID, "metadata is not a JSON object", "m1", "user", .metadata = RV_STR_LIT("\"{}\"")),
        ROW(RV_E_INVALID, "token_count is -2", "m1", "user", .token_count = -2),
        ROW(RV_E_INVALID, "token_count", "m1", "user", .token_count = INT64_MAX),
        ROW(RV_E_INVALID, "input_tokens", "m1", "user", .input_tokens = -5),
        ROW(RV_E_INVALID, "latency_ms", "m1", "user", .latency_ms = INT64_MIN),
        ROW(RV_E_INVALID, "model", "m1", "user", .model = "\xff"),
        ROW(RV_E_INVALID, "parent's call", "m1", "user", .parent_call_id = "\xff"),
        ROW(RV_E_INVALID, "before 1970", "m1", "user", .created_us = -1),
#undef ROW
    };
    struct world world, *w = &world;
    struct rv_turn turn = {.session = "s1", .n_rows = 2};
    json_object *array = json_object_new_array();

    memset(too_long, 'x', sizeof too_long - 1);
    world_open(w, _i);
    make_session(w, "s1", "u");
    for (size_t i = 0; i < RV_COUNT(rows); i++) {
        struct rv_message pair[2] = {world_message("m0", "user", "x"), rows[i].m};
        turn.rows = pair;
        SAYS(rows[i].code, rows[i].part, rv_store_add_messages(w->s, &operator_scope, &turn, T0, &w->err));
    }
    turn.rows = NULL;
    FAILS(RV_E_INVALID, rv_store_add_messages(w->s, &operator_scope, &turn, T0, &w->err));
    FAILS(RV_E_INVALID, rv_store_add_messages(w->s, &operator_scope, NULL, T0, &w->err));
    turn.n_rows = (size_t)1 << 40;
    FAILS(RV_E_LIMIT, rv_store_add_messages(w->s, &operator_scope, &turn, T0, &w->err));
    turn.n_rows = 0;
    turn.metadata = array;
    FAILS(RV_E_INVALID, rv_store_add_messages(w->s, &operator_scope, &turn, T0, &w->err));
    turn.metadata = NULL;
    FAILS(RV_E_INVALID, rv_store_add_messages(w->s, &operator_scope, &turn, -1, &w->err));
    FAILS(RV_E_INVALID,
          rv_store_read_messages(w->s, &operator_scope,
                                 &(const struct rv_messages_of){"s1", &(struct rv_message_filter){.from_seq = -1}},
                                 see_message, NULL, &w->err));
    MESSAGES("s1", "");
    json_object_put(array);
    world_close(w);
}
END_TEST

#define DAY INT64_C(86400000000)

static int see_day(void *self, const struct rv_message_day *day, rv_err **err)
{
    struct seen *seen = self;

    (void)err;
    rv_buf_printf(&seen->text, "%d:%d/%d/%d ", (int)(day->day - T0 / DAY), (int)day->n_messages, (int)day->n_sessions,
                  (int)day->n_tokens);
    return ++seen->n == seen->stop_at ? seen->code : 0;
}

/* The newest `most` of them; 0: all. */
static void days_are(struct world *w, const struct rv_store_scope *scope, int64_t until_us, int most, const char *want)
{
    struct seen seen = SEEN_INIT;

    seen.stop_at = most;
    seen.code = RV_STORE_ENOUGH;
    OK(rv_store_list_message_days(w->s, scope, until_us, see_day, &seen, &w->err));
    ck_assert_str_eq(rv_buf_cstr(&seen.text), want);
    rv_buf_fini(&seen.text);
}

/* Messages of other users, of sessions without an owner, and deleted ones do not count. */
START_TEST(days_count_the_messages_of_their_owner)
{
    static const struct {
        const char *session, *user, *id;
        int day, tokens;
    } rows[] = {{"s1", "u", "a", 0, 5},  {"s1", "u", "b", 0, 7},  {"s2", "u", "a", 0, 1}, {"s2", "u", "b", 2, 2},
                {"s3", "v", "a", 0, 90}, {"s4", "", "a", 2, 800}, {"s5", "u", "a", 3, 9}};
    const struct rv_store_scope u = {NULL, "u"}, v = {NULL, "v"}, unowned = {NULL, ""}, other = {"other", NULL};
    const int64_t ever_us = T0 + 100 * DAY;
    struct world world, *w = &world;

    world_open(w, _i);
    for (size_t i = 0; i < RV_COUNT(rows); i++) {
        const struct rv_store_scope owner = {NULL, rows[i].user};
        struct rv_message m = world_message(rows[i].id, "user", "x");
        m.token_count = rows[i].tokens;
        m.created_us = T0 + rows[i].day * DAY;
        make_session(w, rows[i].session, rows[i].user);
        OK(rv_store_add_messages(w->s, &owner, &(struct rv_turn){.session = rows[i].session, .rows = &m, .n_rows = 1},
                                 T0, &w->err));
    }
    OK(rv_store_delete_session(w->s, &u, "s5", T0, &w->err));
    OK(rv_store_delete_message(w->s, &u, "s1", 2, T0, &w->err));
    days_are(w, &u, ever_us, 0, "2:1/1/2 0:2/2/6 ");
    days_are(w, &u, ever_us, 1, "2:1/1/2 ");
    days_are(w, &u, T0, 0, "0:2/2/6 ");
    days_are(w, &u, T0 - 1, 0, "");
    days_are(w, &v, ever_us, 0, "0:1/1/90 ");
    days_are(w, &unowned, ever_us, 0, "2:1/1/800 ");
    days_are(w, &operator_scope, ever_us, 0, "2:2/2/802 0:3/3/96 ");
    days_are(w, &other, ever_us, 0, "");
    FAILS(RV_E_INVALID, rv_store_list_message_days(w->s, &u, -1, see_day, NULL, &w->err));
    world_close(w);
}
END_TEST

Suite *messages_suite(void)
{
    Suite *suite = suite_create("messages");
    TCase *tc = tcase_create("messages");

    ADD(tc, everything_of_a_message_is_kept);
    ADD(tc, a_long_content_is_kept_whole);
    ADD(tc, a_message_keeps_the_files_that_belong_to_it);
    ADD(tc, a_walk_gives_what_the_filter_says);
    ADD(tc, what_a_callback_says_ends_the_walk);
    ADD(tc, a_message_that_is_there_is_passed_over);
    ADD(tc, a_turn_names_its_session_and_merges_metadata);
    ADD(tc, one_message_is_deleted_and_the_others_keep_their_numbers);
    ADD(tc, a_message_takes_only_what_can_be_one);
    ADD(tc, days_count_the_messages_of_their_owner);
    suite_add_tcase(suite, tc);
    return suite;
}
