/* Runs that another process left behind: which can go on, and when a run that crashes its process is tried again. */
#include "coreengine/app/app_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coreengine/app/past.h"
#include "coreengine/app/recover.h"
#include "coreengine/app/work.h"
#include "coreengine/base/base.h"

#define FIRST_BACKOFF_US (10 * RV_US_PER_S) /* ten seconds: what ended the process may be over by then */
#define MAX_BACKOFF_US   RV_US_PER_HOUR     /* an hour: a run that always crashes costs one process an hour */

#define MAX_RUNS  ((size_t)100000) /* that are looked at: their ids are in memory, some 20 MB */
#define MAX_NOTED 100 /* unfinished runs that the hint at the start looks at: it must not delay the start */

int rv_app_count_crashes(rv_store *store, const struct rv_store_scope *scope, const struct rv_run_row *row,
                         int64_t now_us, int64_t *out, rv_err **err)
{
    *out = 0;
    if (rv_run_status_is_final(row->status) || row->status == RV_RUN_INTERRUPTED ||
        rv_app_owner_of(row, now_us) == RV_APP_OWNER_LIVES)
        return 0;
    return rv_journal_count_takeovers(store, scope, row, out, err);
}

/* At once when it is set apart, then after 10 s, 20 s and so on, up to an hour. */
int64_t rv_app_next_try_us(int64_t crashes, int64_t last_us)
{
    int64_t wait_us = FIRST_BACKOFF_US;

    if (crashes <= RV_APP_CRASHES)
        return last_us;
    for (int64_t i = RV_APP_CRASHES + 1; i < crashes && wait_us < MAX_BACKOFF_US; i++)
        wait_us *= 2;
    return last_us + (wait_us < MAX_BACKOFF_US ? wait_us : MAX_BACKOFF_US);
}

enum rv_app_recovery rv_app_recovery_of(const struct rv_run_row *row, int64_t now_us, int64_t *patience_us)
{
    if (rv_run_status_is_final(row->status))
        return RV_APP_RECOVERY_ENDED;
    if (row->status == RV_RUN_INTERRUPTED)
        return RV_APP_RECOVERY_WAITS;
    if (rv_app_owner_of(row, now_us) != RV_APP_OWNER_LIVES)
        return RV_APP_RECOVERY_LEFT;
    return rv_owner_wait_dead(row->owner, patience_us) ? RV_APP_RECOVERY_LEFT : RV_APP_RECOVERY_OWNED;
}

static int add(void *self, const struct rv_run_row *row, rv_err **err)
{
    struct rv_app_unfinished_list *f = self;

    if (!rv_has_room(&f->items, &f->cap, f->n + 1, sizeof *f->items))
        return RV_FAIL(err, RV_E_NOMEM, "list unfinished runs");
    struct rv_app_unfinished *x = &f->items[f->n];
    *x = (struct rv_app_unfinished){.id = rv_str_dup(rv_str_of(row->id)),
                                    .owner = row->owner ? rv_str_dup(rv_str_of(row->owner)) : NULL,
                                    .lease_until_us = row->lease_until_us,
                                    .verdict = rv_app_recovery_of(row, f->now_us, &f->patience_us),
                                    .status = row->status,
                                    .cancel = row->cancel_requested,
                                    .late = rv_app_owner_of(row, f->now_us) == RV_APP_OWNER_LATE};
    f->n++; /* what it has of texts is freed with the list */
    return x->id && (x->owner || !row->owner) ? 0 : RV_FAIL(err, RV_E_NOMEM, "list unfinished runs");
}

static int count_left(void *self, const struct rv_run_row *row, rv_err **err)
{
    enum rv_app_owner owner = rv_app_owner_of(row, rv_app_now_us());

    (void)err;
    *(size_t *)self += owner == RV_APP_OWNER_DEAD || owner == RV_APP_OWNER_LATE;
    return 0;
}

size_t rv_app_count_left(rv_store *store, const struct rv_store_scope *scope)
{
    const struct rv_run_filter unfinished = {.statuses = 1u << RV_RUN_READY | 1u << RV_RUN_RUNNING, .limit = MAX_NOTED};
    size_t n = 0;

    RV_IGNORE(rv_store_list_runs(store, scope, &unfinished, count_left, &n, NULL), "it is for a note, no more");
    return n;
}

static int judge_waiting(rv_store *store, const struct rv_store_scope *scope, struct rv_app_unfinished *x,
                         int64_t now_us, rv_err **err)
{
    struct rv_app_due d;

    if (x->verdict != RV_APP_RECOVERY_WAITS)
        return 0;
    int rc = rv_app_find_due(store, scope, x->id, now_us, &d, err);
    if (rc == 0 && d.n > 0)
        x->verdict = RV_APP_RECOVERY_LEFT;
    rv_app_due_fini(&d);
    return rc;
}

