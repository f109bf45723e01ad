/* The fault points: each operation passes one before and one after, and what a hook makes of them. */
#include "coreengine/store/store.h"
#include "tests/contract/store/faults.h"
#include "tests/contract/store/schedules.h"

/* Writes the points down, and fails at one of them. */
struct hook {
    rv_buf passed;
    const char *fail_at; /* NULL: nowhere */
};

static int at(void *self, const char *point, rv_err **err)
{
    struct hook *hook = self;

    rv_buf_printf(&hook->passed, "%s ", point);
    if (hook->fail_at && strcmp(hook->fail_at, point) == 0)
        return RV_FAIL(err, RV_E_IO, "fault at %s", point);
    return 0;
}

static struct rv_store_append next_append; /* what do_append sends; its record is below */
static struct rv_record next_record;

static int do_create(struct world *w)
{
    struct rv_store_new_run run = world_run(w, "new");
    return rv_store_create_run(w->s, &run, &w->err);
}
static int do_append(struct world *w)
{
    next_append = world_append("r1", 1, &next_record, 2, "two");
    return rv_store_append(w->s, &next_append, &w->err);
}
static int do_append_turn(struct world *w)
{
    struct rv_message rows[] = {world_message("m1", "user", "hello"), world_message("m2", "assistant", "hi")};
    const struct rv_turn turns[] = {{.session = "new", .rows = rows, .n_rows = 2},
                                    {.session = "s1", .rows = rows, .n_rows = 1}};

    next_append = world_append("r1", 1, &next_record, 2, "two");
    next_append.turns = turns;
    next_append.n_turns = 2;
    return rv_store_append(w->s, &next_append, &w->err);
}
static int do_ensure_session(struct world *w)
{
    const struct rv_session_row fresh = {.id = "new", .tenant = "default", .user = "u", .created_us = T0};
    struct rv_session_row row = {0};
    int rc = rv_store_ensure_session(w->s, &fresh, &row, &w->err);
    ck_assert_int_eq(row.id != NULL, rc == 0);
    rv_session_row_fini(&row);
    return rc;
}
static int do_get_session(struct world *w)
{
    struct rv_session_row row = {0};
    int rc = rv_store_get_session(w->s, &operator_scope, "s1", &row, &w->err);
    ck_assert_int_eq(row.id != NULL, rc == 0);
    rv_session_row_fini(&row);
    return rc;
}
static int do_change_session(struct world *w)
{
    const struct rv_session_change change = {.name = "changed", .now_us = T0 + 1};
    return rv_store_change_session(w->s, &operator_scope, "s1", &change, &w->err);
}
static int do_list_sessions(struct world *w)
{
    struct seen seen = SEEN_INIT;
    int rc = rv_store_list_sessions(w->s, &operator_scope, NULL, see_session, &seen, &w->err);
    rv_buf_fini(&seen.text);
    return rc;
}
static int do_delete_session(struct world *w)
{
    return rv_store_delete_session(w->s, &operator_scope, "s1", T0, &w->err);
}
static int do_read_messages(struct world *w)
{
    struct seen seen = SEEN_INIT;
    int rc = rv_store_read_messages(w->s, &operator_scope, &(const struct rv_messages_of){"s1", NULL}, see_message,
                                    &seen, &w->err);
    rv_buf_fini(&seen.text);
    return rc;
}
static int do_add_messages(struct world *w)
{
    return add_rows(w, "s1", "m", "user:hello assistant:hi");
}
static const struct rv_schema_row schema = {.name = "n", .kind = "agent", .source = "person", .document = {"doc", 3}};
static int do_put_schema(struct world *w)
{
    bool changed = false;
    int rc = rv_store_put_schema(w->s, &schema, RV_SCHEMA_PUT, T0, &changed, &w->err);
    ck_assert_int_eq(changed, rc == 0);
    return rc;
}
static int do_schemas_version(struct world *w)
{
    int64_t version = -1;
    int rc = rv_store_read_schemas_version(w->s, &version, &w->err);
    ck_assert_int_eq(version == -1, rc != 0);
    return rc;
}
static int do_begin(struct world *w)
{
    int rc = rv_store_begin(w->s, &w->err);
    rv_store_rollback(w->s);
    return rc;
}
static int do_get_run(struct world *w)
{
    struct rv_run_row row = {0};
    int rc = rv_store_get_run(w->s, &operator_scope, "r1", &row, &w->err);
    rv_run_row_fini(&row);
    return rc;
}
static int do_list_runs(struct world *w)
{
    struct seen seen = SEEN_INIT;
    int rc = rv_store_list_runs(w->s, &operator_scope, NULL, see_run, &seen, &w->err);
    rv_buf_fini(&seen.text);
    return rc;
}
static int do_read(struct world *w)
{
    struct seen seen = SEEN_INIT;
    int rc = rv_store_read(w->s, &operator_scope, &(struct rv_record_range){.run = "r1", .from = 1}, see_record, &seen,
                           &w->err);
    rv_buf_fini(&seen.text);
    return rc;
}
static int do_list_pending(struct world *w)
{
    struct seen seen = SEEN_INIT;
    return rv_store_list_pending(w->s, &operator_scope, NULL, see_pending, &seen, &w->err);
}
static int do_delete(struct world *w)
{
    return rv_store_delete_run(w->s, &operator_scope, "r1", NULL, T0 + 100, &w->err);
}
static int do_claim(struct world *w)
{
    const struct rv_store_claim claim = {"B", NULL, T0 + 100, T0 + 200};
    int64_t fence = -1;
    int rc = rv_store_claim(w->s, &operator_scope, "r1", &claim, &fence, &w->err);
    ck_assert_int_eq(fence, rc == 0 ? 2 : -1);
    return rc;
}
static int do_renew(struct world *w)
{
    return rv_store_renew(w->s, "A", T0 + 300, &w->err);
}
static int do_release(struct world *w)
{
    return rv_store_release(w->s, "r1", 1, &w->err);
}
static int do_request_cancel(struct world *w)
{
    return rv_store_request_cancel(w->s, &operator_scope, "r1", T0 + 1, &w->err);
}
static int do_list_cancels(struct world *w)
{
    struct seen seen = SEEN_INIT;
    int rc = rv_store_list_cancels(w->s, "A", see_id, &seen, &w->err);
    rv_buf_fini(&seen.text);
    return rc;
}
static int do_enqueue(struct world *w)
{
    struct rv_new_task task = new_task("new");
    struct rv_enqueued got = {.is_new = false};
    int rc = rv_store_enqueue(w->s, &task, &got, &w->err);
    ck_assert_int_eq(got.is_new, rc == 0);
    return rc;
}
static int do_claim_tasks(struct world *w)
{
    const int64_t classes[] = {1};
    const struct rv_claim_tasks claim = {
        .worker = "W", .classes = classes, .n_classes = 1, .n = 1, .now_us = T0, .until_us = AT(1)};
    struct rv_claimed got = {0};
    int rc = rv_store_claim_tasks(w->s, &claim, &got, &w->err);
    ck_assert_int_eq(got.n, rc == 0);
    rv_claimed_fini(&got);
    return rc;
}
static int do_complete_task(struct world *w)
{
    return rv_store_complete_task(w->s, HELD("held", "W", 1), RV_STR_LIT("{}"), T0, &w->err);
}
static int do_fail_task(struct world *w)
{
    return fail_at(w, HELD("held", "W", 1), 0);
}
static int do_postpone_task(struct world *w)
{
    return rv_store_postpone_task(w->s, HELD("held", "W", 1), AT(5), "quota", T0, &w->err);
}
static int do_release_task(struct world *w)
{
    return rv_store_release_task(w->s, HELD("held", "W", 1), T0, &w->err);
}
static int do_stop_task(struct world *w)
{
    return rv_store_stop_task(w->s, HELD("stopping", "W", 1), T0, &w->err);
}
static int do_heartbeat(struct world *w)
{
    int64_t n = -1;
    int rc = rv_store_heartbeat(w->s, "W", T0, AT(7), &n, &w->err);
    ck_assert_int_eq(n, rc == 0 ? 2 : -1);
    return rc;
}
static int do_list_held(struct world *w)
{
    struct seen seen = SEEN_INIT;
    int rc = rv_store_list_held(w->s, "W", see_lease, &seen, &w->err);
    rv_buf_fini(&seen.text);
    return rc;
}
static int do_promote_tasks(struct world *w)
{
    return rv_store_promote_tasks(w->s, AT(10000), 9, NULL, &w->err);
}
static int do_recover_tasks(struct world *w)
{
    return rv_store_recover_tasks(w->s, AT(10000), 9, NULL, &w->err);
}
static int do_prune_tasks(struct world *w)
{
    return rv_store_prune_tasks(w->s, AT(10000), 9, NULL, &w->err);
}
static int do_cancel_task(struct world *w)
{
    return rv_store_cancel_task(w->s, &operator_scope, "pending", T0, NULL, &w->err);
}
static int do_retry_task(struct world *w)
{
    return rv_store_retry_task(w->s, &operator_scope, "over", T0, &w->err);
}
static int do_get_task(struct world *w)
{
    struct rv_task_row row = {0};
    int rc = rv_store_get_task(w->s, &operator_scope, "held", &row, &w->err);
    ck_assert_int_eq(row.id != NULL, rc == 0);
    rv_task_row_fini(&row);
    return rc;
}
static int do_list_tasks(struct world *w)
{
    struct seen seen = SEEN_INIT;
    int rc = rv_store_list_tasks(w->s, &operator_scope, NULL, see_task, &seen, &w->err);
    rv_buf_fini(&seen.text);
    return rc;
}
static int do_next_tasks(struct world *w)
{
    struct rv_next_tasks next = {.n_classes = -1};
    int rc = rv_store_next_tasks(w->s, NULL, 0, &next, &w->err);
    ck_assert_int_eq(next.n_classes, rc == 0 ? 1 : -1);
    return rc;
}
static int do_set_share(struct world *w)
{
    return rv_store_set_share(w->s, NULL, &(struct rv_task_share){.weight = 5, .cap = 7}, &w->err);
}
static int do_sweep(struct world *w)
{
    return rv_store_sweep(w->s, T0, 0, NULL, &w->err);
}

