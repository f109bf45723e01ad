/* Sessions: made, changed, listed, deleted. */
#include "tests/contract/store/world.h"

/* Proves p8-data.4.1: A session is made once and keeps its owner; a name may change; the tokens are those of its
 * messages */
START_TEST(a_session_is_made_once)
{
    struct world world, *w = &world;
    struct rv_session_row fresh = {
        .id = "s1", .tenant = "default", .user = "u", .created_us = T0, .agent_name = "aide"};
    struct rv_session_row row;

    world_open(w, _i);
    OK(rv_store_ensure_session(w->s, &fresh, &row, &w->err));
    ck_assert_str_eq(row.id, "s1");
    ck_assert_str_eq(row.tenant, "default");
    ck_assert_str_eq(row.user, "u");
    ck_assert_str_eq(row.name, "chat-s1");
    ck_assert_str_eq(row.mode, "chat");
    ck_assert_str_eq(row.agent_name, "aide");
    ck_assert_ptr_null(row.description);
    ck_assert(rv_str_is(row.metadata, "{}"));
    ck_assert_int_eq(row.total_tokens, 0);
    ck_assert_int_eq(row.n_messages, 0);
    ck_assert_int_eq(row.created_us, T0);
    ck_assert_int_eq(row.updated_us, T0);
    rv_session_row_fini(&row);
    fresh = (struct rv_session_row){.id = "s1",
                                    .tenant = "default",
                                    .user = "u",
                                    .created_us = T0 + 9,
                                    .name = "other",
                                    .mode = "eval",
                                    .metadata = RV_STR_LIT("{\"a\":1}")};
    OK(rv_store_ensure_session(w->s, &fresh, &row, &w->err)); /* it is there: nothing of it changes */
    ck_assert_str_eq(row.name, "chat-s1");
    ck_assert_str_eq(row.agent_name, "aide");
    ck_assert_int_eq(row.created_us, T0);
    rv_session_row_fini(&row);
    SESSION("s1", "chat-s1 chat 0 0 {}");
    fresh.id = "s2";
    fresh.description = "what it is about";
    OK(rv_store_ensure_session(w->s, &fresh, &row, &w->err));
    ck_assert_str_eq(row.description, "what it is about");
    rv_session_row_fini(&row);
    SESSION("s2", "other eval 0 0 {\"a\":1}");
    world_close(w);
}
END_TEST

/* Nobody can tell what ids others have; one's own are taken for good. */
/* Proves p8-data.4.1 */
START_TEST(an_id_is_its_owners_alone)
{
    static const struct {
        const char *tenant, *user;
    } others[] = {{"default", "v"}, {"default", ""}, {"else", "u"}};
    static const char *const ids[] = {"s1", "s2"}; /* the second one was deleted */
    struct world world, *w = &world;
    struct rv_session_row row;

    world_open(w, _i);
    make_session(w, "s1", "u");
    make_session(w, "s2", "u");
    OK(rv_store_delete_session(w->s, &operator_scope, "s2", T0 + 5, &w->err));
    for (size_t i = 0; i < RV_COUNT(others) * RV_COUNT(ids); i++) {
        const struct rv_store_scope other = {others[i / 2].tenant, others[i / 2].user};
        const struct rv_session_row fresh = {
            .id = ids[i % 2], .tenant = other.tenant, .user = other.user, .name = "another", .created_us = T0 + 9};
        FAILS(RV_E_NOT_FOUND, rv_store_get_session(w->s, &other, fresh.id, &row, &w->err));
        OK(rv_store_ensure_session(w->s, &fresh, &row, &w->err));
        ck_assert_str_eq(row.name, "another");
        rv_session_row_fini(&row);
        const struct rv_session_change change = {.name = "mine", .now_us = T0 + 10};
        OK(rv_store_change_session(w->s, &other, fresh.id, &change, &w->err));
        if (i % 2)
            OK(rv_store_delete_session(w->s, &other, fresh.id, T0 + 11, &w->err));
    }
    const struct rv_store_scope owner = {"default", "u"};
    OK(rv_store_get_session(w->s, &owner, "s1", &row, &w->err));
    ck_assert_str_eq(row.name, "chat-s1");
    ck_assert_int_eq(row.updated_us, T0);
    rv_session_row_fini(&row);
    const struct rv_session_row again = {.id = "s2", .tenant = "default", .user = "u", .created_us = T0};
    SAYS(RV_E_EXISTS, "session \"s2\" was deleted, and its id stays taken",
         rv_store_ensure_session(w->s, &again, NULL, &w->err));
    world_close(w);
}
END_TEST

