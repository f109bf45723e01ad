/* Transactions of SQLite. A write that fails has changed nothing: alone it is rolled back; in a group it is refused
 * before it writes, and should it fail after that (no space, no memory), the group is given up as a whole. */
#include "coreengine/store/sqlite/sqlite_internal.h"

static int run_id(struct sqlite *st, enum sql_id id, const char *what, rv_err **err)
{
    return sql_run(sql_use(&st->base, id), what, err);
}

/* A number that changes with each commit of whichever connection. */
static unsigned state_of(const struct sqlite_link *l)
{
    unsigned state = 0;

    RV_IGNORE(sqlite3_file_control(l->db, "main", SQLITE_FCNTL_DATA_VERSION, &state), "an open database has one");
    return state;
}

/* The state of encryption is read again only when another connection has written since. */
static void begun(struct sqlite *st)
{
    if (st->seen_by != st->link || st->seen != state_of(st->link))
        st->base.rules = 0;
}

static void committed(struct sqlite *st)
{
    st->seen_by = st->link;
    st->seen = state_of(st->link);
}

/* Ends the transaction in any state that a failure left the connection in. */
static void abandon(struct sqlite *st)
{
    if (sqlite3_get_autocommit(st->link->db))
        return;
    if (run_id(st, SQL_ROLLBACK, "roll back",
               RV_CODE_ONLY("it is tried once more below; why the transaction failed is reported")) < 0 &&
        !sqlite3_get_autocommit(st->link->db))
        sqlite3_exec(st->link->db, "ROLLBACK", NULL, NULL, NULL);
}

/* The same of a transaction that wrote. */
static void give_up(struct sqlite *st)
{
    abandon(st);
    st->seen_by = NULL;
    st->base.rules = 0;
}

int sqlite_begin_read(struct sql_store *base, bool *began, rv_err **err)
{
    struct sqlite *st = (struct sqlite *)base;

    *began = false;
    if (!sqlite3_get_autocommit(st->link->db))
        return 0;
    *began = true;
    return run_id(st, SQL_BEGIN_READ, "begin to read", err);
}

void sqlite_end_read(struct sql_store *base, bool began)
{
    struct sqlite *st = (struct sqlite *)base;

    if (began)
        abandon(st); /* a transaction that wrote nothing: its rollback cannot fail half-way */
}

static int fail_broken(const struct sql_store *base, rv_err **err)
{
    return RV_FAIL(err, base->broken, "\"%s\": the group was rolled back when a write in it failed", base->path);
}

/* A file that is removed or replaced while it is open takes every write, and none of them is ever read. */
static int check_file(const struct sqlite *st, rv_err **err)
{
    int has_moved = 0;

    RV_IGNORE(sqlite3_file_control(st->link->db, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved), "0: it has no file");
    if (!has_moved)
        return 0;
    RV_FAIL(err, RV_E_IO, "\"%s\" was removed or replaced while it was open: what is written now would be lost",
            st->base.path);
    rv_err_set_hint(err, "put the file back, or start this process again");
    return RV_E_IO;
}

static int begin_turn(struct sqlite *st, const char *what, rv_err **err)
{
    int rc = check_file(st, err);

    if (rc == 0)
        rc = sqlite_take_turn(st, what, err);
    if (rc < 0)
        return rc;
    rc = run_id(st, SQL_BEGIN_WRITE, what, err);
    if (rc < 0)
        sqlite_give_turn(st);
    else
        begun(st);
    return rc;
}

int sqlite_begin_write(struct sql_store *base, const char *what, rv_err **err)
{
    struct sqlite *st = (struct sqlite *)base;

    if (base->in_group && base->broken)
        return fail_broken(base, err);
    int rc = base->in_group ? 0 : begin_turn(st, what, err);
    st->changes = sqlite3_total_changes(st->link->db);
    return rc;
}

int sqlite_end_write(struct sql_store *base, int rc, const char *what, rv_err **err)
{
    struct sqlite *st = (struct sqlite *)base;

    if (base->in_group) {
        bool is_whole = !sqlite3_get_autocommit(st->link->db) && sqlite3_total_changes(st->link->db) == st->changes;
        if (rc < 0 && !is_whole) {
            give_up(st);
            base->broken = rc;
        }
        return rc;
    }
    if (rc == 0)
        rc = run_id(st, SQL_COMMIT, what, err);
    if (rc < 0)
        give_up(st);
    else
        committed(st);
    sqlite_give_turn(st);
    return rc;
}

int sqlite_begin_part(struct sql_store *base, rv_err **err)
{
    struct sqlite *st = (struct sqlite *)base;

    return base->in_group ? run_id(st, SQL_BEGIN_PART, "begin a part of the group", err) : 0;
}

/* Errors that refuse one write. Any error of SQLite or of the system ends its group, too. */
static bool is_refusal(int rc)
{
    return rc == RV_E_DENIED || rc == RV_E_EXISTS || rc == RV_E_INVALID || rc == RV_E_LIMIT || rc == RV_E_NOT_FOUND ||
           rc == RV_E_STATE;
}

int sqlite_end_part(struct sql_store *base, int rc, rv_err **err)
{
    struct sqlite *st = (struct sqlite *)base;
    rv_err *why = NULL;
    int undone;

    if (!base->in_group)
        return rc;
    if (rc == 0)
        return run_id(st, SQL_END_PART, "end a part of the group", err);
    if (!is_refusal(rc))
        return rc;
    undone = run_id(st, SQL_UNDO_PART, "undo a part of the group", &why);
    if (undone == 0)
        undone = run_id(st, SQL_END_PART, "end a part of the group", &why);
    if (undone < 0) { /* that is what the group is given up for, not the refusal */
        rv_err_free(rv_err_steal(err));
        rv_err_pass(err, why);
        return RV_WRAP(err, undone, "\"%s\": undo a part of the group", st->base.path);
    }
    st->changes = sqlite3_total_changes(st->link->db);
    base->rules = 0;
    return rc;
}

int sqlite_begin(struct sql_store *base, rv_err **err)
{
    struct sqlite *st = (struct sqlite *)base;
    int rc = begin_turn(st, "begin a group", err);

    base->in_group = rc == 0;
    base->broken = 0;
    return rc;
}

int sqlite_commit(struct sql_store *base, rv_err **err)
{
    struct sqlite *st = (struct sqlite *)base;
    int rc;

    base->in_group = false;
    rc = base->broken ? fail_broken(base, err) : run_id(st, SQL_COMMIT, "commit the group", err);
    if (rc < 0)
        give_up(st);
    else
        committed(st);
    sqlite_give_turn(st);
    return rc;
}

void sqlite_rollback(struct sql_store *base)
{
    struct sqlite *st = (struct sqlite *)base;

    base->in_group = false;
    if (st->link->db)
        give_up(st);
    sqlite_give_turn(st);
}
