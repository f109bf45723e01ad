/* Where the envelope is in its pipeline: stage order, stage sets, visits, edges, bounds, history, usage. */
#include <assert.h>
#include <string.h>

#include "envelope/envelope_internal.h"

int rv_envelope_set_stage_order(rv_envelope *env, const char *const *names, size_t n, rv_err **err)
{
    json_object *list = json_object_new_array();
    int rc = list ? 0 : RV_FAIL(err, RV_E_NOMEM, "set the stage order");

    for (size_t i = 0; rc == 0 && i < n; i++) {
        rv_str name = rv_str_of(names[i]);

        if (!rv_utf8_valid(name, NULL))
            rc = RV_FAIL(err, RV_E_INVALID, "stage_order[%zu] is not UTF-8", i);
        else
            rc = rv_json_push_take(list, json_object_new_string_len(name.ptr ? name.ptr : "", (int)name.len), err);
    }
    if (rc < 0) {
        json_object_put(list);
        return rc;
    }
    json_object_put(env->list[RV_LIST_STAGE_ORDER]);
    env->list[RV_LIST_STAGE_ORDER] = list;
    return 0;
}

json_object *rv_envelope_stage_order(const rv_envelope *env)
{
    return env_list(env, RV_LIST_STAGE_ORDER);
}

/* A stage is in one of the three sets at most; value is the failure's text in the last of them. */
static int move_to(rv_envelope *env, enum rv_map_id id, rv_str stage, json_object *value, rv_err **err)
{
    static const enum rv_map_id sets[] = {RV_MAP_ACTIVE, RV_MAP_COMPLETED, RV_MAP_FAILED};
    const struct rv_name *name = NULL;
    int rc = env_intern(env, stage, "stage", &name, err);

    for (size_t i = 0; rc == 0 && i < RV_COUNT(sets); i++)
        if (sets[i] == id || env->parent)
            rc = map_reserve(&env->map[sets[i]], 1, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < RV_COUNT(sets); i++)
        if (sets[i] != id)
            env_hide(env, sets[i], name);
    map_put_ref(&env->map[id], name, value);
    return 0;
}

int rv_envelope_start_stage(rv_envelope *env, rv_str stage, rv_err **err)
{
    return move_to(env, RV_MAP_ACTIVE, stage, NULL, err);
}

int rv_envelope_complete_stage(rv_envelope *env, rv_str stage, rv_err **err)
{
    return move_to(env, RV_MAP_COMPLETED, stage, NULL, err);
}

int rv_envelope_pause_stage(rv_envelope *env, rv_str stage, rv_err **err)
{
    const struct rv_name *name = NULL;
    int rc = env_intern(env, stage, "stage", &name, err);

    if (rc == 0 && env->parent)
        rc = map_reserve(&env->map[RV_MAP_ACTIVE], 1, err);
    if (rc == 0)
        env_hide(env, RV_MAP_ACTIVE, name);
    return rc;
}

/* The same for diagnostics, which must not be lost: bytes that are not UTF-8 become U+FFFD. */
static int clean_text(rv_str s, struct rv_text *out, rv_err **err)
{
    rv_buf b = RV_BUF_INIT(SIZE_MAX / 2);
    size_t bad = 0;
    int rc;

    if (!s.ptr || rv_utf8_valid(s, NULL))
        return env_text_of(s, "text", out, err);
    while (!rv_utf8_valid(s, &bad)) {
        rv_buf_add(&b, s.ptr, bad);
        rv_buf_puts(&b, "\xEF\xBF\xBD");
        s.ptr += bad + 1;
        s.len -= bad + 1;
    }
    rv_buf_add_str(&b, s);
    rc = rv_buf_check(&b, "a diagnostic text", err);
    if (rc == 0) {
        size_t len = 0;
        char *ptr = rv_buf_steal(&b, &len);

        *out = (struct rv_text){ptr, len, false};
    }
    rv_buf_fini(&b);
    return rc;
}

int rv_envelope_fail_stage(rv_envelope *env, rv_str stage, rv_str text, rv_err **err)
{
    struct rv_text clean = {0};
    json_object *value = NULL;
    int rc = clean_text(text, &clean, err);

    if (rc < 0)
        return rc;
    value = json_object_new_string_len(clean.ptr ? clean.ptr : "", (int)clean.len);
    rc = value ? move_to(env, RV_MAP_FAILED, stage, value, err) : RV_FAIL(err, RV_E_NOMEM, "keep the failure's text");
    json_object_put(value);
    env_text_fini(&clean);
    return rc;
}

