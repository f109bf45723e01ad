/* Ids of rows, and what every row has: they follow from the run, the visit and the number of the row, so that a replay
 * writes the same ones. */
#include <string.h>

#include "coreengine/agent/rows_internal.h"

#define ID_TEXT_MAX 512

static const char *run_id(const rv_visit *v)
{
    return v->shared->run_id ? v->shared->run_id : rv_envelope_fields(v->env)->envelope_id;
}

/* Written without memory: an id must not be another one because there was none. */
struct id_text {
    char text[ID_TEXT_MAX];
    size_t len;
};

static void add_part(struct id_text *t, rv_str part)
{
    size_t room = sizeof t->text - t->len, n = part.len < room ? part.len : room;

    if (n > 0)
        memcpy(t->text + t->len, part.ptr, n);
    t->len += n;
}

static void add_number(struct id_text *t, int64_t n)
{
    char digits[20];
    size_t at = sizeof digits;

    do
        digits[--at] = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    add_part(t, RV_STR_LIT("/"));
    add_part(t, (rv_str){digits + at, sizeof digits - at});
}

void rv_visit_uuid(const rv_visit *v, const char *what, int64_t n, char out[RV_UUID_MAX])
{
    struct id_text key = {.len = 0};

    add_part(&key, rv_utf8_cut(rv_str_of(rv_envelope_fields(v->env)->envelope_id), ID_TEXT_MAX / 2));
    add_part(&key, RV_STR_LIT("/"));
    add_part(&key, rv_utf8_cut(rv_str_of(v->agent->name), RV_MAX_STAGE_NAME));
    add_number(&key, v->visit_no);
    add_part(&key, RV_STR_LIT("/"));
    add_part(&key, rv_str_of(what));
    add_number(&key, n);
    rv_entity_id("messages", (rv_str){key.text, key.len}, NULL, out);
}

/* Ids of a trace that follow from the run, so that every record of the run leads to the others. */
void rv_rows_ids(struct rows *r)
{
    char span[RV_UUID_MAX];

    rv_hash_of(rv_str_of(run_id(r->v)), r->trace);
    r->trace[32] = '\0';
    rv_visit_uuid(r->v, "span", 0, span);
    rv_hash_of(rv_str_of(span), r->span);
    r->span[16] = '\0';
}

void rv_row_begin(struct rows *r, enum rv_message_type type, int64_t at_us)
{
    const rv_visit *v = r->v;
    const struct rv_origin *o = v->shared->origin;
    char id[RV_UUID_MAX];

    rv_visit_uuid(v, v->kept_rows ? "chain" : "row", r->n++, id);
    rv_jw_obj(&r->w);
    rv_jw_kv_text(&r->w, "id", id);
    rv_jw_kv_text(&r->w, "type", rv_message_type_text(type));
    if (type != RV_MESSAGE_USER)
        rv_jw_kv_text(&r->w, "agent", v->agent->declared.doc->name);
    rv_jw_kv_text(&r->w, "run_id", run_id(v));
    rv_jw_kv_text(&r->w, "trace_id", r->trace);
    rv_jw_kv_text(&r->w, "span_id", r->span);
    if (r->status != RV_TURN_COMPLETED)
        rv_jw_kv_text(&r->w, "status", rv_turn_status_text(r->status));
    if (o)
        rv_jw_kv_text(&r->w, "parent_call_id", o->parent_tool_call_id);
    rv_jw_kv_int(&r->w, "at_us", at_us);
}

void rv_row_end(struct rows *r)
{
    rv_jw_obj_end(&r->w);
}