static const struct {
    const char *op;
    int (*run)(struct world *w);
} ops[] = {
    {"heard", do_heard}, /* first: nothing is told before the handle listens */
    {"listen", do_listen},
    {"create_run", do_create},
    {"append", do_append},
    {"append", do_append_turn},
    {"ensure_session", do_ensure_session},
    {"get_session", do_get_session},
    {"change_session", do_change_session},
    {"list_sessions", do_list_sessions},
    {"delete_session", do_delete_session},
    {"read_messages", do_read_messages},
    {"add_messages", do_add_messages},
    {"put_schema", do_put_schema},
    {"find_schema", do_find_schema},
    {"list_schemas", do_list_schemas},
    {"delete_schema", do_delete_schema},
    {"schemas_version", do_schemas_version},
    {"list_schema_versions", do_list_schema_versions},
    {"put_entities", do_put_entities},
    {"get_entity", do_get_entity},
    {"load_entity", do_load_entity},
    {"find_entities", do_find_entities},
    {"list_message_days", do_list_message_days},
    {"delete_entity", do_delete_entity},
    {"delete_entities_named", do_delete_entities_named},
    {"merge_metadata", do_merge_metadata},
    {"merge_edges", do_merge_edges},
    {"lookup", do_lookup},
    {"rebuild_keys", do_rebuild_keys},
    {"begin", do_begin},
    {"get_run", do_get_run},
    {"list_runs", do_list_runs},
    {"read", do_read},
    {"list_pending", do_list_pending},
    {"delete_run", do_delete},
    {"claim", do_claim},
    {"renew", do_renew},
    {"release", do_release},
    {"request_cancel", do_request_cancel},
    {"list_cancels", do_list_cancels},
    {"put_blob", do_put_blob},
    {"get_blob", do_get_blob},
    {"put_snapshot", do_put_snapshot},
    {"get_snapshot", do_get_snapshot},
    {"enqueue", do_enqueue},
    {"claim_tasks", do_claim_tasks},
    {"complete_task", do_complete_task},
    {"fail_task", do_fail_task},
    {"postpone_task", do_postpone_task},
    {"defer_task", do_defer_task},
    {"release_task", do_release_task},
    {"stop_task", do_stop_task},
    {"heartbeat", do_heartbeat},
    {"list_held", do_list_held},
    {"promote_tasks", do_promote_tasks},
    {"recover_tasks", do_recover_tasks},
    {"prune_tasks", do_prune_tasks},
    {"cancel_task", do_cancel_task},
    {"retry_task", do_retry_task},
    {"get_task", do_get_task},
    {"list_tasks", do_list_tasks},
    {"next_tasks", do_next_tasks},
    {"set_share", do_set_share},
    {"add_schedule", do_add_schedule},
    {"get_schedule", do_get_schedule},
    {"list_schedules", do_list_schedules},
    {"list_due_schedules", do_list_due_schedules},
    {"list_firings", do_list_firings},
    {"fire_schedule", do_fire_schedule},
    {"postpone_schedule", do_postpone_schedule},
    {"change_schedule", do_change_schedule},
    {"delete_schedule", do_delete_schedule},
    {"prune_schedules", do_prune_schedules},
    {"add_api_key", do_add_api_key},
    {"get_api_key", do_get_api_key},
    {"list_api_keys", do_list_api_keys},
    {"has_api_keys", do_has_api_keys},
    {"revoke_api_key", do_revoke_api_key},
    {"note_api_key", do_note_api_key},
    {"add_login", do_add_login},
    {"find_login", do_find_login},
    {"drop_login", do_drop_login},
    {"prune_api_keys", do_prune_api_keys},
    {"complete_tasks", do_complete_tasks},
    {"put_worker", do_put_worker},
    {"list_workers", do_list_workers},
    {"drop_worker", do_drop_worker},
    {"take_duty", do_take_duty},
    {"list_owners", do_list_owners},
    {"list_left", do_list_left},
    {"list_expired", do_list_expired},
    {"take_turn", do_take_turn},
    {"leave_turn", do_leave_turn},
    {"stats", do_stats},
    {"sweep", do_sweep},
    {"check", do_check},
};

