/* Servers that ask a person. A request that needs an answer ends with what is asked, and the caller makes it again when
 * the answer is there, however much later, and on whichever connection:
 *
 * - Since 2026-07-28 that is the protocol's own way: `input_required`, then `inputResponses` and `requestState`.
 * - An earlier server sends `elicitation/create` while the request is open. The client withdraws the request then; when
 *   the server asks for the same again in the request that was made again, it gets the answer at once. So no connection
 *   is held open while a person thinks; but the server begins again, which is right only for requests that may be
 *   repeated. In any other one the server is told that the person has not answered (`cancel`).
 *
 * What a server asks is hostile: counted, cut and checked here. */
#include "coreengine/mcp/client_internal.h"
#include "coreengine/tools/tools.h"

#include <json-c/linkhash.h>

#define MAX_FORM ((size_t)64 << 10) /* bytes of the schema of a form: it has members of simple types only */

/* --- forms --- */

/* *schema: that of a form in params of elicitation/create; NULL: it is not a form, or too large. */
static int read_form(json_object *params, const char **message, json_object **schema, rv_err **err)
{
    json_object *given = params ? rv_json_get_obj(params, "requestedSchema") : NULL, *mode = NULL;
    const char *type = NULL;
    rv_buf text = RV_BUF_INIT(MAX_FORM);

    *schema = NULL;
    if (!given || !rv_json_get_text(params, "message", message) || !rv_json_get_text(given, "type", &type) ||
        strcmp(type, "object") != 0)
        return 0;
    if (json_object_object_get_ex(params, "mode", &mode) && !rv_str_is(rv_json_str(mode), "form"))
        return 0;
    rv_json_write(given, &text);
    int rc = text.rc == RV_E_NOMEM ? rv_buf_check(&text, "what an MCP server asks", err) : 0;
    if (text.rc == 0)
        *schema = given;
    rv_buf_fini(&text);
    return rc;
}

static int add_request(json_object *list, const char *key, const char *message, json_object *schema, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *one = rv_json_build(&b, list, NULL, json_object_new_object());

    rv_json_build_text(&b, one, "key", key);
    if (b.rc == 0)
        b.rc = rv_json_set_str(one, "message", rv_utf8_cut(rv_str_of(message), RV_MCP_MAX_WORDS), err);
    rv_json_build(&b, one, "schema", json_object_get(schema));
    return b.rc;
}

/* {state?, requests}: forms is taken by reference. */
static int write_asks(json_object *forms, json_object *state, json_object **out, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *all = json_object_new_object();

    if (!all)
        return RV_FAIL(err, RV_E_NOMEM, "read what an MCP server asks");
    if (state)
        rv_json_build(&b, all, "state", json_object_get(state));
    rv_json_build(&b, all, "requests", json_object_get(forms));
    if (b.rc < 0)
        json_object_put(all);
    else
        *out = all;
    return b.rc;
}

void mcp_wanted_fini(struct rv_mcp_wanted *w)
{
    json_object_put(w->forms);
    json_object_put(w->roots);
    json_object_put(w->samples);
}

/* One of inputRequests. */
static int read_request(const rv_mcp_client *c, const char *key, json_object *request, struct rv_mcp_wanted *out,
                        rv_err **err)
{
    const char *method = "", *message = NULL;
    json_object *schema = NULL;

    if (json_object_is_type(request, json_type_object))
        method = rv_json_text_or(request, "method", "");
    if (strlen(key) > RV_MCP_MAX_ID) {
        out->is_refused = true;
        return 0;
    }
    if (c->roots && strcmp(method, "roots/list") == 0)
        return rv_json_push_take(out->roots, json_object_new_string(key), err);
    json_object *params =
        c->max_samples > 0 && strcmp(method, "sampling/createMessage") == 0 ? rv_json_get_obj(request, "params") : NULL;
    if (params)
        return rv_json_set_ref(out->samples, key, params, err);
    int rc = c->elicits && strcmp(method, "elicitation/create") == 0
                 ? read_form(rv_json_get_obj(request, "params"), &message, &schema, err)
                 : 0;
    if (rc == 0 && schema)
        return add_request(out->forms, key, message, schema, err);
    out->is_refused = true;
    return rc;
}

