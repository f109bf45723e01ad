/* Nothing lost, nothing done twice: the outside world and the final state, beside those of a life that was let alone.
 */
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "tests/crash/life.h"

#define MAX_EFFECTS 256

struct effect {
    rv_str tool, key, what;
};
struct effects {
    struct effect items[MAX_EFFECTS];
    size_t n;
};

void verdict_fini(struct verdict *v)
{
    json_object_put(v->state);
    json_object_put(v->artifacts);
    free(v->effects);
    *v = (struct verdict){.state = NULL};
}

static rv_str cut(const char **at, char end)
{
    const char *from = *at, *to = strchr(from, end);

    if (!to)
        rv_kit_die("a line of the outside world is cut off: \"%s\"", from);
    *at = to + 1;
    return (rv_str){from, (size_t)(to - from)};
}

static void read_effects(const char *text, struct effects *out)
{
    out->n = 0;
    while (*text) {
        struct effect e;
        e.tool = cut(&text, '\t');
        e.key = cut(&text, '\t');
        e.what = cut(&text, '\n');
        if (out->n == MAX_EFFECTS)
            rv_kit_die("more than %d effects", MAX_EFFECTS);
        out->items[out->n++] = e;
    }
}

static bool same_act(const struct effect *a, const struct effect *b)
{
    return rv_str_eq(a->tool, b->tool) && rv_str_eq(a->what, b->what);
}

static bool is_once_only(const struct effect *e)
{
    return rv_str_is(e->tool, "append_line") || rv_str_is(e->tool, "append_probed") || rv_str_is(e->tool, "launch");
}

bool effects_have(const char *text, const char *tool, const char *key, const char *what)
{
    struct effects all;

    read_effects(text, &all);
    for (size_t i = 0; i < all.n; i++)
        if (rv_str_is(all.items[i].tool, tool) && rv_str_is(all.items[i].what, what) &&
            (!key || rv_str_is(all.items[i].key, key)))
            return true;
    return false;
}

static bool check_effect(const struct effects *all, const struct effect *wanted, rv_buf *why)
{
    const struct effect *first = NULL;
    size_t n = 0;

    for (size_t i = 0; i < all->n; i++) {
        const struct effect *e = &all->items[i];
        if (!same_act(e, wanted))
            continue;
        n++;
        if (first && !rv_str_eq(e->key, first->key) && !rv_str_is(e->tool, "read_counter"))
            rv_buf_printf(why, "%.*s %.*s came with two keys; ", RV_STR_ARG(e->tool), RV_STR_ARG(e->what));
        first = first ? first : e;
    }
    if (n == 0)
        rv_buf_printf(why, "%.*s %.*s was lost; ", RV_STR_ARG(wanted->tool), RV_STR_ARG(wanted->what));
    if (n > 1 && is_once_only(wanted))
        rv_buf_printf(why, "%.*s %.*s happened %zu times; ", RV_STR_ARG(wanted->tool), RV_STR_ARG(wanted->what), n);
    return why->len == 0;
}

static bool check_effects(const char *text, const char *model_text, rv_buf *why)
{
    struct effects all, model;

    read_effects(text, &all);
    read_effects(model_text, &model);
    for (size_t i = 0; i < model.n; i++)
        check_effect(&all, &model.items[i], why);
    for (size_t i = 0; i < all.n; i++) {
        const struct effect *e = &all.items[i];
        bool known = false;
        for (size_t j = 0; j < model.n; j++)
            known = known || same_act(e, &model.items[j]);
        for (size_t j = 0; j < i; j++) /* a key is one call's */
            if (rv_str_eq(e->key, all.items[j].key) && e->key.len > 0 && !same_act(e, &all.items[j]))
                rv_buf_printf(why, "two acts had the key %.*s; ", RV_STR_ARG(e->key));
        if (!known)
            rv_buf_printf(why, "%.*s %.*s should not have happened; ", RV_STR_ARG(e->tool), RV_STR_ARG(e->what));
    }
    return why->len == 0;
}

/* --- the state --- */

