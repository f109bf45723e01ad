/* Decisions, and the values that are made up from them. */
#ifndef RV_SIM_VALUES_H
#define RV_SIM_VALUES_H

#include "coreengine/sim/sim.h"

/* --- tape.c: decisions --- */
struct sim_tape {
    uint32_t *items; /* owned: what was decided, in order */
    size_t n, cap;
    const uint32_t *script; /* a replay's decisions; zero where it ends; borrowed */
    size_t n_script;
    bool is_replay;
    int rc; /* sticky RV_E_NOMEM, of whatever has no other way to tell */
    struct rv_rand_state state;
    struct rv_rand rand; /* points to state: a tape does not move */
};
void sim_tape_init(struct sim_tape *t, uint64_t seed);
void sim_tape_fini(struct sim_tape *t);
void sim_tape_replay(struct sim_tape *t, const uint32_t *script, size_t n);
uint32_t sim_draw(struct sim_tape *t, uint32_t n); /* one of 0..n-1 */
uint32_t sim_bits(struct sim_tape *t);             /* what content is made from; 0: the plainest */
/** 0 mostly, i + 1 with a chance of per_mille[i]. */
size_t sim_pick(struct sim_tape *t, const uint32_t *per_mille, size_t n);
bool sim_chance(struct sim_tape *t, uint32_t per_mille);

/* --- value.c: content, and values that fit a JSON Schema --- */
/* Content: many small choices from one decision, so that a tape stays short. */
struct sim_rng {
    uint64_t s;
    bool is_plain; /* from 0 */
};
struct sim_rng sim_rng_of(uint32_t bits);
uint32_t sim_below(struct sim_rng *r, uint32_t n); /* 0 when it is plain */

/** check: the same schema compiled, or NULL. *out is the caller's and may be NULL (null). *fits false: no value was
 *  found that does. */
RV_MUST_CHECK int sim_value(json_object *schema, const rv_schema *check, struct sim_rng *r, json_object **out,
                            bool *fits, rv_err **err);
/** Any small value. */
RV_MUST_CHECK int sim_any(struct sim_rng *r, int depth, json_object **out, rv_err **err);
json_object *sim_words(struct sim_rng *r, size_t max_words); /* a text; NULL: no memory */

/* --- flatten.c --- */
/** The schema with references resolved, allOf merged and one of each anyOf and oneOf chosen; *out is the caller's. */
RV_MUST_CHECK int sim_flatten(json_object *schema, json_object *root, struct sim_rng *r, json_object **out,
                              rv_err **err);

/* --- hints.c: what a pipeline looks at in outputs, so that made-up ones take every route --- */
#define SIM_PATH_MAX 4 /* names of a path: expressions of pipelines have two or three */
struct sim_field {
    char *path[SIM_PATH_MAX]; /* owned */
    size_t n_path;
    json_object *values; /* array: constants it is compared with, and their neighbours; owned */
    bool is_required;
    bool is_list;
};
struct sim_shape {            /* of what is stored under a stage's output key */
    struct sim_field *fields; /* owned */
    size_t n_fields, cap;
    const char **tools; /* a tool stage reads its plan from here: what it may call; owned array */
    size_t n_tools;
};
struct sim_hints {
    struct sim_shape *shapes; /* one per stage; owned */
    size_t n_shapes;
    char **metadata; /* keys of the envelope's metadata that something looks at; owned */
    size_t n_metadata, cap_metadata;
};
RV_MUST_CHECK int sim_hints_new(const struct rv_sim_subject *subject, struct sim_hints **out, rv_err **err);
void sim_hints_free(struct sim_hints *h);

#endif
