/* A turn as rows of its session: what was asked, each call with its result, the answer with what it took. They are an
 * effect like any other: who performs it writes them together with the step. A delegated agent's rows go with those of
 * the call by which it was asked. Ids, and what every row has, follow from the run, the visit and the number of the
 * row, so that a replay writes the same ones. */
#include "coreengine/agent/rows_internal.h"
#include "coreengine/agent/tools_internal.h"
#include "coreengine/telemetry/telemetry.h"

#include <stdlib.h>
#include <string.h>

/* bytes of the rows of one turn; above it arguments and results are left out */
#define MAX_ROWS    ((size_t)64 << 20)
#define MAX_MESSAGE ((size_t)12 << 20) /* of what a message has beside its text: below RV_STORE_MAX_PARTS */
#define MAX_TEXT    ((size_t)64 << 10) /* beside an object, or of an error: metadata is not meant for more */
#define ID_TEXT_MAX 512                /* bytes of what an id is made from: the parts are cut to fit */

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

/* A branch's path may be longer than there is room for. */
static void add_path(struct id_text *t, const rv_visit *v)
{
    uint64_t h = visit_identity(v);
    char hex[17];

    for (int i = 0; i < 16; i++)
        hex[i] = "0123456789abcdef"[(h >> (60 - 4 * i)) & 15];
    hex[16] = '/';
    add_part(t, (rv_str){hex, sizeof hex});
}

void visit_uuid(const rv_visit *v, const char *what, int64_t n, char out[RV_UUID_MAX])
{
    struct id_text key = {.len = 0};

    add_part(&key, rv_utf8_cut(rv_str_of(rv_envelope_fields(v->env)->envelope_id), ID_TEXT_MAX / 2));
    add_part(&key, RV_STR_LIT("/"));
    if (v->place.path && v->place.path[0])
        add_path(&key, v);
    add_part(&key, rv_utf8_cut(rv_str_of(v->agent->name), RV_MAX_STAGE_NAME));
    add_number(&key, v->visit_no);
    add_part(&key, RV_STR_LIT("/"));
    add_part(&key, rv_str_of(what));
    add_number(&key, n);
    rv_entity_make_id("messages", (rv_str){key.text, key.len}, NULL, out);
}

/* The trace of the run and the span of the visit, as those that watch its events make them. */
static void set_ids(struct rows *r)
{
    const rv_visit *v = r->v;
    struct rv_visit_shared *root = rv_visit_root(v->shared);
    const struct rv_origin *origin = v->shared->origin;
    const char *id = run_id(v);
    json_object *caller = rv_envelope_metadata(v->env, RV_STR_LIT(RV_TRACE_PARENT), NULL);
    unsigned char trace[16], span[8];
    struct rv_effect at = {.stage = -1};

    rv_trace_of_run(id, json_object_is_type(caller, json_type_string) ? json_object_get_string(caller) : NULL, trace);
    if (r->turn->rc == 0)
        r->turn->rc =
            rv_effect_set_place(&at, v->shared, v->agent->index, &v->place, RV_CODE_ONLY("the turn keeps the code"));
    rv_trace_make_span_id(&(struct rv_trace_span){.run = id,
                                                  .path = at.path,
                                                  .stage = at.label        ? at.label
                                                           : at.stage >= 0 ? root->pipeline->agents[at.stage].name
                                                                           : "",
                                                  .visit = v->visit_no,
                                                  .asked_by = origin ? origin->parent_tool_call_id : NULL},
                          span);
    rv_effect_fini(&at);
    rv_hex_make(trace, sizeof trace, r->trace);
    rv_hex_make(span, sizeof span, r->span);
    r->trace[2 * sizeof trace] = r->span[2 * sizeof span] = '\0';
}

/* An id that is too long for rows is replaced, in all of them, by one that follows from it. */
static rv_str row_call_id(rv_str id, char room[RV_HASH_MAX])
{
    if (id.len <= RV_ROW_MAX_TEXT)
        return id;
    rv_hash_format(id, room);
    return rv_str_of(room);
}