/* An operator sees what several users call the same, and has to say whose is meant. */
/* Proves p8-data.4.1 */
START_TEST(an_id_of_several_users_is_ambiguous)
{
    const struct rv_message_filter all = {.limit = 0};
    const struct rv_session_change change = {.name = "never", .now_us = T0 + 3};
    const struct rv_store_scope v = {"default", "v"};
    struct world world, *w = &world;
    struct seen seen = SEEN_INIT;
    struct rv_session_row row;
    static const char said[] = "several users have a session \"s1\"";

    world_open(w, _i);
    make_session(w, "s1", "v");
    make_session(w, "s1", "u");
    SAYS(RV_E_INVALID, said, rv_store_get_session(w->s, &operator_scope, "s1", &row, &w->err));
    SAYS(RV_E_INVALID, said, rv_store_change_session(w->s, &operator_scope, "s1", &change, &w->err));
    SAYS(RV_E_INVALID, said, rv_store_delete_session(w->s, &operator_scope, "s1", T0 + 3, &w->err));
    SAYS(RV_E_INVALID, said, add_rows(w, "s1", "a", "user:never"));
    SAYS(RV_E_INVALID, said,
         rv_store_read_messages(w->s, &operator_scope, &(const struct rv_messages_of){"s1", &all}, see_message, &seen,
                                &w->err));
    OK(rv_store_list_sessions(w->s, &operator_scope, NULL, see_session, &seen, &w->err));
    SEEN(&seen, "s1 s1");
    OK(rv_store_delete_session(w->s, &v, "s1", T0 + 4, &w->err));
    OK(rv_store_get_session(w->s, &operator_scope, "s1", &row, &w->err));
    ck_assert_str_eq(row.user, "u");
    rv_session_row_fini(&row);
    OK(add_rows(w, "s1", "a", "user:x"));
    MESSAGES("s1", "1:user=x");
    OK(rv_store_check(w->s, &w->err));
    world_close(w);
}
END_TEST

START_TEST(a_change_touches_what_it_names)
{
    static const char *const remove[] = {"b", "never"};
    struct world world, *w = &world;
    json_object *patch = NULL;
    struct rv_session_change change = {.name = "new", .now_us = T0 + 3};
    struct rv_session_row row;

    world_open(w, _i);
    make_session(w, "s1", "u");
    OK(rv_store_change_session(w->s, &operator_scope, "s1", &change, &w->err));
    SESSION("s1", "new chat 0 0 {}");
    OK(rv_json_parse(RV_STR_LIT("{\"a\":{\"x\":1},\"b\":2,\"c\":null}"), NULL, &patch, &w->err));
    change = (struct rv_session_change){.mode = "research", .metadata = patch, .now_us = T0 + 4};
    OK(rv_store_change_session(w->s, &operator_scope, "s1", &change, &w->err));
    SESSION("s1", "new research 0 0 {\"a\":{\"x\":1},\"b\":2,\"c\":null}");
    json_object_put(patch);
    OK(rv_json_parse(RV_STR_LIT("{\"a\":{\"y\":1},\"d\":[1.5,\"\\u00e9\"],\"b\":3}"), NULL, &patch, &w->err));
    change = (struct rv_session_change){.metadata = patch, .remove = remove, .n_remove = 2, .now_us = T0 + 5};
    OK(rv_store_change_session(w->s, &operator_scope, "s1", &change, &w->err)); /* nested objects go as a whole */
    SESSION("s1", "new research 0 0 {\"a\":{\"y\":1},\"c\":null,\"d\":[1.5,\"\u00e9\"]}");
    json_object_put(patch);
    change = (struct rv_session_change){.now_us = T0 + 6};
    OK(rv_store_change_session(w->s, &operator_scope, "s1", &change, &w->err));
    OK(rv_store_get_session(w->s, &operator_scope, "s1", &row, &w->err));
    ck_assert_int_eq(row.updated_us, T0 + 6);
    ck_assert_int_eq(row.created_us, T0);
    rv_session_row_fini(&row);
    FAILS(RV_E_NOT_FOUND, rv_store_change_session(w->s, &operator_scope, "s2", &change, &w->err));
    world_close(w);
}
END_TEST

