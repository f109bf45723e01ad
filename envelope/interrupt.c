/* The question a pipeline stops with, its answer, and further questions that wait behind it. */
#include <string.h>

#include "envelope/envelope_internal.h"

const struct rv_stored_interrupt *env_interrupt(const rv_envelope *env)
{
    while (env->parent && !env->own_interrupt)
        env = env->parent;
    return &env->interrupt;
}

void env_interrupt_fini(struct rv_stored_interrupt *it)
{
    env_text_fini(&it->id);
    env_text_fini(&it->question);
    env_text_fini(&it->message);
    env_text_fini(&it->stage);
    env_text_fini(&it->path);
    json_object_put(it->data);
    json_object_put(it->response);
    *it = (struct rv_stored_interrupt){0};
}

static int copy_value(json_object *from, bool deep, json_object **to, rv_err **err)
{
    if (deep)
        return rv_json_dup(from, to, err);
    *to = json_object_get(from);
    return 0;
}

int env_interrupt_copy(const struct rv_stored_interrupt *from, bool deep, struct rv_stored_interrupt *to, rv_err **err)
{
    struct rv_stored_interrupt it = {.exists = from->exists,
                                     .kind = from->kind,
                                     .created_at_us = from->created_at_us,
                                     .expires_at_us = from->expires_at_us};
    int rc = env_text_of(env_text_str(&from->id), "interrupt id", &it.id, err);

    if (rc == 0)
        rc = env_text_of(env_text_str(&from->question), "interrupt question", &it.question, err);
    if (rc == 0)
        rc = env_text_of(env_text_str(&from->message), "interrupt message", &it.message, err);
    if (rc == 0)
        rc = env_text_of(env_text_str(&from->stage), "interrupt stage", &it.stage, err);
    if (rc == 0)
        rc = env_text_of(env_text_str(&from->path), "interrupt path", &it.path, err);
    if (rc == 0)
        rc = copy_value(from->data, deep, &it.data, err);
    if (rc == 0)
        rc = copy_value(from->response, deep, &it.response, err);
    if (rc < 0) {
        env_interrupt_fini(&it);
        return rc;
    }
    *to = it;
    return 0;
}

static void replace(rv_envelope *env, struct rv_stored_interrupt it, bool pending)
{
    env_interrupt_fini(&env->interrupt);
    env->interrupt = it;
    env->own_interrupt = true;
    env->f.interrupt_pending = pending;
}

static int64_t expiry(const struct rv_interrupt_spec *spec, int64_t now_us)
{
    int64_t ttl_us = spec->ttl_us < 0 ? rv_interrupt_rule(spec->kind).ttl_us : spec->ttl_us;

    if (ttl_us == 0)
        return 0;
    return now_us > RV_TIME_HIGHEST - ttl_us ? RV_TIME_HIGHEST : now_us + ttl_us;
}

