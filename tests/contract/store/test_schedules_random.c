/* Several processes do at random what workers and people do with schedules, and a simple model says what must come of
 * each call: an instant of a schedule is fired at most once, by the process that comes first, and each firing has its
 * task. */
#include "tests/contract/store/schedules.h"

#define SCHEDULES 12
#define STEPS     1200
#define RUNS      rv_kit_sample(3, 300)
#define MAX_FIRED 4000

struct model_schedule {
    bool is_there;
    int tenant;
    int64_t born; /* makes its id another one when it is added again */
    int64_t next, look, last, n_fired, n_skipped;
    int64_t seen[2]; /* where each of the two processes saw it last; 0: it did not */
};
struct model {
    struct world *w;
    rv_store *handles[2];
    struct rv_rand rand;
    struct rv_rand_state state;
    struct model_schedule all[SCHEDULES];
    int64_t now, n_born, n_tasks;
};

static const char *const tenants[] = {"default", "x"};

static int64_t draw(struct model *m, int64_t n)
{
    return (int64_t)rv_rand_below(m->rand, (uint64_t)n);
}

static void name_of(int i, char out[20])
{
    snprintf(out, 20, "s%d", i);
}

static void id_of(const struct model *m, int i, char out[80])
{
    snprintf(out, 80, RV_SCHEDULE_PREFIX "%d-%lld", i, (long long)m->all[i].born);
}

static void add(struct model *m, int i)
{
    struct model_schedule *t = &m->all[i];
    struct world *w = m->w;
    char id[80], name[20];
    struct rv_schedule_row row;

    name_of(i, name);
    row = new_schedule(id, name, m->now + 1 + draw(m, 100));
    int tenant = t->is_there ? t->tenant : (int)draw(m, 2);
    struct model_schedule fresh = {.is_there = true,
                                   .tenant = tenant,
                                   .born = ++m->n_born,
                                   .next = (row.next_us - T0) / S,
                                   .look = (row.next_us - T0) / S};
    snprintf(id, sizeof id, RV_SCHEDULE_PREFIX "%d-%lld", i, (long long)fresh.born);
    row.tenant = tenants[tenant];
    int rc = rv_store_add_schedule(w->s, &row, &w->err);
    if (t->is_there && t->next > 0) {
        FAILS(RV_E_EXISTS, rc);
        return;
    }
    OK(rc);
    *t = fresh; /* one that had ended is replaced */
}

static void look(struct model *m, int process)
{
    struct model_schedule *t;

    for (t = m->all; t < m->all + SCHEDULES; t++)
        if (t->is_there && t->look > 0 && t->look <= m->now)
            t->seen[process] = t->next;
}

static void fire_one(struct model *m, int i, int process)
{
    struct model_schedule *t = &m->all[i];
    struct world *w = m->w;
    int64_t seen = t->seen[process], planned = seen + draw(m, 3), next = draw(m, 5) ? planned + 1 + draw(m, 60) : 0;
    bool skips = draw(m, 4) == 0, is_mine = false;
    char id[80], task_id[120] = "";
    struct rv_new_task task = new_task(task_id);
    struct rv_fire f = {.id = id,
                        .expected_us = AT(seen),
                        .next_us = next > 0 ? AT(next) : 0,
                        .now = {.planned_us = AT(planned), .since_us = AT(seen), .at_us = AT(m->now)},
                        .task = skips ? NULL : &task};

    if (seen == 0)
        return;
    f.now.skipped = skips ? "late" : NULL;
    id_of(m, i, id);
    snprintf(task_id, sizeof task_id, "%s@%lld", id, (long long)planned);
    task.key = task_id;
    task.tenant = tenants[t->tenant];
    OK(rv_store_fire_schedule(m->handles[process], &f, &is_mine, &w->err));
    ck_assert_int_eq(is_mine, t->is_there && t->next == seen);
    t->seen[process] = 0;
    if (!is_mine)
        return;
    t->next = t->look = next;
    t->n_fired += !skips;
    t->n_skipped += skips;
    m->n_tasks += !skips;
    if (!skips)
        t->last = planned;
}

static void postpone(struct model *m, int i, int process)
{
    struct model_schedule *t = &m->all[i];
    struct world *w = m->w;
    int64_t until = m->now + draw(m, 50);
    char id[80];

    if (t->seen[process] == 0)
        return;
    id_of(m, i, id);
    OK(rv_store_postpone_schedule(
        m->handles[process], id,
        &(const struct rv_postponement){.expected_us = AT(t->seen[process]), .until_us = AT(until), .why = "why"},
        AT(m->now), &w->err));
    if (t->is_there && t->next == t->seen[process])
        t->look = until;
}

