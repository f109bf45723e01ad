/* Whose rows a call may see: each function against each kind of caller. Who may not see a thing is told the same, byte
 * for byte, as when there is no such thing. */
#include "tests/contract/store/world.h"

static struct rv_store_scope scope; /* whoever asks */
static const char *id;              /* what is asked for */

static int do_get(struct world *w)
{
    struct rv_session_row row = {0};
    int rc = rv_store_get_session(w->s, &scope, id, &row, &w->err);

    rv_session_row_fini(&row);
    return rc;
}
static int do_change(struct world *w)
{
    const struct rv_session_change change = {.name = "changed", .now_us = T0 + 5};
    return rv_store_change_session(w->s, &scope, id, &change, &w->err);
}
static int do_read(struct world *w)
{
    struct seen seen = SEEN_INIT;
    int rc =
        rv_store_read_messages(w->s, &scope, &(const struct rv_messages_of){id, NULL}, see_message, &seen, &w->err);

    ck_assert_str_eq(rv_buf_cstr(&seen.text), rc == 0 ? "1:user=secret" : "");
    rv_buf_fini(&seen.text);
    return rc;
}
static int do_add(struct world *w)
{
    struct rv_message m = world_message("extra", "user", "more");
    const struct rv_turn turn = {.session = id, .rows = &m, .n_rows = 1};
    return rv_store_add_messages(w->s, &scope, &turn, T0 + 5, &w->err);
}
static int do_delete(struct world *w)
{
    return rv_store_delete_session(w->s, &scope, id, T0 + 5, &w->err);
}
static int do_list(struct world *w)
{
    struct seen seen = SEEN_INIT;
    int rc = rv_store_list_sessions(w->s, &scope, NULL, see_session, &seen, &w->err);
    bool is_there = strstr(rv_buf_cstr(&seen.text), id) != NULL;

    rv_buf_fini(&seen.text);
    if (rc == 0 && !is_there)
        rc = RV_FAIL(&w->err, RV_E_NOT_FOUND, "\"%s\" is not listed", id);
    return rc;
}

static const struct {
    const char *name;
    int (*run)(struct world *w);
} calls[] = {{"get", do_get}, {"change", do_change}, {"read", do_read},
             {"add", do_add}, {"list", do_list},     {"delete", do_delete}};

static const struct {
    const char *tenant, *user; /* the session's */
} owners[] = {{"default", "u"}, {"default", ""}, {"else", "u"}};

static const struct {
    struct rv_store_scope scope;
    bool sees[RV_COUNT(owners)];
} callers[] = {
    {{NULL, "u"}, {true, false, false}},        {{"default", "u"}, {true, false, false}},
    {{NULL, "v"}, {false, false, false}},       {{NULL, ""}, {false, true, false}},
    {{NULL, NULL}, {true, true, false}},        {{"else", "u"}, {false, false, true}},
    {{"else", NULL}, {false, false, true}},     {{"else", ""}, {false, false, false}},
    {{"Default", "u"}, {false, false, false}},  {{"default", "U"}, {false, false, false}},
    {{"default", "u "}, {false, false, false}}, {{"default%", NULL}, {false, false, false}},
};

static void open_with(struct world *w, int i, size_t owner)
{
    const struct rv_session_row fresh = {
        .id = "s1", .tenant = owners[owner].tenant, .user = owners[owner].user, .created_us = T0};
    const struct rv_store_scope theirs = {fresh.tenant, fresh.user};
    struct rv_message m = world_message("m1", "user", "secret");
    const struct rv_turn turn = {.session = "s1", .rows = &m, .n_rows = 1};

    world_open(w, i);
    OK(rv_store_ensure_session(w->s, &fresh, NULL, &w->err));
    OK(rv_store_add_messages(w->s, &theirs, &turn, T0, &w->err));
}

/* The whole chain as text, with the id it was asked by written as one and the same. */
static void told(struct world *w, char out[500])
{
    rv_buf text = RV_BUF_INIT(2000);
    char *at;

    rv_err_write_text(w->err, false, &text);
    snprintf(out, 500, "%d %s", rv_err_code(w->err), rv_buf_cstr(&text));
    while ((at = strstr(out, id)))
        memcpy(at, "**", 2);
    rv_buf_fini(&text);
    rv_err_free(w->err);
    w->err = NULL;
}

