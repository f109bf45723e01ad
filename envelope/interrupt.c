/* The question a pipeline stops with, and its answer. */
#include "envelope/envelope_internal.h"

#define SECOND_US INT64_C(1000000)
#define MINUTE_US (60 * SECOND_US)
#define HOUR_US   (60 * MINUTE_US)

struct rv_interrupt_rule rv_interrupt_rule(enum rv_interrupt_kind kind)
{
    static const struct rv_interrupt_rule rules[] = {
        [RV_INTERRUPT_CLARIFICATION] = {24 * HOUR_US, true, true},
        [RV_INTERRUPT_CONFIRMATION] = {HOUR_US, true, true},
        [RV_INTERRUPT_AGENT_REVIEW] = {30 * MINUTE_US, true, true},
        [RV_INTERRUPT_CHECKPOINT] = {0, false, false},
        [RV_INTERRUPT_RESOURCE_EXHAUSTED] = {5 * MINUTE_US, true, false},
        [RV_INTERRUPT_TIMEOUT] = {5 * MINUTE_US, true, false},
        [RV_INTERRUPT_SYSTEM_ERROR] = {HOUR_US, true, false},
    };
    _Static_assert(RV_COUNT(rules) == RV_N_INTERRUPT, "a rule per kind");

    return (size_t)kind < RV_N_INTERRUPT ? rules[kind] : (struct rv_interrupt_rule){HOUR_US, true, true};
}

const struct rv_stored_interrupt *rv_env_interrupt(const rv_envelope *env)
{
    return env->parent && !env->own_interrupt ? &env->parent->interrupt : &env->interrupt;
}

void rv_interrupt_fini(struct rv_stored_interrupt *it)
{
    rv_text_fini(&it->id);
    rv_text_fini(&it->question);
    rv_text_fini(&it->message);
    rv_text_fini(&it->stage);
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

int rv_interrupt_copy(const struct rv_stored_interrupt *from, bool deep, struct rv_stored_interrupt *to, rv_err **err)
{
    struct rv_stored_interrupt it = {.exists = from->exists,
                                     .kind = from->kind,
                                     .created_at_us = from->created_at_us,
                                     .expires_at_us = from->expires_at_us};
    int rc = rv_text_of(rv_text_str(&from->id), "interrupt id", &it.id, err);

    if (rc == 0)
        rc = rv_text_of(rv_text_str(&from->question), "interrupt question", &it.question, err);
    if (rc == 0)
        rc = rv_text_of(rv_text_str(&from->message), "interrupt message", &it.message, err);
    if (rc == 0)
        rc = rv_text_of(rv_text_str(&from->stage), "interrupt stage", &it.stage, err);
    if (rc == 0)
        rc = copy_value(from->data, deep, &it.data, err);
    if (rc == 0)
        rc = copy_value(from->response, deep, &it.response, err);
    if (rc < 0) {
        rv_interrupt_fini(&it);
        return rc;
    }
    *to = it;
    return 0;
}

static void replace(rv_envelope *env, struct rv_stored_interrupt it, bool pending)
{
    rv_interrupt_fini(&env->interrupt);
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
    const struct rv_stored_interrupt *old = rv_env_interrupt(env);
    int rc;

    if ((size_t)spec->kind >= RV_N_INTERRUPT)
        return RV_FAIL(err, RV_E_INVALID, "an interrupt needs a kind");
    if (spec->id.len == 0)
        return RV_FAIL(err, RV_E_INVALID, "an interrupt needs an id");
    if (spec->data && !json_object_is_type(spec->data, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "interrupt data must be an object, not %s", rv_json_type_text(spec->data));
    if (env->f.interrupt_pending && old->exists && !spec->replace)
        return RV_FAIL(err, RV_E_STATE, "a %s interrupt is pending already", rv_interrupt_kind_text(old->kind));
    it.created_at_us = rv_clamp_time(now_us);
    it.expires_at_us = expiry(spec, it.created_at_us);
    rc = rv_text_of(spec->id, "interrupt id", &it.id, err);
    if (rc == 0)
        rc = rv_text_of(spec->question, "interrupt question", &it.question, err);
    if (rc == 0)
        rc = rv_text_of(spec->message, "interrupt message", &it.message, err);
    if (rc == 0)
        rc = rv_text_of(spec->stage, "interrupt stage", &it.stage, err);
    if (rc < 0) {
        rv_interrupt_fini(&it);
        return rc;
    }
    it.data = json_object_get(spec->data);
    replace(env, it, true);
    return 0;
}

static int response_object(const struct rv_response *r, int64_t now_us, json_object **out, rv_err **err)
{
    char time[RV_TIME_MAX];
    json_object *obj = json_object_new_object();
    int rc = obj ? 0 : RV_FAIL(err, RV_E_NOMEM, "store the response");

    rv_time_format(rv_clamp_time(now_us), time);
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
    if (rc < 0) {
        json_object_put(obj);
        return rc;
    }
    *out = obj;
    return 0;
}

int rv_envelope_resolve(rv_envelope *env, const struct rv_response *response, int64_t now_us, rv_err **err)
{
    const struct rv_stored_interrupt *stored = rv_env_interrupt(env);
    struct rv_stored_interrupt it = {0};
    json_object *answer = NULL;
    int rc;

    if (!stored->exists) {
        env->f.interrupt_pending = false;
        return 0;
    }
    rc = response_object(response, now_us, &answer, err);
    if (rc < 0)
        return rc;
    if (stored != &env->interrupt) { /* a fork answers a copy */
        rc = rv_interrupt_copy(stored, false, &it, err);
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
    return env->f.interrupt_pending && rv_env_interrupt(env)->exists;
}

struct rv_interrupt rv_envelope_interrupt(const rv_envelope *env)
{
    const struct rv_stored_interrupt *it = rv_env_interrupt(env);

    if (!it->exists)
        return (struct rv_interrupt){.kind = (enum rv_interrupt_kind)RV_UNSET};
    return (struct rv_interrupt){
        .exists = true,
        .kind = it->kind,
        .id = it->id.ptr,
        .question = it->question.ptr,
        .message = it->message.ptr,
        .stage = it->stage.ptr,
        .data = it->data,
        .response = it->response,
        .created_at_us = it->created_at_us,
        .expires_at_us = it->expires_at_us,
    };
}

void rv_interrupt_write(const struct rv_stored_interrupt *it, rv_str stage, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "kind", rv_interrupt_kind_text(it->kind));
    rv_jw_key(w, "id");
    rv_text_write(&it->id, w);
    rv_jw_key(w, "question");
    rv_text_write(&it->question, w);
    rv_jw_key(w, "message");
    rv_text_write(&it->message, w);
    rv_jw_kv_value(w, "data", it->data);
    rv_jw_key(w, "created_at");
    rv_time_write(it->created_at_us, w);
    if (it->expires_at_us != 0) {
        rv_jw_key(w, "expires_at");
        rv_time_write(it->expires_at_us, w);
    }
    if (it->response)
        rv_jw_kv_value(w, "response", it->response);
    if (it->stage.ptr || stage.ptr)
        rv_jw_kv_str(w, "stage", it->stage.ptr ? rv_text_str(&it->stage) : stage);
    rv_jw_obj_end(w);
}
