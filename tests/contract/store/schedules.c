#include "tests/contract/store/schedules.h"

struct rv_schedule_row new_schedule(char id[80], const char *name, int64_t second)
{
    snprintf(id, 80, RV_SCHEDULE_PREFIX "%s", name);
    return (struct rv_schedule_row){.id = id,
                                    .user = "u",
                                    .name = name,
                                    .expr = "* * * * *",
                                    .zone = "UTC",
                                    .type = "news",
                                    .max_retries = RV_UNSET,
                                    .created_us = T0,
                                    .next_us = AT(second)};
}

void add_schedule(struct world *w, const char *name, int64_t second)
{
    char id[80];
    struct rv_schedule_row row = new_schedule(id, name, second);

    OK(rv_store_add_schedule(w->s, &row, &w->err));
}

int fire(struct world *w, rv_store *s, const char *name, int64_t expected, int64_t second, int64_t next)
{
    char id[80], task_id[120] = "";
    struct rv_new_task task = new_task(task_id);
    const struct rv_fire f = {.id = id,
                              .expected_us = AT(expected),
                              .next_us = next > 0 ? AT(next) : 0,
                              .now = {.planned_us = AT(second), .since_us = AT(expected), .at_us = AT(second)},
                              .task = &task};
    bool is_mine = false;

    snprintf(id, sizeof id, RV_SCHEDULE_PREFIX "%s", name);
    snprintf(task_id, sizeof task_id, "%s@%lld", name, (long long)second);
    task.key = task_id;
    task.now_us = AT(second);
    int rc = rv_store_fire_schedule(s, &f, &is_mine, &w->err);
    return rc < 0 ? rc : is_mine;
}

static long long seconds(int64_t us)
{
    return us > 0 ? (us - T0) / S : -1;
}

void schedule_is(struct world *w, const char *name, const char *text, int line)
{
    struct rv_schedule_row row;
    rv_buf got = RV_BUF_INIT(4096);

    OK(rv_store_get_schedule(w->s, &operator_scope, name, &row, &w->err));
    rv_buf_printf(&got, "next %lld look %lld last %lld fired %lld skipped %lld%s%s", seconds(row.next_us),
                  seconds(row.look_us), seconds(row.last_us), (long long)row.n_fired, (long long)row.n_skipped,
                  row.error ? " " : "", row.error ? row.error : "");
    ck_assert_msg(strcmp(rv_buf_cstr(&got), text) == 0, "line %d: %s: schedule %s is \"%s\", not \"%s\"", line,
                  w->impl->name, name, rv_buf_cstr(&got), text);
    rv_buf_fini(&got);
    rv_schedule_row_fini(&row);
}

static int see_firing(void *self, const struct rv_firing *f, rv_err **err)
{
    struct seen *seen = self;

    (void)err;
    ck_assert(!f->made == (f->skipped != NULL));
    rv_buf_puts(&seen->text, seen->n++ ? " " : "");
    if (f->since_us < f->planned_us)
        rv_buf_printf(&seen->text, "%lld..", seconds(f->since_us));
    rv_buf_printf(&seen->text, "%lld=%s%s", seconds(f->planned_us),
                  f->made ? f->made : "skipped: ", f->made ? "" : f->skipped);
    return 0;
}

void firings_are(struct world *w, const char *name, int64_t limit, const char *text, int line)
{
    struct seen seen = SEEN_INIT;

    OK(rv_store_list_firings(w->s, &operator_scope, &(const struct rv_firing_filter){.word = name, .limit = limit},
                             see_firing, &seen, &w->err));
    must_see(&seen, text, line);
}

int see_schedule(void *self, const struct rv_schedule_row *row, rv_err **err)
{
    struct seen *seen = self;

    (void)err;
    rv_buf_printf(&seen->text, "%s%s", seen->n++ ? " " : "", row->name);
    return 0;
}

