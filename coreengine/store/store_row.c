/* Rows with their own memory, and the refusals, worded once for all implementations. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/store_internal.h"

char *rv_store_pack(const struct rv_row_texts *row)
{
    size_t size = 1;
    char *own, *at;

    for (size_t i = 0; i < row->n_texts; i++)
        size += *row->texts[i] ? strlen(*row->texts[i]) + 1 : 0;
    for (size_t i = 0; i < row->n_strs; i++)
        size += row->strs[i]->ptr ? row->strs[i]->len + 1 : 0;
    own = at = malloc(size);
    if (!own)
        return NULL;
    for (size_t i = 0; i < row->n_texts; i++) {
        size_t len = *row->texts[i] ? strlen(*row->texts[i]) + 1 : 0;
        if (len > 0)
            *row->texts[i] = memcpy(at, *row->texts[i], len);
        at += len;
    }
    for (size_t i = 0; i < row->n_strs; i++) {
        rv_str *s = row->strs[i];
        if (!s->ptr)
            continue;
        s->ptr = memcpy(at, s->ptr, s->len);
        at[s->len] = 0;
        at += s->len + 1;
    }
    return own;
}

int rv_run_row_copy(const struct rv_run_row *row, struct rv_run_row *out)
{
    struct rv_run_row copy = *row;
    const struct rv_row_texts texts = {.texts = {&copy.id, &copy.tenant, &copy.user, &copy.session, &copy.pipeline,
                                                 &copy.bundle, &copy.parent, &copy.stage, &copy.owner},
                                       .n_texts = 9};

    copy.own = rv_store_pack(&texts);
    if (!copy.own)
        return RV_E_NOMEM;
    *out = copy;
    return 0;
}

void rv_run_row_fini(struct rv_run_row *row)
{
    free(row->own);
    *row = (struct rv_run_row){0};
}

bool rv_store_status_is_final(enum rv_run_status status)
{
    return status != RV_RUN_READY && status != RV_RUN_RUNNING && status != RV_RUN_INTERRUPTED;
}

int rv_store_fail_no_run(const char *run, rv_err **err)
{
    return RV_FAIL(err, RV_E_NOT_FOUND, "no run \"%s\"", run);
}

int rv_store_fail_no_message(const char *session, int64_t seq, rv_err **err)
{
    return RV_FAIL(err, RV_E_NOT_FOUND, "session \"%s\" has no message %lld", session, (long long)seq);
}

int rv_store_fail_fenced(const char *run, int64_t fence, int64_t present, const char *owner, rv_err **err)
{
    if (owner)
        RV_FAIL(err, RV_E_STATE, "run \"%s\" was taken over by \"%s\" (fence %lld, this writer has %lld)", run, owner,
                (long long)present, (long long)fence);
    else
        RV_FAIL(err, RV_E_STATE, "run \"%s\" was taken over and let go (fence %lld, this writer has %lld)", run,
                (long long)present, (long long)fence);
    return RV_E_STATE;
}

int rv_store_fail_seq(const char *run, int64_t n_records, int64_t seq, rv_err **err)
{
    return RV_FAIL(err, RV_E_STATE, "run \"%s\" has %lld records, so the next is not %lld", run, (long long)n_records,
                   (long long)seq);
}

int rv_store_fail_leased(const char *run, const char *owner, int64_t until_us, rv_err **err)
{
    char until[RV_TIME_MAX];

    rv_time_format(until_us, until);
    return RV_FAIL(err, RV_E_STATE, "run \"%s\" is owned by \"%s\" until %s", run, owner, until);
}

int rv_store_fail_taken(const char *run, rv_err **err)
{
    return RV_FAIL(err, RV_E_EXISTS, "there is a run \"%s\" already", run);
}

int rv_store_fail_no_bundle(const char *run, const char *bundle, rv_err **err)
{
    return RV_FAIL(err, RV_E_NOT_FOUND, "run \"%s\": the store has no bundle %s", run, bundle);
}

int rv_store_fail_over(const char *run, enum rv_run_status status, rv_err **err)
{
    return RV_FAIL(err, RV_E_STATE, "run \"%s\" is over: %s", run, rv_run_status_text(status));
}

int rv_store_fail_snapshot(const char *run, int64_t n_records, int64_t seq, rv_err **err)
{
    return RV_FAIL(err, RV_E_STATE, "run \"%s\" has %lld records, a snapshot can not be of record %lld", run,
                   (long long)n_records, (long long)seq);
}
