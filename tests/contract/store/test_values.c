/* Blobs, shared values, snapshots, and giving space back. */
#include "tests/contract/store/world.h"

#define LARGE 10240
/* What the server of PostgreSQL puts beside tables by itself, whenever it cleans up: maps of what is visible and free.
 */
#define HOUSEKEEPING (30 * LARGE)
#define LATER        (INT64_C(4000000000) * 1000000) /* long after any blob was put, whose age is by the system's clock */

static struct rv_store_stats stats_of(struct world *w)
{
    struct rv_store_stats stats;

    OK(rv_store_read_stats(w->s, &stats, &w->err));
    return stats;
}

/* Text that differs from the text of any other i, and does not repeat itself. */
static char *large(unsigned i)
{
    char *text = malloc(LARGE + 1);
    unsigned x = i * 2654435761u + 1;

    ck_assert_ptr_nonnull(text);
    for (size_t k = 0; k < LARGE; k++) {
        x = x * 1664525u + 1013904223u;
        text[k] = (char)('a' + (x >> 24) % 26);
    }
    text[LARGE] = 0;
    return text;
}

START_TEST(a_blob_is_found_by_its_hash)
{
    struct world world, *w = &world;
    static const char bytes[] = "\xff\0 any bytes";
    char hash[RV_HASH_MAX], again[RV_HASH_MAX], want[RV_HASH_MAX];
    rv_buf out = RV_BUF_INIT(100);

    world_open(w, _i);
    rv_hash_format((rv_str){bytes, sizeof bytes}, want);
    OK(rv_store_put_blob(w->s, (rv_str){bytes, sizeof bytes}, hash, &w->err));
    OK(rv_store_put_blob(w->s, (rv_str){bytes, sizeof bytes}, again, &w->err));
    ck_assert_str_eq(hash, want);
    ck_assert_str_eq(again, want);
    ck_assert_int_eq(stats_of(w).blobs, 2); /* and the bundle */
    rv_buf_puts(&out, "before ");
    OK(rv_store_get_blob(w->s, hash, &out, &w->err));
    ck_assert_uint_eq(out.len, 7 + sizeof bytes);
    ck_assert_mem_eq(out.ptr + 7, bytes, sizeof bytes);
    rv_hash_format(RV_STR_LIT("other"), want);
    SAYS(RV_E_NOT_FOUND, want, rv_store_get_blob(w->s, want, &out, &w->err));
    ck_assert_uint_eq(out.len, 7 + sizeof bytes);
    OK(rv_store_put_blob(w->s, (rv_str){NULL, 0}, hash, &w->err));
    rv_buf_clear(&out);
    OK(rv_store_get_blob(w->s, hash, &out, &w->err));
    ck_assert_uint_eq(out.len, 0);
    rv_buf_fini(&out);
    world_close(w);
}
END_TEST

START_TEST(a_blob_that_does_not_fit_is_an_error)
{
    struct world world, *w = &world;
    rv_buf out = RV_BUF_INIT(4);

    world_open(w, _i);
    FAILS(RV_E_LIMIT, rv_store_get_blob(w->s, w->bundle, &out, &w->err));
    rv_buf_fini(&out);
    world_close(w);
}
END_TEST

START_TEST(equal_values_cost_their_bytes_once)
{
    struct world world, *w = &world;
    char *value = large(1);
    int64_t before;

    world_open(w, _i);
    make_run(w, "r1");
    make_run(w, "r2");
    OK(append(w, "r1", 1, 2, "", value));
    OK(rv_store_sweep(w->s, T0, 0, NULL, &w->err)); /* settles what waits beside the file */
    before = stats_of(w).bytes;
    for (int i = 0; i < 100; i++)
        OK(append(w, i % 2 ? "r1" : "r2", 1, i % 2 ? 3 + i / 2 : 2 + i / 2, "", value));
    OK(rv_store_sweep(w->s, T0, 0, NULL, &w->err));
    ck_assert_int_eq(stats_of(w).blobs, 2);
    ck_assert_int_lt(stats_of(w).bytes - before, HOUSEKEEPING); /* of a million */
    free(value);
    world_close(w);
}
END_TEST

