/* The list of effects of one step, and the observable events among them, which become JSON here and nowhere else. */
#include "coreengine/agent/agent.h"

#include <stdlib.h>
#include <string.h>

#define PREVIEW_BYTES 200                /* of a text that an event shows the beginning of */
#define MAX_RESULT    ((size_t)16 << 10) /* bytes of a result that stand in its event: each client is sent them */

static const char *const emit_texts[RV_N_EMITS] = {
#define X(name, text, meaning) [RV_EMIT_##name] = text,
    RV_EMITS(X)
#undef X
};

const char *rv_emit_text(enum rv_emit_kind kind)
{
    return kind >= 0 && kind < RV_N_EMITS ? emit_texts[kind] : "unknown";
}

int rv_emit_of(rv_str word)
{
    for (int kind = 0; kind < RV_N_EMITS; kind++)
        if (rv_str_eq(word, rv_str_of(emit_texts[kind])))
            return kind;
    return RV_UNSET;
}

void rv_effect_fini(struct rv_effect *e)
{
    free(e->owned_name);
    free(e->request);
    free(e->about);
    rv_turn_free(e->turn);
    free(e->key);
    json_object_put(e->ids);
    free(e->path);
    free(e->label);
}

void rv_effects_clear(struct rv_effects *e)
{
    for (size_t i = 0; i < e->n; i++)
        rv_effect_fini(&e->items[i]);
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
    if (!rv_has_room(&e->items, &e->cap, e->n + 1, sizeof *e->items)) {
        e->rc = RV_E_NOMEM;
        return NULL;
    }
    struct rv_effect *item = &e->items[e->n++];
    memset(item, 0, sizeof *item);
    item->kind = kind;
    item->stage = -1;
    item->index = -1;
    return item;
}

/* --- observable events --- */

static void write_preview(rv_jw *w, const char *key, rv_str text)
{
    char preview[PREVIEW_BYTES + 3];
    rv_str cut = rv_utf8_cut(text, PREVIEW_BYTES);

    if (text.len <= PREVIEW_BYTES) {
        rv_jw_kv_str(w, key, text);
        return;
    }
    memcpy(preview, cut.ptr, cut.len);
    memcpy(preview + cut.len, "...", 3);
    rv_jw_kv_str(w, key, (rv_str){preview, cut.len + 3});
}

/* The journal has a long one, in the record of the call's answer. */
static void write_result(const struct rv_member *m, rv_jw *w, struct rv_effects *out)
{
    rv_buf text = RV_BUF_INIT(RV_EFFECTS_MAX_TEXT);
    char sha256[RV_HASH_MAX];

    rv_json_write(m->value, &text);
    if (text.rc < 0) {
        out->rc = text.rc == RV_E_NOMEM ? RV_E_NOMEM : out->rc;
    } else if (text.len <= MAX_RESULT) {
        rv_jw_key(w, "result");
        rv_jw_raw(w, rv_buf_str(&text));
    } else {
        write_preview(w, "result_preview", rv_buf_str(&text));
        rv_hash_format(rv_buf_str(&text), sha256);
        rv_jw_key(w, "result_ref");
        rv_jw_obj(w);
        if (m->n)
            rv_jw_kv_int(w, "call_id", m->n);
        rv_jw_kv_int(w, "bytes", (int64_t)text.len);
        rv_jw_kv_text(w, "sha256", sha256);
        rv_jw_obj_end(w);
    }
    rv_buf_fini(&text);
}

static void write_names(json_object *list, rv_jw *w)
{
    rv_jw_arr(w);
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *name = NULL;
        json_object_object_get_ex(json_object_array_get_idx(list, i), "name", &name);
        rv_jw_str(w, rv_json_str(name));
    }
    rv_jw_arr_end(w);
}

static void write_stages(const struct rv_pipeline *p, const struct rv_member *m, rv_jw *w)
{
    rv_jw_arr(w);
    for (int64_t i = 0; i < m->n; i++)
        rv_jw_text(w, p->agents[m->stages[i]].name);
    rv_jw_arr_end(w);
}

static void write_member(const struct rv_pipeline *p, const struct rv_member *m, rv_jw *w, struct rv_effects *out)
{
    char time[RV_TIME_MAX];

    switch (m->kind) {
    case RV_MEMBER_INT:
        rv_jw_kv_int(w, m->key, m->n);
        break;
    case RV_MEMBER_BOOL:
        rv_jw_kv_bool(w, m->key, m->n != 0);
        break;
    case RV_MEMBER_TIME:
        rv_time_format(m->n, time);
        rv_jw_kv_text(w, m->key, time);
        break;
    case RV_MEMBER_STR:
        rv_jw_kv_str(w, m->key, m->str);
        break;
    case RV_MEMBER_TEXT:
        rv_jw_key(w, m->key);
        if (m->str.ptr)
            rv_jw_str(w, m->str);
        else
            rv_jw_null(w);
        break;
    case RV_MEMBER_PREVIEW:
        write_preview(w, m->key, m->str);
        break;
    case RV_MEMBER_VALUE:
        rv_jw_kv_value(w, m->key, m->value);
        break;
    case RV_MEMBER_OBJECT:
        rv_jw_key(w, m->key);
        if (m->value)
            rv_jw_value(w, m->value);
        else
            rv_jw_raw(w, RV_STR_LIT("{}"));
        break;
    case RV_MEMBER_RESULT:
        write_result(m, w, out);
        break;
    case RV_MEMBER_NAMES:
        rv_jw_key(w, m->key);
        write_names(m->value, w);
        break;
    case RV_MEMBER_STAGES:
        rv_jw_key(w, m->key);
        write_stages(p, m, w);
        break;
    case RV_MEMBER_USAGE:
        rv_jw_key(w, m->key);
        rv_usage_write_json(m->usage, w);
        break;
    }
}

