/* The interrupts that wait for an answer, as rows for lists: the pending one first, then those queued behind it.
 * Entries that a hook wrote into the queue are checked; an entry that cannot be a row is left out of the list, but
 * stays in the run. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/journal/journal_internal.h"

#define MAX_PENDINGS ((size_t)10000) /* as many as stages; a store takes no more */
#define SHORT_BYTES  ((size_t)65536) /* of a text, when the whole interrupt is too large for a row */

struct view {
    const char *id, *stage, *question, *message;
    enum rv_interrupt_kind kind;
    json_object *data;
    int64_t created_us, expires_us;
};

static void write_text(rv_jw *w, const char *key, const char *text, bool is_short)
{
    if (text)
        rv_jw_kv_str(w, key, is_short ? rv_utf8_cut(rv_str_of(text), SHORT_BYTES) : rv_str_of(text));
}

static void write_view(const struct view *v, bool is_short, rv_buf *out)
{
    char time[RV_TIME_MAX];
    rv_jw w = rv_jw_on(out);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "kind", rv_interrupt_kind_text(v->kind));
    rv_jw_kv_text(&w, "id", v->id);
    write_text(&w, "question", v->question, is_short);
    write_text(&w, "message", v->message, is_short);
    rv_jw_kv_text(&w, "stage", v->stage);
    if (is_short)
        rv_jw_kv_bool(&w, "shortened", true);
    else if (v->data)
        rv_jw_kv_value(&w, "data", v->data);
    rv_time_format(v->created_us, time);
    rv_jw_kv_text(&w, "created_at", time);
    if (v->expires_us > 0) {
        rv_time_format(v->expires_us, time);
        rv_jw_kv_text(&w, "expires_at", time);
    }
    rv_jw_obj_end(&w);
}

static int64_t time_of(json_object *entry, const char *key)
{
    const char *text = NULL;
    int64_t us = 0;

    if (!rv_json_get_text(entry, key, &text) || !rv_time_read(rv_str_of(text), &us))
        return 0;
    return us > 0 ? us : 0;
}

static bool view_queued(json_object *entry, struct view *v)
{
    const char *kind = NULL;

    *v = (struct view){.kind = RV_INTERRUPT_SYSTEM_ERROR};
    if (!entry || !rv_json_get_text(entry, "id", &v->id))
        return false;
    if (rv_json_get_text(entry, "kind", &kind))
        RV_IGNORE(rv_interrupt_kind_of(rv_str_of(kind), &v->kind, NULL), "an unknown kind is asked as the general one");
    v->question = rv_json_text_or(entry, "question", v->question);
    v->message = rv_json_text_or(entry, "message", v->message);
    v->stage = rv_json_text_or(entry, "stage", v->stage);
    v->data = rv_json_get_obj(entry, "data");
    v->created_us = time_of(entry, "created_at");
    v->expires_us = time_of(entry, "expires_at");
    return true;
}

static bool fits(const char *text, size_t max)
{
    return text && strnlen(text, max + 1) <= max;
}

/* The body's place is filled in when the buffer moves no more. */
static int add(struct rv_pendings *p, rv_index *ids, struct view *v, const char *stage, rv_err **err)
{
    size_t at = p->bodies.len;

    if (!fits(v->id, RV_STORE_MAX_ID) || !*v->id || rv_index_get(ids, rv_str_of(v->id)) >= 0)
        return 0; /* no row can be named so; as the pending one it can still be answered without its id */
    if (rv_index_add(ids, rv_str_of(v->id), 1) < 0)
        return RV_FAIL(err, RV_E_NOMEM, "list the pending interrupts");
    if (!fits(v->stage, RV_MAX_STAGE_NAME))
        v->stage = stage;
    write_view(v, false, &p->bodies);
    if (p->bodies.rc == 0 && p->bodies.len - at > RV_STORE_MAX_QUESTION) {
        rv_buf_truncate(&p->bodies, at);
        write_view(v, true, &p->bodies);
    }
    const char *text = v->question ? v->question : v->message ? v->message : "";
    p->items[p->n++] = (struct rv_pending){
        .id = v->id,
        .kind = rv_interrupt_kind_text(v->kind),
        .stage = v->stage,
        .text = rv_utf8_cut(rv_str_of(text), SHORT_BYTES),
        .body = {NULL, p->bodies.len - at},
        .created_us = v->created_us,
        .expires_us = v->expires_us,
    };
    return rv_buf_check(&p->bodies, "pending interrupts", err);
}

int rv_pendings_build(const rv_envelope *env, const char *stage, struct rv_pendings *out, rv_err **err)
{
    struct rv_interrupt in = rv_envelope_interrupt(env);
    struct rv_pendings p = {.bodies = RV_BUF_INIT(RV_STORE_MAX_VALUE)};
    struct view v = {.id = in.id,
                     .stage = in.stage,
                     .question = in.question,
                     .message = in.message,
                     .kind = in.kind,
                     .data = in.data,
                     .created_us = in.created_at_us > 0 ? in.created_at_us : 0,
                     .expires_us = in.expires_at_us > 0 ? in.expires_at_us : 0};
    size_t n = rv_envelope_n_queued(env), at = 0;
    rv_index ids = {0};
    int rc = 0;

    if (n >= MAX_PENDINGS)
        n = MAX_PENDINGS - 1;
    p.items = calloc(n + 1, sizeof *p.items);
    if (!p.items)
        return RV_FAIL(err, RV_E_NOMEM, "list the pending interrupts");
    if (rv_envelope_has_interrupt(env))
        rc = add(&p, &ids, &v, stage, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        if (view_queued(rv_envelope_queued_at(env, i), &v))
            rc = add(&p, &ids, &v, stage, err);
    rv_index_fini(&ids);
    for (size_t i = 0; i < p.n && rc == 0; at += p.items[i++].body.len)
        p.items[i].body.ptr = rv_buf_cstr(&p.bodies) + at;
    if (rc < 0)
        rv_pendings_fini(&p);
    else
        *out = p;
    return rc;
}

void rv_pendings_fini(struct rv_pendings *p)
{
    free(p->items);
    rv_buf_fini(&p->bodies);
    *p = (struct rv_pendings){0};
}