static bool is_in(const rv_envelope *env, enum rv_map_id id, rv_str stage)
{
    return env_find(env, id, env_name(env, stage)) != NULL;
}

bool rv_envelope_is_completed(const rv_envelope *env, rv_str stage)
{
    return is_in(env, RV_MAP_COMPLETED, stage);
}

bool rv_envelope_is_failed(const rv_envelope *env, rv_str stage)
{
    return is_in(env, RV_MAP_FAILED, stage);
}

bool rv_envelope_has_all_completed(const rv_envelope *env)
{
    json_object *order = env_list(env, RV_LIST_STAGE_ORDER);
    size_t n = json_object_array_length(order);

    for (size_t i = 0; i < n; i++)
        if (!rv_envelope_is_completed(env, rv_json_str(json_object_array_get_idx(order, i))))
            return false;
    return n > 0;
}

int64_t rv_envelope_visits(const rv_envelope *env, rv_str stage)
{
    const struct rv_name *name = env_name(env, stage);

    return name ? env_count(env, RV_MAP_VISITS, name, NULL) : 0;
}

int64_t rv_envelope_passages(const rv_envelope *env, rv_str from, rv_str to)
{
    const struct rv_name *from_name = env_name(env, from);
    const struct rv_name *to_name = env_name(env, to);

    return from_name && to_name ? env_count(env, RV_MAP_EDGES, from_name, to_name) : 0;
}

int rv_envelope_note_passage(rv_envelope *env, rv_str from, rv_str to, int64_t *out_count, rv_err **err)
{
    const struct rv_name *from_name = NULL;
    const struct rv_name *to_name = NULL;
    struct rv_entry *e;
    int rc = env_intern(env, from, "stage", &from_name, err);

    if (rc == 0)
        rc = env_intern(env, to, "stage", &to_name, err);
    if (rc == 0)
        rc = map_reserve(&env->map[RV_MAP_EDGES], 1, err);
    if (rc < 0)
        return rc;
    e = map_put(&env->map[RV_MAP_EDGES], from_name, to_name);
    e->count = env_counter_add(e->count, 1);
    if (out_count)
        *out_count = env_count(env, RV_MAP_EDGES, from_name, to_name);
    return 0;
}

int rv_envelope_note_loop(rv_envelope *env, enum rv_loop_cause cause, rv_str stage, int64_t *of_stage, int64_t *of_all,
                          rv_err **err)
{
    enum rv_map_id id = cause == RV_LOOP_REPLAN ? RV_MAP_REPLANS : RV_MAP_REJECTIONS;
    const struct rv_name *name = NULL;
    int rc = env_intern(env, stage, "stage", &name, err);

    if (rc == 0)
        rc = map_reserve(&env->map[id], 1, err);
    if (rc < 0)
        return rc;
    struct rv_entry *mine = map_put(&env->map[id], name, NULL);
    mine->count = env_counter_add(mine->count, 1);
    *of_stage = env_count(env, id, name, NULL);
    *of_all = 0;
    struct rv_cursor c = env_cursor_on(env, id);
    for (const struct rv_entry *e = env_cursor_next(&c); e; e = env_cursor_next(&c))
        *of_all = env_counter_add(*of_all, env_count(env, id, e->name, NULL));
    return 0;
}

int64_t rv_envelope_loops(const rv_envelope *env, enum rv_loop_cause cause, rv_str stage)
{
    const struct rv_name *name = env_name(env, stage);

    return name ? env_count(env, cause == RV_LOOP_REPLAN ? RV_MAP_REPLANS : RV_MAP_REJECTIONS, name, NULL) : 0;
}

/* --- May the run go on, and how it ended --- */

bool rv_envelope_can_continue(const rv_envelope *env, bool count_llm, enum rv_reason *reason)
{
    const struct rv_envelope_fields *f = &env->f;
    enum rv_reason hit = RV_REASON_NONE;
    bool stopped = f->terminated || f->interrupt_pending;

    if (!stopped) {
        if (f->iteration > f->max_iterations)
            hit = RV_REASON_MAX_ITERATIONS;
        else if (count_llm && f->llm_call_count >= f->max_llm_calls)
            hit = RV_REASON_MAX_LLM_CALLS;
        else if (f->agent_hop_count >= f->max_agent_hops)
            hit = RV_REASON_MAX_HOPS;
    }
    if (reason)
        *reason = hit;
    return !stopped && hit == RV_REASON_NONE;
}

