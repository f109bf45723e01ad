#include "tests/contract/store/tasks.h"
#include "coreengine/store/store.h"

struct rv_new_task new_task(const char *id)
{
    return (struct rv_new_task){.id = id,
                                .user = "u",
                                .type = "news",
                                .max_retries = RV_UNSET,
                                .now_us = T0,
                                .payload = RV_STR_LIT("{\"n\":1}")};
}

void enqueue_as(struct world *w, const struct rv_new_task *task)
{
    struct rv_enqueued got;

    OK(rv_store_enqueue(w->s, task, &got, &w->err));
    ck_assert_str_eq(got.id, task->id);
    ck_assert(got.is_new);
}

void enqueue(struct world *w, const char *id)
{
    struct rv_new_task task = new_task(id);

    enqueue_as(w, &task);
}

struct ids {
    int64_t *ids;
    size_t n, max;
};

static int keep_class(void *self, const struct rv_task_class *c, rv_err **err)
{
    struct ids *ids = self;

    (void)err;
    ck_assert_uint_lt(ids->n, ids->max);
    ids->ids[ids->n++] = c->id;
    return 0;
}

size_t all_classes(struct world *w, int64_t *ids, size_t max)
{
    struct ids got = {ids, 0, max};

    OK(rv_store_list_classes(w->s, keep_class, &got, &w->err));
    return got.n;
}

void claim_is(struct world *w, const char *worker, size_t n, int64_t second, const char *ids, int line)
{
    int64_t classes[ALL];
    struct rv_claim_tasks claim = {.worker = worker,
                                   .classes = classes,
                                   .n_classes = all_classes(w, classes, ALL),
                                   .n = n,
                                   .now_us = AT(second),
                                   .until_us = AT(second + LEASE)};
    struct rv_claimed got = {0};
    rv_buf text = RV_BUF_INIT(1 << 20);

    OK(rv_store_claim_tasks(w->s, &claim, &got, &w->err));
    for (size_t i = 0; i < got.n; i++) {
        const struct rv_task_row *row = &got.rows[i];
        rv_buf_printf(&text, "%s%s", i > 0 ? " " : "", row->id);
        ck_assert_int_eq(row->status, RV_TASK_PROCESSING);
        ck_assert_str_eq(row->worker, worker);
        ck_assert_int_eq(row->lease_until_us, claim.until_us);
        ck_assert_int_eq(row->started_us, claim.now_us);
    }
    ck_assert_msg(strcmp(rv_buf_cstr(&text), ids) == 0, "line %d: %s: claimed \"%s\", not \"%s\"", line, w->impl->name,
                  rv_buf_cstr(&text), ids);
    rv_buf_fini(&text);
    rv_claimed_fini(&got);
}

void task_is(struct world *w, const char *id, const char *text, int line)
{
    struct rv_task_row row;
    rv_buf got = RV_BUF_INIT(4096);

    OK(rv_store_get_task(w->s, &operator_scope, id, &row, &w->err));
    rv_buf_printf(&got, "%s %lld %lld/%lld", rv_task_status_text(row.status), (long long)row.attempt,
                  (long long)row.retry_count, (long long)row.max_retries);
    if (row.worker)
        rv_buf_printf(&got, " %s", row.worker);
    if (row.cancel_requested)
        rv_buf_puts(&got, " cancel");
    ck_assert_int_eq(row.worker != NULL, row.status == RV_TASK_PROCESSING);
    ck_assert_int_eq(row.completed_us > 0, rv_task_status_is_final(row.status));
    ck_assert_msg(strcmp(rv_buf_cstr(&got), text) == 0, "line %d: %s: task %s is \"%s\", not \"%s\"", line,
                  w->impl->name, id, rv_buf_cstr(&got), text);
    rv_buf_fini(&got);
    rv_task_row_fini(&row);
}

static int see_event(void *self, const struct rv_task_event *e, rv_err **err)
{
    struct seen *seen = self;

    (void)err;
    ck_assert_int_eq(e->seq, seen->n + 1);
    rv_buf_printf(&seen->text, "%s%s", seen->n ? " " : "", e->kind);
    if (e->retry > 0 || e->next_us > 0)
        rv_buf_printf(&seen->text, "(%lld/%lld +%lld)", (long long)e->retry, (long long)e->max_retries,
                      (long long)((e->next_us - T0) / S));
    seen->n++;
    return 0;
}

void events_are(struct world *w, const char *id, const char *text, int line)
{
    struct seen seen = SEEN_INIT;

    OK(rv_store_list_task_events(w->s, &operator_scope, id, see_event, &seen, &w->err));
    must_see(&seen, text, line);
}

int see_task(void *self, const struct rv_task_row *row, rv_err **err)
{
    return see_id(self, row->id, err);
}

