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

    OK(rv_store_list_firings(w->s, &operator_scope, name, limit, see_firing, &seen, &w->err));
    must_see(&seen, text, line);
}

int see_schedule(void *self, const struct rv_schedule_row *row, rv_err **err)
{
    struct seen *seen = self;

    (void)err;
    rv_buf_printf(&seen->text, "%s%s", seen->n++ ? " " : "", row->name);
    return 0;
}

void due_is(struct world *w, int64_t second, int64_t max, const char *names, int line)
{
    struct seen seen = SEEN_INIT;

    OK(rv_store_list_due_schedules(w->s, AT(second), max, see_schedule, &seen, &w->err));
    must_see(&seen, names, line);
}