void agent_row_begin(struct rows *r, enum rv_message_type type, int64_t at_us)
{
    const rv_visit *v = r->v;
    const struct rv_origin *o = v->shared->origin;

    visit_uuid(v, v->kept_rows ? "chain" : "row", r->n++, r->id);
    rv_buf_clear(&r->calls);
    rv_buf_clear(&r->metadata);
    r->row = (struct rv_message){
        .id = r->id,
        .type = rv_message_type_text(type),
        .agent_name = type == RV_MESSAGE_USER ? NULL : v->agent->declared.doc->name,
        .run_id = run_id(v),
        .trace_id = r->trace,
        .span_id = r->span,
        .status = r->status == RV_TURN_COMPLETED ? NULL : rv_turn_status_text(r->status),
        .parent_call_id = o ? row_call_id(rv_str_of(o->parent_tool_call_id), r->parent).ptr : NULL,
        .created_us = at_us,
    };
}

void agent_row_content(struct rows *r, rv_str text)
{
    r->row.has_content = true;
    r->row.content = text;
    r->row.token_count = rv_tokens_estimate(text);
}

rv_jw *agent_row_json(struct rows *r, rv_buf *text)
{
    r->w = rv_jw_on(text);
    rv_jw_obj(&r->w);
    return &r->w;
}

rv_jw *agent_row_call(struct rows *r, rv_str name, rv_str id)
{
    rv_jw *w = agent_row_json(r, &r->calls);
    char room[RV_HASH_MAX];

    rv_jw_kv_str(w, "name", name);
    rv_jw_kv_str(w, "id", row_call_id(id, room));
    return w;
}

/* *fits: a store takes it as a member, or, levels being 0, as the whole, of an object of a row. */
static int check_depth(rv_str json, int levels, bool *fits, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = SIZE_MAX,
                                      .max_depth = RV_ROW_MAX_DEPTH - levels,
                                      .allow_duplicates = true /* it has none; no tree is built */};
    struct rv_json_scan scan = {0};

    int rc = rv_json_scan(json, &opts, &scan, NULL, err);
    *fits = rc == 0 && scan.how == RV_JSON_VALUE && scan.end == json.len;
    return rc;
}

int agent_row_arguments(rv_jw *w, json_object *value, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_ROWS);
    bool fits = false;

    rv_json_write(value, &text);
    int rc = rv_buf_check(&text, "the arguments of a call", err);
    if (rc == 0)
        rc = check_depth(rv_buf_str(&text), 1, &fits, err);
    if (rc == 0 && fits) {
        rv_jw_raw(w, rv_buf_str(&text));
    } else if (rc == 0) {
        rv_jw_obj(w);
        rv_jw_kv_str(w, "raw", rv_buf_str(&text));
        rv_jw_obj_end(w);
    }
    rv_buf_fini(&text);
    return rc;
}

void agent_row_end(struct rows *r)
{
    r->row.tool_calls = rv_buf_str(&r->calls);
    r->row.metadata = rv_buf_str(&r->metadata);
    if (r->turn->rc == 0)
        r->turn->rc = r->calls.rc < 0 ? r->calls.rc : r->metadata.rc;
    rv_turn_add(r->turn, &r->row);
}

/* --- the message of the user, and the answer --- */

/* What the message has beside its text: attachments, unless they are very long, and what the client added. A state that
 * a person has written may nest it deeper than a row does. */
static int write_message_metadata(struct rows *r, rv_err **err)
{
    json_object *message = rv_envelope_metadata(r->v->env, RV_STR_LIT(RV_MESSAGE_METADATA), NULL);
    rv_buf text = RV_BUF_INIT(MAX_MESSAGE);
    bool fits = false;

    if (!json_object_is_type(message, json_type_object) || r->is_lean)
        return 0;
    rv_json_write(message, &text);
    int rc = text.rc == 0            ? check_depth(rv_buf_str(&text), 0, &fits, err)
             : text.rc == RV_E_NOMEM ? rv_buf_check(&text, "the metadata of a message", err)
                                     : 0;
    if (fits)
        rv_buf_add_str(&r->metadata, rv_buf_str(&text));
    rv_buf_fini(&text);
    return rc;
}