static int64_t left(int64_t max, int64_t count)
{
    return max > count ? max - count : 0;
}

struct rv_envelope_left rv_envelope_left(const rv_envelope *env)
{
    const struct rv_envelope_fields *f = &env->f;

    return (struct rv_envelope_left){
        .iterations = left(f->max_iterations, f->iteration),
        .llm_calls = left(f->max_llm_calls, f->llm_call_count),
        .hops = left(f->max_agent_hops, f->agent_hop_count),
    };
}

int rv_envelope_terminate(rv_envelope *env, rv_str text, enum rv_reason reason, int64_t now_us, rv_err **err)
{
    struct rv_text clean = {0};
    int rc;

    if (env->f.terminated)
        return 0;
    rc = clean_text(text, &clean, err);
    if (rc < 0)
        return rc;
    env_text_move(&env->text[RV_TEXT_TERMINATION], &clean);
    env->f.termination_reason = env->text[RV_TEXT_TERMINATION].ptr;
    env->f.terminated = true;
    env->f.completed_at_us = env_clamp_time(now_us);
    if ((size_t)reason < RV_N_REASON)
        env->f.terminal_reason = reason;
    return 0;
}

void rv_envelope_complete(rv_envelope *env, int64_t now_us)
{
    if (env->f.terminated)
        return;
    env->f.terminal_reason = RV_REASON_COMPLETED;
    env->f.completed_at_us = env_clamp_time(now_us);
}

/* --- The audit trail: one record per stage visit, and the errors --- */

static int append(rv_envelope *env, rv_str agent, struct rv_record **out, rv_err **err)
{
    const struct rv_name *name = NULL;
    int rc = env_intern(env, agent, "agent", &name, err);

    if (rc == 0)
        rc = env_grow(&env->records, &env->cap_records, env->n_records + 1, sizeof *env->records, err);
    if (rc < 0)
        return rc;
    *out = &env->records[env->n_records];
    **out = (struct rv_record){.agent = name};
    return 0;
}

/* Room for one more visit was reserved. */
static int start_record(rv_envelope *env, rv_str agent, int64_t stage_order, int64_t now_us, struct rv_record **out,
                        rv_err **err)
{
    int rc = append(env, agent, out, err);

    if (rc < 0)
        return rc;
    (*out)->stage_order = stage_order;
    (*out)->started_at_us = env_clamp_time(now_us);
    (*out)->status = RV_HISTORY_RUNNING;
    env->n_records++;
    env->f.agent_hop_count = env_counter_add(env->f.agent_hop_count, 1);
    return 0;
}

int rv_envelope_record_start(rv_envelope *env, rv_str agent, int64_t stage_order, int64_t now_us, rv_err **err)
{
    struct rv_record *r = NULL;
    struct rv_entry *visits;
    int rc = map_reserve(&env->map[RV_MAP_VISITS], 1, err);

    if (rc == 0)
        rc = start_record(env, agent, stage_order, now_us, &r, err);
    if (rc < 0)
        return rc;
    visits = map_put(&env->map[RV_MAP_VISITS], r->agent, NULL);
    visits->count = env_counter_add(visits->count, 1);
    return 0;
}

int rv_envelope_record_part(rv_envelope *env, rv_str agent, int64_t stage_order, int64_t now_us, rv_err **err)
{
    struct rv_record *r = NULL;

    return start_record(env, agent, stage_order, now_us, &r, err);
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
    now_us = env_clamp_time(now_us); /* as the start was */
    return now_us > r->started_at_us ? (now_us - r->started_at_us) / RV_US_PER_MS : 0;
}

