/* Several questions at once: the pending one and those queued behind it, which of them an answer means, and whether it
 * may be accepted. */
#include "envelope/state_read_internal.h"

#include <string.h>

#define MAX_NAMED 8 /* ids that a message lists */

bool rv_interrupt_asks_outcome(enum rv_interrupt_kind kind, json_object *data)
{
    const char *reason = NULL;

    return kind == RV_INTERRUPT_AGENT_REVIEW && json_object_is_type(data, json_type_object) &&
           rv_json_get_text(data, "reason", &reason) && strcmp(reason, RV_OUTCOME_UNKNOWN) == 0;
}

static json_object *queue_of(const rv_envelope *env)
{
    json_object *queue = rv_envelope_metadata(env, RV_STR_LIT(RV_QUEUED_INTERRUPTS), NULL);
    return json_object_is_type(queue, json_type_array) ? queue : NULL;
}

size_t rv_envelope_n_queued(const rv_envelope *env)
{
    json_object *queue = queue_of(env);
    return queue ? json_object_array_length(queue) : 0;
}

json_object *rv_envelope_queued(const rv_envelope *env, size_t i)
{
    json_object *entry = json_object_array_get_idx(queue_of(env), i);
    return json_object_is_type(entry, json_type_object) ? entry : NULL;
}

static size_t find_queued(const rv_envelope *env, rv_str id)
{
    size_t n = rv_envelope_n_queued(env), i = 0;
    const char *text = NULL;

    while (i < n) {
        json_object *entry = rv_envelope_queued(env, i);
        if (entry && rv_json_get_text(entry, "id", &text) && rv_str_is(id, text))
            break;
        i++;
    }
    return i;
}

static bool is_pending(const rv_envelope *env, rv_str id)
{
    const struct rv_stored_interrupt *it = rv_env_interrupt(env);
    return rv_envelope_has_interrupt(env) && rv_str_eq(rv_text_str(&it->id), id);
}

/* --- moving --- */

/* A copy of the queue with entry i replaced by with, or left out. */
static int queue_without(const rv_envelope *env, size_t i, json_object *with, json_object **out, rv_err **err)
{
    json_object *queue = queue_of(env), *rest = json_object_new_array();
    int rc = rest ? 0 : RV_FAIL(err, RV_E_NOMEM, "change the queue of interrupts");

    for (size_t k = 0; rc == 0 && k < json_object_array_length(queue); k++) {
        json_object *entry = k == i ? with : json_object_array_get_idx(queue, k);
        if (k != i || with)
            rc = rv_json_push_ref(rest, entry, err);
    }
    if (rc < 0) {
        json_object_put(rest);
        return rc;
    }
    *out = rest;
    return 0;
}

static int read_queued(const rv_envelope *env, size_t i, struct rv_stored_interrupt *it, rv_err **err)
{
    struct rv_state_reader rd = {.err = err};

    *it = (struct rv_stored_interrupt){0};
    int rc = rv_read_interrupt(&rd, rv_envelope_queued(env, i), it);
    if (rc == 0 && !it->exists)
        rc = RV_FAIL(err, RV_E_INVALID, "it is no object");
    if (rc == 0)
        return 0;
    rv_interrupt_fini(it);
    return RV_WRAP(err, rc, "queued interrupt %zu", i);
}

static int write_pending(const rv_envelope *env, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STATE_MAX_BYTES, .max_depth = RV_STATE_MAX_DEPTH};
    rv_buf b = RV_BUF_INIT(RV_STATE_MAX_BYTES);
    rv_jw w = rv_jw_on(&b);

    rv_interrupt_write(rv_env_interrupt(env), (rv_str){NULL, 0}, &w);
    int rc = rv_buf_check(&b, "a queued interrupt", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&b), &opts, out, err);
    rv_buf_fini(&b);
    return rc;
}

