#include "tests/kit/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Check ends a test after four seconds. Half an hour ends what hangs, under its name, and nothing that is only slow:
 * the machine may be busy, the disk slow and the program instrumented. Cases have no limits of their own. */
__attribute__((constructor)) static void be_patient(void)
{
    setenv("CK_DEFAULT_TIMEOUT", "1800", 0);
}

/* Tests name what they read from the root of the tree: a program works from every folder. */
__attribute__((constructor)) static void go_to_the_root(void)
{
    if (chdir(RV_SOURCE_DIR) < 0) {
        perror(RV_SOURCE_DIR);
        exit(EXIT_FAILURE);
    }
}

/* --- order --- */

/* Check runs tests in the order in which they were added. rv_test() has the linker bring them here first (--wrap), so
 * that they can be added in an order of their own. */
struct added {
    TCase *tcase;
    const TTest *test;
    int signal, exit_value, start, end;
};
static struct added *tests;
static size_t n_tests;

static const char *seed_of_order(void)
{
    const char *seed = getenv("REEVE_SHUFFLE");

    return seed && *seed ? seed : NULL;
}

static bool keeps_order(void)
{
    const char *order = getenv("REEVE_ORDER");

    return !seed_of_order() || (order && strcmp(order, "written") == 0);
}

/* Of splitmix64. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* The same order for the same seed, whatever else is shuffled. */
static void shuffle(void *items, size_t n, size_t size)
{
    uint64_t state = seed_of_order() ? strtoull(seed_of_order(), NULL, 10) : 0;
    char swapped[sizeof(struct added)], *at = items;

    for (size_t i = n; !keeps_order() && i > 1; i--) {
        size_t other = next_random(&state) % i;
        memcpy(swapped, at + (i - 1) * size, size);
        memcpy(at + (i - 1) * size, at + other * size, size);
        memcpy(at + other * size, swapped, size);
    }
}

void __real__tcase_add_test(TCase *tcase, const TTest *test, int signal, int exit_value, int start, int end);
void __wrap__tcase_add_test(TCase *tcase, const TTest *test, int signal, int exit_value, int start, int end);
void __wrap__tcase_add_test(TCase *tcase, const TTest *test, int signal, int exit_value, int start, int end)
{
    struct added *more = reallocarray(tests, n_tests + 1, sizeof *tests);

    if (!more)
        abort();
    tests = more;
    tests[n_tests++] = (struct added){tcase, test, signal, exit_value, start, end};
}

static void add_tests(void)
{
    shuffle(tests, n_tests, sizeof *tests);
    for (size_t i = 0; i < n_tests; i++)
        __real__tcase_add_test(tests[i].tcase, tests[i].test, tests[i].signal, tests[i].exit_value, tests[i].start,
                               tests[i].end);
    free(tests);
    tests = NULL;
    n_tests = 0;
}

/* --- running --- */

static int run(SRunner *runner)
{
    add_tests();
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    if (failed && seed_of_order())
        printf("the same again: REEVE_SHUFFLE=%s\n", seed_of_order());
    if (srunner_ntests_run(runner) == 0 && (getenv("CK_RUN_CASE") || getenv("CK_RUN_SUITE"))) {
        puts("no test has that name (CK_RUN_CASE, CK_RUN_SUITE); CK_VERBOSITY=verbose lists them");
        failed = 1;
    }
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int rv_kit_run(Suite *suite)
{
    return run(srunner_create(suite));
}

int rv_kit_run_suites(Suite *(*const suites[])(void), size_t n)
{
    Suite *made[RV_KIT_MAX_SUITES];
    SRunner *runner = srunner_create(NULL);

    if (n > RV_COUNT(made))
        abort();
    for (size_t i = 0; i < n; i++)
        made[i] = suites[i]();
    shuffle(made, n, sizeof *made);
    for (size_t i = 0; i < n; i++)
        srunner_add_suite(runner, made[i]);
    return run(runner);
}

int rv_kit_run_cases(const char *name, TCase *(*const cases[])(void), size_t n)
{
    Suite *suite = suite_create(name);
    TCase *made[RV_KIT_MAX_SUITES];

    if (n > RV_COUNT(made))
        abort();
    for (size_t i = 0; i < n; i++)
        made[i] = cases[i]();
    shuffle(made, n, sizeof *made);
    for (size_t i = 0; i < n; i++)
        suite_add_tcase(suite, made[i]);
    return rv_kit_run(suite);
}
