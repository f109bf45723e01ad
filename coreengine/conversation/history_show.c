/* The messages that a history comes to, oldest first. Calls that the model asked for at once are one message, with
 * their results behind it in the same order; ids differ over the whole history. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/conversation/conversation.h"
#include "coreengine/conversation/messages_internal.h"
#include "coreengine/model/llm/llm.h"

#define MADE_UP "call_" /* and the number of the row (remlight 14, rule 8) */
#define NOTHING "{}"

#define SALT_MASK   ((size_t)0x7fffffff) /* 31 bits, so that SALT_DIGITS are enough */
#define SALT_DIGITS 10                   /* of the largest salt */
static_assert(sizeof MADE_UP - 1 + MESSAGE_MAX_DIGITS + SALT_DIGITS < MESSAGE_MAX_ID,
              "an id that is made up has to fit");

struct writer {
    json_object *list; /* owned */
    rv_index ids;
};

/* --- ids --- */

static void make_id(struct shown *s, size_t salt)
{
    size_t len = sizeof MADE_UP - 1;

    memcpy(s->call.id, MADE_UP, len);
    len += conversation_message_digits(s->seq, s->call.id + len);
    if (salt) {
        char digits[MESSAGE_MAX_DIGITS];
        size_t n = conversation_message_digits((int64_t)(salt & SALT_MASK), digits);
        s->call.id[len++] = '_';
        memcpy(s->call.id + len, digits, n + 1);
    }
}

/* An id that is missing, or that an older call has, is made of the row's number; `place` differs for each call. */
static int settle_id(struct writer *w, struct shown *s, size_t place, size_t n_places, rv_err **err)
{
    int rc = s->call.id[0] ? rv_index_add(&w->ids, rv_str_of(s->call.id), 1) : RV_E_EXISTS;

    for (size_t salt = 0; rc == RV_E_EXISTS; salt = salt ? salt + n_places : place + 1) {
        make_id(s, salt);
        rc = rv_index_add(&w->ids, rv_str_of(s->call.id), 1);
    }
    return rc < 0 ? RV_FAIL(err, RV_E_NOMEM, "name a call of a history") : 0;
}

/* --- messages --- */

/* A message with that role, at the end of the list; borrowed. */
static json_object *add_message(struct writer *w, const char *role, rv_err **err)
{
    json_object *message = json_object_new_object();

    if (message && rv_json_set_text(message, "role", role, err) < 0) {
        json_object_put(message);
        return NULL;
    }
    return rv_json_push_take(w->list, message, err) < 0 ? NULL : message;
}

static int add_text(struct writer *w, const struct shown *s, rv_err **err)
{
    json_object *message = add_message(w, s->role, err);

    return message ? rv_json_set_str(message, "content", rv_buf_str(&s->text), err) : RV_E_NOMEM;
}

static int add_call(json_object *calls, const struct shown *s, rv_err **err)
{
    json_object *call = json_object_new_object();
    char name[MESSAGE_MAX_NAME];
    rv_str arguments = s->call.arguments.len ? rv_buf_str(&s->call.arguments) : RV_STR_LIT(NOTHING);
    int rc = call ? rv_json_set_text(call, "id", s->call.id, err) : RV_FAIL(err, RV_E_NOMEM, "show a tool call");

    rv_message_make_tool_name(rv_str_of(s->call.name), name);
    if (rc == 0)
        rc = rv_json_set_text(call, "name", name, err);
    if (rc == 0)
        rc = rv_json_set_str(call, "arguments", arguments, err);
    if (rc == 0)
        rc = rv_json_push_ref(calls, call, err);
    json_object_put(call);
    return rc;
}

static int add_result(struct writer *w, const struct shown *s, rv_err **err)
{
    json_object *message = add_message(w, "tool", err);
    char name[MESSAGE_MAX_NAME];
    int rc = message ? rv_json_set_text(message, "tool_call_id", s->call.id, err) : RV_E_NOMEM;

    rv_message_make_tool_name(rv_str_of(s->call.name), name);
    if (rc == 0)
        rc = rv_json_set_text(message, "name", name, err);
    if (rc == 0)
        rc = rv_json_set_str(message, "content", rv_buf_str(&s->text), err);
    if (rc == 0 && s->is_error)
        rc = rv_json_set_bool(message, "is_error", true, err);
    return rc;
}

/* Calls belong to what the assistant said directly before them (remlight 14, rule 3). */
static json_object *caller(struct writer *w, rv_err **err)
{
    size_t n = json_object_array_length(w->list);
    json_object *last = n ? json_object_array_get_idx(w->list, n - 1) : NULL;
    const char *role = NULL;

    if (last && rv_json_get_text(last, "role", &role) && strcmp(role, "assistant") == 0)
        return last;
    return add_message(w, "assistant", err);
}

