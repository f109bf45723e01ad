/* One run of top: its journal, replayed as it grows, gives the calls under way and what its model calls took. */
#include "coreengine/app/top/top_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NAME ((size_t)4096) /* bytes of "provider:model" before it is cut */

/* --- a minute --- */

static size_t bucket_of(struct top_minute *m, int64_t at_us)
{
    int64_t second = at_us / RV_US_PER_S;
    size_t i = (size_t)(second % RV_TOP_BUCKETS);

    if (m->buckets[i].second != second) {
        memset(&m->buckets[i], 0, sizeof m->buckets[i]);
        m->buckets[i].second = second;
    }
    return i;
}

/* Older than what the place has: a second that is over a minute ago. */
static bool is_late(const struct top_minute *m, int64_t at_us)
{
    return at_us < 0 || m->buckets[at_us / RV_US_PER_S % RV_TOP_BUCKETS].second > at_us / RV_US_PER_S;
}

void top_minute_ended(struct top_minute *m, int64_t at_us)
{
    if (!is_late(m, at_us))
        m->buckets[bucket_of(m, at_us)].n_ended++;
}

static void minute_took(struct top_minute *m, int64_t at_us, const struct rv_usage *usage)
{
    if (is_late(m, at_us))
        return;
    size_t i = bucket_of(m, at_us);
    m->buckets[i].tokens += usage->input_tokens + usage->output_tokens;
    m->buckets[i].cost_micro_usd += usage->cost_micro_usd;
}

void top_minute_sum(const struct top_minute *m, int64_t from_us, int64_t now_us, struct rv_app_top_rates *out)
{
    int64_t first = from_us / RV_US_PER_S + 1; /* the first whole second */

    for (size_t i = 0; i < RV_TOP_BUCKETS; i++)
        if (m->buckets[i].second >= first && m->buckets[i].second <= now_us / RV_US_PER_S) {
            out->n_ended += m->buckets[i].n_ended;
            out->tokens += m->buckets[i].tokens;
            out->cost_micro_usd += m->buckets[i].cost_micro_usd;
        }
    out->span_us = now_us > first * RV_US_PER_S ? now_us - first * RV_US_PER_S : 0;
}

/* --- bundles --- */

static void free_bundle(struct top_bundle *b)
{
    rv_bundle_free(b->bundle);
    free(b);
}

void top_bundles_fini(struct top_bundles *b)
{
    for (size_t i = 0; i < b->n; i++)
        free_bundle(b->items[i]);
    free(b->items);
    *b = (struct top_bundles){0};
}

/* The oldest that no run uses goes. */
static void make_room(struct top_bundles *b)
{
    for (size_t i = 0; b->n >= RV_TOP_MAX_BUNDLES && i < b->n; i++)
        if (b->items[i]->n_users == 0) {
            free_bundle(b->items[i]);
            memmove(&b->items[i], &b->items[i + 1], (b->n - i - 1) * sizeof *b->items);
            b->n--;
            return;
        }
}

static int open_bundle(rv_store *store, const char *hash, struct top_bundles *list, struct top_bundle **out,
                       rv_err **err)
{
    const struct rv_bundle_opts opts = {.offline = true};
    rv_buf text = RV_BUF_INIT(RV_STORE_MAX_VALUE);

    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->items[i]->hash, hash) == 0) {
            *out = list->items[i];
            return 0;
        }
    make_room(list);
    struct top_bundle *b = calloc(1, sizeof *b);
    if (!b || !rv_has_room(&list->items, &list->cap, list->n + 1, sizeof *list->items)) {
        free(b);
        return RV_FAIL(err, RV_E_NOMEM, "open a bundle");
    }
    memcpy(b->hash, hash, strlen(hash) + 1);
    int rc = rv_store_get_blob(store, hash, &text, err);
    if (rc == 0)
        rc = rv_bundle_open(rv_buf_str(&text), &opts, &b->bundle, err);
    rv_buf_fini(&text);
    if (rc < 0) {
        free(b);
        return rc;
    }
    b->catalog = rv_bundle_catalog(b->bundle);
    list->items[list->n++] = b;
    *out = b;
    return 0;
}

/* --- records --- */

static void end_call(struct top_run *r, int64_t id)
{
    for (size_t i = 0; i < r->n_calls; i++)
        if (r->calls[i].id == id) {
            memmove(&r->calls[i], &r->calls[i + 1], (r->n_calls - i - 1) * sizeof *r->calls);
            r->n_calls--;
            return;
        }
    r->n_more -= r->n_more > 0;
}