int rv_envelope_raise(rv_envelope *env, const struct rv_interrupt_spec *spec, int64_t now_us, rv_err **err)
{
    struct rv_stored_interrupt it = {.exists = true, .kind = spec->kind};
    const struct rv_stored_interrupt *old = env_interrupt(env);
    int rc;

    if ((size_t)spec->kind >= RV_N_INTERRUPT)
        return RV_FAIL(err, RV_E_INVALID, "an interrupt needs a kind");
    if (spec->id.len == 0)
        return RV_FAIL(err, RV_E_INVALID, "an interrupt needs an id");
    if (spec->data && !json_object_is_type(spec->data, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "interrupt data must be an object, not %s", rv_json_type_text(spec->data));
    if (env->f.interrupt_pending && old->exists && !spec->replace)
        return RV_FAIL(err, RV_E_STATE, "a %s interrupt is pending already", rv_interrupt_kind_text(old->kind));
    it.created_at_us = env_clamp_time(now_us);
    it.expires_at_us = expiry(spec, it.created_at_us);
    rc = env_text_of(spec->id, "interrupt id", &it.id, err);
    if (rc == 0)
        rc = env_text_of(spec->question, "interrupt question", &it.question, err);
    if (rc == 0)
        rc = env_text_of(spec->message, "interrupt message", &it.message, err);
    if (rc == 0)
        rc = env_text_of(spec->stage, "interrupt stage", &it.stage, err);
    if (rc < 0) {
        env_interrupt_fini(&it);
        return rc;
    }
    it.data = json_object_get(spec->data);
    replace(env, it, true);
    return 0;
}

/* asked: the data of the interrupt. */
static int response_object(json_object *asked, const struct rv_response *r, int64_t now_us, json_object **out,
                           rv_err **err)
{
    char time[RV_TIME_MAX];
    json_object *obj = json_object_new_object();
    int rc = obj ? 0 : RV_FAIL(err, RV_E_NOMEM, "store the response");

    rv_time_format(env_clamp_time(now_us), time);
    if (rc == 0 && !(rv_utf8_valid(r->text, NULL) && rv_utf8_valid(r->decision, NULL)))
        rc = RV_FAIL(err, RV_E_INVALID, "the response is not UTF-8");
    if (rc == 0)
        rc = rv_json_set_text(obj, "received_at", time, err);
    if (rc == 0 && r->text.ptr)
        rc = rv_json_set_str(obj, "text", r->text, err);
    if (rc == 0 && r->has_approved)
        rc = rv_json_set_bool(obj, "approved", r->approved, err);
    if (rc == 0 && r->decision.ptr)
        rc = rv_json_set_str(obj, "decision", r->decision, err);
    if (rc == 0 && r->data)
        rc = rv_json_set_ref(obj, "data", r->data, err);
    if (rc == 0 && rv_interrupt_is_ask(asked))
        rc = rv_json_set_str(obj, "choice", rv_ask_choice(asked, r), err);
    if (rc == 0 && r->arguments)
        rc = rv_json_set_ref(obj, "arguments", r->arguments, err);
    if (rc == 0 && r->expired)
        rc = rv_json_set_bool(obj, "expired", true, err);
    if (rc == 0 && r->cancelled)
        rc = rv_json_set_bool(obj, "cancelled", true, err);
    if (rc < 0) {
        json_object_put(obj);
        return rc;
    }
    *out = obj;
    return 0;
}

int rv_envelope_resolve(rv_envelope *env, const struct rv_response *response, int64_t now_us, rv_err **err)
{
    const struct rv_stored_interrupt *stored = env_interrupt(env);
    struct rv_stored_interrupt it = {0};
    json_object *answer = NULL;
    int rc;

    if (!stored->exists) {
        env->f.interrupt_pending = false;
        return 0;
    }
    rc = response_object(stored->data, response, now_us, &answer, err);
    if (rc < 0)
        return rc;
    if (stored != &env->interrupt) { /* a fork answers a copy */
        rc = env_interrupt_copy(stored, false, &it, err);
        if (rc < 0) {
            json_object_put(answer);
            return rc;
        }
        replace(env, it, false);
    }
    json_object_put(env->interrupt.response);
    env->interrupt.response = answer;
    env->f.interrupt_pending = false;
    return 0;
}

void rv_envelope_clear_interrupt(rv_envelope *env)
{
    replace(env, (struct rv_stored_interrupt){0}, false);
}

bool rv_envelope_has_interrupt(const rv_envelope *env)
{
    return env->f.interrupt_pending && env_interrupt(env)->exists;
}

struct rv_interrupt rv_envelope_interrupt(const rv_envelope *env)
{
    const struct rv_stored_interrupt *it = env_interrupt(env);

    if (!it->exists)
        return (struct rv_interrupt){.kind = (enum rv_interrupt_kind)RV_UNSET};
    return (struct rv_interrupt){
        .exists = true,
        .kind = it->kind,
        .id = it->id.ptr,
        .question = it->question.ptr,
        .message = it->message.ptr,
        .stage = it->stage.ptr,
        .path = it->path.ptr,
        .data = it->data,
        .response = it->response,
        .created_at_us = it->created_at_us,
        .expires_at_us = it->expires_at_us,
    };
}

void env_interrupt_write(const struct rv_stored_interrupt *it, rv_str stage, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "kind", rv_interrupt_kind_text(it->kind));
    rv_jw_key(w, "id");
    env_text_write(&it->id, w);
    rv_jw_key(w, "question");
    env_text_write(&it->question, w);
    rv_jw_key(w, "message");
    env_text_write(&it->message, w);
    rv_jw_kv_value(w, "data", it->data);
    rv_jw_key(w, "created_at");
    env_time_write(it->created_at_us, w);
    if (it->expires_at_us != 0) {
        rv_jw_key(w, "expires_at");
        env_time_write(it->expires_at_us, w);
    }
    if (it->response)
        rv_jw_kv_value(w, "response", it->response);
    if (it->stage.ptr || stage.ptr)
        rv_jw_kv_str(w, "stage", it->stage.ptr ? env_text_str(&it->stage) : stage);
    if (it->path.ptr)
        rv_jw_kv_str(w, "path", env_text_str(&it->path));
    rv_jw_obj_end(w);
}

int env_interrupt_json(const struct rv_stored_interrupt *it, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STATE_MAX_BYTES, .max_depth = RV_STATE_MAX_DEPTH};
    rv_buf b = RV_BUF_INIT(RV_STATE_MAX_BYTES);
    rv_jw w = rv_jw_on(&b);

    env_interrupt_write(it, (rv_str){NULL, 0}, &w);
    int rc = rv_buf_check(&b, "a queued interrupt", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&b), &opts, out, err);
    rv_buf_fini(&b);
    return rc;
}

