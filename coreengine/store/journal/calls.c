/* Calls as records: written before they are made; and when they are replayed, is what the core asks for now what it
 * asked for then? */
#include <string.h>

#include "coreengine/store/journal/journal_internal.h"

#define SHOWN_BYTES 160 /* of arguments, around the first difference */
#define BEFORE      40  /* of them before it */

bool journal_effect_is_call(const struct rv_effect *e)
{
    return e->kind == RV_EFFECT_CALL_LLM || e->kind == RV_EFFECT_CALL_TOOL || e->kind == RV_EFFECT_CALL_HOOK;
}

/* "llm", "tool", "hook", "policy", "mock", "route" */
static const char *do_text(const struct rv_effect *e)
{
    if (e->kind == RV_EFFECT_CALL_LLM)
        return "llm";
    if (e->kind == RV_EFFECT_CALL_TOOL)
        return "tool";
    switch (e->entry) {
    case RV_NAME_POLICY:
        return "policy";
    case RV_NAME_MOCK:
        return "mock";
    case RV_NAME_ROUTE:
        return "route";
    case RV_NAME_HOOK:
    case RV_NAME_TOOL:
    case RV_NAME_PROMPT:
    case RV_NAME_PROVIDER:
    case RV_NAME_PROBE:
    case RV_NAME_SUBSCRIBER:
    case RV_N_NAME_KINDS:
        break;
    }
    return "hook";
}

/* The stage's name as the envelope has it; ptr NULL: none. */
static rv_str stage_label(const rv_envelope *env, int stage)
{
    json_object *order = rv_envelope_stage_order(env);

    if (stage < 0 || !order || (size_t)stage >= json_object_array_length(order))
        return (rv_str){NULL, 0};
    return rv_json_str(json_object_array_get_idx(order, (size_t)stage));
}

void journal_record_put_started(const struct rv_effect *e, const rv_envelope *env, rv_buf *body)
{
    rv_str stage = stage_label(env, e->stage);
    rv_jw w = rv_jw_on(body);

    rv_jw_obj(&w);
    rv_jw_kv_int(&w, "call_id", e->call_id);
    rv_jw_kv_text(&w, "do", do_text(e));
    rv_jw_kv_text(&w, "name", e->name);
    if (stage.ptr)
        rv_jw_kv_str(&w, "stage", stage);
    rv_jw_kv_int(&w, "visit", e->visit);
    rv_jw_kv_int(&w, "attempt", e->attempt);
    if (e->origin) {
        rv_jw_kv_text(&w, "agent", e->origin->agent);
        rv_jw_kv_text(&w, "parent_tool_call_id", e->origin->parent_tool_call_id);
    }
    if (e->kind == RV_EFFECT_CALL_TOOL)
        rv_jw_kv_text(&w, "class", rv_effect_class_text((enum rv_effect_class)e->effect_class));
    if (e->key)
        rv_jw_kv_text(&w, "key", e->key);
    rv_jw_obj_end(&w);
}

/* --- Compared --- */

int journal_diverged(rv_err **err, int rc)
{
    rv_err_set_hint(err,
                    "another version of the engine, or another pipeline than the one the run was started with, does "
                    "not do the same; `reeve replay` with the engine that wrote the journal shows what it did");
    return rc;
}

void journal_call_describe(const struct rv_effect *e, const rv_envelope *env, rv_buf *out)
{
    rv_str stage = stage_label(env, e->stage);

    rv_buf_printf(out, "%s \"%s\" as call %lld", do_text(e), e->name ? e->name : "", (long long)e->call_id);
    if (stage.ptr)
        rv_buf_printf(out, " of stage \"%.*s\"", RV_STR_ARG(rv_utf8_cut(stage, 200)));
    rv_buf_printf(out, ", visit %lld, attempt %lld", (long long)e->visit, (long long)e->attempt);
    if (e->kind == RV_EFFECT_CALL_TOOL)
        rv_buf_printf(out, ", %s, key \"%s\"", rv_effect_class_text((enum rv_effect_class)e->effect_class),
                      e->key ? e->key : "");
}

/* What a STARTED record holds; borrowed from its body. */
struct started {
    const char *what, *name, *stage, *class, *key;
    int64_t call_id, visit, attempt;
};