START_TEST(short_values_are_kept_with_their_records)
{
    struct world world, *w = &world;
    char *value = large(2);

    world_open(w, _i);
    make_run(w, "r1");
    value[RV_STORE_INLINE_MAX] = 0;
    OK(append(w, "r1", 1, 2, "", value));
    ck_assert_int_eq(stats_of(w).blobs, 1);
    free(value);
    world_close(w);
}
END_TEST

START_TEST(a_shared_value_lives_as_long_as_one_run_has_it)
{
    struct world world, *w = &world;
    char *value = large(3), hash[RV_HASH_MAX];
    struct seen seen = SEEN_INIT;
    rv_buf out = RV_BUF_INIT(LARGE);

    rv_hash_format(rv_str_of(value), hash);
    world_open(w, _i);
    make_run(w, "r1");
    make_run(w, "r2");
    OK(append(w, "r1", 1, 2, "", value));
    OK(append(w, "r2", 1, 2, "", value));
    OK(rv_store_delete_run(w->s, &operator_scope, "r1", NULL, LATER, &w->err));
    OK(rv_store_sweep(w->s, LATER, 0, NULL, &w->err));
    OK(rv_store_read(w->s, &operator_scope, &(struct rv_record_range){"r2", 2, 2}, see_record, &seen, &w->err));
    ck_assert_str_eq(rv_buf_cstr(&seen.text) + 3, value);
    rv_buf_fini(&seen.text);
    OK(rv_store_get_blob(w->s, hash, &out, &w->err));
    OK(rv_store_delete_run(w->s, &operator_scope, "r2", NULL, LATER, &w->err));
    OK(rv_store_sweep(w->s, LATER, 0, NULL, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_get_blob(w->s, hash, &out, &w->err));
    rv_buf_fini(&out);
    free(value);
    world_close(w);
}
END_TEST

START_TEST(a_write_that_was_undone_holds_no_value)
{
    struct world world, *w = &world;
    char *value = large(4);

    world_open(w, _i);
    make_run(w, "r1");
    make_run(w, "r2");
    OK(append(w, "r1", 1, 2, "", value));
    OK(rv_store_begin(w->s, &w->err));
    OK(append(w, "r2", 1, 2, "", value));
    rv_store_rollback(w->s);
    OK(rv_store_delete_run(w->s, &operator_scope, "r1", NULL, LATER, &w->err));
    OK(rv_store_sweep(w->s, LATER, 0, NULL, &w->err));
    ck_assert_int_eq(stats_of(w).blobs, 1); /* the bundle */
    free(value);
    world_close(w);
}
END_TEST

START_TEST(a_bundle_lives_as_long_as_a_run_has_it)
{
    struct world world, *w = &world;
    rv_buf out = RV_BUF_INIT(100);

    world_open(w, _i);
    make_run(w, "r1");
    OK(rv_store_sweep(w->s, LATER, 0, NULL, &w->err));
    OK(rv_store_get_blob(w->s, w->bundle, &out, &w->err));
    OK(rv_store_delete_run(w->s, &operator_scope, "r1", NULL, LATER, &w->err));
    OK(rv_store_sweep(w->s, LATER, 0, NULL, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_get_blob(w->s, w->bundle, &out, &w->err));
    rv_buf_fini(&out);
    world_close(w);
}
END_TEST

START_TEST(a_young_blob_is_not_swept)
{
    struct world world, *w = &world;
    struct rv_clock clock = rv_clock_system();
    const int64_t hour = INT64_C(3600) * 1000000;
    rv_buf out = RV_BUF_INIT(100);

    world_open(w, _i);
    OK(rv_store_sweep(w->s, clock.now_us(clock.self), hour, NULL, &w->err));
    OK(rv_store_get_blob(w->s, w->bundle, &out, &w->err));
    OK(rv_store_sweep(w->s, clock.now_us(clock.self) + 2 * hour, hour, NULL, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_get_blob(w->s, w->bundle, &out, &w->err));
    rv_buf_fini(&out);
    world_close(w);
}
END_TEST

START_TEST(sweeping_gives_the_space_back)
{
    struct world world, *w = &world;
    int64_t full, empty, freed = -1;

    world_open(w, _i);
    OK(rv_store_sweep(w->s, T0, 0, NULL, &w->err));
    empty = stats_of(w).bytes;
    make_run(w, "r1");
    for (unsigned i = 0; i < 300; i++) {
        char *value = large(i);
        OK(append(w, "r1", 1, i + 2, "", value));
        free(value);
    }
    full = stats_of(w).bytes;
    ck_assert_int_gt(full, 300 * LARGE);
    OK(rv_store_delete_run(w->s, &operator_scope, "r1", NULL, LATER, &w->err));
    OK(rv_store_sweep(w->s, LATER, 0, &freed, &w->err));
    ck_assert_int_ge(freed, w->impl->gives_back ? 300 * LARGE : 0);
    ck_assert_int_le(stats_of(w).bytes, w->impl->gives_back ? empty + 65536 : full + HOUSEKEEPING);
    ck_assert_int_eq(stats_of(w).blobs, 0);
    OK(rv_store_sweep(w->s, LATER, 0, &freed, &w->err));
    ck_assert_int_eq(freed, 0);
    world_close(w);
}
END_TEST

START_TEST(the_newest_snapshot_is_kept)
{
    struct world world, *w = &world;
    rv_buf out = RV_BUF_INIT(100);
    int64_t seq = -1;

    world_open(w, _i);
    make_run(w, "r1");
    OK(rv_store_get_snapshot(w->s, &operator_scope, "r1", &seq, &out, &w->err));
    ck_assert_int_eq(seq, 0);
    ck_assert_uint_eq(out.len, 0);
    SAYS(RV_E_STATE, "1 records", rv_store_put_snapshot(w->s, "r1", 1, 2, RV_STR_LIT("early"), &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_put_snapshot(w->s, "r2", 1, 1, RV_STR_LIT("x"), &w->err));
    OK(rv_store_put_snapshot(w->s, "r1", 1, 1, RV_STR_LIT("first"), &w->err));
    OK(append(w, "r1", 1, 2, "x", NULL));
    OK(rv_store_put_snapshot(w->s, "r1", 1, 2, RV_STR_LIT("second"), &w->err));
    OK(rv_store_put_snapshot(w->s, "r1", 1, 1, RV_STR_LIT("late"), &w->err));
    OK(rv_store_get_snapshot(w->s, &operator_scope, "r1", &seq, &out, &w->err));
    ck_assert_int_eq(seq, 2);
    ck_assert_str_eq(rv_buf_cstr(&out), "second");
    ck_assert_int_eq(stats_of(w).snapshots, 1);
    RECORDS("r1", "1:one 2:x");
    OK(rv_store_release(w->s, "r1", 1, &w->err));
    OK(rv_store_delete_run(w->s, &operator_scope, "r1", NULL, T0 + 100, &w->err));
    ck_assert_int_eq(stats_of(w).snapshots, 0);
    rv_buf_fini(&out);
    world_close(w);
}
END_TEST

START_TEST(stats_count_what_is_there)
{
    struct world world, *w = &world;
    struct rv_store_stats stats;

    world_open(w, _i);
    make_run(w, "r1");
    make_run(w, "r2");
    OK(append(w, "r1", 1, 2, "x", NULL));
    stats = stats_of(w);
    ck_assert_int_eq(stats.runs, 2);
    ck_assert_int_eq(stats.records, 3);
    ck_assert_int_eq(stats.blobs, 1);
    ck_assert_int_eq(stats.pending, 0);
    ck_assert_int_gt(stats.bytes, 0);
    ck_assert_int_ge(stats.schema, 1);
    world_close(w);
}
END_TEST

START_TEST(a_backup_is_a_store_of_its_own)
{
    struct world world, *w = &world, copy;
    char *path, hash[RV_HASH_MAX];
    rv_store *other;

    world_open(w, _i);
    path = rv_kit_path(w->dir, "copy.db");
    make_run(w, "r1");
    char *value = large(9);
    OK(append(w, "r1", 1, 2, "x", value));
    other = w->impl->is_shared ? world_other(w) : NULL;
    if (other) {
        OK(rv_store_begin(other, &w->err)); /* somebody is writing */
        OK(rv_store_put_blob(other, RV_STR_LIT("under way"), hash, &w->err));
    }
    OK(rv_store_backup(w->s, path, &w->err));
    if (other)
        OK(rv_store_commit(other, &w->err));
    rv_store_close(other);
    OK(append(w, "r1", 1, 3, "after", NULL));
    SAYS(RV_E_EXISTS, path, rv_store_backup(w->s, path, &w->err));
    copy = *w;
    copy.s = NULL;
    w = &copy;
    OK(rv_store_open(path, &(struct rv_store_opts){.must_exist = true}, &copy.s, &copy.err));
    OK(rv_store_check(copy.s, &copy.err));
    FAILS(RV_E_STATE, append(w, "r1", 1, 4, "y", NULL));
    OK(append(w, "r1", 1, 3, "y", NULL));
    rv_store_close(copy.s);
    w = &world;
    FAILS(RV_E_NOT_FOUND, rv_store_backup(w->s, "/nowhere/at/all.db", &w->err));
    free(value);
    free(path);
    world_close(w);
}
END_TEST

START_TEST(a_backup_is_named_as_a_store_is)
{
    struct world world, *w = &world;
    rv_store *copy = NULL;

    world_open(w, _i);
    char *path = rv_kit_path(w->dir, "named.db");
    rv_buf url = RV_BUF_INIT(1000);
    rv_buf_printf(&url, "sqlite:%s", path);
    OK(rv_store_backup(w->s, rv_buf_cstr(&url), &w->err));
    OK(rv_store_open(path, &(struct rv_store_opts){.must_exist = true}, &copy, &w->err));
    rv_store_close(copy);
    SAYS(RV_E_INVALID, "a backup is a file, not a database", rv_store_backup(w->s, "postgres:///elsewhere", &w->err));
    SAYS(RV_E_INVALID, "a backup is a file, not memory", rv_store_backup(w->s, "memory:", &w->err));
    SAYS(RV_E_INVALID, "no store of kind \"mysql\"", rv_store_backup(w->s, "mysql://x/y", &w->err));
    rv_buf_fini(&url);
    free(path);
    world_close(w);
}
END_TEST

Suite *values_suite(void)
{
    Suite *suite = suite_create("values");
    TCase *tc = tcase_create("values");

    ADD(tc, a_blob_is_found_by_its_hash);
    ADD(tc, a_blob_that_does_not_fit_is_an_error);
    ADD(tc, equal_values_cost_their_bytes_once);
    ADD(tc, short_values_are_kept_with_their_records);
    ADD(tc, a_shared_value_lives_as_long_as_one_run_has_it);
    ADD(tc, a_write_that_was_undone_holds_no_value);
    ADD(tc, a_bundle_lives_as_long_as_a_run_has_it);
    ADD(tc, a_young_blob_is_not_swept);
    ADD(tc, sweeping_gives_the_space_back);
    ADD(tc, the_newest_snapshot_is_kept);
    ADD(tc, stats_count_what_is_there);
    ADD(tc, a_backup_is_a_store_of_its_own);
    ADD(tc, a_backup_is_named_as_a_store_is);
    suite_add_tcase(suite, tc);
    return suite;
}