static int user_row(struct rows *r, rv_err **err)
{
    const rv_visit *v = r->v;
    const struct rv_envelope_fields *f = rv_envelope_fields(v->env);

    if (v->shared->origin) /* its question stands in the arguments of the call */
        return 0;
    agent_row_begin(r, RV_MESSAGE_USER, v->started_us);
    agent_row_content(r, v->model.prompt ? (rv_str){v->model.prompt, v->model.prompt_len}
                                         : (rv_str){f->raw_input, f->raw_input_len});
    int rc = write_message_metadata(r, err);
    agent_row_end(r);
    return rc;
}

static void write_usage(rv_jw *w, const char *key, const struct rv_usage *u)
{
    rv_jw_key(w, key);
    rv_usage_write_json(u, w);
}

static void write_metadata(struct rows *r)
{
    const rv_visit *v = r->v;
    bool asked = !rv_usage_is_zero(&v->model.child_usage);
    bool is_cut = r->status == RV_TURN_COMPLETED && v->model.finish == RV_FINISH_LENGTH;
    bool has_text = v->agent->output.schema && v->model.visible.len > 0;

    if (!asked && !v->error_text && !is_cut && !has_text)
        return;
    rv_jw *w = agent_row_json(r, &r->metadata);
    if (asked) {
        write_usage(w, "own_usage", &v->model.usage);
        write_usage(w, "delegated_usage", &v->model.child_usage);
    }
    if (is_cut) /* it looks like any other answer */
        rv_jw_kv_text(w, "finish_reason", rv_finish_reason_text(RV_FINISH_LENGTH));
    if (has_text)
        rv_jw_kv_str(w, "words", rv_utf8_cut(rv_buf_str(&v->model.visible), MAX_TEXT));
    if (v->error_text) {
        rv_jw_key(w, "error");
        rv_jw_obj(w);
        rv_jw_kv_text(w, "type", v->error_type);
        rv_jw_kv_str(w, "message", rv_utf8_cut(rv_str_of(v->error_text), MAX_TEXT));
        rv_jw_obj_end(w);
    }
    rv_jw_obj_end(w);
}

/* The text of a mock. */
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
        if (rv_json_parse(
                rv_json_str(part), NULL, &result,
                RV_CODE_ONLY("a content that is not JSON holds no text to keep; want of memory is told below")) ==
            RV_E_NOMEM)
            out->rc = RV_E_NOMEM;
        else if (json_object_is_type(result, json_type_object) &&
                 json_object_object_get_ex(result, "text_response", &part) && rv_str_trim(rv_json_str(part)).len > 0)
            rv_buf_add_str(out, rv_json_str(part));
        json_object_put(result);
    }
}

/* Its text, or its output; of a turn that broke off, what had come. */
static void answer_text(const struct rows *r, rv_buf *out)
{
    const rv_visit *v = r->v;

    if (v->agent->output.schema) { /* without it there is no answer */
        if (r->status == RV_TURN_COMPLETED)
            rv_json_write(visit_answer(v), out);
        return;
    }
    agent_rows_answer(v, out);
    if (v->model.visible.len == 0 && r->status == RV_TURN_COMPLETED && v->output) /* of a mock */
        add_response(v->output, out);
    if (out->len == 0 && v->model.visible.len == 0 && r->status == RV_TURN_COMPLETED)
        add_asked(v, out);
}

/* Whatever a provider says that it took. */
static int64_t row_count(int64_t n)
{
    return n < RV_ROW_MAX_COUNT ? n : RV_ROW_MAX_COUNT;
}

static void write_model(const struct rv_model_config *model, rv_buf *out)
{
    rv_str provider = rv_utf8_cut(rv_str_of(model->provider), RV_ROW_MAX_TEXT / 2);
    rv_str name = rv_utf8_cut(rv_str_of(model->model), RV_ROW_MAX_TEXT - 1 - provider.len);

    rv_buf_printf(out, "%.*s:%.*s", RV_STR_ARG(provider), RV_STR_ARG(name));
}

