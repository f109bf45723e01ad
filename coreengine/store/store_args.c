/* What an argument has to be like. Nothing behind this file looks at ids, sizes, encodings or order again. */
#include <string.h>

#include "coreengine/store/store_internal.h"

int rv_store_check_text(const char *kind, const char *text, size_t max, rv_err **err)
{
    size_t len;

    if (!text)
        return RV_FAIL(err, RV_E_INVALID, "no %s given", kind);
    len = strnlen(text, max + 1);
    if (len > max)
        return RV_FAIL(err, RV_E_LIMIT, "the %s \"%.40s...\" is longer than %zu bytes", kind, text, max);
    if (!rv_utf8_valid((rv_str){text, len}, NULL))
        return RV_FAIL(err, RV_E_INVALID, "the %s \"%s\" is not UTF-8", kind, text);
    return 0;
}

int rv_store_check_id(const char *kind, const char *id, rv_err **err)
{
    if (id && !*id)
        return RV_FAIL(err, RV_E_INVALID, "the %s is empty", kind);
    return rv_store_check_text(kind, id, RV_STORE_MAX_ID, err);
}

/* Only of what is new: what an older version took stays reachable. */
int rv_store_check_new_id(const char *kind, const char *id, rv_err **err)
{
    for (const char *p = id; p && *p; p++)
        if (rv_utf8_control(p, strlen(p)))
            return RV_FAIL(err, RV_E_INVALID, "the %s has a control character at byte %td", kind, p - id);
    return 0;
}

int rv_store_check_scope(const struct rv_store_scope *scope, struct rv_store_scope *out, rv_err **err)
{
    int rc;

    if (!scope)
        return RV_FAIL(err, RV_E_INVALID, "no scope given");
    *out = *scope;
    if (!out->tenant)
        out->tenant = RV_STORE_TENANT;
    rc = rv_store_check_id("tenant", out->tenant, err);
    if (rc == 0 && out->user)
        rc = rv_store_check_text("user", out->user, RV_STORE_MAX_ID, err);
    return rc;
}

int rv_store_check_hash(const char *hash, rv_err **err)
{
    if (!hash)
        return RV_FAIL(err, RV_E_INVALID, "no hash given");
    if (strnlen(hash, RV_HASH_MAX) != RV_HASH_MAX - 1 || strspn(hash, "0123456789abcdef") != RV_HASH_MAX - 1)
        return RV_FAIL(err, RV_E_INVALID, "\"%.80s\" is no SHA-256: 64 digits of 0-9a-f", hash);
    return 0;
}

int rv_store_check_bytes(const char *kind, rv_str s, size_t max, rv_err **err)
{
    size_t bad = 0;

    if (!s.ptr && s.len > 0)
        return RV_FAIL(err, RV_E_INVALID, "the %s has a length and no bytes", kind);
    if (s.len > max)
        return RV_FAIL(err, RV_E_LIMIT, "the %s has %zu bytes, more than %zu", kind, s.len, max);
    if (!rv_utf8_valid(s, &bad))
        return RV_FAIL(err, RV_E_INVALID, "the %s is not UTF-8 at byte %zu", kind, bad);
    return 0;
}

static int check_records(const char *run, const struct rv_record *records, size_t n, int64_t first_seq, rv_err **err)
{
    if (n > RV_STORE_MAX_WRITE)
        return RV_FAIL(err, RV_E_LIMIT, "run \"%s\": %zu records at once, more than %zu", run, n, RV_STORE_MAX_WRITE);
    if (n > 0 && !records)
        return RV_FAIL(err, RV_E_INVALID, "run \"%s\": %zu records and none given", run, n);
    for (size_t i = 0; i < n; i++) {
        const struct rv_record *r = &records[i];
        int rc;
        if (r->seq < 1 || r->seq - (int64_t)i != first_seq)
            return RV_FAIL(err, RV_E_INVALID, "run \"%s\": record %zu has seq %lld, not %lld", run, i,
                           (long long)r->seq, (long long)first_seq + (long long)i);
        rc = rv_store_check_bytes("body", r->body, RV_STORE_MAX_BODY, err);
        if (rc == 0)
            rc = rv_store_check_bytes("value", r->value, RV_STORE_MAX_VALUE, err);
        if (rc < 0)
            return RV_WRAP(err, rc, "run \"%s\": record %lld", run, (long long)r->seq);
    }
    return 0;
}

int rv_store_check_time(const char *kind, int64_t us, rv_err **err)
{
    return us < 0 ? RV_FAIL(err, RV_E_INVALID, "%s is %lld, before 1970", kind, (long long)us) : 0;
}

static int check_status(enum rv_run_status status, rv_err **err)
{
    if ((int)status < 0 || status >= RV_N_RUN)
        return RV_FAIL(err, RV_E_INVALID, "%d is no run status", (int)status);
    return 0;
}

