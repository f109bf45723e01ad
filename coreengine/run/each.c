/* A list that a stage works through: each element is a visit of one branch, on its own fork, and does not route. They
 * begin in order, so many at once as max_parallel says; what they made is put together in their order, whichever was
 * done first. A visit that has not begun costs nothing. */
#include "coreengine/run/work_kinds_internal.h"
#include "envelope/envelope.h"

#include <inttypes.h>
#include <stdlib.h>

#define PATH_MAX_BYTES ((size_t)64 << 10) /* "stage[7]" of nested stages: names are short, levels few */

/* An element that has begun. */
struct element {
    rv_envelope *fork;   /* owned; merged when all have ended */
    json_object *output; /* owned; NULL: it failed, or is under way */
    char *error;         /* owned; NULL: it has not failed */
    char *error_type;    /* owned, as that of a visit may be the text of an event */
    char *path;          /* owned; of its visit */
    enum rv_failure code;
    enum rv_reason reason;
    bool is_cancelled;
};
struct under_way {
    rv_work *work; /* owned */
    size_t index;
};
struct each {
    json_object *list; /* borrowed from the visit */
    size_t n, n_begun, cap;
    struct element *elements; /* n_begun; owned */
    struct under_way *slots;  /* n_slots, in the order in which they began; owned */
    size_t n_slots, max_slots;
    bool stops;                             /* no further one begins */
    bool terminates;                        /* an element ended the run */
    enum rv_reason bound;                   /* of bound_of */
    const struct rv_visit_shared *bound_of; /* a bound of that run stopped it; NULL: none did */
    rv_buf text;                            /* of the failure */
};

static const struct rv_agent *agent_of(const rv_work *w)
{
    return &w->shared->pipeline->agents[rv_visit_stage(w->visit)];
}

static void each_free(rv_work *w)
{
    struct each *e = w->each;

    w->each = NULL;
    if (!e)
        return;
    for (size_t i = 0; i < e->n_slots; i++)
        run_work_free(e->slots[i].work);
    for (size_t i = 0; i < e->n_begun; i++) {
        rv_envelope_free(e->elements[i].fork);
        json_object_put(e->elements[i].output);
        free(e->elements[i].error);
        free(e->elements[i].error_type);
        free(e->elements[i].path);
    }
    free(e->elements);
    free(e->slots);
    rv_buf_fini(&e->text);
    free(e);
}

static int each_begin(rv_work *w, struct rv_effects *out, rv_err **err)
{
    struct each *e = calloc(1, sizeof *e);

    (void)out;
    if (!e)
        return RV_FAIL(err, RV_E_NOMEM, "begin the elements of a list");
    e->list = rv_visit_outside_value(w->visit);
    e->n = json_object_array_length(e->list);
    e->max_slots = (size_t)agent_of(w)->each.max_parallel;
    if (e->max_slots > e->n)
        e->max_slots = e->n;
    e->text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    e->bound = RV_REASON_NONE;
    e->slots = calloc(e->max_slots ? e->max_slots : 1, sizeof *e->slots);
    w->each = e;
    return e->slots ? 0 : RV_FAIL(err, RV_E_NOMEM, "begin the elements of a list");
}

/* --- one element --- */

static int add_element(rv_work *w, struct element **out, rv_err **err)
{
    struct each *e = w->each;
    rv_buf path = RV_BUF_INIT(PATH_MAX_BYTES);

    if (!rv_has_room(&e->elements, &e->cap, e->n_begun + 1, sizeof *e->elements))
        return RV_FAIL(err, RV_E_NOMEM, "begin an element of a list");
    rv_buf_printf(&path, "%s[%zu]", w->place.path ? w->place.path : "", e->n_begun);
    int rc = rv_buf_check(&path, "the path of an element", err);
    if (rc == 0) {
        *out = &e->elements[e->n_begun++];
        **out = (struct element){.code = RV_FAILURE_NONE, .reason = RV_REASON_NONE};
        (*out)->path = rv_buf_steal(&path, NULL);
    }
    rv_buf_fini(&path);
    return rc;
}

static int begin_element(rv_work *w, bool llm, struct rv_effects *out, rv_err **err)
{
    struct each *e = w->each;
    struct rv_visit_place place = w->place;
    struct under_way *slot = &e->slots[e->n_slots];
    struct element *el = NULL;
    int stage = rv_visit_stage(w->visit);

    place.item = json_object_array_get_idx(e->list, e->n_begun);
    place.index = (int64_t)e->n_begun;
    slot->index = e->n_begun;
    int rc = add_element(w, &el, err);
    if (rc < 0)
        return rc;
    place.path = el->path;
    rv_visit_note_hops(w->shared, 1);
    rv_visit_note_calls(w->shared, llm);
    rc = rv_envelope_fork(w->env, &el->fork, err);
    const struct rv_visit_start start = {.stage = stage, .env = el->fork, .place = &place, .llm_reserved = llm};
    if (rc == 0)
        rc = run_work_begin(w->shared, &start, out, &slot->work, err);
    if (rc == 0)
        e->n_slots++;
    return rc;
}

