/* A turn as rows of its session: what was asked, each call with its result, the answer with what it took. They are an
 * effect like any other: who performs it writes them together with the step. A delegated agent's rows go with those of
 * the call by which it was asked. Ids, and what every row has, follow from the run, the visit and the number of the
 * row, so that a replay writes the same ones. */
#include "coreengine/agent/rows_internal.h"

#include <string.h>

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
/* Whose rows, for which visit; the buffer is the caller's to set. */
static void set_ids(struct rows *r)
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

#define MAX_ROWS  ((size_t)64 << 20)
#define MAX_HEAD  ((size_t)1 << 20)
#define MAX_WORDS ((size_t)64 << 10) /* of a structured agent, beside its object: metadata is not meant for more */

/* --- what people said and were told --- */

static void user_row(struct rows *r)
{
    const rv_visit *v = r->v;
    const struct rv_envelope_fields *f = rv_envelope_fields(v->env);

    if (v->shared->origin) /* its question stands in the arguments of the call */
        return;
    rv_row_begin(r, RV_MESSAGE_USER, v->started_us);
    if (v->model.prompt)
        rv_jw_kv_str(&r->w, "content", (rv_str){v->model.prompt, v->model.prompt_len});
    else
        rv_jw_kv_str(&r->w, "content", (rv_str){f->raw_input, f->raw_input_len});
    rv_row_end(r);
}

static void write_usage(struct rows *r, const char *key, const struct rv_usage *u)
{
    rv_jw_key(&r->w, key);
    rv_usage_write_json(u, &r->w);
}

static void write_metadata(struct rows *r)
{
    const rv_visit *v = r->v;
    bool asked = !rv_usage_is_zero(&v->model.child_usage);
    bool is_cut = r->status == RV_TURN_COMPLETED && v->model.finish == RV_FINISH_LENGTH;
    bool has_words = v->agent->output.schema && v->model.visible.len > 0;

    if (!asked && !v->error_text && !is_cut && !has_words)
        return;
    rv_jw_key(&r->w, "metadata");
    rv_jw_obj(&r->w);
    if (asked) {
        write_usage(r, "own_usage", &v->model.usage);
        write_usage(r, "delegated_usage", &v->model.child_usage);
    }
    if (is_cut) /* it looks like any other answer */
        rv_jw_kv_text(&r->w, "finish_reason", rv_finish_reason_text(RV_FINISH_LENGTH));
    if (has_words)
        rv_jw_kv_str(&r->w, "words", rv_utf8_cut(rv_buf_str(&v->model.visible), MAX_WORDS));
    if (v->error_text) {
        rv_jw_key(&r->w, "error");
        rv_jw_obj(&r->w);
        rv_jw_kv_text(&r->w, "type", v->error_type);
        rv_jw_kv_text(&r->w, "message", v->error_text);
        rv_jw_obj_end(&r->w);
    }
    rv_jw_obj_end(&r->w);
}

/* What a mock said. */
static void add_response(json_object *output, rv_buf *out)
{
    json_object *text = NULL;

    json_object_object_get_ex(output, "response", &text);
    rv_buf_add_str(out, rv_json_str(text));
}

/* The asking agent gave no text, but an agent that it asked had an answer: that answer is kept as the turn's (remlight
 * 10.9). */
static void add_asked(const rv_visit *v, rv_buf *out)
{
    json_object *messages = v->model.messages, *part = NULL;

    for (size_t i = 0; messages && i < json_object_array_length(messages) && out->len == 0; i++) {
        json_object *m = json_object_array_get_idx(messages, i), *result = NULL;
        if (!json_object_object_get_ex(m, "name", &part) || !rv_str_is(rv_json_str(part), RV_TOOL_ASK_AGENT) ||
            !json_object_object_get_ex(m, "content", &part))
            continue;
        if (rv_json_parse(rv_json_str(part), NULL, &result, NULL) == RV_E_NOMEM)
            out->rc = RV_E_NOMEM;
        else if (json_object_is_type(result, json_type_object) &&
                 json_object_object_get_ex(result, "text_response", &part) && rv_str_trim(rv_json_str(part)).len > 0)
            rv_buf_add_str(out, rv_json_str(part));
        json_object_put(result);
    }
}