START_TEST(a_session_has_a_status)
{
    struct world world, *w = &world;
    struct rv_session_change change = {.status = "archived", .now_us = T0 + 3};
    const struct rv_session_filter archived = {.status = "archived"}, odd = {.status = "gone"};
    struct seen seen = {.text = RV_BUF_INIT(1000)};
    struct rv_session_row row;

    world_open(w, _i);
    make_session(w, "s1", "u");
    make_session(w, "s2", "u");
    OK(rv_store_get_session(w->s, &operator_scope, "s1", &row, &w->err));
    ck_assert_str_eq(row.status, "active");
    rv_session_row_fini(&row);
    OK(rv_store_change_session(w->s, &operator_scope, "s1", &change, &w->err));
    OK(rv_store_get_session(w->s, &operator_scope, "s1", &row, &w->err));
    ck_assert_str_eq(row.status, "archived");
    rv_session_row_fini(&row);
    OK(rv_store_list_sessions(w->s, &operator_scope, &archived, see_session, &seen, &w->err));
    ck_assert_str_eq(rv_buf_cstr(&seen.text), "s1");
    change.status = "gone";
    SAYS(RV_E_INVALID, "no status", rv_store_change_session(w->s, &operator_scope, "s1", &change, &w->err));
    SAYS(RV_E_INVALID, "no status", rv_store_list_sessions(w->s, &operator_scope, &odd, see_session, &seen, &w->err));
    rv_buf_fini(&seen.text);
    world_close(w);
}
END_TEST

START_TEST(metadata_has_a_limit_and_a_change_beyond_it_changes_nothing)
{
    struct world world, *w = &world;
    struct rv_session_change change = {.now_us = T0 + 3};

    world_open(w, _i);
    make_session(w, "s1", "u");
    change.metadata = world_half(w, "a");
    OK(rv_store_change_session(w->s, &operator_scope, "s1", &change, &w->err));
    json_object_put(change.metadata);
    change.metadata = world_half(w, "b");
    change.name = "never";
    FAILS(RV_E_LIMIT, rv_store_change_session(w->s, &operator_scope, "s1", &change, &w->err));
    json_object_put(change.metadata);
    change = (struct rv_session_change){.remove = (const char *const[]){"a"}, .n_remove = 1, .now_us = T0 + 4};
    OK(rv_store_change_session(w->s, &operator_scope, "s1", &change, &w->err));
    SESSION("s1", "chat-s1 chat 0 0 {}");
    world_close(w);
}
END_TEST

static void touch(struct world *w, const char *id, int64_t at, const char *name)
{
    const struct rv_session_change change = {.name = name, .now_us = at};

    OK(rv_store_change_session(w->s, &operator_scope, id, &change, &w->err));
}

