/* Each allocation of base fails once: no crash, no leak, and the code says no memory. */
#include "coreengine/base/base.h"
#include "tests/kit/fault.h"
#include "tests/kit/suites.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char text[] =
    "{\"a\":[1,2.50,18446744073709551615,true,null,\"x\\u00e9y\"],\"b\":{\"c\":{},\"d\":[[]]},"
    "\"k1\":1,\"k2\":2,\"k3\":3,\"k4\":4,\"k5\":5,\"k6\":6,\"k7\":7,\"k8\":8,\"k9\":9,\"k10\":10,"
    "\"k11\":11,\"k12\":12,\"list\":[1,2,3,4,5,6,7,8,9],"
    "\"long\":0.00000000000000000000000000000000000000000000000000000000000000000000000001}";

/* Check's own assertions allocate, so what a scenario finds wrong is kept until the allocator is disarmed. */
static int broken_line;

#define must(holds)                                                                                                    \
    do {                                                                                                               \
        if (!(holds) && broken_line == 0)                                                                              \
            broken_line = __LINE__;                                                                                    \
    } while (0)

static int parse(void)
{
    json_object *v = NULL;
    rv_err *err = NULL;
    int rc = rv_json_parse(RV_STR_LIT(text), NULL, &v, &err);

    must((rc < 0) == (err != NULL));
    must(!v || rc == 0);
    json_object_put(v);
    rv_err_free(err);
    return rc;
}

static int scan(void)
{
    struct rv_json_scan how;
    json_object *v = NULL;
    int rc = rv_json_scan(RV_STR_LIT(text), NULL, &how, &v, NULL);

    json_object_put(v);
    return rc;
}

static json_object *tree;

static int copy_tree(void)
{
    json_object *copy = NULL;
    int rc = rv_json_dup(tree, &copy, NULL);

    json_object_put(copy);
    return rc;
}

static int write_text(void)
{
    rv_buf out = RV_BUF_INIT(1 << 20);

    rv_json_write(tree, &out);
    int rc = out.rc;
    rv_buf_fini(&out);
    return rc;
}

static int build(void)
{
    json_object *obj = json_object_new_object(), *arr = NULL;
    rv_err *err = NULL;
    int rc;

    if (!obj)
        return RV_E_NOMEM;
    rc = rv_json_set_text(obj, "t", "x", &err);
    if (rc == 0)
        rc = rv_json_set_int(obj, "i", 1, &err);
    if (rc == 0)
        rc = rv_json_set_take(obj, "d", rv_json_new_double(0.1), &err);
    if (rc == 0)
        rc = rv_json_set_take(obj, "arr", json_object_new_array(), &err);
    arr = rc == 0 ? rv_json_get_arr(obj, "arr") : NULL;
    if (arr)
        rc = rv_json_push_ref(arr, rv_json_get_arr(tree, "list"), &err);
    if (rc == 0)
        rc = rv_json_set_null(obj, "n", &err);
    json_object_put(obj);
    rv_err_free(err);
    return rc;
}

/* Reporting goes on without memory; only printing it needs some. */
static int report(void)
{
    const struct rv_src src = {"qa.yaml", 14, 12};
    rv_buf b = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&b);
    rv_err *err = NULL;
    int rc;

    rc = RV_FAIL_AT(&err, &src, RV_E_NOT_FOUND, "unknown agent \"%s\"", "x");
    must(rc == RV_E_NOT_FOUND);
    must(err != NULL);
    rv_err_set_hint(&err, "one");
    rv_err_set_hint(&err, "two");
    rc = RV_WRAP(&err, rc, "stage \"%s\"", "plan");
    must(rc == RV_E_NOT_FOUND);
    must(rv_err_is(err, RV_E_NOT_FOUND) || rv_err_is(err, RV_E_NOMEM));
    must(rv_err_text(err)[0]);
    rv_err_write_text(err, true, &b);
    rv_err_write_text(err, false, &b);
    rv_err_write_json(err, &w);
    rc = rv_buf_check(&b, "report", NULL);
    rv_err_free(err);
    rv_buf_fini(&b);
    return rc;
}

static size_t n_lines;

static void count_line(void *self, enum rv_log_level level, rv_str line)
{
    (void)self;
    (void)level;
    n_lines += line.len > 0;
}

static int log_lines(void)
{
    const struct rv_field run[] = {RV_F_TEXT("run_id", "r1")};
    rv_log *root = rv_log_new(&(struct rv_log_opts){.fd = -1, .line = count_line}), *child;
    int rc;

    if (!root)
        return RV_E_NOMEM;
    child = rv_log_bind(root, run, 1);
    n_lines = 0;
    RV_LOG(child, INFO, "a.b", RV_F_TEXT("k", "v"));
    RV_LOG(root, INFO, "a.b", RV_F_TEXT("k", "v"));
    must(n_lines == (child ? 2 : 1));
    rc = child ? 0 : RV_E_NOMEM;
    rv_log_free(child);
    rv_log_free(root);
    return rc;
}