int rv_effect_set_place(struct rv_effect *e, const struct rv_visit_shared *shared, int stage,
                        const struct rv_visit_place *place, rv_err **err)
{
    const char *path = place && place->path ? place->path : "", *prefix = shared->prefix ? shared->prefix : "";
    rv_buf label = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    e->stage = shared->root && stage >= 0 ? shared->asking_stage : stage;
    e->agent = stage;
    e->index = place ? place->index : -1;
    if (path[0] && !(e->path = rv_str_dup(rv_str_of(path))))
        return RV_FAIL(err, RV_E_NOMEM, "place an effect");
    if (!prefix[0] || stage < 0 || shared->origin)
        return 0;
    rv_buf_printf(&label, "%s%s", prefix, shared->pipeline->agents[stage].name);
    int rc = rv_buf_check(&label, "the name of an inner stage", err);
    if (rc == 0)
        e->label = rv_buf_steal(&label, NULL);
    rv_buf_fini(&label);
    return rc;
}

struct rv_effect *rv_emit(struct rv_visit_shared *shared, struct rv_effects *out, const struct rv_emit_head *head,
                          const struct rv_member *members, size_t n)
{
    struct rv_visit_shared *root = rv_visit_root(shared);
    const struct rv_origin *origin = shared->origin;
    const struct rv_pipeline *p = origin ? root->pipeline : shared->pipeline;
    struct rv_effect *e = rv_effects_add(out, RV_EFFECT_EMIT);
    char time[RV_TIME_MAX];

    if (!e)
        return NULL;
    if (!out->text.max)
        out->text.max = RV_EFFECTS_MAX_TEXT;
    if (rv_effect_set_place(e, shared, head->stage, head->place,
                            RV_CODE_ONLY("the names are bounded: it fails without memory only, which rc says")) < 0) {
        out->rc = RV_E_NOMEM;
        return NULL;
    }
    e->emit = head->kind;
    e->origin = origin;
    e->visit = head->visit;
    e->text_at = out->text.len;

    rv_time_format(head->now_us, time);
    rv_jw w = rv_jw_on(&out->text);
    rv_jw_obj(&w);
    rv_jw_kv_int(&w, "seq", root->next_seq++);
    rv_jw_kv_text(&w, "type", rv_emit_text(head->kind));
    rv_jw_kv_text(&w, "time", time);
    if (head->stage >= 0) {
        rv_jw_kv_text(&w, "stage", e->label ? e->label : root->pipeline->agents[e->stage].name);
        rv_jw_kv_int(&w, "visit", head->visit);
    }
    if (e->path)
        rv_jw_kv_text(&w, "path", e->path);
    if (e->index >= 0)
        rv_jw_kv_int(&w, "index", e->index);
    if (origin) {
        rv_jw_kv_text(&w, "agent", origin->agent);
        rv_jw_kv_int(&w, "depth", origin->depth);
        rv_jw_kv_text(&w, "parent_tool_call_id", origin->parent_tool_call_id);
    }
    for (size_t i = 0; i < n; i++)
        if (members[i].key)
            write_member(p, &members[i], &w, out);
    rv_jw_obj_end(&w);
    if (out->text.rc < 0)
        out->rc = out->text.rc;
    e->text_len = out->text.len - e->text_at;
    return e;
}

/* --- objects --- */

int rv_members_set(json_object *obj, const struct rv_member *members, size_t n, rv_err **err)
{
    int rc = obj ? 0 : RV_FAIL(err, RV_E_NOMEM, "make an object");

    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct rv_member *m = &members[i];
        if (!m->key)
            continue;
        if (m->kind == RV_MEMBER_INT)
            rc = rv_json_set_int(obj, m->key, m->n, err);
        else if (m->kind == RV_MEMBER_BOOL)
            rc = rv_json_set_bool(obj, m->key, m->n != 0, err);
        else if (m->kind == RV_MEMBER_STR || (m->kind == RV_MEMBER_TEXT && m->str.ptr))
            rc = rv_json_set_str(obj, m->key, m->str, err);
        else
            rc = rv_json_set_ref(obj, m->key, m->value, err);
    }
    return rc;
}