int see_lease(void *self, const struct rv_task_lease *lease, bool cancel_requested, rv_err **err)
{
    char text[300];

    snprintf(text, sizeof text, "%s:%lld%s", lease->id, (long long)lease->attempt, cancel_requested ? "!" : "");
    return see_id(self, text, err);
}

void list_is(struct world *w, const struct rv_store_scope *scope, const struct rv_task_filter *filter, const char *ids,
             int line)
{
    struct seen seen = SEEN_INIT;

    OK(rv_store_list_tasks(w->s, scope, filter, see_task, &seen, &w->err));
    must_see(&seen, ids, line);
}

int fail_at(struct world *w, const struct rv_task_lease *lease, int64_t second)
{
    return rv_store_fail_task(w->s, lease, &(struct rv_task_failure){.error = "broke", .now_us = AT(second)}, NULL,
                              &w->err);
}

int64_t promote_at(struct world *w, int64_t second)
{
    int64_t n = -1;

    OK(rv_store_promote_tasks(w->s, AT(second), RV_TASK_MAX_CLAIM, &n, &w->err));
    return n;
}

struct rv_recovered recover_at(struct world *w, int64_t second)
{
    struct rv_recovered got = {-1, -1, -1};

    OK(rv_store_recover_tasks(w->s, AT(second), RV_TASK_MAX_CLAIM, &got, &w->err));
    return got;
}

int picture_lane(void *self, const struct rv_task_lane *lane, rv_err **err)
{
    (void)err;
    rv_buf_printf(self, " %lld %lld %lld", (long long)lane->n_pending, (long long)lane->n_processing,
                  (long long)lane->share.weight);
    return 0;
}

/* One task of each kind. */
void furnish_tasks(struct world *w)
{
    struct rv_new_task later = new_task("later");

    later.scheduled_us = AT(60);
    enqueue_as(w, &later);
    enqueue(w, "over");
    OK(rv_store_cancel_task(w->s, &operator_scope, "over", T0, NULL, &w->err));
    enqueue(w, "held");
    enqueue(w, "stopping");
    CLAIM("W", 2, -LEASE + 1, "held stopping");
    OK(rv_store_cancel_task(w->s, &operator_scope, "stopping", T0, NULL, &w->err));
    enqueue(w, "pending");
}

int picture_task(void *self, const struct rv_task_row *row, rv_err **err)
{
    (void)err;
    rv_buf_printf(self, " %s %s %lld %lld %lld %d", row->id, rv_task_status_text(row->status), (long long)row->attempt,
                  (long long)row->lease_until_us, (long long)row->updated_us, row->cancel_requested);
    return 0;
}

int do_complete_tasks(struct world *w)
{
    struct rv_task_end end = {.lease = {"held", "W", 1}, .is_lost = true};
    int rc = rv_store_complete_tasks(w->s, &end, 1, T0, &w->err);
    ck_assert_int_eq(end.is_lost, rc != 0);
    return rc;
}
int do_put_worker(struct world *w)
{
    const struct rv_worker_row row = {.name = "W", .host = "h", .offers = RV_STR_LIT("[]"), .seen_us = T0};
    return rv_store_put_worker(w->s, &row, &w->err);
}
static int see_no_worker(void *self, const struct rv_worker_row *row, rv_err **err)
{
    (void)self;
    (void)row;
    (void)err;
    return 0;
}
int do_list_workers(struct world *w)
{
    return rv_store_list_workers(w->s, 0, see_no_worker, NULL, &w->err);
}
int do_drop_worker(struct world *w)
{
    return rv_store_delete_worker(w->s, "W", T0, &w->err);
}
int do_take_duty(struct world *w)
{
    bool mine = false;
    int rc = rv_store_claim_duty(
        w->s, &(const struct rv_duty_claim){.duty = "sweep", .worker = "W", .now_us = T0, .until_us = T0 + 1}, &mine,
        &w->err);
    ck_assert_int_eq(mine, rc == 0);
    return rc;
}
int do_listen(struct world *w)
{
    int fd = -2, rc = rv_store_listen(w->s, &fd, &w->err);
    ck_assert_int_eq(fd == -2, rc != 0);
    return rc;
}
int do_heard(struct world *w)
{
    bool heard = true;
    int rc = rv_store_was_notified(w->s, &heard, &w->err);
    ck_assert_int_eq(heard, rc != 0);
    return rc;
}
int do_list_owners(struct world *w)
{
    struct seen seen = SEEN_INIT;
    int rc = rv_store_list_owners(w->s, see_id, &seen, &w->err);
    rv_buf_fini(&seen.text);
    return rc;
}
int do_defer_task(struct world *w)
{
    return rv_store_defer_task(w->s, HELD("held", "W", 1), AT(5), "later", T0, &w->err);
}