/* What the element asks: it fails with that, since an element cannot wait for a person, and the list goes on. */
static const char *question_of(const struct element *el)
{
    struct rv_interrupt in = rv_envelope_interrupt(el->fork);

    return in.question ? in.question : in.message ? in.message : "it asks for an answer";
}

static int note_failure(rv_work *w, struct element *el, const struct rv_visit_result *r, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    const char *type = r->end == RV_VISIT_STAYED ? rv_error_processing : r->error_type;

    el->error_type = rv_str_dup(rv_str_of(type));
    if (!el->error_type)
        return RV_FAIL(err, RV_E_NOMEM, "keep why an element failed");
    if (r->end == RV_VISIT_STAYED) {
        rv_buf_printf(&text, "it needs a person, and an element of a list cannot wait for one: %s", question_of(el));
    } else {
        el->code = r->code;
        el->reason = r->reason;
        rv_buf_puts(&text, r->error_text);
        if (r->bound_of && !w->each->bound_of) {
            w->each->bound = r->reason;
            w->each->bound_of = r->bound_of;
        }
    }
    int rc = rv_buf_check(&text, "why an element failed", err);
    if (rc == 0)
        el->error = rv_buf_steal(&text, NULL);
    rv_buf_fini(&text);
    if (w->each->bound_of || agent_of(w)->each.on_error == RV_ITEM_FAIL)
        w->each->stops = true;
    return rc;
}

/* The visit at that place has ended. */
static int end_element(rv_work *w, size_t at, rv_err **err)
{
    struct each *e = w->each;
    struct under_way slot = e->slots[at];
    struct element *el = &e->elements[slot.index];
    const struct rv_visit_result *r = run_work_result(slot.work);
    int rc = 0;

    for (size_t i = at + 1; i < e->n_slots; i++)
        e->slots[i - 1] = e->slots[i];
    e->n_slots--;
    if (r->end == RV_VISIT_OK) {
        el->output = json_object_get(r->output);
        e->terminates = e->terminates || r->outcome == RV_OUTCOME_TERMINATE;
        e->stops = e->stops || e->terminates;
    } else {
        rc = note_failure(w, el, r, err);
    }
    rv_envelope_keep_back(el->fork, rv_str_of(agent_of(w)->output.key));
    run_work_free(slot.work);
    return rc;
}

static int cancel_elements(rv_work *w, const char *why, json_object *partials, struct rv_effects *out, rv_err **err)
{
    struct each *e = w->each;
    int rc = 0;

    while (e->n_slots > 0 && rc == 0) {
        e->elements[e->slots[0].index].is_cancelled = true;
        rc = run_work_cancel(e->slots[0].work, why, partials, out, err);
        if (rc == 0)
            rc = end_element(w, 0, err);
    }
    return rc;
}

/* --- all of them --- */

static int each_advance(rv_work *w, struct rv_effects *out, bool *ended, rv_err **err)
{
    struct each *e = w->each;
    bool llm = rv_element_calls_llm(w->shared, rv_visit_stage(w->visit));
    int rc = 0;

    for (;;) {
        for (size_t i = 0; i < e->n_slots && rc == 0;)
            if (run_work_is_done(e->slots[i].work))
                rc = end_element(w, i, err);
            else
                i++;
        if (rc == 0 && e->terminates)
            rc = cancel_elements(w, "another element ended the run", NULL, out, err);
        if (rc < 0 || e->stops || e->n_begun == e->n || e->n_slots == e->max_slots)
            break;
        e->bound_of = rv_bound_choose(w->shared, llm ? RV_NEEDS_CALL | RV_NEEDS_VISIT : RV_NEEDS_VISIT, &e->bound);
        e->stops = e->bound_of != NULL;
        if (e->stops)
            break;
        rc = begin_element(w, llm, out, err);
        if (rc < 0)
            break;
    }
    *ended = rc == 0 && e->n_slots == 0;
    return rc;
}

static bool each_waits_for(const rv_work *w, int64_t call_id)
{
    const struct each *e = w->each;

    for (size_t i = 0; i < e->n_slots; i++)
        if (run_work_waits_for(e->slots[i].work, call_id))
            return true;
    return false;
}

static int each_find_short(const rv_work *w, struct rv_short *out, rv_err **err)
{
    const struct each *e = w->each;
    int rc = 0;

    for (size_t i = 0; i < e->n_slots && rc == 0; i++)
        rc = run_work_find_short(e->slots[i].work, out, err);
    return rc;
}

static int each_on(rv_work *w, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    struct each *e = w->each;

    for (size_t i = 0; i < e->n_slots; i++)
        if (run_work_waits_for(e->slots[i].work, ev->call_id))
            return run_work_on(e->slots[i].work, ev, out, err);
    return 0;
}

static int each_recover(rv_work *w, int64_t gap_us, struct rv_effects *out, rv_err **err)
{
    struct each *e = w->each;
    int rc = 0;

    for (size_t i = 0; i < e->n_slots && rc == 0; i++)
        rc = run_work_recover(e->slots[i].work, gap_us, out, err);
    return rc;
}

