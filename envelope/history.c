/* The audit trail: one record per stage visit, and the errors. */
#include "envelope/envelope_internal.h"

#include <assert.h>
#include <string.h>

static int append(rv_envelope *env, rv_str agent, struct rv_record **out, rv_err **err)
{
    const struct rv_name *name = NULL;
    int rc = rv_env_intern(env, agent, "agent", &name, err);

    if (rc == 0)
        rc = rv_grow(&env->records, &env->cap_records, env->n_records + 1, sizeof *env->records, err);
    if (rc < 0)
        return rc;
    *out = &env->records[env->n_records];
    **out = (struct rv_record){.agent = name};
    return 0;
}

int rv_envelope_record_start(rv_envelope *env, rv_str agent, int64_t stage_order, int64_t now_us, rv_err **err)
{
    struct rv_record *r = NULL;
    struct rv_entry *visits;
    int rc = rv_map_reserve(&env->map[RV_MAP_VISITS], 1, err);

    if (rc == 0)
        rc = append(env, agent, &r, err);
    if (rc < 0)
        return rc;
    r->stage_order = stage_order;
    r->started_at_us = rv_clamp_time(now_us);
    r->status = RV_HISTORY_RUNNING;
    env->n_records++;
    visits = rv_map_put(&env->map[RV_MAP_VISITS], r->agent, NULL);
    visits->count = rv_counter_add(visits->count, 1);
    env->f.agent_hop_count = rv_counter_add(env->f.agent_hop_count, 1);
    return 0;
}

/* The record that is waiting for its end is among the last few, so looking backwards costs next to nothing; only an
 * agent that never started makes it walk the whole trail. */
static struct rv_record *last_running(rv_envelope *env, const struct rv_name *agent)
{
    for (size_t i = env->n_records; i-- > 0;) {
        struct rv_record *r = &env->records[i];

        if (r->agent == agent && r->status == RV_HISTORY_RUNNING)
            return r;
    }
    return NULL;
}

static int64_t duration_of(const struct rv_record *r, int64_t given_ms, int64_t now_us)
{
    if (given_ms > 0)
        return given_ms > RV_MAX_COUNTER ? RV_MAX_COUNTER : given_ms;
    now_us = rv_clamp_time(now_us); /* as the start was */
    return now_us > r->started_at_us ? (now_us - r->started_at_us) / 1000 : 0;
}

int rv_envelope_record_complete(rv_envelope *env, rv_str agent, const struct rv_record_end *end, int64_t now_us,
                                rv_err **err)
{
    const struct rv_name *name = rv_env_name(env, agent);
    struct rv_record *r = name ? last_running(env, name) : NULL;

    assert((size_t)end->status < RV_N_HISTORY);
    now_us = rv_clamp_time(now_us);
    if (r) {
        struct rv_text text = {0};
        int rc = rv_text_clean(end->error, &text, err);

        if (rc < 0)
            return rc;
        rv_text_move(&r->error, &text);
        r->completed_at_us = now_us;
        r->duration_ms = duration_of(r, end->duration_ms, now_us);
        r->status = end->status;
        r->llm_calls = rv_counter_add(0, end->llm_calls);
    }
    env->f.llm_call_count = rv_counter_add(env->f.llm_call_count, end->llm_calls);
    return 0;
}

int rv_envelope_record_skipped(rv_envelope *env, rv_str agent, int64_t stage_order, int64_t now_us, rv_err **err)
{
    struct rv_record *r = NULL;
    int rc = append(env, agent, &r, err);

    if (rc < 0)
        return rc;
    r->stage_order = stage_order;
    r->started_at_us = r->completed_at_us = rv_clamp_time(now_us);
    r->status = RV_HISTORY_SKIPPED;
    env->n_records++;
    return 0;
}

size_t rv_envelope_n_records(const rv_envelope *env)
{
    return env->n_records + (env->parent ? env->parent->n_records : 0);
}

