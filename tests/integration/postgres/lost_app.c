/* Groups of the application that are written while the connection breaks: what a session and its copy are made of, a
 * moment with its session. */
#include "coreengine/app/app.h"
#include "tests/integration/postgres/lost.h"

static void make_talk(struct scene *sc)
{
    struct world *w = &sc->world;
    struct scene by = {.s = w->s, .n = sc->n};

    make_session(sc);
    OK(do_session(&by, &w->err));
}

static int do_clone(struct scene *sc, rv_err **err)
{
    char name[20], id[20], got[RV_STORE_MAX_ID + 1];
    const struct rv_app_clone how = {.session = name, .id = id, .now_us = T0, .rand = rv_rand_system()};
    int64_t n = 0;

    name_of(name, "session", sc->n);
    name_of(id, "copy", sc->n);
    int rc = rv_app_clone_session(sc->s, &operator_scope, &how, got, &n, err);
    ck_assert(rc < 0 || n == 2);
    return rc;
}

static int64_t messages_of(struct scene *sc, const char *kind)
{
    struct world *w = &sc->world;
    struct rv_session_row row = {0};
    char name[20];

    name_of(name, kind, sc->n);
    OK(rv_store_get_session(w->s, &operator_scope, name, &row, &w->err));
    int64_t n = row.n_messages;
    rv_session_row_fini(&row);
    return n;
}

static void check_clone(struct scene *sc)
{
    ck_assert_int_eq(messages_of(sc, "copy"), 2);
}

static int do_moment(struct scene *sc, rv_err **err)
{
    static const struct rv_store_scope u = {NULL, "u"};
    char name[20], session[RV_STORE_MAX_ID + 1];
    json_object *moment = json_object_new_object(), *out = NULL;
    const struct rv_app_moment_session how = {.moment = moment, .now_us = T0, .rand = rv_rand_system()};

    name_of(name, "moment", sc->n);
    json_object_object_add(moment, "name", json_object_new_string(name));
    json_object_object_add(moment, "moment_type", json_object_new_string("note"));
    int rc = rv_app_put_moment(sc->s, &u, &how, session, &out, err);
    json_object_put(moment);
    json_object_put(out);
    return rc;
}

static int count_session(void *self, const struct rv_session_row *row, rv_err **err)
{
    (void)err;
    *(int64_t *)self += row->id[0] != 0;
    return 0;
}

static void check_moment(struct scene *sc)
{
    struct world *w = &sc->world;
    int64_t n = 0;
    char name[20];
    const struct rv_session_filter filter = {.name_contains = name, .limit = 9};

    name_of(name, "moment", sc->n);
    OK(rv_store_list_sessions(w->s, &operator_scope, &filter, count_session, &n, &w->err));
    ck_assert_int_ge(n, 1); /* and those whose number begins with this one */
}

static int do_delete(struct scene *sc, rv_err **err)
{
    char name[20];

    name_of(name, "session", sc->n);
    return rv_chat_delete_session(sc->s, &operator_scope, name, T0, NULL, err);
}

static void check_deleted(struct scene *sc)
{
    struct world *w = &sc->world;
    char name[20];

    name_of(name, "session", sc->n);
    ck_assert_int_eq(rv_store_get_session(w->s, &operator_scope, name, &(struct rv_session_row){0}, NULL),
                     RV_E_NOT_FOUND);
}

const struct kind app_kinds[N_APP_KINDS] = {
    {"a copy of a session", make_talk, do_clone, check_clone},
    {"a moment with its session", no_more, do_moment, check_moment},
    {"a session deleted", make_talk, do_delete, check_deleted},
};