int rv_envelope_record_complete(rv_envelope *env, rv_str agent, const struct rv_record_end *end, int64_t now_us,
                                rv_err **err)
{
    const struct rv_name *name = env_name(env, agent);
    struct rv_record *r = name ? last_running(env, name) : NULL;

    assert((size_t)end->status < RV_N_HISTORY);
    now_us = env_clamp_time(now_us);
    if (r) {
        struct rv_text text = {0};
        int rc = clean_text(end->error, &text, err);

        if (rc < 0)
            return rc;
        env_text_move(&r->error, &text);
        r->completed_at_us = now_us;
        r->duration_ms = duration_of(r, end->duration_ms, now_us);
        r->status = end->status;
        r->llm_calls = env_counter_add(0, end->llm_calls);
    }
    env->f.llm_call_count = env_counter_add(env->f.llm_call_count, end->llm_calls);
    return 0;
}

int rv_envelope_record_skipped(rv_envelope *env, rv_str agent, int64_t stage_order, int64_t now_us, rv_err **err)
{
    struct rv_record *r = NULL;
    int rc = append(env, agent, &r, err);

    if (rc < 0)
        return rc;
    r->stage_order = stage_order;
    r->started_at_us = r->completed_at_us = env_clamp_time(now_us);
    r->status = RV_HISTORY_SKIPPED;
    env->n_records++;
    return 0;
}

size_t rv_envelope_n_records(const rv_envelope *env)
{
    size_t n = 0;

    for (; env; env = env->parent)
        n += env->n_records;
    return n;
}

const struct rv_record *env_record(const rv_envelope *env, size_t i)
{
    size_t below = env->parent ? rv_envelope_n_records(env->parent) : 0;

    return i < below ? env_record(env->parent, i) : &env->records[i - below];
}

rv_str rv_envelope_skipped_at(const rv_envelope *env, size_t i)
{
    const struct rv_record *r = env_record(env, i);

    return r->status == RV_HISTORY_SKIPPED ? (rv_str){r->agent->text, r->agent->len} : (rv_str){NULL, 0};
}

int rv_envelope_add_error(rv_envelope *env, const struct rv_error_entry *error, int64_t now_us, rv_err **err)
{
    struct rv_text clean_agent = {0};
    struct rv_text clean = {0};
    char time[RV_TIME_MAX];
    json_object *list = NULL;
    json_object *entry = json_object_new_object();
    int rc = entry ? 0 : RV_FAIL(err, RV_E_NOMEM, "record an error");

    rv_time_format(env_clamp_time(now_us), time);
    if (rc == 0)
        rc = clean_text(error->agent, &clean_agent, err);
    if (rc == 0)
        rc = clean_text(error->text, &clean, err);
    if (rc == 0)
        rc = rv_json_set_str(entry, "agent", env_text_str(&clean_agent), err);
    if (rc == 0)
        rc = rv_json_set_str(entry, "error", env_text_str(&clean), err);
    if (rc == 0)
        rc = rv_json_set_text(entry, "error_type", error->error_type, err);
    if (rc == 0 && error->code != RV_FAILURE_NONE)
        rc = rv_json_set_text(entry, "code", rv_failure_text(error->code), err);
    if (rc == 0)
        rc = rv_json_set_text(entry, "timestamp", time, err);
    if (rc == 0)
        rc = env_own_list(env, RV_LIST_ERRORS, &list, err);
    if (rc == 0)
        rc = rv_json_push_ref(list, entry, err);
    json_object_put(entry);
    env_text_fini(&clean_agent);
    env_text_fini(&clean);
    return rc;
}

size_t rv_envelope_n_errors(const rv_envelope *env)
{
    size_t n = env->list[RV_LIST_ERRORS] ? json_object_array_length(env->list[RV_LIST_ERRORS]) : 0;

    return n + (env->parent ? rv_envelope_n_errors(env->parent) : 0);
}

/* The newest error with that text, or NULL. */
static json_object *find_error(json_object *errors, const char *text)
{
    const char *error = NULL;

    for (size_t i = errors ? json_object_array_length(errors) : 0; i-- > 0;) {
        json_object *entry = json_object_array_get_idx(errors, i);
        if (rv_json_get_text(entry, "error", &error) && strcmp(error, text) == 0)
            return entry;
    }
    return NULL;
}

/* The error that terminated the run, or NULL. */
static json_object *last_error(const rv_envelope *env)
{
    const char *why = env->f.terminated ? env->f.termination_reason : NULL;
    json_object *entry = NULL;

    for (; why && env && !entry; env = env->parent)
        entry = find_error(env->list[RV_LIST_ERRORS], why);
    return entry;
}

