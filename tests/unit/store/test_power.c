/* A power cut: files have again what they had at their last sync, whatever was written to them since. What a store said
 * is durable is there, also what another handle wrote before without waiting for the disk (rv_store_defer_sync()). */
#include <unistd.h>

#include "tests/unit/store/world.h"

#define N_WRITES   600 /* 3 pages each: the log is written back into the file more than once */
#define N_HANDLES  3
#define TEXT_BYTES 9000

/* --- a file system of SQLite that keeps each file as it was at its last sync beside it --- */

struct cut_file {
    sqlite3_file base; /* the first member */
    char *path;        /* owned; of files that have a name that stays */
    int n_unsynced;    /* writes and truncations */
    sqlite3_file real; /* and what the system's has behind it */
};

static sqlite3_vfs cut_vfs;
static sqlite3_vfs *real_vfs;
static sqlite3_io_methods cut_methods;
static int n_lost; /* files that have lost something in the last cut */

#define REAL(f) (&((struct cut_file *)(f))->real)
#define OF(f)   (REAL(f)->pMethods)

static char *synced_name(const char *path)
{
    return sqlite3_mprintf("%s.synced", path);
}

static int cut_close(sqlite3_file *f)
{
    int rc = OF(f)->xClose(REAL(f));

    sqlite3_free(((struct cut_file *)f)->path);
    return rc;
}

static int cut_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
    return OF(f)->xRead(REAL(f), to, n, at);
}

static int cut_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
    ((struct cut_file *)f)->n_unsynced++;
    return OF(f)->xWrite(REAL(f), from, n, at);
}

static int cut_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    ((struct cut_file *)f)->n_unsynced++;
    return OF(f)->xTruncate(REAL(f), size);
}

static int cut_sync(sqlite3_file *f, int flags)
{
    struct cut_file *c = (struct cut_file *)f;
    int rc = OF(f)->xSync(REAL(f), flags);

    if (rc == SQLITE_OK && c->path && c->n_unsynced > 0) {
        char *name = synced_name(c->path);
        rv_buf bytes = world_read(c->path);
        world_write(name, rv_buf_str(&bytes));
        rv_buf_fini(&bytes);
        sqlite3_free(name);
        c->n_unsynced = 0;
    }
    return rc;
}

static int cut_size(sqlite3_file *f, sqlite3_int64 *size)
{
    return OF(f)->xFileSize(REAL(f), size);
}

static int cut_lock(sqlite3_file *f, int level)
{
    return OF(f)->xLock(REAL(f), level);
}

static int cut_unlock(sqlite3_file *f, int level)
{
    return OF(f)->xUnlock(REAL(f), level);
}

static int cut_check_lock(sqlite3_file *f, int *is_reserved)
{
    return OF(f)->xCheckReservedLock(REAL(f), is_reserved);
}

static int cut_control(sqlite3_file *f, int op, void *arg)
{
    return OF(f)->xFileControl(REAL(f), op, arg);
}

static int cut_sector(sqlite3_file *f)
{
    return OF(f)->xSectorSize(REAL(f));
}

static int cut_traits(sqlite3_file *f)
{
    return OF(f)->xDeviceCharacteristics(REAL(f));
}

static int cut_shm_map(sqlite3_file *f, int page, int size, int extends, void volatile **out)
{
    return OF(f)->xShmMap(REAL(f), page, size, extends, out);
}

static int cut_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
    return OF(f)->xShmLock(REAL(f), at, n, flags);
}

static void cut_shm_barrier(sqlite3_file *f)
{
    OF(f)->xShmBarrier(REAL(f));
}

static int cut_shm_unmap(sqlite3_file *f, int deletes)
{
    return OF(f)->xShmUnmap(REAL(f), deletes);
}

static int cut_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out_flags)
{
    struct cut_file *c = (struct cut_file *)f;

    (void)vfs;
    *c = (struct cut_file){.n_unsynced = 0};
    int rc = real_vfs->xOpen(real_vfs, name, &c->real, flags, out_flags);
    if (rc != SQLITE_OK)
        return rc;
    if (name && (flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)))
        c->path = sqlite3_mprintf("%s", name);
    c->base.pMethods = &cut_methods;
    return SQLITE_OK;
}

static void cut_begin(void)
{
    real_vfs = sqlite3_vfs_find(NULL);
    cut_methods = (sqlite3_io_methods){.iVersion = 2,
                                       .xClose = cut_close,
                                       .xRead = cut_read,
                                       .xWrite = cut_write,
                                       .xTruncate = cut_truncate,
                                       .xSync = cut_sync,
                                       .xFileSize = cut_size,
                                       .xLock = cut_lock,
                                       .xUnlock = cut_unlock,
                                       .xCheckReservedLock = cut_check_lock,
                                       .xFileControl = cut_control,
                                       .xSectorSize = cut_sector,
                                       .xDeviceCharacteristics = cut_traits,
                                       .xShmMap = cut_shm_map,
                                       .xShmLock = cut_shm_lock,
                                       .xShmBarrier = cut_shm_barrier,
                                       .xShmUnmap = cut_shm_unmap};
    cut_vfs = *real_vfs;
    cut_vfs.zName = "cut";
    cut_vfs.szOsFile = (int)sizeof(struct cut_file) + real_vfs->szOsFile;
    cut_vfs.xOpen = cut_open;
    ck_assert_int_eq(sqlite3_vfs_register(&cut_vfs, 1), SQLITE_OK);
}

