/* What model calls took: sums and JSON. A sum stops at the largest count that is read back. */
#include "envelope/envelope_internal.h"

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
