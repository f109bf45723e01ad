/* A turn as rows of its session: what was asked, each call with its result, the answer with what it took. They are an
 * effect like any other: who performs it writes them together with the step. A delegated agent's rows go with those of
 * the call by which it was asked. */
#include "coreengine/agent/agent_internal.h"

#include <string.h>

#define MAX_ROWS     ((size_t)64 << 20)
#define MAX_HEAD     ((size_t)1 << 20)
#define FINAL_DONE   "Final result processed."
#define FINAL_MISSED "Tool not executed - a final result was already processed."
#define ID_TEXT_MAX  512
#define LEAN_MAX     ((size_t)4 << 10) /* of arguments and results of a turn that is too large */
#define LEAN_NOTE    "{\"note\":\"too long to be kept with its turn\"}"

/* The rows that are being written. */
struct rows {
    const rv_visit *v;
    enum rv_turn_status status;
    bool is_lean; /* the turn is larger than what is kept of one: long values are left out */
    rv_buf text;  /* JSON objects with commas between */
    rv_jw w;
    int64_t n;
    char trace[RV_HASH_MAX], span[RV_HASH_MAX];
};

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

/* Ids of a trace that follow from the run, so that every record of it finds the others. */
static void trace_ids(struct rows *r)
{
    char span[RV_UUID_MAX];

    rv_hash_of(rv_str_of(run_id(r->v)), r->trace);
    r->trace[32] = '\0';
    rv_visit_uuid(r->v, "span", 0, span);
    rv_hash_of(rv_str_of(span), r->span);
    r->span[16] = '\0';
}

static void begin_row(struct rows *r, enum rv_message_type type, int64_t at_us)
{
    const rv_visit *v = r->v;
    const struct rv_origin *o = v->shared->origin;
    char id[RV_UUID_MAX];

    rv_visit_uuid(v, v->kept_rows ? "chain" : "row", r->n++, id);
    rv_jw_obj(&r->w);
    rv_jw_kv_text(&r->w, "id", id);
    rv_jw_kv_text(&r->w, "type", rv_message_type_text(type));
    if (type != RV_MESSAGE_USER)
        rv_jw_kv_text(&r->w, "agent", v->agent->doc->name);
    rv_jw_kv_text(&r->w, "run_id", run_id(v));
    rv_jw_kv_text(&r->w, "trace_id", r->trace);
    rv_jw_kv_text(&r->w, "span_id", r->span);
    if (r->status != RV_TURN_COMPLETED)
        rv_jw_kv_text(&r->w, "status", rv_turn_status_text(r->status));
    if (o)
        rv_jw_kv_text(&r->w, "parent_call_id", o->parent_tool_call_id);
    rv_jw_kv_int(&r->w, "at_us", at_us);
}

static void end_row(struct rows *r)
{
    rv_jw_obj_end(&r->w);
}

/* --- calls --- */

static rv_str text_of(json_object *obj, const char *key)
{
    json_object *part = NULL;
    json_object_object_get_ex(obj, key, &part);
    return rv_json_str(part);
}

/* The arguments as an object: of text that is no JSON {"raw": text}, of anything else {}. */
static int write_arguments(struct rows *r, rv_str text, rv_err **err)
{
    const struct rv_json_opts opts = {.allow_duplicates = true, .what = "arguments"};
    json_object *value = NULL;
    rv_err *cause = NULL;
    bool empty = rv_str_trim(text).len == 0;
    int rc = empty ? 0 : rv_json_parse(text, &opts, &value, &cause);
    bool no_memory = rv_err_is(cause, RV_E_NOMEM);

    rv_err_free(cause);
    rv_jw_key(&r->w, "arguments");
    if (r->is_lean && text.len > LEAN_MAX) {
        rv_jw_raw(&r->w, RV_STR_LIT(LEAN_NOTE));
    } else if (rc == 0 && json_object_is_type(value, json_type_object)) {
        rv_jw_value(&r->w, value);
    } else {
        rv_jw_obj(&r->w);
        if (rc < 0)
            rv_jw_kv_str(&r->w, "raw", text);
        rv_jw_obj_end(&r->w);
    }
    json_object_put(value);
    return no_memory ? RV_FAIL(err, RV_E_NOMEM, "write the rows of a turn") : 0;
}

static int call_row(struct rows *r, json_object *call, rv_err **err)
{
    begin_row(r, RV_MESSAGE_TOOL_CALL, r->v->now_us);
    rv_jw_key(&r->w, "tool_calls");
    rv_jw_obj(&r->w);
    rv_jw_kv_str(&r->w, "name", text_of(call, "name"));
    rv_jw_kv_str(&r->w, "id", text_of(call, "id"));
    int rc = write_arguments(r, text_of(call, "arguments"), err);
    rv_jw_obj_end(&r->w);
    end_row(r);
    return rc;
}

