/* Ids of tool calls: results are told apart by them, so no two calls of a visit share one, nor do they share those of
 * the history. Providers that have none, and some that have, count each reply from the start again: an id that was
 * there before, or is empty, gets another name. Agents that were asked have their rows and events among those of who
 * asked, perhaps while others do: what is only counted is named after the call that asked, so that it does not depend
 * on who was quicker.
 *
 * A session also has calls that its history does not tell. Each call has a row, so a number above that of the newest row
 * is free in the whole session; a counted id up to that number may be taken. */
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

static bool is_taken(const struct talk *t, const char *id)
{
    return json_object_object_get_ex(t->ids, id, NULL);
}

static int note(struct talk *t, const char *id, rv_err **err)
{
    return rv_json_set_bool(t->ids, id, true, err);
}

/* Those of some messages; NULL: there are none. */
static int collect_from(struct talk *t, json_object *messages, rv_err **err)
{
    size_t n = messages ? json_object_array_length(messages) : 0;
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        json_object *calls = rv_json_get_arr(json_object_array_get_idx(messages, i), "tool_calls");
        for (size_t k = 0; calls && k < json_object_array_length(calls) && rc == 0; k++)
            rc = note(t, id_of(json_object_array_get_idx(calls, k)), err);
    }
    return rc;
}

/* The ids of what was said before, and of the turns so far. */
static int collect(rv_visit *v, rv_err **err)
{
    const struct rv_conversation *c = v->shared->conversation;
    struct talk *t = &v->talk;

    if (t->ids)
        return 0;
    t->ids = json_object_new_object();
    if (!t->ids)
        return RV_FAIL(err, RV_E_NOMEM, "keep a conversation");
    int rc = v->agent->doc && c ? collect_from(t, c->history, err) : 0;
    return rc == 0 ? collect_from(t, t->turns, err) : rc;
}

static bool is_counted(const char *id)
{
    size_t n = strlen(COUNTED "_");

    return strncmp(id, COUNTED "_", n) == 0 && id[n] && id[n + strspn(id + n, "0123456789")] == '\0';
}

/* The number up to which counted ids may be those of older rows; 0: there are none, or the rules do not look. */
static int64_t taken_upto(const rv_visit *v)
{
    const struct rv_conversation *c = v->shared->conversation;

    return c && v->agent->doc && v->shared->rules >= RV_RULES_2 ? c->upto_seq : 0;
}

static bool is_of_older_row(const rv_visit *v, const char *id)
{
    errno = 0;
    long long n = strtoll(id + strlen(COUNTED "_"), NULL, 10);
    return errno == 0 && n <= taken_upto(v);
}

/* May another call of the session have that id, told or not? */
static bool is_ambiguous(const rv_visit *v, const char *id)
{
    const struct rv_origin *o = v->shared->origin;

    if (is_counted(id) && (o || is_of_older_row(v, id)))
        return true;
    for (; o; o = o->parent)
        if (strcmp(o->parent_tool_call_id, id) == 0)
            return true;
    return false;
}

static int rename_call(rv_visit *v, json_object *call, rv_err **err)
{
    const char *prefix = v->shared->origin ? v->shared->origin->parent_tool_call_id : COUNTED;
    rv_buf made = RV_BUF_INIT(strlen(prefix) + NUMBER_MAX);
    struct talk *t = &v->talk;
    int64_t n = v->shared->origin ? 0 : json_object_object_length(t->ids);

    if (!v->shared->origin && n < taken_upto(v))
        n = taken_upto(v);

    do {
        rv_buf_clear(&made);
        rv_buf_printf(&made, "%s_%" PRId64, prefix, ++n);
    } while (made.rc == 0 && is_taken(t, rv_buf_cstr(&made)));
    int rc = rv_buf_check(&made, "id of a tool call", err);
    if (rc == 0)
        rc = rv_json_set_text(call, "id", rv_buf_cstr(&made), err);
    if (rc == 0)
        rc = note(t, rv_buf_cstr(&made), err);
    rv_buf_fini(&made);
    return rc;
}

int rv_talk_tell_apart(rv_visit *v, json_object *calls, rv_err **err)
{
    struct talk *t = &v->talk;
    int rc = collect(v, err);

    for (size_t i = 0; i < json_object_array_length(calls) && rc == 0; i++) {
        json_object *call = json_object_array_get_idx(calls, i);
        const char *id = id_of(call);
        bool is_own = id[0] && !is_taken(t, id) && !is_ambiguous(v, id);
        rc = is_own ? note(t, id, err) : rename_call(v, call, err);
    }
    return rc;
}