static void begin_call(struct top_run *r, const struct rv_effect *e, int64_t now_us)
{
    const struct rv_model_config *model = NULL;
    rv_buf name = RV_BUF_INIT(MAX_NAME);

    if (r->n_calls == RV_TOP_MAX_CALLS) {
        r->n_more++;
        return;
    }
    struct top_call *c = &r->calls[r->n_calls++];
    *c = (struct top_call){.id = e->call_id, .since_us = now_us, .kind = RV_APP_TOP_HOOK};
    if (e->kind == RV_EFFECT_CALL_LLM) {
        c->kind = RV_APP_TOP_MODEL;
        model = e->pipeline ? rv_pipeline_find_model(e->pipeline, rv_str_of(e->name)) : NULL;
    } else if (e->kind == RV_EFFECT_CALL_TOOL) {
        c->kind = RV_APP_TOP_TOOL;
    }
    if (model && model->model)
        rv_buf_printf(&name, "%s:%s", model->provider, model->model);
    else
        rv_buf_puts(&name, e->name ? e->name : "");
    rv_str shown = rv_utf8_cut(rv_buf_str(&name), RV_TOP_MAX_NAME);
    if (shown.len > 0) /* without memory the call has no name */
        memcpy(c->name, shown.ptr, shown.len);
    rv_buf_fini(&name);
}

static int count_result(struct top_run *r, rv_str line, int64_t at_us, bool is_new, rv_err **err)
{
    struct rv_app_spent spent;
    json_object *event = NULL;

    int rc = rv_app_read_event(line, &event, err);
    if (rc < 0)
        return rc;
    rv_app_spent_read(event, &spent);
    rv_usage_add(&r->used, &spent.usage);
    r->llm_calls++;
    if (is_new)
        minute_took(r->minute, at_us, &spent.usage);
    json_object_put(event);
    return 0;
}

static int on_step(void *self, const struct rv_record *record, const struct rv_event *ev,
                   const struct rv_effects *effects, const rv_run *run, rv_err **err)
{
    struct top_run *r = self;
    int rc = 0;

    (void)run;
    if (record)
        r->seq = record->seq;
    if (!ev)
        return 0;
    if (ev->kind == RV_EVENT_LLM_DONE || ev->kind == RV_EVENT_TOOL_DONE || ev->kind == RV_EVENT_HOOK_DONE)
        end_call(r, ev->call_id);
    for (size_t i = 0; rc == 0 && i < effects->n; i++) {
        const struct rv_effect *e = &effects->items[i];
        if (e->kind == RV_EFFECT_CALL_LLM || e->kind == RV_EFFECT_CALL_TOOL || e->kind == RV_EFFECT_CALL_HOOK)
            begin_call(r, e, ev->now_us);
        else if (e->kind == RV_EFFECT_CANCEL_CALL)
            end_call(r, e->call_id);
        else if (e->kind == RV_EFFECT_EMIT && e->emit == RV_EMIT_LLM_RESULT)
            rc = count_result(r, rv_effect_text(effects, e), ev->now_us, r->seq > r->counted, err);
        else if (e->kind == RV_EFFECT_FINISH)
            r->n_calls = r->n_more = 0;
    }
    return rc;
}

static int begin(struct top_run *r, rv_store *store, const struct rv_store_scope *scope, const struct rv_run_row *row,
                 struct top_bundles *bundles, rv_err **err)
{
    int rc = open_bundle(store, row->bundle, bundles, &r->bundle, err);

    if (rc < 0)
        return rc;
    r->bundle->n_users++;
    r->n_calls = r->n_more = 0;
    r->llm_calls = 0;
    r->used = (struct rv_usage){0};
    const struct rv_replay_opts opts = {.pipeline = rv_bundle_pipeline(r->bundle->bundle),
                                        .catalog = &r->bundle->catalog,
                                        .on_step = on_step,
                                        .self = r};
    return rv_journal_follow(store, scope, row->id, &opts, &r->follower, err);
}

void top_run_rest(struct top_run *r)
{
    rv_follower_free(r->follower);
    r->follower = NULL;
    if (r->bundle)
        r->bundle->n_users--;
    r->bundle = NULL;
}

int top_run_read(struct top_run *r, rv_store *store, const struct rv_store_scope *scope, const struct rv_run_row *row,
                 struct top_bundles *bundles, rv_err **err)
{
    rv_err *cause = NULL;
    int rc;

    if (r->is_damaged || r->n_read >= row->n_records)
        return 0;
    rc = r->follower ? rv_follower_feed(r->follower, &cause) : begin(r, store, scope, row, bundles, &cause);
    if (rc == 0) {
        r->n_read = r->counted = r->seq > row->n_records ? r->seq : row->n_records;
        return 0;
    }
    top_run_rest(r);
    if (rc == RV_E_NOMEM || rc == RV_E_UNAVAILABLE || rc == RV_E_TIMEOUT || rv_code_is_scarce(rc)) {
        rv_err_pass(err, cause);
        return rc;
    }
    r->is_damaged = rc != RV_E_NOT_FOUND; /* deleted meanwhile: the next look does not list it */
    rv_err_free(cause);
    return 0;
}