static void cut_end(void)
{
    sqlite3_vfs_unregister(&cut_vfs);
    sqlite3_vfs_register(real_vfs, 1);
}

/* A file as it would be found after a cut: as it was synced last, or not at all. */
static void take(const char *path, const char *suffix, const char *to)
{
    char *now = sqlite3_mprintf("%s%s", path, suffix), *copy = sqlite3_mprintf("%s%s", to, suffix);
    char *synced = synced_name(now);

    unlink(copy);
    if (access(synced, R_OK) == 0) {
        rv_buf bytes = world_read(synced), all = world_read(now);
        n_lost += !rv_str_eq(rv_buf_str(&bytes), rv_buf_str(&all));
        world_write(copy, rv_buf_str(&bytes));
        rv_buf_fini(&bytes);
        rv_buf_fini(&all);
    }
    sqlite3_free(synced);
    sqlite3_free(copy);
    sqlite3_free(now);
}

/* What the disk would have now, as a store of its own. */
static rv_store *after_cut(struct world *w, char **path)
{
    const struct rv_store_opts opts = {.must_exist = true};
    rv_store *s = NULL;

    *path = sqlite3_mprintf("%s.cut", w->path);
    n_lost = 0;
    take(w->path, "", *path);
    take(w->path, "-wal", *path);
    OK(rv_store_open(*path, &opts, &s, &w->err));
    return s;
}

/* --- what is written --- */

static rv_str text_of(char text[TEXT_BYTES], int n)
{
    memset(text, 'a' + n % 26, TEXT_BYTES);
    int head = snprintf(text, TEXT_BYTES, "text %d", n);
    text[head] = ' ';
    return (rv_str){text, TEXT_BYTES};
}

static void put(struct world *w, rv_store *s, int n, bool defers)
{
    char text[TEXT_BYTES], hash[RV_STORE_HASH_MAX];

    rv_store_defer_sync(s, defers);
    OK(rv_store_put_blob(s, text_of(text, n), hash, &w->err));
    rv_store_defer_sync(s, false);
}

static bool has(rv_store *s, int n)
{
    rv_buf got = RV_BUF_INIT(2 * TEXT_BYTES);
    char text[TEXT_BYTES], hash[RV_HASH_MAX];
    rv_str want = text_of(text, n);

    rv_hash_format(want, hash);
    bool has = rv_store_get_blob(s, hash, &got, NULL) == 0 && rv_str_eq(rv_buf_str(&got), want);
    rv_buf_fini(&got);
    return has;
}

static rv_store *open_durable(struct world *w)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_FULL};
    rv_store *s = NULL;

    OK(rv_store_open(w->path, &opts, &s, &w->err));
    return s;
}

static void check_cut(struct world *w, int n_durable, int n_written)
{
    char *path;
    rv_store *s = after_cut(w, &path);

    for (int i = 0; i < n_durable; i++)
        ck_assert_msg(has(s, i), "%d is lost, of %d that are durable and %d that are written", i, n_durable, n_written);
    rv_store_close(s);
    sqlite3_free(path);
}

START_TEST(a_deferred_write_is_durable_with_the_next_one_that_is)
{
    struct world world, *w = &world;
    char *path;

    cut_begin();
    world_open(w, -1);
    rv_store *a = open_durable(w), *b = open_durable(w);
    put(w, a, 0, false);
    check_cut(w, 1, 1);
    ck_assert_int_eq(n_lost, 0);
    put(w, b, 1, true);
    rv_store *s = after_cut(w, &path); /* or this test would see nothing */
    ck_assert(n_lost == 1 && has(s, 0) && !has(s, 1));
    rv_store_close(s);
    sqlite3_free(path);
    put(w, a, 2, false);
    check_cut(w, 3, 3);
    rv_store_close(a);
    rv_store_close(b);
    world_close(w);
    cut_end();
}
END_TEST

START_TEST(what_was_durable_stays_so_however_writes_are_mixed)
{
    struct rv_rand_state state;
    struct rv_rand random = rv_rand_seeded(&state, 16);
    rv_store *handles[N_HANDLES];
    struct world world, *w = &world;
    int n_durable = 0, n_cuts = 0;

    cut_begin();
    world_open(w, -1);
    for (int i = 0; i < N_HANDLES; i++)
        handles[i] = open_durable(w);
    for (int i = 0; i < N_WRITES; i++) {
        bool defers = rv_rand_below(random, 3) > 0;
        put(w, handles[rv_rand_below(random, N_HANDLES)], i, defers);
        n_durable = defers ? n_durable : i + 1;
        if (rv_rand_below(random, 40) == 0) {
            check_cut(w, n_durable, i + 1);
            n_cuts += n_lost > 0;
        }
    }
    ck_assert_int_gt(n_cuts, 3); /* that have lost something */
    for (int i = 0; i < N_HANDLES; i++)
        rv_store_close(handles[i]);
    world_close(w);
    cut_end();
}
END_TEST

Suite *power_suite(void)
{
    Suite *s = suite_create("power");
    TCase *tc = tcase_create("power");

    tcase_add_test(tc, a_deferred_write_is_durable_with_the_next_one_that_is);
    tcase_add_test(tc, what_was_durable_stays_so_however_writes_are_mixed);
    suite_add_tcase(s, tc);
    return s;
}
