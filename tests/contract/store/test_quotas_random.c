/* Quotas against a model, and by many processes at once, some of which are killed. */
#include "tests/contract/store/quotas.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- against a model --- */

#define USERS  3
#define CALLS  40
#define DAYS   3
#define DAY_US (INT64_C(86400) * S)
#define STEPS  400

struct model {
    int64_t used[USERS + 1][DAYS], reserved[USERS + 1][DAYS]; /* the last one: of the tenant */
    struct {
        int64_t amount, fence;
        int user, day;
    } calls[CALLS + 1];
    int64_t fence;
};
static const char *const users[USERS] = {"ann", "bob", ""};
static const struct rv_quota_limit both[] = {
    {.kind = RV_QUOTA_TOKENS, .span = RV_SPAN_DAY, .limit = 1500, .is_tenants = true, .plan = "p"},
    {.kind = RV_QUOTA_TOKENS, .span = RV_SPAN_DAY, .limit = 1000, .plan = "p"}};

static bool fits(const struct model *m, int who, int day, int64_t n, int64_t limit)
{
    return m->used[who][day] + m->reserved[who][day] + n <= limit;
}

static void add(struct model *m, int user, int day, int64_t used, int64_t reserved)
{
    const int whose[] = {user, USERS};

    for (size_t i = 0; i < RV_COUNT(whose); i++) {
        m->used[whose[i]][day] += used;
        m->reserved[whose[i]][day] += reserved;
    }
}

static void try_reserve(struct world *w, rv_store *s, struct model *m, struct rv_rand *rand, int day)
{
    int user = (int)rv_rand_below(*rand, USERS), call = 1 + (int)rv_rand_below(*rand, CALLS);
    int64_t n = 1 + (int64_t)rv_rand_below(*rand, 300);
    struct rv_quota_answer a;
    const struct rv_quota_ask ask = {.user = users[user],
                                     .limits = both,
                                     .n_limits = 2,
                                     .reserves[RV_QUOTA_TOKENS] = n,
                                     .run = "r",
                                     .fence = m->fence,
                                     .call_id = call,
                                     .now_us = T0 + day * DAY_US};
    bool held = m->calls[call].amount > 0 && m->calls[call].fence == m->fence;
    bool want = held || (fits(m, USERS, day, n, both[0].limit) && fits(m, user, day, n, both[1].limit));

    if (m->calls[call].amount > 0 && !held) /* it is the model's only one of that call */
        return;
    int rc = rv_store_reserve(s, &ask, &a, &w->err);
    if (want)
        must_ok(w, rc, "reserve", __LINE__);
    else
        must_fail(w, rc, RV_E_QUOTA, "reserve", __LINE__);
    if (!want || held)
        return;
    m->calls[call].amount = n;
    m->calls[call].fence = m->fence;
    m->calls[call].user = user;
    m->calls[call].day = day;
    add(m, user, day, 0, n);
}

static void settle_some(struct world *w, rv_store *s, struct model *m, struct rv_rand *rand)
{
    int call = 1 + (int)rv_rand_below(*rand, CALLS);
    int64_t used = (int64_t)rv_rand_below(*rand, 200), n = 0;
    bool held = m->calls[call].amount > 0 && m->calls[call].fence == m->fence;

    OK(rv_store_settle(s, &(struct rv_settlement){"r", m->fence, call, (int64_t[RV_N_QUOTA]){used}}, &n, &w->err));
    ck_assert_int_eq(n, held ? 2 : 0);
    if (held) {
        add(m, m->calls[call].user, m->calls[call].day, used, -m->calls[call].amount);
        m->calls[call].amount = 0;
    }
}

static void take_over(struct world *w, rv_store *s, struct model *m)
{
    OK(rv_store_settle_left(s, "r", ++m->fence, NULL, &w->err));
    for (int i = 1; i <= CALLS; i++) {
        add(m, m->calls[i].user, m->calls[i].day, m->calls[i].amount, -m->calls[i].amount);
        m->calls[i].amount = 0;
    }
}

static void compare(struct world *w, const struct model *m, int day)
{
    rv_buf want = RV_BUF_INIT(4096);
    static const char *const names[] = {"-", "ann", "bob"};
    static const int order[] = {2, 0, 1};

    for (int i = -1; i < USERS; i++) {
        int who = i < 0 ? USERS : order[i];
        if (m->used[who][day] + m->reserved[who][day] > 0)
            rv_buf_printf(&want, "%s%s tokens day %lld+%lld", want.len ? " " : "", i < 0 ? "=" : names[i],
                          (long long)m->used[who][day], (long long)m->reserved[who][day]);
    }
    USAGE(NULL, day * 86400, rv_buf_cstr(&want));
    rv_buf_fini(&want);
}

START_TEST(counters_are_those_of_a_model)
{
    struct world world, *w = &world;
    struct rv_rand_state seed;
    struct rv_rand rand = rv_rand_seeded(&seed, 7);
    struct model m = {.fence = 1};

    world_open(w, _i);
    rv_store *other = w->impl->is_shared ? world_other(w) : w->s;
    for (int i = 0; i < STEPS; i++) {
        rv_store *s = rv_rand_below(rand, 2) ? w->s : other;
        int day = i * DAYS / STEPS;
        uint64_t what = rv_rand_below(rand, 20);
        if (what < 11)
            try_reserve(w, s, &m, &rand, day);
        else if (what < 19)
            settle_some(w, s, &m, &rand);
        else
            take_over(w, s, &m);
        if (i % 20 == 19)
            compare(w, &m, day);
    }
    if (other != w->s)
        rv_store_close(other);
    world_close(w);
}
END_TEST