int see_due(void *self, const struct rv_due_schedule *due, rv_err **err)
{
    struct seen *seen = self;

    (void)err;
    ck_assert_ptr_nonnull(due->tenant);
    ck_assert_int_gt(due->next_us, 0);
    rv_buf_printf(&seen->text, "%s%s", seen->n++ ? " " : "", due->id + strlen(RV_SCHEDULE_PREFIX));
    return 0;
}

void due_is(struct world *w, int64_t second, int64_t max, const char *names, int line)
{
    struct seen seen = SEEN_INIT;

    OK(rv_store_list_due_schedules(w->s, AT(second), max, see_due, &seen, &w->err));
    must_see(&seen, names, line);
}

/* --- One call of each kind, for the fault points --- */

int do_add_schedule(struct world *w)
{
    char id[80];
    struct rv_schedule_row row = new_schedule(id, "new", 9);
    return rv_store_add_schedule(w->s, &row, &w->err);
}

int do_get_schedule(struct world *w)
{
    struct rv_schedule_row row = {0};
    int rc = rv_store_get_schedule(w->s, &operator_scope, "due", &row, &w->err);
    ck_assert_int_eq(row.id != NULL, rc == 0);
    rv_schedule_row_fini(&row);
    return rc;
}

int do_list_schedules(struct world *w)
{
    struct seen seen = SEEN_INIT;
    int rc = rv_store_list_schedules(w->s, &operator_scope, see_schedule, &seen, &w->err);
    rv_buf_fini(&seen.text);
    return rc;
}

int do_list_due_schedules(struct world *w)
{
    struct seen seen = SEEN_INIT;
    int rc = rv_store_list_due_schedules(w->s, AT(10), 9, see_due, &seen, &w->err);
    rv_buf_fini(&seen.text);
    return rc;
}

static int no_firing(void *self, const struct rv_firing *f, rv_err **err)
{
    (void)self;
    (void)err;
    ck_abort_msg("fired at %lld", (long long)f->at_us);
    return 0;
}

int do_list_firings(struct world *w)
{
    return rv_store_list_firings(w->s, &operator_scope, &(const struct rv_firing_filter){.word = "due", .limit = 0},
                                 no_firing, NULL, &w->err);
}

int do_fire_schedule(struct world *w)
{
    int rc = fire(w, w->s, "due", 5, 5, 15);
    return rc == 1 ? 0 : rc;
}

int do_postpone_schedule(struct world *w)
{
    return rv_store_postpone_schedule(
        w->s, "sched_due", &(const struct rv_postponement){.expected_us = AT(5), .until_us = AT(50), .why = "why"},
        AT(9), &w->err);
}

int do_change_schedule(struct world *w)
{
    const struct rv_schedule_change change = {.expr = "@daily", .zone = "UTC", .next_us = AT(77), .now_us = AT(9)};
    return rv_store_change_schedule(w->s, &operator_scope, "due", &change, &w->err);
}

int do_delete_schedule(struct world *w)
{
    return rv_store_delete_schedule(w->s, &operator_scope, "due", &w->err);
}

int do_prune_schedules(struct world *w)
{
    return rv_store_prune_schedules(w->s, AT(10000), NULL, &w->err);
}

void furnish_schedules(struct world *w)
{
    const struct rv_fire skip = {.id = "sched_ended",
                                 .expected_us = AT(4),
                                 .now = {.planned_us = AT(4), .since_us = AT(4), .at_us = AT(4), .skipped = "late"}};
    bool is_mine = false;

    add_schedule(w, "due", 5);
    add_schedule(w, "ended", 4);
    OK(rv_store_fire_schedule(w->s, &skip, &is_mine, &w->err));
}

int picture_schedule(void *self, const struct rv_schedule_row *row, rv_err **err)
{
    (void)err;
    rv_buf_printf(self, " %s %lld %lld %lld", row->id, (long long)row->next_us, (long long)row->look_us,
                  (long long)row->n_fired);
    return 0;
}
