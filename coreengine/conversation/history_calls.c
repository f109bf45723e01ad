/* Rows of tools in a history. Results come before their calls, since the walk goes back in time: room is set aside for
 * a result when it is read, and it waits until its call is found.
 *
 * A call is always shown with a result and a result with a call. A call that has none says so; a result whose call is
 * not in its turn stands behind one that is made up (remlight 14, rule 5). */
#include <stdlib.h>
#include <string.h>

#include "coreengine/conversation/messages_internal.h"
#include "coreengine/model/llm/llm.h"

#define NO_RESULT "no result was recorded for this call"
#define NOTHING   "{}" /* remlight 14, rule 11 */

/* --- results --- */

struct result {
    rv_str text; /* as it is shown */
    int64_t tokens;
    bool is_error, is_too_long;
    rv_buf room; /* for what is not as it is stored */
};

static int read_result(const struct rv_message *row, struct result *r, rv_err **err)
{
    rv_str content = row->has_content ? row->content : (rv_str){NULL, 0};
    int rc = rv_message_is_error(row->metadata, &r->is_error, err);

    if (rc < 0)
        return rc;
    rv_buf_init(&r->room, SIZE_MAX / 2);
    if (content.len > MESSAGE_MAX_RESULT) {
        rv_buf_printf(&r->room, "a result of %zu bytes was recorded; it is too long to be shown", content.len);
        r->text = rv_buf_str(&r->room);
        r->is_too_long = true;
    } else if (rv_message_is_blank(content)) {
        r->text = RV_STR_LIT(NOTHING);
    } else {
        r->text = rv_message_clean(content, &r->room);
    }
    rc = rv_buf_check(&r->room, "the result of a tool call", err);
    r->tokens = r->text.ptr == content.ptr && row->token_count >= 0 ? row->token_count : rv_tokens_estimate(r->text);
    return rc;
}

/* {"raw": text} in its place. */
static int wrap_raw(struct result *r, rv_err **err)
{
    rv_buf wrapped = RV_BUF_INIT(SIZE_MAX / 2);

    rv_message_write_raw(r->text, &wrapped);
    int rc = rv_buf_check(&wrapped, "the result of a tool call", err);
    rv_buf_fini(&r->room);
    r->room = wrapped;
    r->text = rv_buf_str(&r->room);
    r->tokens = rv_tokens_estimate(r->text);
    return rc;
}

static void result_fini(struct result *r)
{
    rv_buf_fini(&r->room);
}

static int push_result(struct rv_history *h, const struct rv_message *row, const struct result *r, struct shown **out,
                       rv_err **err)
{
    int rc = rv_history_push(h, r->tokens, out, err);

    if (rc < 0)
        return rc;
    (*out)->seq = row->seq;
    (*out)->is_error = r->is_error;
    rv_buf_add_str(&(*out)->text, r->text);
    return rv_buf_check(&(*out)->text, "the result of a tool call", err);
}

/* --- what waits --- */

static int wait_for_call(struct rv_history *h, struct shown *s, const struct call_parts *call, rv_err **err)
{
    struct waiting *w;

    if (h->n_waiting == h->cap_waiting) {
        size_t cap = h->cap_waiting ? 2 * h->cap_waiting : 8;
        struct waiting *more = realloc(h->waiting, cap * sizeof *more);
        if (!more)
            return RV_FAIL(err, RV_E_NOMEM, "keep a result of a history");
        h->waiting = more;
        h->cap_waiting = cap;
    }
    w = &h->waiting[h->n_waiting++];
    w->shown = s;
    memcpy(w->id, call->id, sizeof w->id);
    memcpy(w->name, call->name, sizeof w->name);
    return 0;
}

/* The newest result that waits under that id, for a tool that may be the same; h->n_waiting: none. */
static size_t find_waiting(const struct rv_history *h, const char *id, const char *name)
{
    size_t i = 0;

    for (; i < h->n_waiting; i++) {
        const struct waiting *w = &h->waiting[i];
        if (strcmp(w->id, id) == 0 && (!w->name[0] || !name[0] || strcmp(w->name, name) == 0))
            break;
    }
    return i;
}

/* Takes the result of that call out of those that wait: the one with its id, or else one without an id. False: it has
 * none. */
static bool find_result(struct rv_history *h, const struct call_parts *call, struct waiting *out)
{
    size_t at = find_waiting(h, call->id, call->name);

    if (at == h->n_waiting)
        at = find_waiting(h, "", call->name);
    if (at == h->n_waiting)
        return false;
    *out = h->waiting[at];
    memmove(&h->waiting[at], &h->waiting[at + 1], (h->n_waiting - at - 1) * sizeof *out);
    h->n_waiting--;
    return true;
}

void rv_history_settle(struct rv_history *h)
{
    h->n_waiting = 0;
}

void rv_history_forget_waiting(struct rv_history *h)
{
    for (size_t i = 0; i < h->n_waiting; i++)
        if (h->waiting[i].shown)
            rv_history_drop(h, h->waiting[i].shown);
    h->n_waiting = 0;
}

/* --- calls --- */

