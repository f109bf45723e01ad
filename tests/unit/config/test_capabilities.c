/* Capabilities in processes of their own: isolation and the keys of limits. */
#include <stdio.h>

#include "tests/unit/config/world.h"

#define HEAD "name: x\ncapabilities:\n  - {name: c, "

static const struct {
    const char *keys;
    int isolation;
    int64_t memory_mb, open_files; /* 0: what is used where nothing is said */
} read_cases[] = {
    {"isolation: none", RV_ISOLATION_NONE, 0, 0},
    {"isolation: process", RV_ISOLATION_PROCESS, RV_ISOLATED_MEMORY_MB, RV_ISOLATED_OPEN_FILES},
    {"isolation: process, limits: {}", RV_ISOLATION_PROCESS, RV_ISOLATED_MEMORY_MB, RV_ISOLATED_OPEN_FILES},
    {"isolation: process, limits: {memory_mb: 100}", RV_ISOLATION_PROCESS, 100, RV_ISOLATED_OPEN_FILES},
    {"isolation: process, limits: {open_files: 20}", RV_ISOLATION_PROCESS, RV_ISOLATED_MEMORY_MB, 20},
    {"isolation: process, limits: {memory_mb: 64, open_files: 16}", RV_ISOLATION_PROCESS, 64, 16},
    {"isolation: process, limits: {memory_mb: 1000000, open_files: 1000000}", RV_ISOLATION_PROCESS, 1000000, 1000000},
    {"isolation: process, limits: {memory_mb: 256.0}", RV_ISOLATION_PROCESS, 256, RV_ISOLATED_OPEN_FILES},
};

START_TEST(limits_are_read_and_have_defaults)
{
    char text[256];

    snprintf(text, sizeof text, HEAD "%s}\n", read_cases[_i].keys);
    struct loaded l = load_clean(text);
    ck_assert_uint_eq(l.p->n_capabilities, 1);
    ck_assert_int_eq((int)l.p->capabilities[0].isolation, read_cases[_i].isolation);
    ck_assert_int_eq(l.p->capabilities[0].memory_mb, read_cases[_i].memory_mb);
    ck_assert_int_eq(l.p->capabilities[0].open_files, read_cases[_i].open_files);
    loaded_fini(&l);
}
END_TEST

#define PLACE    "t.yaml:3:"
#define OWNER    " error: capability \"c\": "
#define MEMORY   PLACE "55:" OWNER "limits.memory_mb "
#define FILES    PLACE "56:" OWNER "limits.open_files "
#define IN_RANGE "  hint: legal: 64 to 1000000\n"
#define A_NUMBER "  hint: write a whole number, without unit or quotes\n"

static const struct {
    const char *keys, *want;
} wrong_cases[] = {
    /* ranges */
    {"isolation: process, limits: {memory_mb: 63}", MEMORY "is out of range\n" IN_RANGE},
    {"isolation: process, limits: {memory_mb: 1000001}", MEMORY "is out of range\n" IN_RANGE},
    {"isolation: process, limits: {memory_mb: 0}", MEMORY "is out of range\n" IN_RANGE},
    {"isolation: process, limits: {memory_mb: -1}", MEMORY "is out of range\n" IN_RANGE},
    {"isolation: process, limits: {memory_mb: 99999999999999999999}", MEMORY "is out of range\n" IN_RANGE},
    {"isolation: process, limits: {open_files: 15}", FILES "is out of range\n  hint: legal: 16 to 1000000\n"},
    {"isolation: process, limits: {open_files: 1000001}", FILES "is out of range\n  hint: legal: 16 to 1000000\n"},
    /* types */
    {"isolation: process, limits: {memory_mb: 1G}", MEMORY "must be an integer, not string\n" A_NUMBER},
    {"isolation: process, limits: {memory_mb: '512'}", MEMORY "must be an integer, not string\n" A_NUMBER},
    {"isolation: process, limits: {memory_mb: 64.5}", MEMORY "must be an integer, not number\n" A_NUMBER},
    {"isolation: process, limits: {memory_mb: .inf}", MEMORY "must be an integer, not number\n" A_NUMBER},
    {"isolation: process, limits: {memory_mb: true}", MEMORY "must be an integer, not boolean\n" A_NUMBER},
    {"isolation: process, limits: {memory_mb: [64]}", MEMORY "must be an integer, not list\n" A_NUMBER},
    {"isolation: process, limits: {memory_mb: }",
     MEMORY "must be an integer, not null\n  hint: leave the key out to get its default\n"},
    {"isolation: process, limits: {open_files: many}", FILES "must be an integer, not string\n" A_NUMBER},
    {"isolation: process, limits: 512",
     PLACE "43:" OWNER "limits must be a map, not integer\n  hint: write a map: {memory_mb: value}\n"},
    {"isolation: process, limits: [memory_mb]",
     PLACE "43:" OWNER "limits must be a map, not list\n  hint: write a map: {memory_mb: value}\n"},
    /* names */
    {"isolation: process, limits: {memory: 512}",
     PLACE "44:" OWNER "unknown key \"limits.memory\"\n  hint: did you mean \"memory_mb\"?\n"},
    {"isolation: process, limits: {open_file: 64}",
     PLACE "44:" OWNER "unknown key \"limits.open_file\"\n  hint: did you mean \"open_files\"?\n"},
    {"isolation: process, limits: {cpu: 1}",
     PLACE "44:" OWNER "unknown key \"limits.cpu\"\n  hint: keys here: memory_mb, open_files\n"},
    {"isolation: process, limits: {memory_mb: 64, memory_mb: 65}",
     PLACE "59: error: the key \"memory_mb\" is here twice; the first one is on line 3\n  hint: remove one of them\n"},
    {"isolation: proces", PLACE "26:" OWNER "isolation is \"proces\", which is not a valid isolation\n"
                                "  hint: did you mean \"process\"? legal: none, process\n"},
    {"isolation: 1", PLACE "26:" OWNER "isolation must be a string, not integer\n"},
    /* limits without a process */
    {"limits: {memory_mb: 512}", PLACE "5:" OWNER "it has limits but no process of its own\n"
                                       "  hint: add isolation: process, or remove the limits\n"},
    {"isolation: none, limits: {}", PLACE "5:" OWNER "it has limits but no process of its own\n"
                                          "  hint: add isolation: process, or remove the limits\n"},
    /* all in one pass */
    {"isolation: process, limits: {memory_mb: 1, open_files: x}", MEMORY
     "is out of range\n" IN_RANGE PLACE "70:" OWNER "limits.open_files must be an integer, not string\n" A_NUMBER},
};

START_TEST(wrong_limits_have_a_place_and_a_hint)
{
    char text[256];

    snprintf(text, sizeof text, HEAD "%s}\n", wrong_cases[_i].keys);
    expect_findings(text, wrong_cases[_i].want);
}
END_TEST

TCase *capabilities_case(void)
{
    TCase *tc = tcase_create("capabilities");

    tcase_add_loop_test(tc, limits_are_read_and_have_defaults, 0, (int)RV_COUNT(read_cases));
    tcase_add_loop_test(tc, wrong_limits_have_a_place_and_a_hint, 0, (int)RV_COUNT(wrong_cases));
    return tc;
}