static void response_row(struct rows *r, json_object *call, rv_str content, bool is_error)
{
    begin_row(r, RV_MESSAGE_TOOL_RESPONSE, r->v->now_us);
    rv_jw_kv_str(&r->w, "content", r->is_lean && content.len > LEAN_MAX ? RV_STR_LIT(LEAN_NOTE) : content);
    rv_jw_key(&r->w, "tool_calls");
    rv_jw_obj(&r->w);
    rv_jw_kv_str(&r->w, "name", text_of(call, "name"));
    rv_jw_kv_str(&r->w, "id", text_of(call, "id"));
    rv_jw_obj_end(&r->w);
    if (is_error) {
        rv_jw_key(&r->w, "metadata");
        rv_jw_obj(&r->w);
        rv_jw_kv_bool(&r->w, "is_error", true);
        rv_jw_obj_end(&r->w);
    }
    end_row(r);
}

static json_object *tool_message(json_object *turns, size_t after, json_object *call)
{
    size_t n = json_object_array_length(turns);
    rv_str id = text_of(call, "id");

    for (size_t i = after; i < n; i++) {
        json_object *m = json_object_array_get_idx(turns, i);
        if (!rv_str_is(text_of(m, "role"), "tool"))
            break;
        if (rv_str_eq(text_of(m, "tool_call_id"), id))
            return m;
    }
    return NULL;
}

/* What the call at `index` of the reply under way has come to so far; NULL: nothing. */
static json_object *entry_so_far(const rv_visit *v, size_t index)
{
    const struct tool_progress *t = &v->tools;

    if (!v->talk.acting)
        return NULL;
    if (index < json_object_array_length(t->results))
        return json_object_array_get_idx(t->results, index);
    return t->flights && index >= t->at && index - t->at < t->n_flights ? t->flights[index - t->at].entry : NULL;
}

static int response_so_far(struct rows *r, json_object *call, size_t index, rv_err **err)
{
    json_object *entry = entry_so_far(r->v, index);
    rv_buf content = RV_BUF_INIT(RV_TALK_RESULT_MAX);
    bool is_error = false;

    if (!entry)
        return 0;
    rv_talk_write_result(entry, &content, &is_error);
    int rc = rv_buf_check(&content, "tool result", err);
    if (rc == 0)
        response_row(r, call, rv_buf_str(&content), is_error);
    rv_buf_fini(&content);
    return rc;
}

/* The rows of the agent that the call asked. */
static void child_rows(struct rows *r, json_object *call)
{
    json_object *rows = NULL;

    if (!r->v->talk.child_rows || r->is_lean)
        return;
    json_object_object_get_ex(r->v->talk.child_rows, json_object_get_string(json_object_object_get(call, "id")), &rows);
    if (rv_json_str(rows).len > 0)
        rv_jw_raw(&r->w, rv_json_str(rows));
}

static int turn_rows(struct rows *r, size_t at, rv_err **err)
{
    json_object *turns = r->v->talk.turns;
    json_object *calls = rv_json_get_arr(json_object_array_get_idx(turns, at), "tool_calls");
    size_t n = calls ? json_object_array_length(calls) : 0;
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        json_object *call = json_object_array_get_idx(calls, i), *message = tool_message(turns, at + 1, call);
        bool is_error = false;
        rc = call_row(r, call, err);
        child_rows(r, call);
        if (rc == 0 && message) {
            RV_IGNORE(!rv_json_get_bool(message, "is_error", &is_error), "absent: false");
            response_row(r, call, text_of(message, "content"), is_error);
        } else if (rc == 0) {
            rc = response_so_far(r, call, i, err);
        }
    }
    return rc;
}

static int calls_rows(struct rows *r, rv_err **err)
{
    const struct talk *t = &r->v->talk;
    size_t n = t->turns ? json_object_array_length(t->turns) : 0;
    size_t n_final = t->final_calls ? json_object_array_length(t->final_calls) : 0;
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = turn_rows(r, i, err);
    for (size_t i = 0; i < n_final && rc == 0; i++) {
        json_object *call = json_object_array_get_idx(t->final_calls, i);
        bool is_output = rv_str_is(text_of(call, "name"), RV_OUTPUT_TOOL);
        rc = call_row(r, call, err);
        if (rc == 0)
            response_row(r, call, is_output ? RV_STR_LIT(FINAL_DONE) : RV_STR_LIT(FINAL_MISSED), false);
    }
    return rc;
}