/* What the elements did to the envelope, in their order. */
static int merge(rv_work *w, rv_err **err)
{
    struct each *e = w->each;
    struct rv_merge m = {NULL, NULL};
    int rc = 0;

    for (size_t i = 0; i < e->n_begun && rc == 0; i++) {
        rc = rv_envelope_merge(w->env, e->elements[i].fork, rv_str_of(agent_of(w)->name), &m, err);
        rv_envelope_free(e->elements[i].fork);
        e->elements[i].fork = NULL;
    }
    rv_merge_fini(&m);
    return rc;
}

static int each_cancel(rv_work *w, const char *why, json_object *partials, struct rv_effects *out, rv_err **err)
{
    int rc = cancel_elements(w, why, partials, out, err);

    return rc < 0 ? rc : merge(w, err);
}

/* --- what it came to --- */

static int add_failed(json_object *failed, const char *stage, size_t index, const struct element *el, rv_err **err)
{
    json_object *entry = json_object_new_object();
    int rc = RV_SET(entry, err, RV_M_INT("index", (int64_t)index), RV_M_TEXT("stage", stage),
                    RV_M_TEXT("code", el->error_type), RV_M_TEXT("text", el->error));

    if (rc == 0)
        return rv_json_push_take(failed, entry, err);
    json_object_put(entry);
    return rc;
}

/* {results, failed}; the caller's. */
static int gather(rv_work *w, json_object **out, rv_err **err)
{
    const struct rv_agent *a = agent_of(w);
    json_object *results = json_object_new_array(), *failed = json_object_new_array(), *all = json_object_new_object();
    int rc = results && failed && all ? 0 : RV_FAIL(err, RV_E_NOMEM, "put the results of a list together");

    for (size_t i = 0; i < w->each->n_begun && rc == 0; i++) {
        struct element *el = &w->each->elements[i];
        if (el->error)
            rc = add_failed(failed, a->name, i, el, err);
        if (rc == 0 && (!el->error || a->each.on_error == RV_ITEM_COLLECT))
            rc = rv_json_push_ref(results, el->output, err);
    }
    if (rc == 0)
        rc = rv_json_set_ref(all, "results", results, err);
    if (rc == 0)
        rc = rv_json_set_ref(all, "failed", failed, err);
    json_object_put(results);
    json_object_put(failed);
    if (rc < 0)
        json_object_put(all);
    else
        *out = all;
    return rc;
}

static int end_at_bound(rv_work *w, struct rv_outside_end *end, rv_err **err)
{
    struct each *e = w->each;
    const struct rv_pipeline *p = e->bound_of->pipeline;

    end->error_type = rv_error_limit;
    end->reason = e->bound;
    end->bound_of = e->bound_of;
    for (size_t i = 0; i < e->n_begun && e->text.len == 0; i++)
        if (e->elements[i].error && e->elements[i].reason == e->bound)
            rv_buf_puts(&e->text, e->elements[i].error); /* an element hit the bound, and its error says so */
    if (e->text.len == 0) {
        run_bound_write(e->bound, run_bound_most(p, e->bound), NULL, &e->text);
        rv_buf_printf(&e->text, ", and %zu of %zu elements of stage \"%s\" have begun", e->n_begun, e->n,
                      agent_of(w)->name);
    }
    end->error = rv_buf_cstr(&e->text);
    return rv_buf_check(&e->text, "reason", err);
}

static int end_failed(rv_work *w, size_t index, struct rv_outside_end *end, rv_err **err)
{
    struct each *e = w->each;
    const struct element *el = &e->elements[index];

    rv_buf_printf(&e->text, "element %zu of the list: %s", index, el->error);
    end->error_type = el->error_type;
    end->code = el->code;
    end->reason = el->reason;
    end->error = rv_buf_cstr(&e->text);
    return rv_buf_check(&e->text, "reason", err);
}

static int each_end(rv_work *w, struct rv_outside_end *end, rv_err **err)
{
    struct each *e = w->each;
    size_t first = e->n_begun;
    int rc = merge(w, err);

    *end = (struct rv_outside_end){.code = RV_FAILURE_NONE, .reason = RV_REASON_NONE};
    for (size_t i = e->n_begun; i-- > 0;)
        if (e->elements[i].error && !e->elements[i].is_cancelled)
            first = i;
    if (rc < 0)
        return rc;
    if (!e->terminates && e->bound_of)
        return end_at_bound(w, end, err);
    if (!e->terminates && first < e->n_begun && agent_of(w)->each.on_error == RV_ITEM_FAIL)
        return end_failed(w, first, end, err);
    end->terminates = e->terminates;
    return gather(w, &end->output, err);
}

const struct rv_work_kind run_each_kind = {
    .begin = each_begin,
    .advance = each_advance,
    .waits_for = each_waits_for,
    .find_short = each_find_short,
    .on = each_on,
    .cancel = each_cancel,
    .recover = each_recover,
    .end = each_end,
    .free = each_free,
};