/* Several questions at once: the pending one and those queued behind it, which of them an answer means, and whether it
 * may be accepted. */

#define MAX_NAMED 8 /* ids that a message lists: with 40 bytes each it stays within 400 bytes */

static json_object *queue_of(const rv_envelope *env)
{
    json_object *queue = rv_envelope_metadata(env, RV_STR_LIT(RV_QUEUED_INTERRUPTS), NULL);
    return json_object_is_type(queue, json_type_array) ? queue : NULL;
}

void env_interrupts_write(const rv_envelope *env, rv_jw *w)
{
    size_t n = rv_envelope_n_queued(env);

    rv_jw_arr(w);
    if (rv_envelope_has_interrupt(env))
        env_interrupt_write(env_interrupt(env), (rv_str){NULL, 0}, w);
    for (size_t i = 0; i < n; i++)
        if (rv_envelope_queued_at(env, i))
            rv_jw_value(w, rv_envelope_queued_at(env, i));
    rv_jw_arr_end(w);
}

bool rv_envelope_was_withdrawn(const rv_envelope *env, rv_str id)
{
    size_t n = env->withdrawn ? json_object_array_length(env->withdrawn) : 0;

    for (size_t i = 0; i < n && id.ptr; i++)
        if (rv_str_eq(rv_json_str(json_object_array_get_idx(env->withdrawn, i)), id))
            return true;
    return false;
}

int rv_envelope_add_withdrawn(rv_envelope *env, json_object *ids, rv_err **err)
{
    size_t n = ids ? json_object_array_length(ids) : 0;
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        json_object *id = json_object_array_get_idx(ids, i);

        if (rv_envelope_was_withdrawn(env, rv_json_str(id)))
            continue;
        if (!env->withdrawn && !(env->withdrawn = json_object_new_array()))
            return RV_FAIL(err, RV_E_NOMEM, "withdraw a question");
        rc = rv_json_push_ref(env->withdrawn, id, err);
    }
    return rc;
}

size_t rv_envelope_n_queued(const rv_envelope *env)
{
    json_object *queue = queue_of(env);
    return queue ? json_object_array_length(queue) : 0;
}

json_object *rv_envelope_queued_at(const rv_envelope *env, size_t i)
{
    json_object *entry = json_object_array_get_idx(queue_of(env), i);
    return json_object_is_type(entry, json_type_object) ? entry : NULL;
}

static size_t find_queued(const rv_envelope *env, rv_str id)
{
    size_t n = rv_envelope_n_queued(env), i = 0;
    const char *text = NULL;

    while (i < n) {
        json_object *entry = rv_envelope_queued_at(env, i);
        if (entry && rv_json_get_text(entry, "id", &text) && rv_str_is(id, text))
            break;
        i++;
    }
    return i;
}

static bool is_pending(const rv_envelope *env, rv_str id)
{
    const struct rv_stored_interrupt *it = env_interrupt(env);
    return rv_envelope_has_interrupt(env) && rv_str_eq(env_text_str(&it->id), id);
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

    *it = (struct rv_stored_interrupt){0};
    int rc = env_read_interrupt(rv_envelope_queued_at(env, i), it, err);
    if (rc == 0 && !it->exists)
        rc = RV_FAIL(err, RV_E_INVALID, "it is not an object");
    if (rc == 0)
        return 0;
    env_interrupt_fini(it);
    return RV_WRAP(err, rc, "queued interrupt %zu", i);
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
        env_interrupt_fini(it);
        return rc;
    }
    env_interrupt_fini(&env->interrupt);
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
        rc = env_interrupt_json(env_interrupt(env), &old, err);
    if (rc < 0) {
        env_interrupt_fini(&it);
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
    int64_t own_us = rv_interrupt_is_ask(it.data) ? it.expires_at_us - it.created_at_us : 0;
    int64_t ttl_us = !it.expires_at_us ? 0 : own_us > 0 ? own_us : rv_interrupt_rule(it.kind).ttl_us;
    it.created_at_us = env_clamp_time(now_us);
    it.expires_at_us = ttl_us ? env_clamp_time(it.created_at_us + ttl_us) : 0;
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
    rv_buf_printf(b, "waiting: %s", env_interrupt(env)->id.ptr);
    for (size_t i = 0; i < rv_envelope_n_queued(env) && i < MAX_NAMED; i++)
        if (rv_envelope_queued_at(env, i) && rv_json_get_text(rv_envelope_queued_at(env, i), "id", &id))
            rv_buf_printf(b, ", %.40s", id);
}