static int add_calls(struct writer *w, struct shown *const *calls, size_t n, rv_err **err)
{
    json_object *message = caller(w, err), *list;
    int rc = message ? 0 : RV_E_NOMEM;

    if (rc == 0)
        rc = rv_json_set_take(message, "tool_calls", json_object_new_array(), err);
    list = rc == 0 ? rv_json_get_arr(message, "tool_calls") : NULL;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = add_call(list, calls[i], err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = add_result(w, calls[i], err);
    return rc;
}

/* --- the walk, forwards --- */

static int oldest_first(const void *a, const void *b)
{
    const struct shown *const *x = a, *const *y = b;

    return ((*x)->age < (*y)->age) - ((*x)->age > (*y)->age);
}

static void turn_around(rv_history *h)
{
    for (size_t i = 0; i < h->n_items / 2; i++) {
        struct shown *s = h->items[i];
        h->items[i] = h->items[h->n_items - 1 - i];
        h->items[h->n_items - 1 - i] = s;
    }
}

static bool is_assistants(const struct shown *s)
{
    return s->role && strcmp(s->role, "assistant") == 0;
}

/* How many items from there on the model asked for at once: the calls of a run, or the rows of tools that stand
 * directly behind what the assistant said (remlight 14, rule 3). */
static size_t count_together(const rv_history *h, size_t from)
{
    const struct shown *first = h->items[from];
    bool is_told = first->is_one_row && from > 0 && is_assistants(h->items[from - 1]);
    size_t n = 1;

    for (; from + n < h->n_items; n++) {
        const struct shown *next = h->items[from + n];
        bool belongs = is_told ? next->is_one_row : first->run && next->run == first->run;
        if (next->role || !belongs)
            break;
    }
    return n;
}

static int show_calls(rv_history *h, struct writer *w, size_t from, size_t n, rv_err **err)
{
    int rc = 0;

    qsort(h->items + from, n, sizeof(struct shown *), oldest_first);
    for (size_t i = from; rc == 0 && i < from + n; i++)
        rc = settle_id(w, h->items[i], i, h->n_items, err);
    for (size_t i = 0; rc == 0 && i < n; i += RV_LLM_MAX_TOOL_CALLS)
        rc = add_calls(w, h->items + from + i, n - i < RV_LLM_MAX_TOOL_CALLS ? n - i : RV_LLM_MAX_TOOL_CALLS, err);
    return rc;
}

static int show(rv_history *h, struct writer *w, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0, n; rc == 0 && i < h->n_items; i += n) {
        n = h->items[i]->role ? 1 : count_together(h, i);
        rc = h->items[i]->role ? add_text(w, h->items[i], err) : show_calls(h, w, i, n, err);
    }
    return rc;
}

/* --- memory --- */

static size_t rows_of(const struct shown *s)
{
    return s->role || s->is_one_row ? 1 : 2;
}

/* Answers that are not among the newest rows become hints, where there is more than those and a turn (p8-data 5.3). The
 * items are oldest first. */
static int compact(rv_history *h, rv_err **err)
{
    size_t last = (size_t)h->opts.always_last, newer = 0, n = rv_moments_n(h->moments);
    int rc = 0;

    for (size_t i = 0; i < h->n_items; i++)
        n += rows_of(h->items[i]);
    if (n < 3 || n - 3 < last) /* not more than last + 2, which may be too large a number */
        return 0;
    for (size_t i = h->n_items; i > 0 && rc == 0; i--) {
        struct shown *s = h->items[i - 1];
        if (newer >= last && is_assistants(s)) {
            rv_buf_clear(&s->text);
            rv_moment_write_hint(h->moments, s->seq, s->created_us, h->opts.names_keys, &s->text);
            rc = rv_buf_check(&s->text, "a hint", err);
        }
        newer += rows_of(s);
    }
    return rc;
}

/* What is remembered of the session stands before its messages. */
static int show_moments(const rv_history *h, struct writer *w, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && h->moments && i < json_object_array_length(h->moments); i++) {
        json_object *text = NULL, *message;
        if (!json_object_object_get_ex(json_object_array_get_idx(h->moments, i), "text", &text))
            continue;
        message = add_message(w, "system", err);
        rc = message ? rv_json_set_str(message, "content", rv_json_str(text), err) : RV_E_NOMEM;
    }
    return rc;
}

int rv_history_finish(rv_history *h, json_object **out, rv_err **err)
{
    struct writer w = {.list = json_object_new_array()};
    int rc = w.list ? 0 : RV_FAIL(err, RV_E_NOMEM, "show a history");

    turn_around(h); /* results that still wait have no calls: they stand alone */
    if (rc == 0 && h->opts.compacts)
        rc = compact(h, err);
    if (rc == 0)
        rc = show_moments(h, &w, err);
    if (rc == 0)
        rc = show(h, &w, err);
    rv_index_fini(&w.ids);
    if (rc < 0) {
        json_object_put(w.list);
        return rc;
    }
    *out = w.list;
    return 0;
}