/* Entry i becomes the pending interrupt; `old` (NULL: nothing) takes its place. Takes *it. */
static int put_forward(rv_envelope *env, size_t i, struct rv_stored_interrupt *it, json_object *old, rv_err **err)
{
    json_object *rest = NULL;
    int rc = queue_without(env, i, old, &rest, err);

    if (rc == 0)
        rc = rv_envelope_set_metadata(env, RV_STR_LIT(RV_QUEUED_INTERRUPTS), rest, err);
    json_object_put(rest);
    if (rc < 0) {
        rv_interrupt_fini(it);
        return rc;
    }
    rv_interrupt_fini(&env->interrupt);
    env->interrupt = *it;
    env->own_interrupt = true;
    env->f.interrupt_pending = true;
    return 0;
}

int rv_envelope_select_interrupt(rv_envelope *env, rv_str id, rv_err **err)
{
    struct rv_stored_interrupt it;
    json_object *old = NULL;

    if (!id.ptr || is_pending(env, id))
        return 0;
    size_t i = find_queued(env, id);
    if (i == rv_envelope_n_queued(env))
        return RV_FAIL(err, RV_E_NOT_FOUND, "no interrupt \"%.*s\" waits", RV_STR_ARG(rv_utf8_cut(id, RV_ID_MAX)));
    int rc = read_queued(env, i, &it, err);
    if (rc < 0)
        return rc;
    if (rv_envelope_has_interrupt(env))
        rc = write_pending(env, &old, err);
    if (rc < 0) {
        rv_interrupt_fini(&it);
        return rc;
    }
    rc = put_forward(env, i, &it, old, err);
    json_object_put(old);
    return rc;
}

/* The position of the first interrupt of the queue, read into *it; the queue's length: none. An unreadable entry that a
 * plugin wrote is skipped. */
static int first_readable(const rv_envelope *env, size_t *at, struct rv_stored_interrupt *it, rv_err **err)
{
    size_t n = rv_envelope_n_queued(env);

    for (*at = 0; *at < n; (*at)++) {
        rv_err *cause = NULL;
        int rc = read_queued(env, *at, it, &cause);
        bool no_memory = rv_err_is(cause, RV_E_NOMEM);
        rv_err_free(cause);
        if (rc == 0)
            break;
        if (no_memory)
            return RV_FAIL(err, RV_E_NOMEM, "read the queue of interrupts");
    }
    return 0;
}

int rv_envelope_promote_interrupt(rv_envelope *env, int64_t now_us, bool *promoted, rv_err **err)
{
    struct rv_stored_interrupt it;
    size_t at;

    *promoted = false;
    int rc = first_readable(env, &at, &it, err);
    if (rc < 0 || at == rv_envelope_n_queued(env))
        return rc;
    int64_t ttl_us = it.expires_at_us ? rv_interrupt_rule(it.kind).ttl_us : 0;
    it.created_at_us = rv_clamp_time(now_us);
    it.expires_at_us = ttl_us ? rv_clamp_time(it.created_at_us + ttl_us) : 0;
    rc = put_forward(env, at, &it, NULL, err);
    *promoted = rc == 0;
    return rc;
}

/* --- may it be accepted? --- */

static void name_pending(const rv_envelope *env, rv_buf *b)
{
    const char *id = NULL;

    if (!rv_envelope_has_interrupt(env)) {
        rv_buf_puts(b, "nothing waits for an answer");
        return;
    }
    rv_buf_printf(b, "waiting: %s", rv_env_interrupt(env)->id.ptr);
    for (size_t i = 0; i < rv_envelope_n_queued(env) && i < MAX_NAMED; i++)
        if (rv_envelope_queued(env, i) && rv_json_get_text(rv_envelope_queued(env, i), "id", &id))
            rv_buf_printf(b, ", %.40s", id);
}

static int unknown_id(const rv_envelope *env, rv_str id, rv_err **err)
{
    const struct rv_stored_interrupt *it = rv_env_interrupt(env);
    rv_buf hint = RV_BUF_INIT(1024);
    rv_str shown = rv_utf8_cut(id, RV_ID_MAX);
    int rc;

    if (it->exists && rv_str_eq(rv_text_str(&it->id), id) && !env->f.interrupt_pending)
        rc = RV_FAIL(err, RV_E_STATE, "the interrupt \"%.*s\" was answered already", RV_STR_ARG(shown));
    else
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "no interrupt \"%.*s\" waits for an answer", RV_STR_ARG(shown));
    name_pending(env, &hint);
    rv_err_hint(err, "%s", rv_buf_cstr(&hint));
    rv_buf_fini(&hint);
    return rc;
}

