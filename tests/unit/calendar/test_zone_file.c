/* Zones by name: files are found, kept, read again when they change; an unknown name gets the nearest one. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "coreengine/base/base.h"
#include "tests/kit/kit.h"
#include "tests/unit/calendar/suites.h"

static char *dir;
static rv_zones *zones;

static void put_file(const char *name, int offset_s)
{
    struct tzif file = {.n_offsets = 1, .offsets = {offset_s}, .rule = "\n\n"};
    rv_str bytes = tzif_bytes(&file);
    char *path = rv_kit_path(dir, name);

    ck_assert_int_eq(rv_file_write(path, bytes, NULL), 0); /* a new file takes the name, as with a package */
    free(path);
    free((char *)bytes.ptr);
}

static void setup(void)
{
    char *path;

    dir = rv_kit_tmpdir();
    path = rv_kit_path(dir, "tzdata.zi");
    rv_kit_write(path, "# version x\nR d 1916 o - Jun 14 23s 1 S\nZ Europe/Berlin 0:53:28 - LMT 1893 Ap\n1 c CE%sT\n"
                       "Z Asia/Tokyo 9:18:59 - LMT 1887\nL Asia/Tokyo Japan\nL\nZ\n");
    free(path);
    put_file("Mine", 3600);
    zones = rv_zones_new(dir);
}

static void teardown(void)
{
    rv_zones_free(zones);
    rv_kit_tmpdir_remove(dir);
}

START_TEST(a_zone_is_kept_until_its_file_changes)
{
    const rv_zone *first, *second, *third;

    ck_assert_int_eq(rv_zones_get(zones, RV_STR_LIT("Mine"), &first, NULL), 0);
    ck_assert_int_eq(rv_zone_offset_s(first, 0), 3600);
    ck_assert_int_eq(rv_zones_get(zones, RV_STR_LIT("Mine"), &second, NULL), 0);
    ck_assert_ptr_eq(first, second);
    put_file("Mine", 7200);
    ck_assert_int_eq(rv_zones_get(zones, RV_STR_LIT("Mine"), &third, NULL), 0);
    ck_assert_int_eq(rv_zone_offset_s(third, 0), 7200);
}
END_TEST

START_TEST(utc_is_there_without_files)
{
    rv_zones *none = rv_zones_new("/nowhere");
    const rv_zone *zone = NULL;

    ck_assert_int_eq(rv_zones_get(none, RV_STR_LIT("UTC"), &zone, NULL), 0);
    ck_assert_ptr_eq(zone, rv_zone_utc());
    rv_zones_free(none);
    rv_zones_free(NULL);
}
END_TEST

static const struct {
    const char *name;
    int rc;
    const char *text;
} unknown[] = {
    {"Europe/Berlni", RV_E_NOT_FOUND,
     "unknown time zone \"Europe/Berlni\"  [not_found]\n  hint: did you mean \"Europe/Berlin\"?\n"},
    {"EUROPE/BERLIN", RV_E_NOT_FOUND,
     "unknown time zone \"EUROPE/BERLIN\"  [not_found]\n  hint: did you mean \"Europe/Berlin\"?\n"},
    {"berlin", RV_E_NOT_FOUND, "unknown time zone \"berlin\"  [not_found]\n  hint: did you mean \"Europe/Berlin\"?\n"},
    {"japan", RV_E_NOT_FOUND, "unknown time zone \"japan\"  [not_found]\n  hint: did you mean \"Japan\"?\n"},
    {"Atlantis/Poseidonis", RV_E_NOT_FOUND, "hint: names are those of the tz database"},
    {"../Mine", RV_E_INVALID, "is not the name of a time zone"},
    {"right/Mine", RV_E_INVALID, "hint: use \"Mine\""},
    {"Folder", RV_E_NOT_FOUND, "unknown time zone \"Folder\""},
    {"Damaged", RV_E_PARSE, "it is not a TZif file"},
    {"Large", RV_E_LIMIT, "Large"},
};

START_TEST(an_unknown_zone_is_an_error_with_the_nearest_name)
{
    static char large[RV_ZONE_MAX_BYTES + 2];
    const rv_zone *zone = NULL;
    rv_err *err = NULL;
    char *path = rv_kit_path(dir, "Folder"), *text;

    ck_assert_int_eq(mkdir(path, 0700), 0);
    free(path);
    path = rv_kit_path(dir, "Damaged");
    rv_kit_write(path, "TZ");
    free(path);
    path = rv_kit_path(dir, "Large");
    memset(large, 'x', sizeof large - 1);
    rv_kit_write(path, large);
    free(path);
    ck_assert_int_eq(rv_zones_get(zones, rv_str_of(unknown[_i].name), &zone, &err), unknown[_i].rc);
    text = rv_kit_err_take(err);
    ck_assert_msg(strstr(text, unknown[_i].text) != NULL, "%s", text);
    free(text);
}
END_TEST

START_TEST(without_data_the_error_names_the_package)
{
    rv_zones *none = rv_zones_new("/nowhere");
    const rv_zone *zone = NULL;
    rv_err *err = NULL;
    char *text;

    ck_assert_int_eq(rv_zones_get(none, RV_STR_LIT("Europe/Berlin"), &zone, &err), RV_E_NOT_FOUND);
    text = rv_kit_err_take(err);
    ck_assert_str_eq(text, "unknown time zone \"Europe/Berlin\": there is no time zone data in /nowhere  [not_found]\n"
                           "  hint: install the package tzdata, or use UTC, which needs none\n");
    free(text);
    rv_zones_free(none);
}
END_TEST

TCase *zone_file_case(void)
{
    TCase *tc = tcase_create("zone_file");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_zone_is_kept_until_its_file_changes);
    tcase_add_test(tc, utc_is_there_without_files);
    tcase_add_loop_test(tc, an_unknown_zone_is_an_error_with_the_nearest_name, 0, RV_COUNT(unknown));
    tcase_add_test(tc, without_data_the_error_names_the_package);
    return tc;
}
