/* Answers to requests that the caller made: results, pages of lists, requests that the server wants again, errors. */
#include "coreengine/base/base.h"
#include "coreengine/mcp/client_internal.h"

#include <stdlib.h>
#include <string.h>

static int invalid(rv_mcp_client *c, struct rv_mcp_open *o, const char *text, rv_err **err)
{
    return mcp_end_failed(c, o, &(struct rv_mcp_trouble){.code = "invalid_answer", .text = text}, err);
}

static int too_long(rv_mcp_client *c, struct rv_mcp_open *o, const char *what, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(200);

    rv_buf_printf(&text, "the list of %s does not end: %s", o->list, what);
    int rc = rv_buf_check(&text, "reason", err);
    if (rc == 0)
        rc = mcp_end_failed(c, o, &(struct rv_mcp_trouble){.code = "too_many_pages", .text = rv_buf_cstr(&text)}, err);
    rv_buf_fini(&text);
    return rc;
}

/* --- lists --- */

static int add_items(struct rv_mcp_open *o, json_object *page, rv_err **err)
{
    int rc = 0;

    if (!o->items && !(o->items = json_object_new_array()))
        return RV_FAIL(err, RV_E_NOMEM, "list what an MCP server has");
    for (size_t i = 0; i < json_object_array_length(page) && rc == 0; i++)
        rc = rv_json_push_ref(o->items, json_object_array_get_idx(page, i), err);
    return rc;
}

/* Notes the cursor as used. *again: it was used before. */
static int use_cursor(struct rv_mcp_open *o, json_object *cursor, bool *again, rv_err **err)
{
    const char *text = json_object_get_string(cursor); /* checked to have no NUL */

    if (!o->cursors && !(o->cursors = json_object_new_object()))
        return RV_FAIL(err, RV_E_NOMEM, "list what an MCP server has");
    *again = json_object_object_get_ex(o->cursors, text, NULL);
    return *again ? 0 : rv_json_set_null(o->cursors, text, err);
}

static int next_page(rv_mcp_client *c, struct rv_mcp_open *o, json_object *cursor, rv_err **err)
{
    rv_str text = rv_json_str(cursor);
    bool again = false;

    if (!json_object_is_type(cursor, json_type_string) || memchr(text.ptr, '\0', text.len))
        return invalid(c, o, "nextCursor is not a text", err);
    if (o->n_pages >= RV_MCP_MAX_PAGES)
        return too_long(c, o, "it has more than " RV_LIMIT_TEXT(RV_MCP_MAX_PAGES) " pages", err);
    int rc = use_cursor(o, cursor, &again, err);
    if (rc < 0)
        return rc;
    if (again)
        return too_long(c, o, "a cursor came twice", err);
    json_object_put(o->cursor);
    o->cursor = json_object_get(cursor);
    return mcp_send_open(c, o, err);
}

/* A page without `ttlMs`, or with one that is not a whole number above 0, is not to be kept. */
static void note_ttl(struct rv_mcp_open *o, json_object *page)
{
    int64_t ms = 0;

    if (!rv_json_get_int(page, "ttlMs", &ms) || ms < 0)
        ms = 0;
    o->ttl_ms = o->n_pages == 0 || ms < o->ttl_ms ? ms : o->ttl_ms;
}

static int listed(rv_mcp_client *c, struct rv_mcp_open *o, json_object *result, rv_err **err)
{
    json_object *page = rv_json_get_arr(result, o->list), *cursor = NULL;

    if (!page)
        return invalid(c, o, "the answer has no list", err);
    size_t n = (o->items ? json_object_array_length(o->items) : 0) + json_object_array_length(page);
    if (n > RV_MCP_MAX_ITEMS)
        return too_long(c, o, "it has more than " RV_LIMIT_TEXT(RV_MCP_MAX_ITEMS) " items", err);
    int rc = add_items(o, page, err);
    if (rc < 0)
        return rc;
    note_ttl(o, result);
    o->n_pages++;
    if (json_object_object_get_ex(result, "nextCursor", &cursor) && cursor) /* "" is a cursor, null is none */
        return next_page(c, o, cursor, err);
    json_object *items = o->items;
    o->items = NULL;
    return mcp_end_ok(c, o, items, err);
}

/* --- results that are not the last word --- */