/* The state of r1 and of the store, as text. */
static void picture(struct world *w, rv_buf *out)
{
    struct rv_store_stats stats;
    struct rv_session_row session;
    struct rv_run_row row;
    int64_t version = 0;
    int rc = rv_store_get_run(w->s, &operator_scope, "r1", &row, NULL);

    if (rc == 0)
        rv_buf_printf(out, "%s %s %lld %lld %lld %d ", row.stage, row.owner ? row.owner : "-", (long long)row.fence,
                      (long long)row.lease_until_us, (long long)row.n_records, row.cancel_requested);
    if (rc == 0)
        rv_run_row_fini(&row);
    OK(rv_store_read_stats(w->s, &stats, &w->err));
    rv_buf_printf(out, "%lld %lld %lld %lld ", (long long)stats.runs, (long long)stats.records, (long long)stats.blobs,
                  (long long)stats.snapshots);
    OK(rv_store_read_schemas_version(w->s, &version, &w->err));
    rv_buf_printf(out, "%lld %lld %lld %lld ", (long long)stats.sessions, (long long)stats.messages,
                  (long long)stats.schemas, (long long)version);
    if (rv_store_get_session(w->s, &operator_scope, "s1", &session, NULL) == 0) {
        rv_buf_printf(out, "%s %lld %lld", session.name, (long long)session.n_messages,
                      (long long)session.total_tokens);
        rv_session_row_fini(&session);
    }
    OK(rv_store_find_entities(w->s, &operator_scope, &(const struct rv_entities_of){"ontologies", NULL}, picture_entity,
                              out, &w->err));
    OK(rv_store_list_tasks(w->s, &operator_scope, NULL, picture_task, out, &w->err));
    OK(rv_store_list_lanes(w->s, NULL, picture_lane, out, &w->err));
    OK(rv_store_list_schedules(w->s, &operator_scope, picture_schedule, out, &w->err));
    picture_api_keys(w, out);
}