static bool is_listed(const struct rv_app_unfinished_list *f, const char *run)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->items[i].id, run) == 0)
            return true;
    return false;
}

static int add_due_runs(rv_store *store, const struct rv_store_scope *scope, struct rv_app_unfinished_list *f,
                        rv_err **err)
{
    struct rv_app_due d;

    int rc = rv_app_find_due(store, scope, NULL, f->now_us, &d, err);
    for (size_t i = 0; i < d.n && rc == 0; i++) {
        struct rv_run_row row;
        if (is_listed(f, d.runs[i]))
            continue;
        rc = rv_store_get_run(store, scope, d.runs[i], &row, err);
        if (rc < 0)
            break;
        bool waits = row.status == RV_RUN_INTERRUPTED;
        rc = waits ? add(f, &row, err) : 0;
        rv_run_row_fini(&row);
        if (rc == 0 && waits)
            f->items[f->n - 1].verdict = RV_APP_RECOVERY_LEFT;
    }
    rv_app_due_fini(&d);
    return rc;
}

static int find_unfinished(rv_store *store, const struct rv_store_scope *scope, const char *const *words,
                           size_t n_words, struct rv_app_unfinished_list *f, rv_err **err)
{
    const struct rv_run_filter unfinished = {
        .statuses = 1u << RV_RUN_READY | 1u << RV_RUN_RUNNING, .oldest_first = true, .limit = (int64_t)MAX_RUNS};
    int rc = 0;

    if (n_words == 0) {
        rc = rv_store_list_runs(store, scope, &unfinished, add, f, err);
        return rc < 0 ? rc : add_due_runs(store, scope, f, err);
    }
    for (size_t i = 0; i < n_words && rc == 0; i++) {
        struct rv_run_row row;
        rc = rv_app_find_run(store, scope, words[i], &row, err);
        if (rc < 0)
            break;
        rc = add(f, &row, err);
        rv_run_row_fini(&row);
        if (rc == 0)
            rc = judge_waiting(store, scope, &f->items[f->n - 1], f->now_us, err);
    }
    return rc;
}

static int note_task(void *self, const struct rv_task_row *row, rv_err **err)
{
    (void)row;
    (void)err;
    *(bool *)self = true;
    return 0;
}

/* A worker goes on with those that are queued, unless a person names them. */
static int find_queued(rv_store *store, const struct rv_store_scope *scope, struct rv_app_unfinished_list *f,
                       rv_err **err)
{
    const struct rv_store_scope all = {scope->tenant, NULL};
    int rc = 0;

    for (size_t i = 0; i < f->n && rc == 0; i++) {
        const struct rv_task_filter filter = {
            .statuses = RV_TASKS_ALIVE, .type = RV_TASK_OF_RUN, .key = f->items[i].id, .limit = 1};
        bool is_queued = false;
        if (f->items[i].verdict != RV_APP_RECOVERY_LEFT)
            continue;
        rc = rv_store_list_tasks(store, &all, &filter, note_task, &is_queued, err);
        if (is_queued)
            f->items[i].verdict = RV_APP_RECOVERY_QUEUED;
    }
    return rc;
}

/* Runs that crashed several processes come last, each in a process of its own, unless a person names them; then they
 * are tried at once, in this process. */
static int find_crashed(rv_store *store, const struct rv_store_scope *scope, bool are_named,
                        struct rv_app_unfinished_list *f, rv_err **err)
{

    for (size_t i = 0; i < f->n; i++) {
        struct rv_app_unfinished *x = &f->items[i];
        struct rv_run_row row;
        if (x->verdict != RV_APP_RECOVERY_LEFT)
            continue;
        rv_err *cause = NULL;
        int64_t last_us = 0;
        int rc = rv_store_get_run(store, scope, x->id, &row, &cause);
        bool is_read = rc == 0;
        if (is_read) {
            rc = rv_app_count_crashes(store, scope, &row, f->now_us, &x->crashes, &cause);
            last_us = row.updated_us;
            rv_run_row_fini(&row);
        }
        if (rc == RV_E_NOMEM) {
            rv_err_pass(err, cause);
            return rc;
        }
        rv_err_free(cause);
        if (!is_read)
            continue; /* what is wrong with it is said when it is recovered */
        x->apart = !are_named && !x->cancel && x->crashes >= RV_APP_CRASHES;
        x->next_us = rv_app_next_try_us(x->crashes, last_us);
        if (x->apart && last_us <= f->now_us && x->next_us > f->now_us)
            x->verdict = RV_APP_RECOVERY_LATER;
    }
    return 0;
}