START_TEST(sessions_are_listed_last_touched_first)
{
    static const struct {
        struct rv_store_scope scope;
        struct rv_session_filter filter;
        const char *want;
    } rows[] = {
        {{NULL, NULL}, {0}, "s2 s1 s4 s5 s3"},
        {{NULL, "u"}, {0}, "s2 s1 s3"},
        {{NULL, "v"}, {0}, "s4"},
        {{NULL, ""}, {0}, "s5"},
        {{NULL, "w"}, {0}, ""},
        {{"else", NULL}, {0}, "t1"},
        {{"none", NULL}, {0}, ""},
        {{NULL, NULL}, {.limit = 2}, "s2 s1"},
        {{NULL, NULL}, {.limit = 2, .offset = 1}, "s1 s4"},
        {{NULL, NULL}, {.offset = 4}, "s3"},
        {{NULL, NULL}, {.offset = 5}, ""},
        {{NULL, NULL}, {.limit = INT64_MAX, .offset = INT64_MAX}, ""},
        {{NULL, NULL}, {.since_us = T0 + 20}, "s2 s1 s4"},
        {{NULL, "u"}, {.since_us = T0 + 41}, ""},
        {{NULL, NULL}, {.name_contains = "AbC"}, "s2 s3"},
        {{NULL, NULL}, {.name_contains = ""}, "s2 s1 s4 s5 s3"},
        {{NULL, NULL}, {.name_contains = "100%_"}, "s4"},
        {{NULL, NULL}, {.agent_name = "Aide"}, "s1"},
        {{NULL, NULL}, {.agent_name = "aid"}, ""},
        {{NULL, "u"}, {.agent_name = "AIDE", .name_contains = "chat", .limit = 1}, "s1"},
    };
    struct world world, *w = &world;
    struct rv_session_row fresh = {
        .id = "s1", .tenant = "default", .user = "u", .created_us = T0, .agent_name = "aide"};
    struct seen seen = SEEN_INIT;

    world_open(w, _i);
    OK(rv_store_ensure_session(w->s, &fresh, NULL, &w->err));
    make_session(w, "s2", "u");
    make_session(w, "s3", "u");
    make_session(w, "s4", "v");
    make_session(w, "s5", "");
    make_session(w, "s6", "u");
    fresh = (struct rv_session_row){.id = "t1", .tenant = "else", .user = "u", .created_us = T0};
    OK(rv_store_ensure_session(w->s, &fresh, NULL, &w->err));
    touch(w, "s3", T0 + 5, "xabcx");
    touch(w, "s5", T0 + 10, "plain");
    touch(w, "s4", T0 + 20, "100%_sure");
    touch(w, "s1", T0 + 30, NULL);
    touch(w, "s2", T0 + 40, "ABC");
    touch(w, "s6", T0 + 50, "ABC");
    OK(rv_store_delete_session(w->s, &operator_scope, "s6", T0 + 60, &w->err));
    for (size_t i = 0; i < RV_COUNT(rows); i++) {
        OK(rv_store_list_sessions(w->s, &rows[i].scope, &rows[i].filter, see_session, &seen, &w->err));
        SEEN(&seen, rows[i].want);
    }
    OK(rv_store_list_sessions(w->s, &operator_scope, NULL, see_session, &seen, &w->err));
    SEEN(&seen, "s2 s1 s4 s5 s3");
    seen.stop_at = 2;
    seen.code = 77;
    ck_assert_int_eq(rv_store_list_sessions(w->s, &operator_scope, NULL, see_session, &seen, &w->err), 77);
    SEEN(&seen, "s2 s1");
    world_close(w);
}
END_TEST

/* Of the same moment: by id. */
START_TEST(sessions_of_one_moment_are_listed_by_id)
{
    struct world world, *w = &world;
    struct seen seen = SEEN_INIT;

    world_open(w, _i);
    make_session(w, "b", "u");
    make_session(w, "a", "u");
    make_session(w, "c", "u");
    OK(rv_store_list_sessions(w->s, &operator_scope, NULL, see_session, &seen, &w->err));
    SEEN(&seen, "a b c");
    world_close(w);
}
END_TEST