/* What there is before the operation. */
static void furnish(struct world *w)
{
    struct rv_schema_row row = schema;

    make_run(w, "r1");
    make_session(w, "s1", "u");
    row.name = "there";
    OK(rv_store_put_schema(w->s, &row, RV_SCHEMA_PUT, T0, NULL, &w->err));
    OK(put_page(w, "{\"id\":\"" PAGE "\",\"name\":\"page\"}"));
    furnish_tasks(w);
    furnish_schedules(w);
    furnish_api_keys(w);
}

static void open_furnished(struct world *w, int i)
{
    world_open(w, i);
    furnish(w);
}

/* The operation fails at its point before, or at the one after. */
static void fail_op(struct world *w, size_t op, bool is_after)
{
    struct hook hook = {.passed = RV_BUF_INIT(1000)};
    rv_buf point = RV_BUF_INIT(100);

    rv_buf_printf(&point, "%s%s", ops[op].op, is_after ? ".done" : "");
    hook.fail_at = rv_buf_cstr(&point);
    rv_store_set_faults(w->s, (struct rv_store_faults){at, &hook});
    SAYS(RV_E_IO, rv_buf_cstr(&point), ops[op].run(w));
    rv_store_set_faults(w->s, (struct rv_store_faults){NULL, NULL});
    ck_assert_int_eq(strncmp(hook.passed.ptr, ops[op].op, strlen(ops[op].op)), 0);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&hook.passed), rv_buf_cstr(&point)));
    rv_buf_fini(&hook.passed);
    rv_buf_fini(&point);
}

