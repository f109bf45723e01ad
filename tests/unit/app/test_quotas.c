/* Files of quotas: what is wrong with them, who has which plan, and runs that need a store to be counted in. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "tests/kit/kit.h"
#include "tests/unit/app/suites.h"

static char *dir, *path;

static void set_up(void)
{
    dir = rv_kit_tmpdir();
    path = rv_kit_path(dir, "quotas.yaml");
}

static void tear_down(void)
{
    free(path);
    rv_kit_tmpdir_remove(dir);
}

/* "tokens/day=5 ..."; "=" before a tenant's own, "~" before a rate. */
static void limits_are(const rv_quotas *q, const char *tenant, const char *user, const char *want, int line)
{
    struct rv_quota_limit limits[RV_QUOTA_MAX_LIMITS];
    size_t n = rv_quotas_collect_limits(q, tenant, user, limits);
    rv_buf text = RV_BUF_INIT(4096);

    for (size_t i = 0; i < n; i++)
        rv_buf_printf(&text, "%s%s%s%s/%s=%lld", i ? " " : "", limits[i].is_tenants ? "=" : "",
                      limits[i].is_rate ? "~" : "", rv_quota_kind_text(limits[i].kind),
                      rv_quota_span_text(limits[i].span), (long long)limits[i].limit);
    ck_assert_msg(strcmp(rv_buf_cstr(&text), want) == 0, "line %d: \"%s\"", line, rv_buf_cstr(&text));
    rv_buf_fini(&text);
}
#define LIMITS(tenant, user, want) limits_are(q, (tenant), (user), (want), __LINE__)

static rv_quotas *read_sound(const char *text)
{
    rv_findings *findings = rv_findings_new();
    rv_quotas *q = NULL;

    rv_kit_write(path, text);
    ck_assert_int_eq(rv_quotas_read(path, findings, &q, NULL), 0);
    ck_assert_uint_eq(rv_findings_n(findings), 0);
    rv_findings_free(findings);
    return q;
}

START_TEST(each_user_and_each_tenant_has_a_plan)
{
    rv_quotas *q =
        read_sound("default: free\n"
                   "plans:\n"
                   "  free: {quotas: {tokens: {day: 5, month: 50}, cost_usd: {week: 0.5}}, rates: {runs: {minute: "
                   "2, hour: 0, day: 9}}}\n"
                   "  pro: {quotas: {tokens: {day: 0}, runs: {day: 7}}}\n"
                   "  none:\n"
                   "users: {ann: pro, bob: none}\n"
                   "tenants:\n"
                   "  acme: {plan: pro, users: {ann: free}}\n"
                   "  open: {default: none}\n");
    const char *free_plan = "cost_usd/week=500000 tokens/day=5 tokens/month=50 ~runs/minute=2 ~runs/day=9";

    LIMITS(NULL, "ann", "runs/day=7"); /* 0: not limited */
    LIMITS("default", "bob", "");
    LIMITS("default", "cyd", free_plan);
    LIMITS("default", NULL, free_plan); /* without a user */
    LIMITS("default", "", free_plan);
    LIMITS("acme", "bob", "=runs/day=7 cost_usd/week=500000 tokens/day=5 tokens/month=50 ~runs/minute=2 ~runs/day=9");
    LIMITS("acme", "ann", "=runs/day=7 cost_usd/week=500000 tokens/day=5 tokens/month=50 ~runs/minute=2 ~runs/day=9");
    LIMITS("open", "ann", "");
    LIMITS("other", "ann", free_plan); /* ann is pro in another tenant */
    rv_quotas_free(q);
    q = read_sound("plans: {p: {}}\n");
    LIMITS(NULL, "ann", "");
    rv_quotas_free(q);
    q = read_sound("");
    LIMITS(NULL, "ann", "");
    rv_quotas_free(q);
    q = NULL;
    LIMITS(NULL, "ann", ""); /* no file */
}
END_TEST