int rv_app_unfinished_find(rv_store *store, const struct rv_store_scope *scope, const char *const *words,
                           size_t n_words, struct rv_app_unfinished_list *out, rv_err **err)
{
    *out = (struct rv_app_unfinished_list){.now_us = rv_app_now_us(), .patience_us = RV_OWNER_ENDS_US};
    int rc = find_unfinished(store, scope, words, n_words, out, err);
    if (rc == 0 && n_words == 0)
        rc = find_queued(store, scope, out, err);
    if (rc == 0)
        rc = find_crashed(store, scope, n_words > 0, out, err);
    if (rc < 0)
        rv_app_unfinished_fini(out);
    return rc;
}

void rv_app_unfinished_fini(struct rv_app_unfinished_list *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->items[i].id);
        free(f->items[i].owner);
    }
    free(f->items);
    memset(f, 0, sizeof *f);
}

int rv_app_request_cancel(rv_store *store, const struct rv_store_scope *scope, const char *word, struct rv_run_row *row,
                          bool *ends_elsewhere, rv_err **err)
{
    int rc = rv_app_find_run(store, scope, word, row, err);

    if (rc < 0)
        return rc;
    char *id = rv_str_dup(rv_str_of(row->id));
    rc =
        id ? rv_store_request_cancel(store, scope, id, rv_app_now_us(), err) : RV_FAIL(err, RV_E_NOMEM, "cancel a run");
    rv_run_row_fini(row); /* read the owner after the request: an owner until then sees the request or is named here */
    if (rc == 0)
        rc = rv_store_get_run(store, scope, id, row, err);
    free(id);
    int64_t patience_us = RV_OWNER_ENDS_US;
    *ends_elsewhere = rc == 0 && rv_app_owner_of(row, rv_app_now_us()) == RV_APP_OWNER_LIVES &&
                      !rv_owner_wait_dead(row->owner, &patience_us);
    return rc;
}

int rv_app_is_to_be_cancelled(rv_store *store, const struct rv_store_scope *scope, const char *run, bool *out,
                              rv_err **err)
{
    struct rv_run_row row;
    rv_err *cause = NULL;

    *out = false;
    int rc = rv_store_get_run(store, scope, run, &row, &cause);
    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(cause);
        return 0;
    }
    if (rc < 0)
        return rv_err_pass(err, cause);
    *out = row.cancel_requested && row.status == RV_RUN_INTERRUPTED;
    rv_run_row_fini(&row);
    return 0;
}

void rv_app_log_uncancelled(rv_log *log, const char *run, rv_err *err)
{
    RV_LOG(log, WARN, "run.uncancelled", RV_F_TEXT("run_id", run), RV_F_ERR("error", err));
    rv_err_free(err);
}

/* --- in a process of its own, so that a crash ends only that --- */

static int plan(void *self, posix_spawn_file_actions_t *files)
{
    (void)self;
    return posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
}

/* Signals that end a command are the child's while it runs. A terminal sends SIGINT to both, others send SIGTERM to
 * this process alone. */
static int wait_for(pid_t pid, const sigset_t *signals)
{
    int how = 0;

    for (;;) {
        pid_t ended = waitpid(pid, &how, WNOHANG);
        if (ended == pid)
            return how;
        if (ended < 0 && errno != EINTR)
            return -1;
        if (sigwaitinfo(signals, NULL) == SIGTERM)
            kill(pid, SIGTERM);
    }
}

int rv_app_spawn_self(const char *const *words, int *status, int *number, rv_err **err)
{
    sigset_t signals, before;
    pid_t pid = 0;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGCHLD);
    signal(SIGCHLD, SIG_DFL); /* the parent may have set it to ignored, and then waitpid() reports no end */
    fflush(stdout);
    sigprocmask(SIG_BLOCK, &signals, &before);
    const struct rv_spawn how_to = {
        .program = "/proc/self/exe", .argv = (char *const *)(uintptr_t)words, .mask = &before, .plan = plan};
    int failed = rv_spawn(&how_to, &pid);
    int how = failed ? 0 : wait_for(pid, &signals);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return RV_FAIL_START(err, failed, "start a process");
    *number = how >= 0 && WIFSIGNALED(how) ? WTERMSIG(how) : 0;
    *status = how >= 0 && WIFEXITED(how) ? WEXITSTATUS(how) : -1;
    return 0;
}