/* Whether it was let through: the session may be another one now. */
static bool try_call(struct world *w, size_t caller, size_t owner, size_t call)
{
    char missing[500] = "", got[500] = "";
    struct rv_session_row row;
    int rc;

    scope = callers[caller].scope;
    id = "s9";
    ck_assert_int_eq(calls[call].run(w), RV_E_NOT_FOUND);
    told(w, missing);
    id = "s1";
    rc = calls[call].run(w);
    ck_assert_msg((rc == 0) == callers[caller].sees[owner], "%s: caller %zu, owner %zu: %d", calls[call].name, caller,
                  owner, rc);
    if (rc == 0)
        return true;
    told(w, got);
    ck_assert_str_eq(got, missing);
    scope = (struct rv_store_scope){owners[owner].tenant, NULL}; /* and nothing came of it */
    OK(rv_store_get_session(w->s, &scope, "s1", &row, &w->err));
    ck_assert_str_eq(row.name, "chat-s1");
    ck_assert_int_eq(row.n_messages, 1);
    rv_session_row_fini(&row);
    return false;
}

/* Proves remlight.19/11, p8.W27 */
START_TEST(nobody_sees_a_session_that_is_not_theirs)
{
    struct world world, *w = &world;

    for (size_t owner = 0; owner < RV_COUNT(owners); owner++) {
        open_with(w, _i, owner);
        for (size_t caller = 0; caller < RV_COUNT(callers); caller++) {
            for (size_t call = 0; call < RV_COUNT(calls); call++) {
                if (!try_call(w, caller, owner, call))
                    continue;
                world_close(w);
                open_with(w, _i, owner);
            }
        }
        world_close(w);
    }
}
END_TEST

/* Schemas are the exception: nobody's are everybody's. */
START_TEST(schemas_are_found_within_the_tenant)
{
    static const bool sees[RV_COUNT(callers)][RV_COUNT(owners)] = {
        {true, true, false},   {true, true, false},  {false, true, false},  {false, true, false},
        {false, true, false},  {false, false, true}, {false, false, false}, {false, false, false},
        {false, false, false}, {false, true, false}, {false, true, false},  {false, false, false},
    };
    struct world world, *w = &world;

    for (size_t owner = 0; owner < RV_COUNT(owners); owner++) {
        const struct rv_schema_row given = {.tenant = owners[owner].tenant,
                                            .user = owners[owner].user,
                                            .name = "n",
                                            .kind = "agent",
                                            .source = "person"};
        world_open(w, _i);
        OK(rv_store_put_schema(w->s, &given, RV_SCHEMA_PUT, T0, NULL, &w->err));
        for (size_t caller = 0; caller < RV_COUNT(callers); caller++) {
            struct rv_schema_row row = {0};
            char missing[500], got[500];
            int rc = rv_store_find_schema(w->s, &callers[caller].scope, "agent", "n", &row, &w->err);
            ck_assert_msg(rc == (sees[caller][owner] ? 0 : RV_E_NOT_FOUND), "caller %zu, owner %zu", caller, owner);
            rv_schema_row_fini(&row);
            if (rc == 0)
                continue;
            id = "\"n\"";
            told(w, got);
            ck_assert_int_ne(rv_store_find_schema(w->s, &callers[caller].scope, "agent", "x", &row, &w->err), 0);
            id = "\"x\"";
            told(w, missing);
            ck_assert_str_eq(got, missing);
            if (callers[caller].scope.user && *callers[caller].scope.user) /* nor can it be deleted */
                FAILS(RV_E_NOT_FOUND, rv_store_delete_schema(w->s, &callers[caller].scope, "agent", "n", T0, &w->err));
        }
        world_close(w);
    }
}
END_TEST

Suite *isolation_suite(void)
{
    Suite *suite = suite_create("isolation");
    TCase *tc = tcase_create("isolation");

    ADD(tc, nobody_sees_a_session_that_is_not_theirs);
    ADD(tc, schemas_are_found_within_the_tenant);
    suite_add_tcase(suite, tc);
    return suite;
}