static void delete (struct model *m, int i)
{
    struct model_schedule *t = &m->all[i];
    const struct rv_store_scope own = {tenants[t->tenant], NULL}, other = {tenants[!t->tenant], NULL};
    struct world *w = m->w;
    char name[20];

    name_of(i, name);
    FAILS(RV_E_NOT_FOUND, rv_store_delete_schedule(w->s, &other, name, &w->err));
    int rc = rv_store_delete_schedule(w->s, &own, name, &w->err);
    if (t->is_there)
        OK(rc);
    else
        FAILS(RV_E_NOT_FOUND, rc);
    t->is_there = false;
}

static void step(struct model *m)
{
    int i = (int)draw(m, SCHEDULES), process = (int)draw(m, 2);

    switch (draw(m, 10)) {
    case 0:
        add(m, i);
        break;
    case 1:
    case 2:
        look(m, process);
        break;
    case 3:
        postpone(m, i, process);
        break;
    case 4:
        m->now += draw(m, 40);
        break;
    case 5:
        if (draw(m, 4) == 0)
            delete (m, i);
        break;
    default:
        fire_one(m, i, process);
    }
}

static int compare(void *self, const struct rv_schedule_row *row, rv_err **err)
{
    struct model *m = self;
    const struct model_schedule *t = &m->all[strtol(row->name + 1, NULL, 10)];

    (void)err;
    ck_assert(t->is_there);
    ck_assert_str_eq(row->tenant, tenants[t->tenant]);
    ck_assert_int_eq(row->next_us, t->next > 0 ? AT(t->next) : 0);
    ck_assert_int_eq(row->look_us, t->look > 0 ? AT(t->look) : 0);
    ck_assert_int_eq(row->last_us, t->last > 0 ? AT(t->last) : 0);
    ck_assert_int_eq(row->n_fired, t->n_fired);
    ck_assert_int_eq(row->n_skipped, t->n_skipped);
    return 0;
}

static void compare_all(struct model *m)
{
    const struct rv_store_scope x = {"x", NULL};
    struct rv_next_tasks next;
    struct rv_store_stats stats;
    struct seen seen = SEEN_INIT;
    struct world *w = m->w;
    int64_t first = 0;
    int n_due = 0;

    OK(rv_store_list_schedules(w->s, &operator_scope, compare, m, &w->err));
    OK(rv_store_list_schedules(w->s, &x, compare, m, &w->err));
    for (int i = 0; i < SCHEDULES; i++) {
        const struct model_schedule *t = &m->all[i];
        if (t->is_there && t->look > 0 && (first == 0 || t->look < first))
            first = t->look;
        n_due += t->is_there && t->look > 0 && t->look <= m->now;
    }
    OK(rv_store_next_tasks(w->s, NULL, 0, &next, &w->err));
    ck_assert_int_eq(next.fires_us, first > 0 ? AT(first) : 0);
    OK(rv_store_list_due_schedules(w->s, AT(m->now), 999, see_due, &seen, &w->err));
    ck_assert_int_eq(seen.n, n_due);
    rv_buf_fini(&seen.text);
    OK(rv_store_read_stats(w->s, &stats, &w->err));
    ck_assert_int_eq(stats.tasks, m->n_tasks);
}

START_TEST(random_operations_fire_each_instant_once)
{
    struct world world, *w = &world;

    for (uint64_t seed = 1; seed <= (uint64_t)(store_impls[_i].is_shared ? 1 : RUNS); seed++) {
        struct model m = {.w = w, .now = 1};
        world_open(w, _i);
        m.rand = rv_rand_seeded(&m.state, seed);
        m.handles[0] = w->s;
        m.handles[1] = w->impl->is_shared ? world_other(w) : w->s;
        for (int n = 0; n < STEPS; n++) {
            step(&m);
            if (n % 50 == 0)
                compare_all(&m);
        }
        compare_all(&m);
        ck_assert_int_gt(m.n_tasks, 50);
        if (m.handles[1] != w->s)
            rv_store_close(m.handles[1]);
        world_close(w);
    }
}
END_TEST

Suite *schedules_random_suite(void)
{
    Suite *suite = suite_create("schedules_random");
    TCase *tc = tcase_create("schedules_random");

    ADD(tc, random_operations_fire_each_instant_once);
    suite_add_tcase(suite, tc);
    return suite;
}
