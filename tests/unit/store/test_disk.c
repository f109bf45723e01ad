/* Disks that are full, files and folders that can not be written to. What was acknowledged stays readable, and when the
 * cause is gone the same handle works on. */
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/store/world.h"

/* Every test that needs one has a mount namespace of its own, so that nothing outside sees the mounts. False: not
 * allowed here. */
static bool mount_at(const char *dir, const char *kind, const char *options, unsigned long flags)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return false;
    return mount("none", dir, kind, flags, options) == 0;
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_ptr_ne(signal(SIGXFSZ, SIG_IGN), SIG_ERR);
}

/* Append until it fails; how many records there are. */
static int64_t fill(struct world *w, int64_t n, int code, const char *part, const char *hint)
{
    int rc = 0;

    while (rc == 0 && n < 5000)
        rc = world_append(w, w->s, ++n, 3000);
    must_fail(w, rc, code, part, hint, __LINE__);
    return n - 1;
}

static void goes_on(struct world *w, int64_t n)
{
    ck_assert_int_eq(world_count(w, w->s), n);
    OK(world_append(w, w->s, n + 1, 3000));
    OK(world_append(w, w->s, n + 2, 3000));
    ck_assert_int_eq(world_count(w, w->s), n + 2);
    OK(rv_store_check(w->s, &w->err));
    rv_store_close(w->s);
    OK(world_store(w, w->path, &quick, &w->s));
    ck_assert_int_eq(world_count(w, w->s), n + 2);
}

START_TEST(a_file_that_may_not_grow_loses_nothing)
{
    struct world world, *w = &world;
    int64_t n;

    world_open(w, 10);
    limit_files(1000000);
    n = fill(w, 10, RV_E_DISK, "File too large", NULL);
    ck_assert_int_gt(n, 20);
    ck_assert_int_eq(world_count(w, w->s), n);
    FAILS(RV_E_DISK, "File too large", NULL, world_append(w, w->s, n + 1, 3000));
    ck_assert_int_eq(world_count(w, w->s), n);
    limit_files(RLIM_INFINITY);
    goes_on(w, n);
    world_close(w);
}
END_TEST

START_TEST(a_group_that_does_not_fit_is_given_up_as_a_whole)
{
    struct world world, *w = &world;
    int64_t n = 10;
    int rc = 0;

    world_open(w, 10);
    limit_files(1000000);
    OK(rv_store_begin(w->s, &w->err));
    while (rc == 0 && n < 5000) /* pages wait in memory for a while before they need the disk */
        rc = world_append(w, w->s, ++n, 30000);
    FAILS(RV_E_DISK, "File too large", NULL, rc);
    FAILS(RV_E_DISK, "the group was rolled back", NULL, world_append(w, w->s, n, 3000));
    FAILS(RV_E_DISK, "the group was rolled back", NULL, rv_store_commit(w->s, &w->err));
    ck_assert_int_eq(world_count(w, w->s), 10);
    OK(rv_store_begin(w->s, &w->err));
    for (n = 11; n < 200; n++)
        OK(world_append(w, w->s, n, 3000));
    FAILS(RV_E_DISK, "File too large", NULL, rv_store_commit(w->s, &w->err));
    limit_files(RLIM_INFINITY);
    goes_on(w, 10);
    world_close(w);
}
END_TEST

START_TEST(a_store_can_not_be_made_without_room)
{
    struct world world, *w = &world;

    world_open(w, -1);
    limit_files(8192); /* Check writes a little to a file of its own */
    FAILS(RV_E_DISK, "File too large", NULL, world_store(w, w->path, &quick, &w->s));
    limit_files(RLIM_INFINITY);
    OK(world_store(w, w->path, &quick, &w->s));
    OK(rv_store_check(w->s, &w->err));
    world_close(w);
}
END_TEST

START_TEST(a_backup_without_room_leaves_nothing)
{
    struct world world, *w = &world;
    char *copy;

    world_open(w, 100);
    copy = rv_kit_path(w->dir, "copy.db");
    limit_files(100000);
    FAILS(RV_E_DISK, "copy", NULL, rv_store_backup(w->s, copy, &w->err));
    ck_assert_int_ne(access(copy, F_OK), 0);
    limit_files(RLIM_INFINITY);
    OK(rv_store_backup(w->s, copy, &w->err));
    free(copy);
    goes_on(w, 100);
    world_close(w);
}
END_TEST