static void must_look(struct world *w, size_t op, rv_buf *want)
{
    rv_buf got = RV_BUF_INIT(4000);

    picture(w, &got);
    ck_assert_msg(strcmp(rv_buf_cstr(&got), rv_buf_cstr(want)) == 0, "%s: %s, not %s", ops[op].op, rv_buf_cstr(&got),
                  rv_buf_cstr(want));
    rv_buf_fini(&got);
}

/* Nothing happened, so one store is good for all. */
START_TEST(a_fault_before_means_nothing_happened)
{
    struct world world, *w = &world;
    rv_buf want = RV_BUF_INIT(4000);

    open_furnished(w, _i);
    picture(w, &want);
    for (size_t op = 0; op < RV_COUNT(ops); op++) {
        fail_op(w, op, false);
        must_look(w, op, &want);
    }
    world_close(w);
    rv_buf_fini(&want);
}
END_TEST

/* It happened as it does without a fault, though the caller is told otherwise. Both stores are replaced after what
 * changed them. */
START_TEST(a_fault_after_means_it_happened)
{
    /* Every third, where a fresh store takes its time: of a server ten times as long. */
    const size_t step = store_impls[_i].scheme ? rv_kit_stride(3) : rv_kit_step(3);
    struct world worlds[2], *plain = &worlds[0], *faulty = &worlds[1];
    rv_buf first = RV_BUF_INIT(4000), want = RV_BUF_INIT(4000);

    open_furnished(plain, _i);
    open_furnished(faulty, _i);
    picture(plain, &first);
    for (size_t op = rv_kit_first(step); op < RV_COUNT(ops); op += step) {
        rv_buf_clear(&want);
        must_ok(plain, ops[op].run(plain), ops[op].op, __LINE__);
        picture(plain, &want);
        fail_op(faulty, op, true);
        must_look(faulty, op, &want);
        if (strcmp(rv_buf_cstr(&first), rv_buf_cstr(&want)) == 0)
            continue;
        world_close(plain);
        world_close(faulty);
        open_furnished(plain, _i);
        open_furnished(faulty, _i);
    }
    world_close(plain);
    world_close(faulty);
    rv_buf_fini(&first);
    rv_buf_fini(&want);
}
END_TEST

