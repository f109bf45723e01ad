/* Pipelines built by hand, in memory, for tests that look at thousands of them or at ones that no file can give. */
#ifndef RV_TEST_CONFIG_ANALYSIS_WORLD_H
#define RV_TEST_CONFIG_ANALYSIS_WORLD_H

#include "config/analysis/analysis_internal.h"
#include "config/config_internal.h"

#define WORLD_STAGES 1000
#define WORLD_RULES  8
#define WORLD_LIMITS 8
#define WORLD_LISTS  8

struct world_lists { /* storage of one stage's requires and after */
    const char *requires[WORLD_LISTS], *after[WORLD_LISTS];
    int required_index[WORLD_LISTS], after_index[WORLD_LISTS];
};
struct world {
    struct rv_pipeline p;
    struct rv_pipeline_internal internal;
    struct rv_agent agents[WORLD_STAGES];
    struct rv_rule rules[WORLD_STAGES][WORLD_RULES];
    struct world_lists lists[WORLD_STAGES];
    const char *names[WORLD_STAGES];
    char name_text[WORLD_STAGES][16];
    struct rv_edge_limit limits[WORLD_LIMITS];
};

/* Random numbers that follow from a seed. */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline int pick(uint64_t *state, int n)
{
    return (int)(next_random(state) % (uint64_t)n);
}

static inline bool chance(uint64_t *state, int percent)
{
    return pick(state, 100) < percent;
}

/* A sound pipeline of n service stages s0, s1, ... with the default bounds, each leading to the next, the last to end.
 */
struct world *world_new(int n);
void world_free(struct world *w);
void world_llm(struct world *w, int stage, int64_t max_retries);
void world_default(struct world *w, int stage, int target);
void world_error(struct world *w, int stage, int target);
void world_function(struct world *w, int stage);
/* json is the value as JSON text. */
void world_rule(struct world *w, int stage, const char *key, const char *json, int target);
void world_when(struct world *w, int stage, const char *text, int target);
void world_limit(struct world *w, int from, int to, int64_t max_count);
void world_require(struct world *w, int stage, int on);
void world_after(struct world *w, int stage, int on);

#endif