/* The interrupt an answer means; read into *own when it is a queued one. */
static int find_asked(const rv_envelope *env, rv_str id, struct rv_stored_interrupt *own,
                      const struct rv_stored_interrupt **out, rv_err **err)
{
    if (!id.ptr || is_pending(env, id)) {
        *out = rv_env_interrupt(env);
        return rv_envelope_has_interrupt(env) ? 0 : RV_FAIL(err, RV_E_STATE, "there is no pending interrupt");
    }
    size_t i = find_queued(env, id);
    if (i == rv_envelope_n_queued(env))
        return unknown_id(env, id, err);
    *out = own;
    return read_queued(env, i, own, err);
}

static int check_decision(rv_str decision, const struct rv_stored_interrupt *in, rv_err **err)
{
    static const char *const reviews[] = {"approve", "reject", "modify"};
    static const char *const outcomes[] = {"happened", "not_happened", "fail"};
    const char *const *words = rv_interrupt_asks_outcome(in->kind, in->data) ? outcomes : reviews;
    _Static_assert(RV_COUNT(reviews) == RV_COUNT(outcomes), "one count for both");

    for (size_t i = 0; i < RV_COUNT(reviews); i++)
        if (rv_str_is(decision, words[i]))
            return 0;
    int rc = RV_FAIL(err, RV_E_INVALID, "unknown decision \"%.*s\": legal are %s, %s, %s",
                     RV_STR_ARG(rv_utf8_cut(decision, 64)), words[0], words[1], words[2]);
    const char *near = rv_nearest(decision, words, RV_COUNT(reviews));
    if (near)
        rv_err_hint(err, "did you mean \"%s\"?", near);
    return rc;
}

static int check(const struct rv_stored_interrupt *in, const struct rv_response *response, int64_t now_us, rv_err **err)
{
    const char *missing = NULL;

    if (in->expires_at_us != 0 && now_us >= in->expires_at_us) {
        char time[RV_TIME_MAX];

        rv_time_format(in->expires_at_us, time);
        return RV_FAIL(err, RV_E_TIMEOUT, "the %s interrupt \"%.*s\" expired at %s", rv_interrupt_kind_text(in->kind),
                       RV_STR_ARG(rv_text_str(&in->id)), time);
    }
    if (in->kind == RV_INTERRUPT_CLARIFICATION && !response->text.ptr)
        missing = "text";
    else if (in->kind == RV_INTERRUPT_CONFIRMATION && !response->has_approved)
        missing = "approved";
    else if (in->kind == RV_INTERRUPT_AGENT_REVIEW && !response->decision.ptr)
        missing = "decision";
    if (missing)
        return RV_FAIL(err, RV_E_INVALID, "a %s needs the field \"%s\" in its response%s",
                       rv_interrupt_kind_text(in->kind), missing,
                       response->text.ptr       ? "; it has \"text\", which does not fit"
                       : response->has_approved ? "; it has \"approved\", which does not fit"
                       : response->decision.ptr ? "; it has \"decision\", which does not fit"
                                                : "");
    if (!rv_utf8_valid(response->text, NULL))
        return RV_FAIL(err, RV_E_INVALID, "the response is not UTF-8");
    return response->decision.ptr ? check_decision(response->decision, in, err) : 0;
}

int rv_envelope_check_response(const rv_envelope *env, const struct rv_response *response, int64_t now_us, rv_err **err)
{
    struct rv_stored_interrupt own = {0};
    const struct rv_stored_interrupt *in = NULL;

    int rc = find_asked(env, response->interrupt_id, &own, &in, err);
    if (rc == 0)
        rc = check(in, response, now_us, err);
    rv_interrupt_fini(&own);
    return rc;
}