START_TEST(a_failed_operation_has_no_point_after_it)
{
    struct world world, *w = &world;
    struct hook hook = {.passed = RV_BUF_INIT(1000)};

    world_open(w, _i);
    make_run(w, "r1");
    rv_store_set_faults(w->s, (struct rv_store_faults){at, &hook});
    FAILS(RV_E_STATE, append(w, "r1", 2, 2, "x", NULL));
    FAILS(RV_E_INVALID, append(w, "r1", 1, 2, "\xff", NULL)); /* not even begun */
    OK(append(w, "r1", 1, 2, "x", NULL));
    ck_assert_str_eq(rv_buf_cstr(&hook.passed), "append append append.done ");
    rv_buf_fini(&hook.passed);
    rv_store_set_faults(w->s, (struct rv_store_faults){NULL, NULL});
    world_close(w);
}
END_TEST

START_TEST(a_fault_at_commit_decides_the_whole_group)
{
    struct world world, *w = &world;
    struct hook hook = {.passed = RV_BUF_INIT(1000), .fail_at = "commit"};

    world_open(w, _i);
    make_run(w, "r1");
    rv_store_set_faults(w->s, (struct rv_store_faults){at, &hook});
    OK(rv_store_begin(w->s, &w->err));
    OK(append(w, "r1", 1, 2, "lost", NULL));
    FAILS(RV_E_IO, rv_store_commit(w->s, &w->err));
    FAILS(RV_E_STATE, rv_store_commit(w->s, &w->err));
    RECORDS("r1", "1:one");
    hook.fail_at = "commit.done";
    OK(rv_store_begin(w->s, &w->err));
    OK(append(w, "r1", 1, 2, "kept", NULL));
    FAILS(RV_E_IO, rv_store_commit(w->s, &w->err));
    RECORDS("r1", "1:one 2:kept");
    hook.fail_at = "append.done"; /* it is part of the group nevertheless */
    OK(rv_store_begin(w->s, &w->err));
    FAILS(RV_E_IO, append(w, "r1", 1, 3, "told otherwise", NULL));
    OK(rv_store_commit(w->s, &w->err));
    RECORDS("r1", "1:one 2:kept 3:told otherwise");
    rv_store_set_faults(w->s, (struct rv_store_faults){NULL, NULL});
    rv_buf_fini(&hook.passed);
    world_close(w);
}
END_TEST

START_TEST(a_backup_passes_its_points)
{
    struct world world, *w = &world;
    struct hook hook = {.passed = RV_BUF_INIT(1000), .fail_at = "backup"};
    char *path;

    world_open(w, _i);
    path = rv_kit_path(w->dir, "copy.db");
    rv_store_set_faults(w->s, (struct rv_store_faults){at, &hook});
    FAILS(RV_E_IO, rv_store_backup(w->s, path, &w->err));
    hook.fail_at = "backup.done";
    FAILS(RV_E_IO, rv_store_backup(w->s, path, &w->err));
    hook.fail_at = NULL;
    FAILS(RV_E_EXISTS, rv_store_backup(w->s, path, &w->err));
    rv_store_set_faults(w->s, (struct rv_store_faults){NULL, NULL});
    rv_buf_fini(&hook.passed);
    free(path);
    world_close(w);
}
END_TEST

Suite *faults_suite(void)
{
    Suite *suite = suite_create("faults");
    TCase *tc = tcase_create("faults");

    ADD(tc, a_fault_before_means_nothing_happened);
    ADD(tc, a_fault_after_means_it_happened);
    ADD(tc, a_failed_operation_has_no_point_after_it);
    ADD(tc, a_fault_at_commit_decides_the_whole_group);
    ADD(tc, a_backup_passes_its_points);
    suite_add_tcase(suite, tc);
    return suite;
}