/* --- what people said and were told --- */

static void user_row(struct rows *r)
{
    const rv_visit *v = r->v;
    const struct rv_envelope_fields *f = rv_envelope_fields(v->env);

    if (v->shared->origin) /* its question stands in the arguments of the call */
        return;
    begin_row(r, RV_MESSAGE_USER, v->started_us);
    if (v->talk.prompt)
        rv_jw_kv_str(&r->w, "content", (rv_str){v->talk.prompt, v->talk.prompt_len});
    else
        rv_jw_kv_str(&r->w, "content", (rv_str){f->raw_input, f->raw_input_len});
    end_row(r);
}

static void write_usage(struct rows *r, const char *key, const struct rv_usage *u)
{
    rv_jw_key(&r->w, key);
    rv_usage_write_json(u, &r->w);
}

static void write_metadata(struct rows *r)
{
    const rv_visit *v = r->v;
    bool asked = !rv_usage_is_zero(&v->talk.child_usage);

    if (!asked && !v->error_text)
        return;
    rv_jw_key(&r->w, "metadata");
    rv_jw_obj(&r->w);
    if (asked) {
        write_usage(r, "own_usage", &v->talk.usage);
        write_usage(r, "delegated_usage", &v->talk.child_usage);
    }
    if (v->error_text) {
        rv_jw_key(&r->w, "error");
        rv_jw_obj(&r->w);
        rv_jw_kv_text(&r->w, "type", v->error_type);
        rv_jw_kv_text(&r->w, "message", v->error_text);
        rv_jw_obj_end(&r->w);
    }
    rv_jw_obj_end(&r->w);
}

/* Its words, or its output; of a turn that broke off, what had come. */
static void answer_text(const struct rows *r, rv_buf *out)
{
    const rv_visit *v = r->v;

    if (v->agent->output_schema && r->status == RV_TURN_COMPLETED) {
        rv_json_write(v->output, out);
        return;
    }
    rv_buf_add_str(out, rv_buf_str(&v->talk.said));
    if (out->len == 0 && r->status == RV_TURN_COMPLETED && v->output) /* said by a mock */
        rv_buf_add_str(out, text_of(v->output, "response"));
}

static void write_took(struct rows *r)
{
    const rv_visit *v = r->v;
    const struct rv_model_config *model = rv_visit_model(v);
    struct rv_usage all = v->talk.usage;
    rv_buf name = RV_BUF_INIT(4096);

    rv_usage_add(&all, &v->talk.child_usage);
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
    int rc = r->v->talk.said.rc == RV_E_NOMEM ? RV_FAIL(err, RV_E_NOMEM, "keep what was said") : 0;
    if (rc == 0)
        rc = rv_buf_check(&text, "the answer of a turn", err);
    if (rc == 0) {
        begin_row(r, RV_MESSAGE_ASSISTANT, r->v->now_us);
        rv_jw_kv_str(&r->w, "content", rv_buf_str(&text));
        write_took(r);
        write_metadata(r);
        end_row(r);
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
    rv_jw_kv_text(w, "agent", v->agent->doc->name);
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
        if (r->text.len >= v->rows.max - v->rows.len) /* the asking turn keeps what came of it in any case */
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

    return c && c->keeps && c->context.session_id && v->agent->doc && (v->agent->joins_session || v->shared->origin);
}

static void rows_init(struct rows *r, const rv_visit *v, enum rv_turn_status status)
{
    *r = (struct rows){.v = v, .status = status, .text = RV_BUF_INIT(MAX_ROWS - MAX_HEAD)};
    r->w = rv_jw_on(&r->text);
    trace_ids(r);
}

static int write_turn(struct rows *r, rv_err **err)
{
    user_row(r);
    int rc = calls_rows(r, err);
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
        rc = rv_json_set_text(call, "name", v->agent->chained_tool, err);
    if (rc == 0)
        rc = rv_json_set_text(call, "id", call_id, err);
    if (rc == 0) {
        begin_row(&r, RV_MESSAGE_TOOL_CALL, v->now_us);
        rv_jw_key(&r.w, "tool_calls");
        rv_jw_obj(&r.w);
        rv_jw_kv_text(&r.w, "name", v->agent->chained_tool);
        rv_jw_kv_text(&r.w, "id", call_id);
        rv_jw_kv_value(&r.w, "arguments", v->output);
        rv_jw_obj_end(&r.w);
        end_row(&r);
        response_row(&r, call, rv_buf_str(&content), false);
        rc = hand_over(v, &r, out, err);
    }
    json_object_put(call);
    rv_buf_fini(&content);
    rv_buf_fini(&r.text);
    return rc;
}