int mcp_read_requests(const rv_mcp_client *c, json_object *requests, struct rv_mcp_wanted *out, rv_err **err)
{
    int rc = 0;

    *out = (struct rv_mcp_wanted){
        .forms = json_object_new_array(), .roots = json_object_new_array(), .samples = json_object_new_object()};
    if (!out->forms || !out->roots || !out->samples)
        return RV_FAIL(err, RV_E_NOMEM, "read what an MCP server asks");
    out->is_refused = json_object_object_length(requests) > RV_TOOL_MAX_REQUESTS;
    json_object_object_foreach (requests, key, request)
        if (rc == 0 && !out->is_refused)
            rc = read_request(c, key, request, out, err);
    return rc;
}

/* What is kept while a person thinks: the server's text, which of its requests are answered with roots, and the task
 * that waits for the answers. */
static int write_state(const struct rv_mcp_open *o, const struct rv_mcp_wanted *w, json_object *state,
                       json_object **out, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *both = json_object_new_object();

    if (!both)
        return RV_FAIL(err, RV_E_NOMEM, "read what an MCP server asks");
    if (state)
        rv_json_build(&b, both, "state", json_object_get(state));
    rv_json_build(&b, both, "roots", json_object_get(w->roots));
    if (o->task)
        rv_json_build(&b, both, "task", json_object_get(o->task));
    if (b.rc < 0)
        json_object_put(both);
    else
        *out = both;
    return b.rc;
}

int mcp_ask_person(rv_mcp_client *c, struct rv_mcp_open *o, const struct rv_mcp_wanted *w, json_object *state,
                   rv_err **err)
{
    json_object *asks = NULL, *both = NULL;
    int rc = o->task || json_object_array_length(w->roots) > 0 ? write_state(o, w, state, &both, err) : 0;

    if (rc == 0)
        rc = write_asks(w->forms, both ? both : state, &asks, err);
    json_object_put(both);
    return rc < 0 ? rc : mcp_end_asks(c, o, asks, err);
}

/* --- answers --- */

/* {action, content?} */
static int write_answer(json_object *answer, json_object **out, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *to = json_object_new_object(), *content = rv_json_get_obj(answer, "content");

    if (!to)
        return RV_FAIL(err, RV_E_NOMEM, "answer an MCP server");
    const char *action = rv_json_text_or(answer, "action", "cancel");
    rv_json_build_text(&b, to, "action", action);
    if (content)
        rv_json_build(&b, to, "content", json_object_get(content));
    if (b.rc < 0)
        json_object_put(to);
    else
        *out = to;
    return b.rc;
}

int mcp_add_input(const rv_mcp_client *c, const struct rv_mcp_open *o, json_object *params, rv_err **err)
{
    json_object *answers = rv_json_get_arr(o->input, "answers"), *to = json_object_new_object();
    json_object *state = NULL, *both = rv_json_get_obj(o->input, "state"); /* as write_state() wrote it */
    size_t n = answers ? json_object_array_length(answers) : 0;
    int64_t of = 0;
    const char *key = NULL;
    int rc = rv_json_set_take(params, "inputResponses", to, err);

    int64_t round = rv_json_int_or(o->input, "round", 0);
    for (size_t i = 0; i < n && rc == 0; i++) {
        json_object *one = json_object_array_get_idx(answers, i), *answer = NULL;
        if (!rv_json_get_int(one, "round", &of) || of != round || !rv_json_get_text(one, "key", &key))
            continue;
        rc = write_answer(one, &answer, err);
        if (rc == 0)
            rc = rv_json_set_take(to, key, answer, err);
    }
    json_object *roots = both ? rv_json_get_arr(both, "roots") : NULL;
    if (rc == 0 && roots && c->roots)
        rc = mcp_add_roots(c, roots, to, err);
    if (rc == 0 && json_object_object_get_ex(both ? both : o->input, "state", &state) && state)
        rc = rv_json_set_ref(params, "requestState", state, err);
    return rc;
}