static bool may_want_input(const struct rv_mcp_open *o)
{
    static const char *const methods[] = {"tools/call", "resources/read", "prompts/get"};

    for (size_t i = 0; i < RV_COUNT(methods); i++)
        if (strcmp(o->method, methods[i]) == 0)
            return true;
    return false;
}

/* The request is to be sent once more, with the server's state and with what is known without a person; state and
 * responses may be NULL, and are taken by reference. samples: what a model is asked before that, {key: params}; NULL or
 * empty: nothing. */
static int again(rv_mcp_client *c, struct rv_mcp_open *o, json_object *state, json_object *responses,
                 json_object *samples, rv_err **err)
{
    if (++o->n_rounds > RV_MCP_MAX_ROUNDS)
        return invalid(c, o, "resultType input_required asks again and again", err);
    json_object_put(o->state);
    o->state = json_object_get(state);
    json_object_put(o->responses);
    o->responses = json_object_get(responses);
    json_object_put(o->input); /* it was answered, and is not sent twice */
    o->input = NULL;
    return samples && json_object_object_length(samples) > 0 ? mcp_ask_model(c, o, samples, err)
                                                             : mcp_send_open(c, o, err);
}

static bool can_answer(const rv_mcp_client *c)
{
    return c->elicits || c->roots || c->max_samples > 0;
}

static int refuse_input(rv_mcp_client *c, struct rv_mcp_open *o, rv_err **err)
{
    static const char some[] = "the tool asks for input that was not declared, that is not a form for a person, or for "
                               "too much"; /* of the last one: max_samplings says how much */
    static const char none[] = "the tool asks for input from a person or a model while it runs, which was not declared";

    return mcp_end_failed(c, o, &(struct rv_mcp_trouble){.code = "input_required", .text = can_answer(c) ? some : none},
                          err);
}

static int wanted(rv_mcp_client *c, struct rv_mcp_open *o, json_object *questions, json_object *state, rv_err **err)
{
    struct rv_mcp_wanted w = {0};
    json_object *responses = NULL;

    int rc = mcp_read_requests(c, questions, &w, err);
    int64_t n_samples = rc == 0 ? json_object_object_length(w.samples) : 0;
    bool is_mixed = n_samples > 0 && json_object_array_length(w.forms) > 0; /* the call would end between the two */
    if (rc == 0 && (w.is_refused || is_mixed || (n_samples > 0 && o->n_samples + n_samples > c->max_samples))) {
        rc = refuse_input(c, o, err);
    } else if (rc == 0 && json_object_array_length(w.forms) > 0) {
        rc = mcp_ask_person(c, o, &w, state, err);
    } else if (rc == 0) {
        responses = json_object_new_object();
        rc = responses ? mcp_add_roots(c, w.roots, responses, err) : RV_FAIL(err, RV_E_NOMEM, "answer an MCP server");
        if (rc == 0)
            rc = again(c, o, state, responses, w.samples, err);
    }
    json_object_put(responses);
    mcp_wanted_fini(&w);
    return rc;
}

/* The server wants answers that only a person, a model or the file system of this side can give: a person is asked
 * where that was declared. Without questions it only wants the request again. */
static int input_required(rv_mcp_client *c, struct rv_mcp_open *o, json_object *result, rv_err **err)
{
    json_object *questions = rv_json_get_obj(result, "inputRequests"), *state = NULL;
    bool has_state = json_object_object_get_ex(result, "requestState", &state) && state;

    if (!may_want_input(o))
        return invalid(c, o, "resultType input_required does not fit the request", err);
    if (has_state && !json_object_is_type(state, json_type_string))
        return invalid(c, o, "requestState is not a text", err);
    if (questions && json_object_object_length(questions) > 0)
        return wanted(c, o, questions, state, err);
    return has_state ? again(c, o, state, NULL, NULL, err)
                     : invalid(c, o, "resultType input_required asks for nothing", err);
}