/* The call is that item's now; its name falls back to the one of the result. */
static void give_call(struct rv_history *h, struct shown *s, struct call_parts *call, int64_t seq, size_t run)
{
    if (!call->name[0])
        memcpy(call->name, s->call.name, sizeof call->name);
    rv_message_call_fini(&s->call);
    s->call = *call;
    *call = (struct call_parts){0};
    s->seq = seq;
    s->run = run;
    s->age = h->n_calls++;
}

static int show_unanswered(struct rv_history *h, const struct rv_message *row, struct call_parts *call, rv_err **err)
{
    struct result none = {.text = RV_STR_LIT(NO_RESULT), .is_error = true};
    struct shown *s = NULL;
    int rc;

    none.tokens = rv_tokens_estimate(none.text) + rv_tokens_estimate(rv_buf_str(&call->arguments));
    if (!rv_history_fits(h, none.tokens)) {
        rv_history_leave_out(h);
        return 0;
    }
    rc = push_result(h, row, &none, &s, err);
    if (rc == 0)
        give_call(h, s, call, row->seq, h->n_runs);
    return rc;
}

static void show_answered(struct rv_history *h, const struct rv_message *row, struct call_parts *call,
                          struct shown *result)
{
    int64_t tokens = rv_tokens_estimate(rv_buf_str(&call->arguments));

    if (rv_history_fits(h, tokens)) {
        rv_history_charge(h, tokens);
        give_call(h, result, call, row->seq, h->n_runs);
    } else {
        rv_history_drop(h, result);
        rv_history_leave_out(h);
    }
}

/* The output of a structured agent is told by its answer. */
static bool is_output(const struct rv_history *h, const struct call_parts *call)
{
    return h->opts.version >= RV_HISTORY_2 && strcmp(call->name, RV_OUTPUT_TOOL) == 0;
}

int rv_history_add_call(struct rv_history *h, const struct rv_message *row, rv_err **err)
{
    struct call_parts call = {0};
    struct waiting found;
    int rc = rv_message_read_call(row->tool_calls, &rv_message_call_keys, &call, err);

    if (rc == 0 && is_output(h, &call)) {
        rv_message_call_fini(&call);
        return rv_history_pass(h, row);
    }
    if (!h->is_in_run)
        h->n_runs++; /* from 1 */
    h->is_in_run = true;
    if (rc == 0 && !find_result(h, &call, &found))
        rc = show_unanswered(h, row, &call, err);
    else if (rc == 0 && found.shown)
        show_answered(h, row, &call, found.shown);
    rv_message_call_fini(&call);
    return rc;
}

int rv_history_add_response(struct rv_history *h, const struct rv_message *row, rv_err **err)
{
    struct call_parts call = {0};
    struct result r = {0};
    struct shown *s = NULL;
    int rc = rv_message_read_call(row->tool_calls, &rv_message_response_keys, &call, err);
    bool fits;

    if (rc == 0 && is_output(h, &call)) {
        rv_message_call_fini(&call);
        return rv_history_pass(h, row);
    }
    h->is_in_run = false;
    if (rc == 0)
        rc = read_result(row, &r, err);
    fits = rc == 0 && rv_history_fits(h, r.tokens);
    if (rc == 0 && !fits)
        rv_history_leave_out(h);
    if (fits)
        rc = push_result(h, row, &r, &s, err);
    if (s)
        give_call(h, s, &call, row->seq, 0);
    if (rc == 0)
        rc = wait_for_call(h, s, s ? &s->call : &call, err);
    result_fini(&r);
    rv_message_call_fini(&call);
    return rc;
}

/* A call and its result in one row (remlight 12): the content is the result, and the arguments where the metadata has
 * none (remlight 14, rules 10 and 11). */
int rv_history_add_tool(struct rv_history *h, const struct rv_message *row, rv_err **err)
{
    struct call_parts call = {0};
    struct result r = {0};
    struct shown *s = NULL;
    bool is_json = true;
    int rc = rv_message_read_call(row->metadata, &rv_message_tool_keys, &call, err);

    if (rc == 0 && is_output(h, &call)) {
        rv_message_call_fini(&call);
        return rv_history_pass(h, row);
    }
    h->is_in_run = false;
    if (rc == 0)
        rc = read_result(row, &r, err);
    if (rc == 0 && h->opts.version >= RV_HISTORY_2 && !r.is_too_long)
        rc = rv_message_read_content(r.text, &call, &is_json, err);
    if (rc == 0 && !is_json)
        rc = wrap_raw(&r, err);
    r.tokens = r.tokens > INT64_MAX / 2 ? r.tokens : r.tokens + rv_tokens_estimate(rv_buf_str(&call.arguments));
    if (rc == 0 && !rv_history_fits(h, r.tokens))
        rv_history_leave_out(h);
    else if (rc == 0)
        rc = push_result(h, row, &r, &s, err);
    if (s) {
        give_call(h, s, &call, row->seq, 0);
        s->is_one_row = true;
    }
    result_fini(&r);
    rv_message_call_fini(&call);
    return rc;
}