static int log_that_never_waits(void)
{
    rv_log *log = rv_log_new(&(struct rv_log_opts){.fd = -1});
    int rc = log ? rv_log_never_wait(log, NULL) : RV_E_NOMEM;

    RV_LOG(log, INFO, "a.b", RV_F_TEXT("k", "v"));
    rv_log_free(log);
    return rc;
}

static int bytes(void)
{
    static char names[100][4];
    rv_arena *arena = rv_arena_new(1 << 20);
    rv_buf b = RV_BUF_INIT(1 << 20);
    rv_index ix = {0};
    int i, rc = arena ? 0 : RV_E_NOMEM;

    for (i = 0; i < 100 && rc == 0; i++) {
        memcpy(names[i], (char[]){(char)('a' + i % 26), (char)('a' + i / 26), 'x', '\0'}, 4);
        rc = rv_index_add(&ix, rv_str_of(names[i]), i);
        if (rc == 0 && !rv_arena_alloc(arena, 1000))
            rc = RV_E_NOMEM;
        rv_buf_printf(&b, "%s and %d", names[i], i);
    }
    if (rc == 0)
        rc = rv_buf_check(&b, "bytes", NULL);
    rv_arena_free(arena);
    rv_buf_fini(&b);
    rv_index_fini(&ix);
    return rc;
}

static char path[] = "/tmp/rv-fault-XXXXXX";

static int files(void)
{
    rv_buf b = RV_BUF_INIT(1 << 20);
    rv_err *err = NULL;
    int rc = rv_file_write(path, RV_STR_LIT("hello"), &err);

    if (rc == 0)
        rc = rv_file_read(path, &b, &err);
    must(rc < 0 || rv_str_is(rv_buf_str(&b), "hello"));
    rv_err_free(err);
    rv_buf_fini(&b);
    return rc;
}

static const struct {
    const char *name;
    int (*run)(void);
    bool may_do_without; /* some allocations are a convenience: the scenario succeeds without them */
} scenarios[] = {
    {"parse", parse, false},   {"scan", scan, false},
    {"dup", copy_tree, false}, {"write", write_text, false},
    {"build", build, false},   {"report", report, true},
    {"log", log_lines, false}, {"log that never waits", log_that_never_waits, false},
    {"bytes", bytes, false},   {"files", files, true},
};

START_TEST(an_error_that_misses_a_link_says_so)
{
    rv_err *err = NULL;
    int rc = RV_FAIL(&err, RV_E_PARSE, "no number");

    ck_assert(!rv_err_is(err, RV_E_NOMEM));
    rv_fault_arm(0);
    rc = RV_WRAP(&err, rc, "line 3");
    bool fired = rv_fault_disarm();
    ck_assert_int_eq(rc, RV_E_PARSE);
    ck_assert_str_eq(rv_err_text(err), fired ? "no number" : "line 3");
    ck_assert_int_eq(rv_err_is(err, RV_E_NOMEM), fired);
    rv_err_free(err);
}
END_TEST

/* Proves 11.5/lint: No failed allocation in proofs, warnings or graphs crashes or leaks */
START_TEST(every_allocation_may_fail)
{
    size_t n, total;
    int rc;

    ck_assert_int_eq(scenarios[_i].run(), 0); /* libraries set themselves up at first use */
    for (n = 0;; n++) {
        rv_fault_arm(n);
        rc = scenarios[_i].run();
        if (!rv_fault_disarm())
            break;
        ck_assert_msg(broken_line == 0, "%s: allocation %zu: broken at line %d", scenarios[_i].name, n, broken_line);
        ck_assert_msg(rc == RV_E_NOMEM || (rc == 0 && scenarios[_i].may_do_without), "%s: allocation %zu: %s",
                      scenarios[_i].name, n, rv_code_text(rc));
        ck_assert_msg(rv_fault_balance() == 0, "%s: allocation %zu: %ld blocks leaked", scenarios[_i].name, n,
                      rv_fault_balance());
    }
    total = rv_fault_count();
    ck_assert_int_eq(rc, 0);
    ck_assert(n == total || !rv_fault_works());
    ck_assert(n > 0 || !rv_fault_works()); /* of a few, none may be among those that fail under a sanitizer */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_base");
    TCase *tc = tcase_create("allocations");
    int fd = mkstemp(path);

    if (fd < 0 || rv_json_parse(RV_STR_LIT(text), NULL, &tree, NULL) < 0)
        return 1;
    close(fd);
    tcase_add_test(tc, an_error_that_misses_a_link_says_so);
    tcase_add_loop_test(tc, every_allocation_may_fail, 0, RV_COUNT(scenarios));
    suite_add_tcase(suite, tc);
    int rc = rv_kit_run(suite);
    json_object_put(tree);
    unlink(path);
    return rc;
}