static int read_started(json_object *body, struct started *out, rv_err **err)
{
    if (!rv_json_get_int(body, "call_id", &out->call_id) || !rv_json_get_text(body, "do", &out->what) ||
        !rv_json_get_text(body, "name", &out->name) || !rv_json_get_int(body, "visit", &out->visit) ||
        !rv_json_get_int(body, "attempt", &out->attempt))
        return RV_FAIL(err, RV_E_INVALID, "it lacks call_id, do, name, visit or attempt");
    out->stage = rv_json_text_or(body, "stage", out->stage);
    out->class = rv_json_text_or(body, "class", out->class);
    out->key = rv_json_text_or(body, "key", out->key);
    return 0;
}

static void describe_started(const struct started *s, rv_buf *out)
{
    rv_buf_printf(out, "%.40s \"%.200s\" as call %lld", s->what, s->name, (long long)s->call_id);
    if (s->stage)
        rv_buf_printf(out, " of stage \"%.200s\"", s->stage);
    rv_buf_printf(out, ", visit %lld, attempt %lld", (long long)s->visit, (long long)s->attempt);
    if (s->class || s->key)
        rv_buf_printf(out, ", %.40s, key \"%.200s\"", s->class ? s->class : "no class", s->key ? s->key : "");
}

static bool same_call(const struct started *s, const struct rv_effect *e, const rv_envelope *env)
{
    bool tool = e->kind == RV_EFFECT_CALL_TOOL;

    return s->call_id == e->call_id && s->visit == e->visit && s->attempt == e->attempt &&
           rv_text_eq(s->what, do_text(e)) && rv_text_eq(s->name, e->name) &&
           rv_str_eq(rv_str_of(s->stage), stage_label(env, e->stage)) &&
           rv_text_eq(s->class, tool ? rv_effect_class_text((enum rv_effect_class)e->effect_class) : NULL) &&
           rv_text_eq(s->key, e->key);
}

static int check_body(const struct rv_record *r, const struct rv_effect *e, const rv_envelope *env, rv_err **err)
{
    rv_buf then = RV_BUF_INIT(4096), now = RV_BUF_INIT(4096);
    struct started s = {0};
    json_object *body = NULL;

    int rc = journal_record_get_body(r, &body, err);
    if (rc == 0)
        rc = read_started(body, &s, err);
    if (rc == 0 && !same_call(&s, e, env)) {
        describe_started(&s, &then);
        journal_call_describe(e, env, &now);
        rc = RV_FAIL(err, RV_E_STATE, "the core asked for %s; now it asks for %s", rv_buf_cstr(&then),
                     rv_buf_cstr(&now));
        journal_diverged(err, rc);
    }
    rv_buf_fini(&then);
    rv_buf_fini(&now);
    json_object_put(body);
    return rc;
}

/* The part of a text that shows where it begins to differ. */
static rv_str excerpt(rv_str s, size_t at)
{
    size_t from = at > BEFORE ? at - BEFORE : 0;

    if (from > s.len)
        from = s.len;
    while (from > 0 && from < s.len && rv_utf8_continues(s.ptr[from]))
        from--;
    return rv_utf8_cut((rv_str){s.ptr + from, s.len - from}, SHOWN_BYTES);
}

static int check_arguments(const struct rv_record *r, const struct rv_effect *e, rv_err **err)
{
    rv_str now = e->kind == RV_EFFECT_CALL_TOOL ? (rv_str){e->request, e->request_len} : (rv_str){NULL, 0};
    rv_str then = r->value.ptr ? r->value : RV_STR_LIT("");
    size_t at = 0;

    if (!now.ptr)
        now = RV_STR_LIT("");
    if (rv_str_eq(now, then))
        return 0;
    while (at < now.len && at < then.len && now.ptr[at] == then.ptr[at])
        at++;
    RV_FAIL(err, RV_E_STATE, "call %lld of %s \"%s\" had other arguments, from byte %zu on: %.*s then, %.*s now",
            (long long)e->call_id, do_text(e), e->name, at, RV_STR_ARG(excerpt(then, at)),
            RV_STR_ARG(excerpt(now, at)));
    return journal_diverged(err, RV_E_STATE);
}

int journal_record_check_started(const struct rv_record *r, const struct rv_effect *e, const rv_envelope *env,
                                 rv_buf *scratch, rv_err **err)
{
    rv_buf_clear(scratch);
    journal_record_put_started(e, env, scratch);
    int rc = rv_buf_check(scratch, "a call", err);
    if (rc == 0 && !rv_str_eq(rv_buf_str(scratch), r->body)) /* mostly it is equal as text */
        rc = check_body(r, e, env, err);
    return rc == 0 ? check_arguments(r, e, err) : rc;
}
