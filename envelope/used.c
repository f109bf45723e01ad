/* What a run has used so far. Branches count for themselves until they are joined, so while a run pauses inside of a
 * group, what its branches used is in the branches that its envelope keeps. */
#include <string.h>

#include "envelope/envelope_internal.h"

json_object *env_kept_at(const rv_envelope *env, size_t i)
{
    json_object *entry = json_object_array_get_idx(env->branches, i);

    return json_object_is_type(entry, json_type_object) ? rv_json_get_obj(entry, "own") : NULL;
}

size_t env_n_kept(const rv_envelope *env)
{
    bool waits = env->f.status == RV_RUN_INTERRUPTED; /* at an end what branches used was added, only values were not */

    return env->branches && waits ? json_object_array_length(env->branches) : 0;
}

static int64_t count_in(json_object *own, const char *key)
{
    int64_t n = 0;

    return rv_usage_read_count(own, key, &n) ? n : 0;
}

/* What the entry keeps of the branch that the branch of that path was made from; NULL: that is the main branch. */
static json_object *opener_of(const rv_envelope *env, size_t i, const char *path)
{
    while (i-- > 1) {
        json_object *entry = json_object_array_get_idx(env->branches, i);
        const char *above = rv_json_text_or(entry, "path", "");
        size_t len = strlen(above);

        if (len > 0 && strncmp(path, above, len) == 0 && path[len] == '/')
            return rv_json_get_obj(entry, "own");
    }
    return NULL;
}

static void add_kept(const rv_envelope *env, size_t i, struct rv_envelope_used *sum)
{
    json_object *entry = json_object_array_get_idx(env->branches, i), *own = env_kept_at(env, i);
    json_object *under = own ? opener_of(env, i, rv_json_text_or(entry, "path", "")) : NULL;
    struct rv_usage usage;
    const struct {
        const char *key;
        int64_t of_main;
        int64_t *sum;
    } counts[] = {{"agent_hop_count", env->f.agent_hop_count, &sum->hops},
                  {"llm_call_count", env->f.llm_call_count, &sum->llm_calls},
                  {"iteration", env->f.iteration, &sum->iterations}};

    if (!own)
        return;
    for (size_t k = 0; k < RV_COUNT(counts); k++) {
        int64_t before = under ? count_in(under, counts[k].key) : counts[k].of_main;
        *counts[k].sum = env_counter_add(*counts[k].sum, count_in(own, counts[k].key) - before);
    }
    if (rv_usage_read_json(rv_json_get_obj(own, "usage"), &usage))
        rv_usage_add(&sum->usage, &usage);
}

struct rv_envelope_used rv_envelope_used(const rv_envelope *env)
{
    struct rv_envelope_used sum = {.hops = env->f.agent_hop_count - env->base_hops,
                                   .llm_calls = env->f.llm_call_count - env->base_llm_calls,
                                   .iterations = env->f.iteration - env->base_iteration,
                                   .usage = env->f.usage};

    for (size_t i = 1; i < env_n_kept(env); i++)
        add_kept(env, i, &sum);
    return sum;
}

int64_t rv_envelope_processing_ms(const rv_envelope *env)
{
    int64_t sum = 0;

    for (size_t i = 0; i < rv_envelope_n_records(env); i++)
        sum = env_counter_add(sum, env_record(env, i)->duration_ms);
    for (size_t i = 1; i < env_n_kept(env); i++) {
        json_object *history = rv_json_get_arr(env_kept_at(env, i), "processing_history");
        for (size_t k = 0; history && k < json_object_array_length(history); k++)
            sum = env_counter_add(sum, count_in(json_object_array_get_idx(history, k), "duration_ms"));
    }
    return sum;
}
