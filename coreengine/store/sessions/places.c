/* The place in which a turn of a session begins. One process at a time has it, from the look for turns under way until
 * the run of its turn is in the store, where others find it: two messages that come to two processes at the same
 * instant do not both begin. It is a duty whose name tells neither session nor user. */
#include <stdio.h>
#include <string.h>

#include "coreengine/store/store_internal.h"

#define NAME_ROOM (sizeof "turn-" + RV_HASH_MAX)

static int name_of(const struct rv_store_scope *scope, const struct rv_turn_place *place, char name[NAME_ROOM],
                   rv_err **err)
{
    char hex[RV_HASH_MAX];
    struct rv_hash hash;
    struct rv_store_scope sc;
    int rc = store_check_scoped(scope, "session id", place->session, &sc, err);

    if (rc == 0)
        rc = store_check_id("owner", place->owner, err);
    if (rc < 0)
        return rc;
    const char *parts[] = {sc.tenant, sc.user ? sc.user : "", place->session};
    rv_hash_init(&hash);
    for (size_t i = 0; i < RV_COUNT(parts); i++)
        rv_hash_add(&hash, (rv_str){parts[i], strlen(parts[i]) + 1});
    rv_hash_finish_hex(&hash, hex);
    snprintf(name, NAME_ROOM, "turn-%s", hex);
    return 0;
}

static int give_up(struct sql_store *st, const char *name, const char *owner, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_DROP_DUTY);

    store_sql_text(stmt, 1, name);
    store_sql_text(stmt, 2, owner);
    return sql_run(stmt, "give up the place of a turn", err);
}

static int read_owner(struct sql_store *st, const char *name, char by[RV_STORE_MAX_ID + 1], rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_HAS_DUTY);
    int rc;

    store_sql_text(stmt, 1, name);
    rc = sql_step(stmt, "look who has the place of a turn", err);
    rv_str owner = rc == 1 ? sql_str_at(stmt, 0) : RV_STR_LIT("");
    snprintf(by, RV_STORE_MAX_ID + 1, "%.*s", RV_STR_ARG(owner));
    sql_done(stmt);
    return rc < 0 ? rc : 0;
}

static int take(struct sql_store *st, const char *name, const struct rv_turn_place *place, bool *is_mine,
                char by[RV_STORE_MAX_ID + 1], rv_err **err)
{
    int64_t n = 0;
    int rc = place->dead ? give_up(st, name, place->dead, err) : 0;

    if (rc < 0)
        return rc;
    rv_sql_stmt *stmt = sql_use(st, SQL_TAKE_DUTY);
    store_sql_text(stmt, 1, name);
    store_sql_text(stmt, 2, place->owner);
    sql_int(stmt, 3, place->until_us);
    sql_int(stmt, 4, place->now_us);
    rc = sql_run_counted(stmt, &n, "take the place of a turn", err);
    *is_mine = rc == 0 && n > 0;
    by[0] = '\0';
    return rc < 0 || *is_mine ? rc : read_owner(st, name, by, err);
}

int rv_store_take_turn(rv_store *s, const struct rv_store_scope *scope, const struct rv_turn_place *place,
                       bool *is_mine, char by[RV_STORE_MAX_ID + 1], rv_err **err)
{
    char name[NAME_ROOM];
    int rc = name_of(scope, place, name, err);

    *is_mine = false;
    by[0] = '\0';
    if (rc == 0 && place->until_us <= place->now_us)
        rc = RV_FAIL(err, RV_E_INVALID, "the place of a turn would be free before it is taken");
    if ((rc = store_enter_write(s, rc, "take turn", err)) != 0)
        return rc;
    do
        rc = take(s->sql, name, place, is_mine, by, err);
    while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    *is_mine = *is_mine && rc == 0;
    return rc;
}

int rv_store_leave_turn(rv_store *s, const struct rv_store_scope *scope, const struct rv_turn_place *place,
                        rv_err **err)
{
    char name[NAME_ROOM];
    int rc = store_enter_write(s, name_of(scope, place, name, err), "leave turn", err);

    if (rc != 0)
        return rc;
    do
        rc = give_up(s->sql, name, place->owner, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}
