/* The list of effects of one step, and the observable event lines among them. */
#include "coreengine/agent/agent.h"

#include <stdlib.h>
#include <string.h>

static const char *const emit_texts[RV_N_EMITS] = {
#define X(name, text, meaning) [RV_EMIT_##name] = text,
    RV_EMITS(X)
#undef X
};

const char *rv_emit_text(enum rv_emit_kind kind)
{
    return kind >= 0 && kind < RV_N_EMITS ? emit_texts[kind] : "unknown";
}

static void effect_fini(struct rv_effect *e)
{
    free(e->owned_name);
    free(e->request);
    rv_turn_free(e->turn);
    free(e->key);
    json_object_put(e->ids);
}

void rv_effects_clear(struct rv_effects *e)
{
    for (size_t i = 0; i < e->n; i++)
        effect_fini(&e->items[i]);
    e->n = 0;
    e->rc = 0;
    rv_buf_clear(&e->text);
}

void rv_effects_fini(struct rv_effects *e)
{
    rv_effects_clear(e);
    free(e->items);
    rv_buf_fini(&e->text);
    memset(e, 0, sizeof *e);
}

rv_str rv_effect_text(const struct rv_effects *all, const struct rv_effect *e)
{
    return (rv_str){rv_buf_cstr(&all->text) + e->text_at, e->text_len};
}

struct rv_effect *rv_effects_add(struct rv_effects *e, enum rv_effect_kind kind)
{
    if (e->n == e->cap) {
        size_t cap = e->cap ? e->cap * 2 : 16;
        struct rv_effect *items = realloc(e->items, cap * sizeof *items);
        if (!items) {
            e->rc = RV_E_NOMEM;
            return NULL;
        }
        e->items = items;
        e->cap = cap;
    }
    struct rv_effect *item = &e->items[e->n++];
    memset(item, 0, sizeof *item);
    item->kind = kind;
    item->stage = -1;
    return item;
}

bool rv_emit_begin(struct rv_visit_shared *shared, struct rv_effects *out, enum rv_emit_kind kind, int stage,
                   int64_t visit, int64_t now_us, rv_jw *w)
{
    struct rv_visit_shared *root = shared->root ? shared->root : shared;
    const struct rv_origin *origin = shared->origin;

    if (!root->emits) { /* the number is used all the same: it does not depend on who listens */
        root->next_seq++;
        return false;
    }
    struct rv_effect *e = rv_effects_add(out, RV_EFFECT_EMIT);
    if (!e)
        return false;
    if (!out->text.max)
        out->text.max = RV_EFFECTS_MAX_TEXT;
    if (origin && stage >= 0)
        stage = shared->asking_stage;
    e->emit = kind;
    e->stage = stage;
    e->origin = origin;
    e->visit = visit;
    e->text_at = out->text.len;

    char time[RV_TIME_MAX];
    rv_time_format(now_us, time);
    *w = rv_jw_on(&out->text);
    rv_jw_obj(w);
    rv_jw_kv_int(w, "seq", root->next_seq++);
    rv_jw_kv_text(w, "type", rv_emit_text(kind));
    rv_jw_kv_text(w, "time", time);
    if (stage >= 0) {
        rv_jw_kv_text(w, "stage", root->pipeline->agents[stage].name);
        rv_jw_kv_int(w, "visit", visit);
    }
    if (origin) {
        rv_jw_kv_text(w, "agent", origin->agent);
        rv_jw_kv_int(w, "depth", origin->depth);
        rv_jw_kv_text(w, "parent_tool_call_id", origin->parent_tool_call_id);
    }
    return true;
}

void rv_emit_end(struct rv_effects *out, rv_jw *w)
{
    struct rv_effect *e = &out->items[out->n - 1]; /* the line is under construction: nothing was added since */
    rv_jw_obj_end(w);
    if (out->text.rc < 0)
        out->rc = out->text.rc;
    e->text_len = out->text.len - e->text_at;
}