START_TEST(a_full_disk_is_named_and_loses_nothing)
{
    struct world world, *w = &world;
    char *filler, *other;
    rv_buf room = RV_BUF_INIT(200000);
    rv_store *s = NULL;
    int64_t n;

    world_open(w, -1);
    if (!mount_at(w->dir, "tmpfs", "size=1300k", 0)) {
        world_close(w);
        return;
    }
    filler = rv_kit_path(w->dir, "filler");
    other = rv_kit_path(w->dir, "other.db");
    for (int i = 0; i < 10000; i++)
        rv_buf_add(&room, "................", 16);
    world_write(filler, rv_buf_str(&room));
    rv_buf_fini(&room);
    world_begin(w, 0);
    n = fill(w, 0, RV_E_DISK, "no space left", "make room");
    ck_assert_int_gt(n, 10);
    ck_assert_int_eq(world_count(w, w->s), n);
    FAILS(RV_E_DISK, other, NULL, world_store(w, other, &quick, &s)); /* nor can a new one be made */
    FAILS(RV_E_DISK, "no space left", "make room", world_append(w, w->s, n + 1, 3000));
    ck_assert_int_eq(unlink(filler), 0);
    goes_on(w, n);
    OK(world_store(w, other, &quick, &s));
    rv_store_close(s);
    rv_store_close(w->s);
    w->s = NULL;
    free(filler);
    free(other);
    ck_assert_int_eq(umount2(w->dir, MNT_DETACH), 0);
    world_close(w);
}
END_TEST

START_TEST(a_file_without_write_permission_is_refused)
{
    struct world world, *w = &world;

    world_open(w, 5);
    rv_store_close(w->s);
    w->s = NULL;
    ck_assert_int_eq(chmod(w->path, 0400), 0);
    world_drop_root(w);
    FAILS(RV_E_DENIED, "cannot be written to", "writable", world_store(w, w->path, &quick, &w->s));
    OK(world_store(w, w->path, &(struct rv_store_opts){.read_only = true}, &w->s));
    ck_assert_int_eq(world_count(w, w->s), 5);
    rv_store_close(w->s);
    ck_assert_int_eq(chmod(w->path, 0000), 0);
    FAILS(RV_E_DENIED, "unable to open", NULL, world_store(w, w->path, &quick, &w->s));
    ck_assert_int_eq(chmod(w->path, 0600), 0);
    OK(world_store(w, w->path, &quick, &w->s));
    ck_assert_int_eq(world_count(w, w->s), 5);
    rv_store_close(w->s);
    w->s = NULL;
    world_regain_root();
    world_close(w);
}
END_TEST

START_TEST(a_folder_without_write_permission_is_refused)
{
    struct world world, *w = &world;
    char *other;

    world_open(w, 5);
    rv_store_close(w->s);
    w->s = NULL;
    other = rv_kit_path(w->dir, "other.db");
    world_drop_root(w);
    ck_assert_int_eq(chmod(w->dir, 0500), 0);
    FAILS(RV_E_DENIED, "Permission denied", NULL, world_store(w, other, &quick, &w->s));
    FAILS(RV_E_DENIED, w->path, NULL, world_store(w, w->path, &quick, &w->s)); /* its log cannot be made */
    ck_assert_int_eq(chmod(w->dir, 0700), 0);
    OK(world_store(w, w->path, &quick, &w->s));
    ck_assert_int_eq(world_count(w, w->s), 5);
    rv_store_close(w->s);
    w->s = NULL;
    world_regain_root();
    free(other);
    world_close(w);
}
END_TEST

START_TEST(a_store_on_a_read_only_medium_is_read)
{
    struct world world, *w = &world;
    char *copy;

    world_open(w, 5);
    rv_store_close(w->s);
    w->s = NULL;
    copy = rv_kit_path(w->dir, "a?b#c%.db");
    ck_assert_int_eq(rename(w->path, copy), 0);
    if (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mount(w->dir, w->dir, NULL, MS_BIND, NULL) == 0 &&
        mount(NULL, w->dir, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) == 0) {
        FAILS(RV_E_DENIED, copy, NULL, world_store(w, copy, &quick, &w->s));
        FAILS(RV_E_DENIED, "Read-only file system", NULL, world_store(w, w->path, &quick, &w->s));
        OK(world_store(w, copy, &(struct rv_store_opts){.read_only = true}, &w->s));
        ck_assert_int_eq(world_count(w, w->s), 5);
        OK(rv_store_check(w->s, &w->err));
        rv_store_close(w->s);
        w->s = NULL;
        ck_assert_int_eq(umount2(w->dir, MNT_DETACH), 0);
    }
    OK(world_store(w, copy, &quick, &w->s));
    ck_assert_int_eq(world_count(w, w->s), 5);
    free(copy);
    world_close(w);
}
END_TEST

Suite *disk_suite(void)
{
    Suite *suite = suite_create("disk");
    TCase *tc = tcase_create("disk");

    tcase_add_test(tc, a_file_that_may_not_grow_loses_nothing);
    tcase_add_test(tc, a_group_that_does_not_fit_is_given_up_as_a_whole);
    tcase_add_test(tc, a_store_can_not_be_made_without_room);
    tcase_add_test(tc, a_backup_without_room_leaves_nothing);
    tcase_add_test(tc, a_full_disk_is_named_and_loses_nothing);
    tcase_add_test(tc, a_file_without_write_permission_is_refused);
    tcase_add_test(tc, a_folder_without_write_permission_is_refused);
    tcase_add_test(tc, a_store_on_a_read_only_medium_is_read);
    suite_add_tcase(suite, tc);
    return suite;
}