/* Parts of the final state that a crash must not change. Visits and history may be more: a question about an unknown
 * outcome is a pause, and after it the stage is visited again. */
static const char *const lasting[] = {"outputs",           "raw_input",    "current_stage",   "completed_stage_set",
                                      "failed_stages",     "terminated",   "terminal_reason", "llm_call_count",
                                      "interrupt_pending", "parallel_mode"};

/* Times out of everything below. */
static void drop_times(json_object *v)
{
    static const char *const times[] = {"execution_time_ms", "total_time_ms", "duration_ms"};

    if (json_object_is_type(v, json_type_array))
        for (size_t i = 0; i < json_object_array_length(v); i++)
            drop_times(json_object_array_get_idx(v, i));
    if (!json_object_is_type(v, json_type_object))
        return;
    for (size_t i = 0; i < RV_COUNT(times); i++)
        json_object_object_del(v, times[i]);
    json_object_object_foreach (v, key, member) {
        (void)key;
        drop_times(member);
    }
}

static bool check_state(json_object *state, json_object *model, rv_buf *why)
{
    drop_times(state);
    drop_times(model);
    for (size_t i = 0; i < RV_COUNT(lasting); i++) {
        json_object *got = NULL, *wanted = NULL;
        bool has = json_object_object_get_ex(state, lasting[i], &got);
        if (!json_object_object_get_ex(model, lasting[i], &wanted))
            rv_kit_die("the final state has no \"%s\"", lasting[i]);
        if (!has || !json_object_equal(got, wanted))
            rv_buf_printf(why, "%s is %s instead of %s; ", lasting[i], json_object_to_json_string(got),
                          json_object_to_json_string(wanted));
    }
    return why->len == 0;
}

/* --- artifacts --- */

/* The ids that calls have, out of everything below: they follow from the id of the run. */
static void take_ids(json_object *v, json_object *ids)
{
    json_object *id = NULL;

    if (json_object_is_type(v, json_type_array))
        for (size_t i = 0; i < json_object_array_length(v); i++)
            take_ids(json_object_array_get_idx(v, i), ids);
    if (!json_object_is_type(v, json_type_object))
        return;
    if (json_object_object_get_ex(v, "artifact_id", &id)) {
        json_object_array_add(ids, json_object_get(id));
        json_object_object_del(v, "artifact_id");
    }
    json_object_object_foreach (v, key, member) {
        (void)key;
        take_ids(member, ids);
    }
}

static size_t n_artifacts(const struct verdict *v)
{
    return v->artifacts ? json_object_array_length(v->artifacts) : 0;
}

/* Each that a call has is stored, once, and no other one is. */
static void check_artifacts(const struct verdict *life, const struct verdict *model, rv_buf *why)
{
    json_object *ids = json_object_new_array(), *unused = json_object_new_array();

    take_ids(rv_json_get_obj(life->state, "outputs"), ids);
    take_ids(rv_json_get_obj(model->state, "outputs"), unused);
    if (n_artifacts(life) != n_artifacts(model) || json_object_array_length(ids) != n_artifacts(life))
        rv_buf_printf(why, "calls have %zu artifacts, and %zu are stored instead of %zu; ",
                      json_object_array_length(ids), n_artifacts(life), n_artifacts(model));
    for (size_t i = 0; i < json_object_array_length(ids); i++) {
        const char *id = json_object_get_string(json_object_array_get_idx(ids, i)), *stored = NULL;
        size_t n = 0;
        for (size_t k = 0; k < n_artifacts(life); k++)
            n += rv_json_get_text(json_object_array_get_idx(life->artifacts, k), "id", &stored) &&
                 strcmp(stored, id) == 0;
        if (n != 1)
            rv_buf_printf(why, "artifact %s is stored %zu times; ", id, n);
    }
    json_object_put(ids);
    json_object_put(unused);
}

bool verdict_agrees(const struct verdict *life, const struct verdict *model, rv_buf *why)
{
    check_effects(life->effects, model->effects, why);
    check_artifacts(life, model, why);
    check_state(life->state, model->state, why);
    return why->len == 0;
}