/* --- by many processes --- */

#define PROCESSES 6
#define LIMIT     400 /* tokens */

static const struct rv_quota_limit shared[] = {
    {.kind = RV_QUOTA_RUNS, .span = RV_SPAN_MINUTE, .is_rate = true, .limit = 90, .is_tenants = true, .plan = "p"},
    {.kind = RV_QUOTA_TOKENS, .span = RV_SPAN_DAY, .limit = LIMIT, .is_tenants = true, .plan = "p"}};

/* Of a child: reserves and settles until it is killed or nothing fits; says each settled amount. Exit status: how often
 * it was counted by the rate. */
static void spend(const char *url, int number, int out)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    char run[16];
    rv_store *s = NULL;
    int counted = 0;

    snprintf(run, sizeof run, "r%d", number);
    if (rv_store_open(url, &opts, &s, NULL) < 0)
        _exit(200);
    for (int64_t call = 1; counted < 190; call++) {
        struct rv_quota_answer a;
        const struct rv_quota_ask ask = {.user = run,
                                         .limits = shared,
                                         .n_limits = 2,
                                         .counts[RV_QUOTA_RUNS] = 1,
                                         .reserves[RV_QUOTA_TOKENS] = 20,
                                         .run = run,
                                         .fence = 1,
                                         .call_id = call,
                                         .now_us = T0};
        int64_t used = 1 + call % 5;
        int rc = rv_store_reserve(s, &ask, &a, NULL);
        if (rc == RV_E_QUOTA && a.is_crowded)
            continue;
        if (rc < 0)
            break;
        counted++;
        rc = rv_store_settle(s, &(struct rv_settlement){run, 1, call, (int64_t[RV_N_QUOTA]){used}}, NULL, NULL);
        if (rc < 0 || write(out, &used, sizeof used) != sizeof used)
            _exit(201);
    }
    rv_store_close(s);
    _exit(counted);
}

static int see_all(void *self, const struct rv_usage_row *row, rv_err **err)
{
    struct rv_usage_row *rows = self;

    (void)err;
    rows[row->is_rate] = *row;
    return 0;
}

/* Two of them are killed at any moment. What is left afterwards adds up: no limit was passed, each settled use counts
 * once, and what the dead had reserved is settled by the next owner of their runs. */
START_TEST(no_limit_is_passed_and_nothing_leaks_when_processes_are_killed)
{
    struct world world, *w = &world;
    pid_t children[PROCESSES];
    int pipe_ends[2], counted = 0, n_killed = 0;
    int64_t told = 0, used = 0, left = 0;
    struct rv_usage_row rows[2] = {0};

    world_open(w, _i);
    if (!w->impl->is_shared) {
        world_close(w);
        return;
    }
    ck_assert_int_eq(pipe(pipe_ends), 0);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0)
            spend(w->url, i, pipe_ends[1]);
    }
    close(pipe_ends[1]);
    for (int i = 0; read(pipe_ends[0], &used, sizeof used) == sizeof used; i++) {
        told += used;
        if (i == 12 || i == 30)
            kill(children[n_killed++], SIGKILL);
    }
    close(pipe_ends[0]);
    for (int i = 0; i < PROCESSES; i++) {
        int status = 0;
        ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
        ck_assert_msg(!WIFEXITED(status) || WEXITSTATUS(status) <= 190, "%d", WEXITSTATUS(status));
        counted += WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    }
    ck_assert_int_eq(n_killed, 2);
    OK(rv_store_list_usage(w->s, &operator_scope, T0, see_all, rows, &w->err));
    ck_assert_int_le(rows[0].used + rows[0].reserved, LIMIT);
    ck_assert_int_ge(rows[0].used, told); /* the dead may have settled one each that they did not tell of */
    ck_assert_int_le(rows[0].used, told + 2 * 5);
    ck_assert(rows[0].reserved == 0 || rows[0].reserved == 20 || rows[0].reserved == 40);
    ck_assert_int_ge(rows[1].used, counted);
    ck_assert_int_le(rows[1].used, 90);
    for (int i = 0; i < PROCESSES; i++) {
        char run[16];
        int64_t n = 0;
        snprintf(run, sizeof run, "r%d", i);
        OK(rv_store_settle_left(w->s, run, 2, &n, &w->err));
        left += n;
    }
    ck_assert_int_eq(left * 20, rows[0].reserved);
    used = rows[0].used + rows[0].reserved;
    OK(rv_store_list_usage(w->s, &operator_scope, T0, see_all, rows, &w->err));
    ck_assert_int_eq(rows[0].used, used);
    ck_assert_int_eq(rows[0].reserved, 0);
    world_close(w);
}
END_TEST

Suite *quotas_random_suite(void)
{
    Suite *s = suite_create("quotas random");
    TCase *tc = tcase_create("quotas random");

    ADD(tc, counters_are_those_of_a_model);
    ADD(tc, no_limit_is_passed_and_nothing_leaks_when_processes_are_killed);
    suite_add_tcase(s, tc);
    return s;
}