START_TEST(a_deleted_session_is_nowhere_to_be_seen)
{
    struct world world, *w = &world;
    struct rv_session_change change = {.name = "x", .now_us = T0 + 9};
    struct seen seen = SEEN_INIT;
    struct rv_store_stats stats;
    struct rv_session_row row;

    world_open(w, _i);
    make_session(w, "s1", "u");
    make_session(w, "s2", "u");
    OK(add_rows(w, "s1", "a", "user:hello assistant:hi"));
    OK(rv_store_delete_session(w->s, &(struct rv_store_scope){NULL, "u"}, "s1", T0 + 5, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_delete_session(w->s, &operator_scope, "s1", T0 + 6, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_get_session(w->s, &operator_scope, "s1", &row, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_change_session(w->s, &operator_scope, "s1", &change, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_read_messages(w->s, &operator_scope, &(const struct rv_messages_of){"s1", NULL},
                                                 see_message, &seen, &w->err));
    FAILS(RV_E_NOT_FOUND, add_rows(w, "s1", "b", "user:more"));
    OK(rv_store_list_sessions(w->s, &operator_scope, NULL, see_session, &seen, &w->err));
    SEEN(&seen, "s2");
    OK(rv_store_read_stats(w->s, &stats, &w->err));
    ck_assert_int_eq(stats.sessions, 1);
    ck_assert_int_eq(stats.messages, 0);
    world_close(w);
}
END_TEST

START_TEST(a_session_takes_only_what_can_be_one)
{
    static char too_long[RV_STORE_MAX_ID + 2];
    static const struct {
        struct rv_session_row row;
        int code;
        const char *part;
    } rows[] = {
#define ROW(code, part, id_, tenant_, user_, ...)                                                                      \
    {{.id = (id_), .tenant = (tenant_), .user = (user_), __VA_ARGS__}, (code), (part)}
        ROW(RV_E_INVALID, "no session id given", NULL, "default", "u", .own = NULL),
        ROW(RV_E_INVALID, "session id is empty", "", "default", "u", .own = NULL),
        ROW(RV_E_LIMIT, "session id", too_long, "default", "u", .own = NULL),
        ROW(RV_E_INVALID, "not UTF-8", "\xff", "default", "u", .own = NULL),
        ROW(RV_E_INVALID, "no tenant given", "s1", NULL, "u", .own = NULL),
        ROW(RV_E_INVALID, "tenant is empty", "s1", "", "u", .own = NULL),
        ROW(RV_E_INVALID, "no user given", "s1", "default", NULL, .own = NULL),
        ROW(RV_E_LIMIT, "the user", "s1", "default", too_long, .own = NULL),
        ROW(RV_E_INVALID, "name is empty", "s1", "default", "u", .name = ""),
        ROW(RV_E_INVALID, "mode is empty", "s1", "default", "u", .mode = ""),
        ROW(RV_E_INVALID, "agent's name", "s1", "default", "u", .agent_name = "\xff"),
        ROW(RV_E_INVALID, "description", "s1", "default", "u", .description = "\xff"),
        ROW(RV_E_INVALID, "metadata is not a JSON object", "s1", "default", "u", .metadata = RV_STR_LIT("[1]")),
        ROW(RV_E_INVALID, "metadata is not a JSON object", "s1", "default", "u", .metadata = RV_STR_LIT("{} x")),
        ROW(RV_E_INVALID, "metadata is not a JSON object", "s1", "default", "u", .metadata = RV_STR_LIT("{\"a\":")),
        ROW(RV_E_INVALID, "before 1970", "s1", "default", "u", .created_us = -1),
#undef ROW
    };
    struct world world, *w = &world;
    struct rv_session_change change = {.now_us = T0};
    struct rv_store_stats stats;

    memset(too_long, 'x', sizeof too_long - 1);
    world_open(w, _i);
    FAILS(RV_E_INVALID, rv_store_ensure_session(w->s, NULL, NULL, &w->err));
    for (size_t i = 0; i < RV_COUNT(rows); i++)
        SAYS(rows[i].code, rows[i].part, rv_store_ensure_session(w->s, &rows[i].row, NULL, &w->err));
    OK(rv_store_read_stats(w->s, &stats, &w->err));
    ck_assert_int_eq(stats.sessions, 0);
    make_session(w, "s1", "u");
    FAILS(RV_E_INVALID, rv_store_change_session(w->s, &operator_scope, "s1", NULL, &w->err));
    change.n_remove = 1;
    FAILS(RV_E_INVALID, rv_store_change_session(w->s, &operator_scope, "s1", &change, &w->err));
    change.n_remove = 0;
    change.metadata = json_object_new_array();
    FAILS(RV_E_INVALID, rv_store_change_session(w->s, &operator_scope, "s1", &change, &w->err));
    json_object_put(change.metadata);
    FAILS(RV_E_INVALID, rv_store_list_sessions(w->s, &operator_scope, &(struct rv_session_filter){.limit = -1},
                                               see_session, NULL, &w->err));
    FAILS(RV_E_INVALID, rv_store_list_sessions(w->s, &operator_scope, &(struct rv_session_filter){.offset = -1},
                                               see_session, NULL, &w->err));
    FAILS(RV_E_INVALID, rv_store_delete_session(w->s, &operator_scope, "s1", -1, &w->err));
    world_close(w);
}
END_TEST

/* The index of names goes with a new name, and keeps the words of the description. */
START_TEST(a_session_that_is_renamed_is_found_by_its_description)
{
    static const struct rv_session_row fresh = {
        .id = "s1", .tenant = RV_STORE_TENANT, .user = "u", .description = "zanzibar expedition", .created_us = T0};
    static const struct rv_session_change named = {.name = "Holiday", .now_us = T0 + 1};
    const struct rv_turn turn = {.session = "s1", .name = "Vacation"};
    const struct rv_store_scope owner = {NULL, "u"};
    struct world world, *w = &world;

    world_open(w, _i);
    OK(rv_store_ensure_session(w->s, &fresh, NULL, &w->err));
    OK(rv_store_change_session(w->s, &owner, "s1", &named, &w->err));
    OK(rv_store_check(w->s, &w->err)); /* compares the index with the row */
    OK(rv_store_add_messages(w->s, &owner, &turn, T0 + 2, &w->err));
    OK(rv_store_check(w->s, &w->err));
    world_close(w);
}
END_TEST

/* --- The place in which a turn begins --- */

static bool takes(struct world *w, const struct rv_store_scope *scope, const struct rv_turn_place *place,
                  const char *holder)
{
    char by[RV_STORE_MAX_ID + 1];
    bool is_mine = false;

    OK(rv_store_take_turn(w->s, scope, place, &is_mine, by, &w->err));
    ck_assert_str_eq(by, holder);
    return is_mine;
}
#define TAKES(scope, holder, ...) takes(w, (scope), &(const struct rv_turn_place){__VA_ARGS__}, (holder))
#define LEAVE(scope, ...)         OK(rv_store_leave_turn(w->s, (scope), &(const struct rv_turn_place){__VA_ARGS__}, &w->err))

START_TEST(the_place_of_a_turn_is_one_process_until_it_leaves)
{
    static const struct rv_store_scope u = {NULL, "u"}, v = {NULL, "v"}, other = {"other", "u"}, none = {NULL, ""};
    struct world world, *w = &world;

    world_open(w, _i);
    ck_assert(TAKES(&u, "", "s", "A", T0, T0 + 10, NULL));
    ck_assert(!TAKES(&u, "A", "s", "B", T0, T0 + 10, NULL));
    ck_assert(TAKES(&v, "", "s", "B", T0, T0 + 10, NULL)); /* of other sessions */
    ck_assert(TAKES(&other, "", "s", "C", T0, T0 + 10, NULL));
    ck_assert(TAKES(&none, "", "s", "D", T0, T0 + 10, NULL));
    ck_assert(TAKES(&u, "", "t", "E", T0, T0 + 10, NULL));
    ck_assert(TAKES(&u, "", "s", "A", T0 + 5, T0 + 20, NULL)); /* kept */
    ck_assert(!TAKES(&u, "A", "s", "B", T0 + 19, T0 + 30, NULL));
    ck_assert(TAKES(&u, "", "s", "B", T0 + 20, T0 + 30, NULL)); /* its time is over */
    LEAVE(&u, "s", "A", 0, 0, NULL);                            /* who has it no more changes nothing */
    ck_assert(!TAKES(&u, "B", "s", "A", T0 + 21, T0 + 30, NULL));
    ck_assert(!TAKES(&u, "B", "s", "A", T0 + 21, T0 + 30, "C")); /* another one is dead */
    ck_assert(TAKES(&u, "", "s", "A", T0 + 21, T0 + 30, "B"));
    LEAVE(&u, "s", "A", 0, 0, NULL);
    LEAVE(&u, "s", "A", 0, 0, NULL);
    ck_assert(TAKES(&u, "", "s", "B", T0 + 22, T0 + 30, NULL));
    char by[RV_STORE_MAX_ID + 1];
    bool is_mine = true;
    const struct rv_turn_place wrong[] = {
        {"", "A", T0, T0 + 1, NULL}, {"s", "", T0, T0 + 1, NULL}, {"s", "A", T0, T0, NULL}};
    for (size_t i = 0; i < RV_COUNT(wrong); i++)
        FAILS(RV_E_INVALID, rv_store_take_turn(w->s, &u, &wrong[i], &is_mine, by, &w->err));
    ck_assert(!is_mine);
    world_close(w);
}
END_TEST

Suite *sessions_suite(void)
{
    Suite *suite = suite_create("sessions");
    TCase *tc = tcase_create("sessions");

    ADD(tc, a_session_is_made_once);
    ADD(tc, an_id_is_its_owners_alone);
    ADD(tc, an_id_of_several_users_is_ambiguous);
    ADD(tc, a_change_touches_what_it_names);
    ADD(tc, a_session_that_is_renamed_is_found_by_its_description);
    ADD(tc, a_session_has_a_status);
    ADD(tc, metadata_has_a_limit_and_a_change_beyond_it_changes_nothing);
    ADD(tc, sessions_are_listed_last_touched_first);
    ADD(tc, sessions_of_one_moment_are_listed_by_id);
    ADD(tc, a_deleted_session_is_nowhere_to_be_seen);
    ADD(tc, a_session_takes_only_what_can_be_one);
    ADD(tc, the_place_of_a_turn_is_one_process_until_it_leaves);
    suite_add_tcase(suite, tc);
    return suite;
}