/* The answer that a person gave to the same form before; NULL: none. */
static json_object *answer_of(const struct rv_mcp_open *o, const char *message, json_object *schema)
{
    json_object *answers = o->input ? rv_json_get_arr(o->input, "answers") : NULL;
    size_t n = answers ? json_object_array_length(answers) : 0;

    for (size_t i = n; i-- > 0;) { /* the newest one counts */
        json_object *one = json_object_array_get_idx(answers, i), *said = NULL;
        if (json_object_object_get_ex(one, "message", &said) &&
            rv_str_eq(rv_json_str(said), rv_utf8_cut(rv_str_of(message), RV_MCP_MAX_WORDS)) &&
            rv_json_equal(rv_json_get_obj(one, "schema"), schema))
            return one;
    }
    return NULL;
}

struct rv_mcp_open *mcp_call_under_way(const rv_mcp_client *c, json_object *params)
{
    json_object *task = NULL, *meta = rv_json_get_obj(params, "_meta");

    json_object_object_get_ex(rv_json_get_obj(meta, RV_MCP_META_TASK), "taskId", &task);
    for (struct rv_mcp_open *o = c->open; task && o; o = o->next)
        if (o->task && rv_json_equal(o->task, task))
            return o;
    struct rv_mcp_open *found = NULL;

    for (struct rv_mcp_open *o = c->open; o; o = o->next) {
        if (!o->id || strcmp(o->method, "tools/call") != 0)
            continue;
        if (found)
            return NULL;
        found = o;
    }
    return found;
}

int mcp_relate_task(const struct rv_mcp_open *o, json_object *answer, rv_err **err)
{
    struct rv_json_build b = {.err = err};

    if (!o->task)
        return 0;
    json_object *meta = rv_json_build(&b, answer, "_meta", json_object_new_object());
    json_object *of = rv_json_build(&b, meta, RV_MCP_META_TASK, b.rc < 0 ? NULL : json_object_new_object());
    rv_json_build(&b, of, "taskId", b.rc < 0 ? NULL : json_object_get(o->task));
    return b.rc;
}

static int cancel_question(rv_mcp_client *c, const struct rv_mcp_message *m, const struct rv_mcp_open *o, rv_err **err)
{
    json_object *answer = NULL, *none = json_object_new_object();
    int rc = none ? write_answer(none, &answer, err) : RV_FAIL(err, RV_E_NOMEM, "answer an MCP server");

    if (rc == 0)
        rc = mcp_relate_task(o, answer, err);
    if (rc == 0)
        rc = mcp_put_answer(c, m->id, answer, 0, NULL, err);
    json_object_put(none);
    json_object_put(answer);
    return rc;
}

/* The call ends here, and is made again with the answer. */
static int ask_again_later(rv_mcp_client *c, struct rv_mcp_open *o, const char *message, json_object *schema,
                           rv_err **err)
{
    json_object *all = NULL, *list = json_object_new_array();
    int rc = list ? add_request(list, "form", message, schema, err)
                  : RV_FAIL(err, RV_E_NOMEM, "read what an MCP server asks");

    if (rc == 0)
        rc = write_asks(list, NULL, &all, err);
    json_object_put(list);
    if (rc == 0)
        rc = mcp_withdraw(c, o, "a person is asked, and the call is made again with the answer", err);
    if (rc < 0) {
        json_object_put(all);
        return rc;
    }
    return mcp_end_asks(c, o, all, err);
}

int mcp_elicited(rv_mcp_client *c, const struct rv_mcp_message *m, rv_err **err)
{
    struct rv_mcp_open *o = mcp_call_under_way(c, m->params);
    const char *message = NULL;
    json_object *schema = NULL, *known, *answer = NULL;

    int rc = read_form(m->params, &message, &schema, err);
    if (rc < 0)
        return rc;
    if (!schema)
        return mcp_put_answer(c, m->id, NULL, RV_MCP_INVALID_PARAMS, "only forms are put to a person", err);
    if (!o)
        return mcp_put_answer(c, m->id, NULL, RV_MCP_INVALID_REQUEST,
                              "no call is under way, or several are: it is not known who is asked", err);
    known = answer_of(o, message, schema);
    if (!known)
        return o->is_repeatable ? ask_again_later(c, o, message, schema, err) : cancel_question(c, m, o, err);
    rc = write_answer(known, &answer, err);
    if (rc == 0)
        rc = mcp_relate_task(o, answer, err);
    if (rc == 0)
        rc = mcp_put_answer(c, m->id, answer, 0, NULL, err);
    json_object_put(answer);
    return rc;
}
