/* Ids of tool calls: results are told apart by them, so no two calls of a visit share one, nor do they share those of
 * the history. Providers that have none, and some that have, count each reply from the start again: an id that was
 * there before, or is empty, gets another name. Agents that were asked have their rows and events among those of who
 * asked, perhaps while others do: what is only counted is named after the call that asked, so that it does not depend
 * on who was quicker.
 *
 * A session also has calls that its history does not tell. Each call has a row, so a number above that of the newest
 * row is free in the whole session; a counted id up to that number may be taken. */
#include "coreengine/agent/agent_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define COUNTED    "call" /* what a counted id begins with, before "_" and its number */
#define NUMBER_MAX 24

static const char *id_of(json_object *call)
{
    json_object *id = NULL;

    json_object_object_get_ex(call, "id", &id);
    return json_object_is_type(id, json_type_string) ? json_object_get_string(id) : "";
}

static int note(json_object *taken, const char *id, rv_err **err)
{
    return rv_json_set_bool(taken, id, true, err);
}

/* Those of some messages; NULL: there are none. */
static int collect_from(struct model_progress *t, json_object *messages, rv_err **err)
{
    size_t n = messages ? json_object_array_length(messages) : 0;
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        json_object *calls = rv_json_get_arr(json_object_array_get_idx(messages, i), "tool_calls");
        for (size_t k = 0; calls && k < json_object_array_length(calls) && rc == 0; k++)
            rc = note(t->ids, id_of(json_object_array_get_idx(calls, k)), err);
    }
    return rc;
}

int rv_messages_collect_ids(rv_visit *v, rv_err **err)
{
    const struct rv_conversation *c = v->shared->conversation;
    struct model_progress *t = &v->model;

    if (t->ids)
        return 0;
    t->ids = json_object_new_object();
    if (!t->ids)
        return RV_FAIL(err, RV_E_NOMEM, "keep a conversation");
    int rc = v->agent->declared.doc && c ? collect_from(t, c->history, err) : 0;
    return rc == 0 ? collect_from(t, t->messages, err) : rc;
}

static bool is_counted(const char *id)
{
    size_t n = strlen(COUNTED "_");

    return strncmp(id, COUNTED "_", n) == 0 && id[n] && id[n + strspn(id + n, "0123456789")] == '\0';
}

int64_t rv_messages_ids_upto(const rv_visit *v)
{
    const struct rv_conversation *c = v->shared->conversation;

    return c && v->agent->declared.doc && v->shared->rules >= RV_RULES_2 ? c->upto_seq : 0;
}

static bool is_of_older_row(int64_t upto, const char *id)
{
    errno = 0;
    long long n = strtoll(id + strlen(COUNTED "_"), NULL, 10);
    return errno == 0 && upto > 0 && n <= upto;
}

/* May another call of the session have that id, told or not? */
static bool is_ambiguous(const struct rv_origin *o, int64_t upto, const char *id)
{
    if (is_counted(id) && (o || is_of_older_row(upto, id)))
        return true;
    for (; o; o = o->parent)
        if (strcmp(o->parent_tool_call_id, id) == 0)
            return true;
    return false;
}

static int make_name(json_object *taken, const struct rv_origin *origin, int64_t upto, rv_buf *out, rv_err **err)
{
    const char *prefix = origin ? origin->parent_tool_call_id : COUNTED;
    int64_t n = origin ? 0 : json_object_object_length(taken);

    if (!origin && n < upto)
        n = upto;
    *out = RV_BUF_INIT(strlen(prefix) + NUMBER_MAX);
    do {
        rv_buf_clear(out);
        rv_buf_printf(out, "%s_%" PRId64, prefix, ++n);
    } while (out->rc == 0 && json_object_object_get_ex(taken, rv_buf_cstr(out), NULL));
    return rv_buf_check(out, "id of a tool call", err);
}

int rv_call_name(json_object *taken, int64_t upto, const struct rv_origin *origin, const char *id, rv_buf *out,
                 rv_err **err)
{
    bool is_own = id[0] && !json_object_object_get_ex(taken, id, NULL) && !is_ambiguous(origin, upto, id);

    *out = RV_BUF_INIT(0);
    int rc = is_own ? 0 : make_name(taken, origin, upto, out, err);
    return rc == 0 ? note(taken, is_own ? id : rv_buf_cstr(out), err) : rc;
}

int rv_messages_tell_apart(rv_visit *v, json_object *calls, rv_err **err)
{
    int rc = rv_messages_collect_ids(v, err);

    for (size_t i = 0; i < json_object_array_length(calls) && rc == 0; i++) {
        json_object *call = json_object_array_get_idx(calls, i);
        rv_buf name;
        rc = rv_call_name(v->model.ids, rv_messages_ids_upto(v), v->shared->origin, id_of(call), &name, err);
        if (rc == 0 && name.len > 0)
            rc = rv_json_set_text(call, "id", rv_buf_cstr(&name), err);
        rv_buf_fini(&name);
    }
    return rc;
}
