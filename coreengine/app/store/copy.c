/* A store copied into another one: who must not be at work meanwhile. */
#include "coreengine/app/past.h"
#include "coreengine/app/upkeep.h"
#include "coreengine/app/work.h"

#include <stdlib.h>
#include <string.h>

struct watch {
    const struct rv_app_copy_watch *watch;
    const char *from; /* as it may be shown */
};

/* A process of this machine that is gone cannot go on, however long its lease lasts. */
static int refuse_leased(void *self, const struct rv_store_leased *l, rv_err **err)
{
    const struct watch *w = self;
    char until[RV_TIME_MAX];

    if (strcmp(l->what, "run") == 0 && rv_owner_is_dead(l->owner))
        return 0;
    rv_time_format(l->until_us, until);
    RV_FAIL(err, RV_E_STATE, "%s \"%s\" of \"%s\" is in progress: %s holds it until %s", l->what, l->id, w->from,
            l->owner, until);
    rv_err_set_hint(err,
                    "end that process (a worker finishes its tasks on SIGTERM), or wait until then; runs that are over "
                    "or wait for an answer can be copied");
    return RV_E_STATE;
}

static int pass_progress(void *self, const struct rv_store_copy_progress *p, rv_err **err)
{
    const struct watch *w = self;

    return w->watch && w->watch->on_progress ? w->watch->on_progress(w->watch->self, p, err) : 0;
}

static int refuse_worker(void *self, const struct rv_worker_row *row, rv_err **err)
{
    const char *store = self;

    RV_FAIL(err, RV_E_STATE, "worker \"%s\" is at work in \"%s\"", row->name, store);
    rv_err_set_hint(err,
                    "stop it first (SIGTERM to process %lld on %s); a worker that was killed is forgotten after %lld s",
                    (long long)row->pid, row->host, (long long)(RV_WORKER_SEEN_US / RV_US_PER_S));
    return RV_E_STATE;
}

static int refuse_workers(rv_store *store, int64_t now_us, rv_err **err)
{
    rv_buf shown = RV_BUF_INIT(4096);

    rv_buf_puts(&shown, rv_store_url(store));
    int rc = rv_buf_check(&shown, "URL", err);
    if (rc == 0)
        rc = rv_store_list_workers(store, now_us - RV_WORKER_SEEN_US, refuse_worker, shown.ptr, err);
    rv_buf_fini(&shown);
    return rc;
}

static int open_as(const struct rv_app *app, const char *url, enum rv_app_store_use use, rv_store **out, rv_err **err)
{
    struct rv_app named = *app;

    named.store = url;
    return rv_app_store_open(&named, use, out, err);
}

static int keep_names(struct rv_app_copied *out, const rv_store *from, const rv_store *to, rv_err **err)
{
    out->from = rv_str_dup(rv_str_of(rv_store_url(from)));
    out->to = rv_str_dup(rv_str_of(rv_store_url(to)));
    return out->from && out->to ? 0 : RV_FAIL(err, RV_E_NOMEM, "copy a store");
}

/* What can be refused is, before the target is made. */
static int copy(const struct rv_app *app, rv_store *from, const char *to, const struct rv_app_copy_watch *watch,
                struct rv_app_copied *out, rv_err **err)
{
    struct watch w = {.watch = watch, .from = rv_store_url(from)};
    const struct rv_store_copy_opts opts = {
        .now_us = rv_app_now_us(), .on_leased = refuse_leased, .on_progress = pass_progress, .self = &w};
    rv_store *target = NULL;

    int rc = refuse_workers(from, opts.now_us, err);
    if (rc == 0)
        rc = rv_store_list_leased(from, &opts, err);
    if (rc == 0)
        rc = open_as(app, to, RV_APP_STORE_FILL, &target, err);
    if (rc == 0)
        rc = keep_names(out, from, target, err);
    if (rc == 0)
        rc = refuse_workers(target, opts.now_us, err);
    if (rc == 0)
        rc = rv_store_copy(from, target, &opts, &out->rows, err);
    rv_store_close(target);
    return rc;
}

int rv_app_copy_store(const struct rv_app *app, const char *from, const char *to, const struct rv_app_copy_watch *watch,
                      struct rv_app_copied *out, rv_err **err)
{
    rv_store *source = NULL;

    memset(out, 0, sizeof *out);
    int rc = open_as(app, from, RV_APP_STORE_READ, &source, err);
    if (rc == 0)
        rc = copy(app, source, to, watch, out, err);
    rv_store_close(source);
    if (rc < 0)
        rv_app_copied_fini(out);
    return rc;
}

void rv_app_copied_fini(struct rv_app_copied *c)
{
    free(c->from);
    free(c->to);
    memset(c, 0, sizeof *c);
}