static void add_took(struct rows *r, rv_buf *model_name)
{
    const rv_visit *v = r->v;
    const struct rv_model_config *model = visit_model(v);
    struct rv_usage all = v->model.usage;

    rv_usage_add(&all, &v->model.child_usage);
    if (model && v->model.is_scripted && rv_usage_is_zero(&all) &&
        strcmp(model->provider, "scripted") != 0) /* no provider had a part in it */
        model = NULL;
    if (model)
        write_model(model, model_name);
    if (model && model_name->rc == 0)
        r->row.model = rv_buf_cstr(model_name);
    r->row.has_usage = true;
    r->row.input_tokens = row_count(all.input_tokens);
    r->row.output_tokens = row_count(all.output_tokens);
    r->row.cost_micro_usd = row_count(all.cost_micro_usd);
    r->row.latency_ms = (v->now_us - v->started_us) / RV_US_PER_MS;
}

static int assistant_row(struct rows *r, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_ROWS), model = RV_BUF_INIT(RV_ROW_MAX_TEXT + 1);

    answer_text(r, &text);
    int rc = r->v->model.visible.rc == RV_E_NOMEM ? RV_FAIL(err, RV_E_NOMEM, "keep what was said") : 0;
    if (rc == 0)
        rc = rv_buf_check(&text, "the answer of a turn", err);
    if (rc == 0) {
        agent_row_begin(r, RV_MESSAGE_ASSISTANT, r->v->now_us);
        agent_row_content(r, rv_buf_str(&text));
        add_took(r, &model);
        write_metadata(r);
        if (model.rc == RV_E_NOMEM)
            rc = rv_buf_check(&model, "the name of a model", err);
        else
            agent_row_end(r);
    }
    rv_buf_fini(&model);
    rv_buf_fini(&text);
    return rc;
}

/* --- handing them over --- */

int agent_rows_keep_child(struct model_progress *t, rv_str call_id, struct rv_turn *rows, rv_err **err)
{
    struct child_rows **at = &t->child_rows;

    while (*at && !rv_str_is(call_id, (*at)->call_id))
        at = &(*at)->next;
    if (!*at && (*at = calloc(1, sizeof **at)) && !((*at)->call_id = rv_str_dup(call_id))) {
        free(*at);
        *at = NULL;
    }
    if (!*at) {
        rv_turn_free(rows);
        return RV_FAIL(err, RV_E_NOMEM, "keep what an agent did");
    }
    rv_turn_free((*at)->rows);
    (*at)->rows = rows;
    return 0;
}

/* The rows become those of a delegated agent, whose asking turn keeps its result even if they do not fit. */
static int hand_up(rv_visit *v, struct rows *r, rv_err **err)
{
    if (!v->rows) {
        v->rows = r->turn;
        r->turn = NULL;
        return 0;
    }
    if (r->turn->bytes > v->rows->max_bytes - v->rows->bytes || r->turn->n_rows > RV_TURN_MAX_ROWS - v->rows->n_rows)
        return 0;
    rv_turn_add_all(v->rows, r->turn);
    return rv_turn_check(v->rows, err);
}

static int add_head(const rv_visit *v, struct rv_turn *t, rv_err **err)
{
    const struct rv_conversation *c = v->shared->conversation;
    json_object *routing = NULL;

    t->session = rv_turn_keep_text(t, rv_str_of(c->context.session_id));
    t->agent_name = rv_turn_keep_text(t, rv_str_of(v->agent->declared.doc->name));
    t->name = v->session_name ? rv_turn_keep_text(t, rv_str_of(v->session_name)) : NULL;
    int rc = rv_turn_check(t, err);
    if (rc < 0 || !c->has_routing)
        return rc;
    t->metadata = json_object_new_object();
    rc = t->metadata ? rv_routing_build_value(&v->routing, &routing, err) : RV_FAIL(err, RV_E_NOMEM, "keep a routing");
    return rc == 0 ? rv_json_set_take(t->metadata, "routing", routing, err) : rc;
}

static int hand_over(rv_visit *v, struct rows *r, struct rv_effects *out, rv_err **err)
{
    int rc = rv_turn_check(r->turn, err);

    if (rc == 0 && v->shared->origin)
        return hand_up(v, r, err);
    if (rc == 0)
        rc = add_head(v, r->turn, err);
    if (rc < 0)
        return rc;
    struct rv_effect *e = rv_effects_add(out, RV_EFFECT_KEEP);
    if (!e)
        return RV_FAIL(err, RV_E_NOMEM, "keep the rows of a turn");
    rv_turn_keep_order(r->turn);
    e->stage = visit_stage(v);
    e->visit = v->visit_no;
    e->turn = r->turn;
    r->turn = NULL;
    return 0;
}