static int unknown_id(const rv_envelope *env, rv_str id, rv_err **err)
{
    const struct rv_stored_interrupt *it = env_interrupt(env);
    rv_buf hint = RV_BUF_INIT(1024);
    rv_str shown = rv_utf8_cut(id, RV_ID_MAX);
    int rc;

    if (it->exists && rv_str_eq(env_text_str(&it->id), id) && !env->f.interrupt_pending)
        rc = RV_FAIL(err, RV_E_STATE, "the interrupt \"%.*s\" was answered already", RV_STR_ARG(shown));
    else
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "no interrupt \"%.*s\" waits for an answer", RV_STR_ARG(shown));
    name_pending(env, &hint);
    rv_err_set_hint(err, "%s", rv_buf_cstr(&hint));
    rv_buf_fini(&hint);
    return rc;
}

/* The interrupt an answer means; read into *own when it is a queued one. */
static int find_asked(const rv_envelope *env, rv_str id, struct rv_stored_interrupt *own,
                      const struct rv_stored_interrupt **out, rv_err **err)
{
    if (!id.ptr || is_pending(env, id)) {
        *out = env_interrupt(env);
        return rv_envelope_has_interrupt(env) ? 0 : RV_FAIL(err, RV_E_STATE, "there is no pending interrupt");
    }
    size_t i = find_queued(env, id);
    if (i == rv_envelope_n_queued(env))
        return unknown_id(env, id, err);
    *out = own;
    return read_queued(env, i, own, err);
}

static int too_late(const struct rv_stored_interrupt *in, rv_err **err)
{
    char time[RV_TIME_MAX];

    rv_time_format(in->expires_at_us, time);
    return RV_FAIL(err, RV_E_TIMEOUT, "the %s interrupt \"%.*s\" expired at %s", rv_interrupt_kind_text(in->kind),
                   RV_STR_ARG(env_text_str(&in->id)), time);
}

static int check(const struct rv_stored_interrupt *in, const struct rv_response *response, int64_t now_us, rv_err **err)
{
    bool is_due = in->expires_at_us != 0 && now_us >= in->expires_at_us;

    if (response->expired)
        return is_due && rv_interrupt_is_ask(in->data)
                   ? 0
                   : RV_FAIL(err, RV_E_STATE, "the %s interrupt \"%.*s\" has not expired",
                             rv_interrupt_kind_text(in->kind), RV_STR_ARG(env_text_str(&in->id)));
    if (response->cancelled) /* also of one that no one may answer any more, unless its time-out leads somewhere */
        return is_due && rv_interrupt_is_ask(in->data) ? too_late(in, err) : rv_answer_check_cancel(response, err);
    return is_due ? too_late(in, err) : rv_answer_check(in->kind, in->data, response, err);
}

int rv_envelope_check_response(const rv_envelope *env, const struct rv_response *response, int64_t now_us, rv_err **err)
{
    struct rv_stored_interrupt own = {0};
    const struct rv_stored_interrupt *in = NULL;

    int rc = find_asked(env, response->interrupt_id, &own, &in, err);
    if (rc == 0)
        rc = check(in, response, now_us, err);
    env_interrupt_fini(&own);
    return rc;
}

json_object *rv_envelope_question_data(const rv_envelope *env, rv_str id, enum rv_interrupt_kind *kind)
{
    const char *word = NULL;

    if (!rv_envelope_has_interrupt(env))
        return NULL;
    if (!id.ptr || is_pending(env, id)) {
        *kind = env_interrupt(env)->kind;
        return env_interrupt(env)->data;
    }
    size_t i = find_queued(env, id);
    json_object *entry = i < rv_envelope_n_queued(env) ? rv_envelope_queued_at(env, i) : NULL;
    if (!entry || !rv_json_get_text(entry, "kind", &word) || rv_interrupt_kind_of(rv_str_of(word), kind, NULL) < 0)
        return NULL;
    return rv_json_get_obj(entry, "data");
}

const char *rv_envelope_asker(const rv_envelope *env, rv_str id, const char *asked_by)
{
    enum rv_interrupt_kind kind = RV_INTERRUPT_CLARIFICATION;
    json_object *data = rv_envelope_question_data(env, id, &kind), *entry = NULL;
    bool pending = rv_envelope_has_interrupt(env) && (!id.ptr || is_pending(env, id));
    const char *stage = pending ? env_interrupt(env)->stage.ptr : NULL;
    size_t i = pending || !id.ptr ? SIZE_MAX : find_queued(env, id);

    if (i < rv_envelope_n_queued(env) && (entry = rv_envelope_queued_at(env, i)))
        stage = rv_json_text_or(entry, "stage", stage);
    if (!stage && json_object_is_type(data, json_type_object))
        stage = rv_json_text_or(data, "stage", stage);
    return stage || !pending ? stage : asked_by;
}