enum rv_failure rv_envelope_failure(const rv_envelope *env, const char **stage)
{
    json_object *error = last_error(env);
    const char *word = rv_json_text_or(error, "code", NULL);
    enum rv_failure code = RV_FAILURE_NONE;

    if (stage)
        *stage = rv_json_text_or(error, "agent", env->f.terminated ? env->f.current_stage : NULL);
    if (!word || rv_reason_class_for(env->f.terminal_reason) == RV_REASON_CLASS_BOUNDS_EXCEEDED)
        return RV_FAILURE_NONE; /* the reason names the bound */
    return rv_failure_of(rv_str_of(word), &code, NULL) == 0 ? code : RV_FAILURE_NONE;
}

/* What model calls took: sums and JSON. A sum stops at the largest count that is read back. */

static int64_t within(int64_t n)
{
    return n < 0 ? 0 : n > RV_USAGE_MAX ? RV_USAGE_MAX : n;
}

static void add(int64_t *sum, int64_t part)
{
    if (__builtin_add_overflow(*sum, within(part), sum) || *sum > RV_USAGE_MAX)
        *sum = RV_USAGE_MAX;
}

void rv_usage_add(struct rv_usage *sum, const struct rv_usage *part)
{
    add(&sum->calls, part->calls);
    add(&sum->input_tokens, part->input_tokens);
    add(&sum->output_tokens, part->output_tokens);
    add(&sum->cached_tokens, part->cached_tokens);
    add(&sum->cache_write_tokens, part->cache_write_tokens);
    add(&sum->reasoning_tokens, part->reasoning_tokens);
    add(&sum->cost_micro_usd, part->cost_micro_usd);
    sum->estimated = sum->estimated || part->estimated;
}

bool rv_usage_is_zero(const struct rv_usage *u)
{
    return u->calls == 0 && u->input_tokens == 0 && u->output_tokens == 0 && u->cached_tokens == 0 &&
           u->cache_write_tokens == 0 && u->reasoning_tokens == 0 && u->cost_micro_usd == 0 && !u->estimated;
}

static void write_unless_0(rv_jw *w, const char *key, int64_t n)
{
    n = within(n);
    if (n != 0)
        rv_jw_kv_int(w, key, n);
}

void rv_usage_write_json(const struct rv_usage *u, rv_jw *w)
{
    rv_jw_obj(w);
    write_unless_0(w, "calls", u->calls);
    rv_jw_kv_int(w, "input_tokens", within(u->input_tokens));
    rv_jw_kv_int(w, "output_tokens", within(u->output_tokens));
    write_unless_0(w, "cached_tokens", u->cached_tokens);
    write_unless_0(w, "cache_write_tokens", u->cache_write_tokens);
    write_unless_0(w, "reasoning_tokens", u->reasoning_tokens);
    write_unless_0(w, "cost_micro_usd", u->cost_micro_usd);
    if (u->estimated)
        rv_jw_kv_bool(w, "estimated", true);
    rv_jw_obj_end(w);
}

bool rv_usage_read_count(json_object *json, const char *key, int64_t *out)
{
    json_object *value = NULL;
    int64_t n = 0;

    *out = 0;
    if (!json_object_object_get_ex(json, key, &value))
        return true;
    if (!rv_json_get_int(json, key, &n) || n < 0 || n > RV_USAGE_MAX)
        return false;
    *out = n;
    return true;
}

bool rv_usage_read_json(json_object *json, struct rv_usage *out)
{
    *out = (struct rv_usage){0};
    if (!json_object_is_type(json, json_type_object))
        return json == NULL;
    bool good = rv_usage_read_count(json, "calls", &out->calls);
    good &= rv_usage_read_count(json, "input_tokens", &out->input_tokens);
    good &= rv_usage_read_count(json, "output_tokens", &out->output_tokens);
    good &= rv_usage_read_count(json, "cached_tokens", &out->cached_tokens);
    good &= rv_usage_read_count(json, "cache_write_tokens", &out->cache_write_tokens);
    good &= rv_usage_read_count(json, "reasoning_tokens", &out->reasoning_tokens);
    good &= rv_usage_read_count(json, "cost_micro_usd", &out->cost_micro_usd);
    if (!rv_json_get_bool(json, "estimated", &out->estimated))
        out->estimated = false;
    return good;
}

void rv_envelope_add_usage(rv_envelope *env, const struct rv_usage *usage)
{
    rv_usage_add(&env->f.usage, usage);
}