int rv_store_check_new_run(const struct rv_store_new_run *run, rv_err **err)
{
    int rc;

    if (!run)
        return RV_FAIL(err, RV_E_INVALID, "no run given");
    if ((rc = rv_store_check_id("run id", run->id, err)) < 0 ||
        (rc = run->tenant ? rv_store_check_id("tenant", run->tenant, err) : 0) < 0 ||
        (rc = rv_store_check_text("user", run->user, RV_STORE_MAX_ID, err)) < 0 ||
        (rc = rv_store_check_text("session", run->session, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = rv_store_check_text("pipeline", run->pipeline, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = rv_store_check_hash(run->bundle, err)) < 0 ||
        (rc = run->parent ? rv_store_check_id("parent run", run->parent, err) : 0) < 0 ||
        (rc = rv_store_check_text("stage", run->stage, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = run->owner ? rv_store_check_id("owner", run->owner, err) : 0) < 0 ||
        (rc = check_status(run->status, err)) < 0 || (rc = rv_store_check_time("the time", run->now_us, err)) < 0 ||
        (rc = rv_store_check_time("the lease's end", run->lease_until_us, err)) < 0)
        return rc;
    if ((rc = rv_store_check_new_id("run id", run->id, err)) < 0 ||
        (rc = rv_store_check_new_id("tenant", run->tenant, err)) < 0 ||
        (rc = rv_store_check_new_id("user", run->user, err)) < 0 ||
        (rc = rv_store_check_new_id("session", run->session, err)) < 0)
        return rc;
    if (run->parent_seq < 0)
        return RV_FAIL(err, RV_E_INVALID, "run \"%s\": its parent has no record %lld", run->id,
                       (long long)run->parent_seq);
    return check_records(run->id, run->records, run->n_records, 1, err);
}

static int check_pending(const struct rv_store_append *a, size_t i, rv_err **err)
{
    const struct rv_pending *p = &a->pending[i];
    int rc;

    if ((rc = rv_store_check_id("interrupt id", p->id, err)) < 0 ||
        (rc = rv_store_check_text("kind", p->kind, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = rv_store_check_text("stage", p->stage, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = rv_store_check_bytes("text", p->text, RV_STORE_MAX_QUESTION, err)) < 0 ||
        (rc = rv_store_check_bytes("body", p->body, RV_STORE_MAX_QUESTION, err)) < 0 ||
        (rc = rv_store_check_time("the time", p->created_us, err)) < 0 ||
        (rc = rv_store_check_time("the end", p->expires_us, err)) < 0)
        return RV_WRAP(err, rc, "run \"%s\": pending interrupt %zu", a->run, i);
    for (size_t k = 0; k < i; k++)
        if (strcmp(a->pending[k].id, p->id) == 0)
            return RV_FAIL(err, RV_E_INVALID, "run \"%s\": two pending interrupts \"%s\"", a->run, p->id);
    return 0;
}

static int check_all_pending(const struct rv_store_append *a, rv_err **err)
{
    int rc = 0;

    if (a->n_pending > RV_STORE_MAX_PENDING)
        return RV_FAIL(err, RV_E_LIMIT, "run \"%s\": %zu pending interrupts, more than %zu", a->run, a->n_pending,
                       RV_STORE_MAX_PENDING);
    if (a->n_pending > 0 && !a->pending)
        return RV_FAIL(err, RV_E_INVALID, "run \"%s\": %zu pending interrupts and none given", a->run, a->n_pending);
    for (size_t i = 0; i < a->n_pending && rc == 0; i++)
        rc = check_pending(a, i, err);
    return rc;
}

int rv_store_check_append(const struct rv_store_append *a, rv_err **err)
{
    int64_t first;
    int rc;

    if (!a)
        return RV_FAIL(err, RV_E_INVALID, "nothing to append");
    first = a->n_records > 0 && a->records ? a->records[0].seq : 1;
    if ((rc = rv_store_check_id("run id", a->run, err)) < 0 || (rc = check_status(a->status, err)) < 0 ||
        (rc = rv_store_check_text("stage", a->stage, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = rv_store_check_time("the time", a->now_us, err)) < 0 ||
        (rc = check_records(a->run, a->records, a->n_records, first, err)) < 0)
        return rc;
    if (a->n_turns > RV_STORE_MAX_TURNS)
        return RV_FAIL(err, RV_E_LIMIT, "run \"%s\": %zu turns at once, more than %zu", a->run, a->n_turns,
                       RV_STORE_MAX_TURNS);
    if (a->n_turns > 0 && !a->turns)
        return RV_FAIL(err, RV_E_INVALID, "run \"%s\": %zu turns and none given", a->run, a->n_turns);
    for (size_t i = 0; i < a->n_turns; i++) {
        rc = rv_store_check_turn(&a->turns[i], err);
        if (rc < 0)
            return RV_WRAP(err, rc, "run \"%s\": turn %zu", a->run, i);
    }
    return a->set_pending ? check_all_pending(a, err) : 0;
}

int rv_store_check_filter(const struct rv_run_filter *filter, rv_err **err)
{
    int rc = 0;

    if (filter->limit < 0)
        return RV_FAIL(err, RV_E_INVALID, "a limit of %lld runs", (long long)filter->limit);
    if (filter->pipeline)
        rc = rv_store_check_text("pipeline", filter->pipeline, RV_STORE_MAX_TEXT, err);
    if (rc == 0 && filter->session)
        rc = rv_store_check_text("session", filter->session, RV_STORE_MAX_TEXT, err);
    if (rc == 0 && filter->id_prefix)
        rc = rv_store_check_text("start of the id", filter->id_prefix, RV_STORE_MAX_ID, err);
    return rc;
}