const struct rv_record *rv_env_record(const rv_envelope *env, size_t i)
{
    size_t below = env->parent ? env->parent->n_records : 0;

    return i < below ? &env->parent->records[i] : &env->records[i - below];
}

int64_t rv_envelope_processing_ms(const rv_envelope *env)
{
    int64_t sum = 0;

    for (size_t i = 0; i < rv_envelope_n_records(env); i++)
        sum = rv_counter_add(sum, rv_env_record(env, i)->duration_ms);
    return sum;
}

rv_str rv_envelope_skipped(const rv_envelope *env, size_t i)
{
    const struct rv_record *r = rv_env_record(env, i);

    return r->status == RV_HISTORY_SKIPPED ? (rv_str){r->agent->text, r->agent->len} : (rv_str){NULL, 0};
}

int rv_envelope_add_error(rv_envelope *env, rv_str agent, rv_str text, const char *error_type, enum rv_failure code,
                          int64_t now_us, rv_err **err)
{
    struct rv_text clean_agent = {0};
    struct rv_text clean = {0};
    char time[RV_TIME_MAX];
    json_object *list = NULL;
    json_object *entry = json_object_new_object();
    int rc = entry ? 0 : RV_FAIL(err, RV_E_NOMEM, "record an error");

    rv_time_format(rv_clamp_time(now_us), time);
    if (rc == 0)
        rc = rv_text_clean(agent, &clean_agent, err);
    if (rc == 0)
        rc = rv_text_clean(text, &clean, err);
    if (rc == 0)
        rc = rv_json_set_str(entry, "agent", rv_text_str(&clean_agent), err);
    if (rc == 0)
        rc = rv_json_set_str(entry, "error", rv_text_str(&clean), err);
    if (rc == 0)
        rc = rv_json_set_text(entry, "error_type", error_type, err);
    if (rc == 0 && code != RV_FAILURE_NONE)
        rc = rv_json_set_text(entry, "code", rv_failure_text(code), err);
    if (rc == 0)
        rc = rv_json_set_text(entry, "timestamp", time, err);
    if (rc == 0)
        rc = rv_env_own_list(env, RV_LIST_ERRORS, &list, err);
    if (rc == 0)
        rc = rv_json_push_ref(list, entry, err);
    json_object_put(entry);
    rv_text_fini(&clean_agent);
    rv_text_fini(&clean);
    return rc;
}

size_t rv_envelope_n_errors(const rv_envelope *env)
{
    size_t n = env->list[RV_LIST_ERRORS] ? json_object_array_length(env->list[RV_LIST_ERRORS]) : 0;

    return n + (env->parent ? json_object_array_length(env->parent->list[RV_LIST_ERRORS]) : 0);
}

/* The newest entry with that text; *code is its code. */
static bool find_error(json_object *errors, const char *text, enum rv_failure *code)
{
    const char *error = NULL, *word = NULL;

    for (size_t i = errors ? json_object_array_length(errors) : 0; i-- > 0;) {
        json_object *entry = json_object_array_get_idx(errors, i);
        if (!rv_json_get_text(entry, "error", &error) || strcmp(error, text) != 0)
            continue;
        if (!rv_json_get_text(entry, "code", &word) || rv_failure_of(rv_str_of(word), code, NULL) < 0)
            *code = RV_FAILURE_NONE;
        return true;
    }
    return false;
}

enum rv_failure rv_envelope_failure(const rv_envelope *env)
{
    enum rv_failure code = RV_FAILURE_NONE;
    const char *why = env->f.termination_reason;

    if (rv_reason_class_for(env->f.terminal_reason) == RV_REASON_CLASS_BOUNDS_EXCEEDED)
        return code; /* the reason names the bound */
    if (env->f.terminated && why && !find_error(env->list[RV_LIST_ERRORS], why, &code) && env->parent)
        RV_IGNORE(find_error(env->parent->list[RV_LIST_ERRORS], why, &code), "then there is no code");
    return code;
}