static bool keeps(const rv_visit *v)
{
    const struct rv_conversation *c = v->shared->conversation;

    return c && c->keeps && c->context.session_id && v->agent->declared.doc && !v->is_list &&
           (v->agent->session.joins || v->shared->origin);
}

/* The agent's own, where the conversation remembers anything. */
static int64_t threshold_of(const rv_visit *v)
{
    int64_t of_all = v->shared->conversation->moment_token_threshold;
    int64_t own = v->agent->declared.doc->moment_token_threshold;

    return of_all > 0 && own != RV_UNSET ? own : of_all;
}

static const char *summariser_of(const rv_visit *v)
{
    const char *own = v->agent->declared.doc->moment_summariser;

    return own ? own : v->shared->conversation->moment_summariser;
}

static int rows_init(struct rows *r, const rv_visit *v, enum rv_turn_status status, rv_err **err)
{
    *r = (struct rows){.v = v,
                       .status = status,
                       .turn = rv_turn_new(RV_ROWS_MAX),
                       .calls = RV_BUF_INIT(MAX_ROWS),
                       .metadata = RV_BUF_INIT(MAX_ROWS)};
    if (r->turn) {
        set_ids(r);
        r->turn->moment_token_threshold = threshold_of(v);
        r->turn->moment_summariser = rv_turn_keep_text(r->turn, rv_str_of(summariser_of(v)));
    }
    return r->turn ? 0 : RV_FAIL(err, RV_E_NOMEM, "keep the rows of a turn");
}

static void rows_fini(struct rows *r)
{
    rv_turn_free(r->turn);
    rv_buf_fini(&r->calls);
    rv_buf_fini(&r->metadata);
}

static int make_turn(struct rows *r, rv_err **err)
{
    int rc = user_row(r, err);
    if (rc == 0)
        rc = agent_rows_calls(r, err);
    if (rc == 0)
        rc = assistant_row(r, err);
    return rc == 0 ? rv_turn_check(r->turn, err) : rc;
}

int visit_keep_rows(rv_visit *v, enum rv_turn_status status, struct rv_effects *out, rv_err **err)
{
    rv_err *cause = NULL;
    struct rows r;

    if (!keeps(v) || v->kept_rows)
        return 0;
    int rc = rows_init(&r, v, status, &cause);
    if (rc == 0)
        rc = make_turn(&r, &cause);
    if (rc == RV_E_LIMIT && !rv_err_is(cause, RV_E_NOMEM)) { /* whatever models and tools say, the turn is kept */
        rv_err_free(cause);
        cause = NULL;
        rows_fini(&r);
        rc = rows_init(&r, v, status, &cause);
        r.is_lean = true;
        if (rc == 0)
            rc = make_turn(&r, &cause);
    }
    if (rc < 0)
        rv_err_pass(err, cause);
    else
        rv_err_free(cause);
    if (rc == 0)
        rc = hand_over(v, &r, out, err);
    v->kept_rows = true;
    rows_fini(&r);
    return rc;
}

int visit_keep_chain(rv_visit *v, const char *call_id, struct rv_effects *out, rv_err **err)
{
    rv_str name = rv_str_of(v->agent->tools.chained), id = rv_str_of(call_id);
    rv_buf content = RV_BUF_INIT(MAX_ROWS);
    struct rows r;

    if (!keeps(v))
        return 0;
    int rc = rows_init(&r, v, RV_TURN_COMPLETED, err);
    rv_json_write(v->chained, &content);
    if (rc == 0)
        rc = rv_buf_check(&content, "a chained result", err);
    if (rc == 0) {
        agent_row_begin(&r, RV_MESSAGE_TOOL_CALL, v->now_us);
        rv_jw *w = agent_row_call(&r, name, id);
        rv_jw_key(w, "arguments");
        rc = agent_row_arguments(w, visit_answer(v), err);
        rv_jw_obj_end(w);
        agent_row_end(&r);
    }
    if (rc == 0) {
        agent_row_response(&r, name, id, rv_buf_str(&content), false);
        rc = hand_over(v, &r, out, err);
    }
    rv_buf_fini(&content);
    rows_fini(&r);
    return rc;
}
