/* A new run of an envelope that was in a run before. */
#include "envelope/envelope_internal.h"

int rv_envelope_restart(rv_envelope *env, rv_err **err)
{
    static const enum rv_map_id position[] = {RV_MAP_ACTIVE, RV_MAP_COMPLETED, RV_MAP_FAILED, RV_MAP_SUSPENDED};
    const struct rv_name *queue = rv_env_name(env, RV_STR_LIT(RV_QUEUED_INTERRUPTS));
    struct rv_map *metadata = &env->map[RV_MAP_METADATA];
    int rc = rv_envelope_set_stage(env, RV_STR_LIT(RV_STAGE_START), err);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < RV_COUNT(position); i++)
        rv_map_clear(&env->map[position[i]]);
    if (queue)
        rv_map_drop(metadata, rv_map_find(metadata, queue, NULL));
    if (env->f.interrupt_pending) /* the answer to an earlier one is still for prompts to read */
        rv_envelope_clear_interrupt(env);
    rv_text_fini(&env->text[RV_TEXT_TERMINATION]);
    env->f.terminated = false;
    env->f.terminal_reason = RV_REASON_NONE;
    env->f.completed_at_us = 0;
    env->f.status = RV_RUN_READY;
    rv_env_mirror(env);
    return 0;
}