/* Its words, or its output; of a turn that broke off, what had come. */
static void answer_text(const struct rows *r, rv_buf *out)
{
    const rv_visit *v = r->v;

    if (v->agent->output.schema) { /* without it there is no answer */
        if (r->status == RV_TURN_COMPLETED)
            rv_json_write(v->output, out);
        return;
    }
    rv_rows_answer(v, out);
    if (v->model.visible.len == 0 && r->status == RV_TURN_COMPLETED && v->output) /* said by a mock */
        add_response(v->output, out);
    if (out->len == 0 && v->model.visible.len == 0 && r->status == RV_TURN_COMPLETED)
        add_asked(v, out);
}

static void write_took(struct rows *r)
{
    const rv_visit *v = r->v;
    const struct rv_model_config *model = rv_visit_model(v);
    struct rv_usage all = v->model.usage;
    rv_buf name = RV_BUF_INIT(4096);

    rv_usage_add(&all, &v->model.child_usage);
    if (model && v->model.is_scripted && rv_usage_is_zero(&all) &&
        strcmp(model->provider, "scripted") != 0) /* no provider had a part in it */
        model = NULL;
    if (model)
        rv_buf_printf(&name, "%s:%s", model->provider, model->model);
    if (model && name.rc == 0)
        rv_jw_kv_str(&r->w, "model", rv_buf_str(&name));
    if (name.rc == RV_E_NOMEM) /* found out with the rows */
        r->text.rc = name.rc;
    rv_buf_fini(&name);
    rv_jw_kv_int(&r->w, "input_tokens", all.input_tokens);
    rv_jw_kv_int(&r->w, "output_tokens", all.output_tokens);
    rv_jw_kv_int(&r->w, "cost_micro_usd", all.cost_micro_usd);
    rv_jw_kv_int(&r->w, "latency_ms", (v->now_us - v->started_us) / 1000);
}

static int assistant_row(struct rows *r, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_ROWS);

    answer_text(r, &text);
    int rc = r->v->model.visible.rc == RV_E_NOMEM ? RV_FAIL(err, RV_E_NOMEM, "keep what was said") : 0;
    if (rc == 0)
        rc = rv_buf_check(&text, "the answer of a turn", err);
    if (rc == 0) {
        rv_row_begin(r, RV_MESSAGE_ASSISTANT, r->v->now_us);
        rv_jw_kv_str(&r->w, "content", rv_buf_str(&text));
        write_took(r);
        write_metadata(r);
        rv_row_end(r);
    }
    rv_buf_fini(&text);
    return rc;
}

/* --- handing them over --- */

static void write_head(const rv_visit *v, rv_jw *w)
{
    const struct rv_conversation *c = v->shared->conversation;

    rv_jw_obj(w);
    rv_jw_kv_text(w, "session", c->context.session_id);
    rv_jw_kv_text(w, "agent", v->agent->declared.doc->name);
    if (v->session_name)
        rv_jw_kv_text(w, "name", v->session_name);
    if (c->has_routing) {
        rv_jw_key(w, "metadata");
        rv_jw_obj(w);
        rv_jw_key(w, "routing");
        rv_routing_write_json(&v->routing, w);
        rv_jw_obj_end(w);
    }
}

static int hand_over(rv_visit *v, struct rows *r, struct rv_effects *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_ROWS);
    rv_jw w = rv_jw_on(&text);

    int rc = rv_buf_check(&r->text, "the rows of a turn", err);
    if (rc == 0 && v->shared->origin) {
        if (r->text.len >= v->rows.max - v->rows.len) /* the asking turn keeps the result in any case */
            return 0;
        if (v->rows.len > 0)
            rv_buf_putc(&v->rows, ',');
        rv_buf_add_str(&v->rows, rv_buf_str(&r->text));
        return rv_buf_check(&v->rows, "the rows of an agent", err);
    }
    if (rc < 0)
        return rc;
    write_head(v, &w);
    rv_jw_key(&w, "rows");
    rv_jw_arr(&w);
    rv_jw_raw(&w, rv_buf_str(&r->text));
    rv_jw_arr_end(&w);
    rv_jw_obj_end(&w);
    rc = rv_buf_check(&text, "the rows of a turn", err);
    struct rv_effect *e = rc == 0 ? rv_effects_add(out, RV_EFFECT_KEEP) : NULL;
    if (e) {
        e->stage = rv_visit_stage_of(v);
        e->visit = v->visit_no;
        e->request = rv_buf_steal(&text, &e->request_len);
    }
    rv_buf_fini(&text);
    return rc < 0 || (e && e->request) ? rc : RV_FAIL(err, RV_E_NOMEM, "keep the rows of a turn");
}