static int succeeded(rv_mcp_client *c, struct rv_mcp_open *o, json_object *result, rv_err **err)
{
    json_object *type = NULL;

    if (c->era == RV_MCP_ERA_MODERN && json_object_object_get_ex(result, "resultType", &type)) {
        if (rv_str_is(rv_json_str(type), "input_required"))
            return input_required(c, o, result, err);
        if (rv_str_is(rv_json_str(type), "task"))
            return mcp_task_begun(c, o, result, err);
        if (!rv_str_is(rv_json_str(type), "complete"))
            return invalid(c, o, "resultType is none of complete, input_required and task", err);
    }
    if (o->asked_for_task && rv_json_get_obj(result, "task")) {
        o->asked_for_task = false;
        return mcp_task_begun(c, o, rv_json_get_obj(result, "task"), err);
    }
    if (o->task)
        return mcp_task_told(c, o, result, err);
    return o->list ? listed(c, o, result, err) : mcp_end_ok(c, o, json_object_get(result), err);
}

int mcp_refused(rv_mcp_client *c, struct rv_mcp_open *o, int code, const char *words, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_MCP_MAX_WORDS + 128);
    rv_str said = rv_utf8_cut(rv_str_of(words), RV_MCP_MAX_WORDS);

    rv_buf_printf(&text, "the server answers with error %d: %.*s", code, RV_STR_ARG(said));
    int rc = rv_buf_check(&text, "error of an MCP server", err);
    if (rc == 0)
        rc = mcp_end_failed(
            c, o, &(struct rv_mcp_trouble){.code = "rejected", .text = rv_buf_cstr(&text), .rpc_code = code}, err);
    rv_buf_fini(&text);
    return rc;
}

int mcp_answered(rv_mcp_client *c, struct rv_mcp_open *o, const struct rv_mcp_message *m, rv_err **err)
{
    return m->kind == RV_MCP_ERROR ? mcp_refused(c, o, m->code, m->text, err) : succeeded(c, o, m->result, err);
}

/* --- what cannot be read --- */

static bool has_text(rv_str json, const char *text)
{
    return json.len > 0 && memmem(json.ptr, json.len, text, strlen(text)) != NULL;
}

/* Does what is not JSON look like an answer, and not like what a program prints to its log? */
static bool looks_like_answer(rv_str json)
{
    return has_text(json, "\"jsonrpc\"") && (has_text(json, "\"result\"") || has_text(json, "\"error\"")) &&
           !has_text(json, "\"method\"");
}

static struct rv_mcp_open *sent_as(const rv_mcp_client *c, int64_t id)
{
    struct rv_mcp_open *o = c->open;

    while (o && o->id != id)
        o = o->next;
    return o;
}

/* The only request that an answer may belong to; NULL: there is none, or more than one. */
static struct rv_mcp_open *only_sent(const rv_mcp_client *c)
{
    struct rv_mcp_open *only = NULL;

    for (struct rv_mcp_open *o = c->open; o; o = o->next) {
        if (o->id && only)
            return NULL;
        if (o->id)
            only = o;
    }
    return only;
}

/* Those that wait will say it if nothing else comes for them. */
static int remember_misread(rv_mcp_client *c, rv_str why, rv_err **err)
{
    char *text = rv_str_dup(why);

    if (!text)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a connection to an MCP server");
    free(c->misread);
    c->misread = text;
    for (struct rv_mcp_open *o = c->open; o; o = o->next)
        o->heard_misread = o->id != 0;
    return mcp_put_note(c, err, "the server sent what is not a message: %s", text);
}

/* Not a message: of a known request, or of the only one, it is the answer, and a bad one. */
int mcp_misread(rv_mcp_client *c, const struct rv_mcp_message *m, rv_str json, const char *why, rv_err **err)
{
    const struct rv_mcp_trouble bad = {.code = rv_mcp_fault_code(RV_MCP_FAULT_BAD_MESSAGE), .text = why};
    bool is_answer = !m->root && looks_like_answer(json);
    int64_t id = rv_json_is_int(m->id) ? json_object_get_int64(m->id) : 0;
    struct rv_mcp_open *o = id > 0 ? sent_as(c, id) : is_answer ? only_sent(c) : NULL;

    if (is_answer && c->phase == RV_MCP_INITIALIZING && !o && !c->probe_id) {
        struct rv_mcp_trouble of_all = bad;
        of_all.is_unsent = true;
        return mcp_die(c, &of_all, err);
    }
    if (o && (id > 0 || c->phase == RV_MCP_READY))
        return mcp_end_failed(c, o, &bad, err);
    return remember_misread(c, rv_utf8_cut(rv_str_of(why), 300), err);
}