static const struct {
    const char *text;
    int line, col;
    const char *part;
} bad[] = {
    {"plan: {}\n", 1, 1, "unknown key \"plan\""},
    {"default: free\n", 1, 1, "plans"},
    {"plans: [a]\n", 1, 8, "plans must be a map"},
    {"plans: {free: {quotas: {token: {day: 3}}}}\n", 1, 25, "unknown key \"quotas.token\""},
    {"plans: {free: {quotas: {tokens: {days: 3}}}}\n", 1, 34, "unknown key \"days\""},
    {"plans: {free: {quotas: {tokens: {minute: 3}}}}\n", 1, 34, "unknown key \"minute\""},
    {"plans: {free: {rates: {runs: {month: 3}}}}\n", 1, 31, "unknown key \"month\""},
    {"plans: {free: {rates: {tokens: {day: 3}}}}\n", 1, 24, "unknown key \"rates.tokens\""},
    {"plans: {free: {quotas: {tokens: 3}}}\n", 1, 33, "a map such as {day: 1000}"},
    {"plans: {free: {rates: {runs: 3}}}\n", 1, 30, "a map such as {minute: 60}"},
    {"plans: {free: {quotas: {tokens: {day: -1}}}}\n", 1, 39, "day"},
    {"plans: {free: {quotas: {tokens: {day: 1e30}}}}\n", 1, 39, "day"},
    {"plans: {free: {quotas: {tokens: {day: 9223372036854775807}}}}\n", 1, 39, "day"},
    {"plans: {free: {quotas: {tokens: {day: many}}}}\n", 1, 39, "an integer"},
    {"plans: {free: {quotas: {cost_usd: {day: .nan}}}}\n", 1, 41, "day"},
    {"plans: {free: {quotas: {cost_usd: {day: 1e7}}}}\n", 1, 41, "day"},
    {"plans: {free: {}}\ndefault: fre\n", 2, 10, "unknown plan \"fre\""},
    {"plans: {free: {}}\nusers: {ann: fre}\n", 2, 14, "unknown plan \"fre\""},
    {"plans: {free: {}}\nusers: {ann: [free]}\n", 2, 14, "the name of a plan"},
    {"plans: {free: {}}\nusers: [ann]\n", 2, 8, "users must be a map"},
    {"plans: {free: {}}\nusers: {'': free}\n", 2, 9, "the name of a user has 1 to 200 bytes"},
    {"plans: {free: {}}\nusers: {\"a\\nb\": free}\n", 2, 9, "no control characters"},
    {"plans: {free: {}}\ntenants: {acme: {plan: pro}}\n", 2, 24, "unknown plan \"pro\""},
    {"plans: {free: {}}\ntenants: {acme: {user: {}}}\n", 2, 18, "unknown key \"user\""},
    {"plans: {free: {}}\ntenants: {acme: free}\n", 2, 17, "map"},
    {"plans: {free: {}}\nusers: {a: free}\ntenants: {default: {}}\n", 2, 8, "users are those of tenant \"default\""},
    {"plans: {free: {}, free: {}}\n", 1, 19, "free"},
    {"plans: {free: &a {quotas: *a}}\n", 1, 1, ""},
    {"plans: {free: {\n", 2, 1, ""},
};

START_TEST(a_fault_has_its_place)
{
    rv_findings *findings = rv_findings_new();
    rv_quotas *q = NULL;

    rv_kit_write(path, bad[_i].text);
    ck_assert_int_eq(rv_quotas_read(path, findings, &q, NULL), 0);
    ck_assert_uint_ge(rv_findings_n_errors(findings), 1);
    const struct rv_finding f = rv_findings_at(findings, 0);
    ck_assert_msg(strstr(f.text, bad[_i].part) != NULL, "%s", f.text);
    if (bad[_i].part[0]) {
        ck_assert_msg(f.src.line == bad[_i].line && f.src.col == bad[_i].col, "%s: %d:%d: %s", bad[_i].text, f.src.line,
                      f.src.col, f.text);
    }
    rv_quotas_free(q);
    rv_findings_free(findings);
}
END_TEST

START_TEST(a_file_that_is_named_must_be_there)
{
    struct rv_app app = {.quotas = path};
    rv_quotas *q = NULL;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_app_quotas_open(&app, &q, NULL), RV_E_NOT_FOUND);
    rv_kit_write(path, "plans: {free: {}}\nusers: {ann: fre, bob: x}\n");
    ck_assert_int_eq(rv_app_quotas_open(&app, &q, &err), RV_E_INVALID);
    char *text = rv_kit_err_take(err);
    ck_assert_ptr_nonnull(strstr(text, "quotas.yaml:2:14"));
    ck_assert_ptr_nonnull(strstr(text, "did you mean \"free\"?"));
    free(text);
    app.quotas = "";
    ck_assert_int_eq(rv_app_quotas_open(&app, &q, NULL), 0);
    ck_assert_ptr_null(q);
}
END_TEST

TCase *quotas_case(void)
{
    TCase *tc = tcase_create("quotas");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, each_user_and_each_tenant_has_a_plan);
    tcase_add_loop_test(tc, a_fault_has_its_place, 0, RV_COUNT(bad));
    tcase_add_test(tc, a_file_that_is_named_must_be_there);
    return tc;
}