static bool keeps(const rv_visit *v)
{
    const struct rv_conversation *c = v->shared->conversation;

    return c && c->keeps && c->context.session_id && v->agent->declared.doc &&
           (v->agent->session.joins || v->shared->origin);
}

static void rows_init(struct rows *r, const rv_visit *v, enum rv_turn_status status)
{
    *r = (struct rows){.v = v, .status = status, .text = RV_BUF_INIT(MAX_ROWS - MAX_HEAD)};
    r->w = rv_jw_on(&r->text);
    set_ids(r);
}

static int write_turn(struct rows *r, rv_err **err)
{
    user_row(r);
    int rc = rv_rows_calls(r, err);
    if (rc == 0)
        rc = assistant_row(r, err);
    return rc == 0 ? rv_buf_check(&r->text, "the rows of a turn", err) : rc;
}

int rv_visit_keep_rows(rv_visit *v, enum rv_turn_status status, struct rv_effects *out, rv_err **err)
{
    rv_err *cause = NULL;
    struct rows r;

    if (!keeps(v) || v->kept_rows)
        return 0;
    rows_init(&r, v, status);
    r.w = rv_jw_on(&r.text);
    int rc = write_turn(&r, &cause);
    if (rc == RV_E_LIMIT && !rv_err_is(cause, RV_E_NOMEM)) { /* whatever models and tools say, the turn is kept */
        rv_err_free(cause);
        cause = NULL;
        rv_buf_fini(&r.text);
        rows_init(&r, v, status);
        r.w = rv_jw_on(&r.text);
        r.is_lean = true;
        rc = write_turn(&r, &cause);
    }
    if (rc < 0 && err)
        *err = cause;
    else
        rv_err_free(cause);
    if (rc == 0)
        rc = hand_over(v, &r, out, err);
    v->kept_rows = true;
    rv_buf_fini(&r.text);
    return rc;
}

int rv_visit_keep_chain(rv_visit *v, const char *call_id, struct rv_effects *out, rv_err **err)
{
    rv_buf content = RV_BUF_INIT(MAX_ROWS);
    json_object *call = NULL;
    struct rows r;

    if (!keeps(v))
        return 0;
    rows_init(&r, v, RV_TURN_COMPLETED);
    r.w = rv_jw_on(&r.text);
    rv_json_write(v->chained, &content);
    int rc = (call = json_object_new_object()) ? rv_buf_check(&content, "a chained result", err)
                                               : RV_FAIL(err, RV_E_NOMEM, "keep a chained call");
    if (rc == 0)
        rc = rv_json_set_text(call, "name", v->agent->tools.chained, err);
    if (rc == 0)
        rc = rv_json_set_text(call, "id", call_id, err);
    if (rc == 0) {
        rv_row_begin(&r, RV_MESSAGE_TOOL_CALL, v->now_us);
        rv_jw_key(&r.w, "tool_calls");
        rv_jw_obj(&r.w);
        rv_jw_kv_text(&r.w, "name", v->agent->tools.chained);
        rv_jw_kv_text(&r.w, "id", call_id);
        rv_jw_kv_value(&r.w, "arguments", v->output);
        rv_jw_obj_end(&r.w);
        rv_row_end(&r);
        rv_row_response(&r, call, rv_buf_str(&content), false);
        rc = hand_over(v, &r, out, err);
    }
    json_object_put(call);
    rv_buf_fini(&content);
    rv_buf_fini(&r.text);
    return rc;
}
