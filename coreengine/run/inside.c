/* A run that waits for a person inside of a stage: what it is asked or told without going on. The stage keeps its
 * state, from which it is made for that moment. */
#include "coreengine/run/work_kinds_internal.h"

#include <stdlib.h>
#include <string.h>

struct inside {
    rv_run *run; /* owned; NULL: none waits there, or its state does not fit the pipeline any more */
    char *path, *prefix;
    int64_t now_us; /* that it is made */
};

static void inside_fini(struct inside *in)
{
    rv_run_free(in->run);
    free(in->path);
    free(in->prefix);
    *in = (struct inside){.run = NULL};
}

static int load(rv_run *run, struct branch *b, int stage, const struct rv_kept_inside *kept, struct inside *in,
                rv_err **err)
{
    const struct rv_run_opts opts = {
        .mode = RV_UNSET, .rules = run->shared.rules, .conversation = run->shared.conversation};
    const struct rv_agent *agent = &run->pipeline->agents[stage];
    rv_envelope *env = NULL;

    int rc = run_inner_path(run_branch_place(run, b).path, agent->name, &in->path, err);
    if (rc == 0)
        rc = run_inner_path(run->shared.prefix, agent->name, &in->prefix, err);
    if (rc == 0)
        rc = rv_envelope_restore(kept->state, in->now_us, &env, err);
    if (rc == 0)
        rc = rv_run_new(agent->inner.pipeline, &run->shared.catalog, &opts, env, &in->run, err);
    if (rc < 0)
        return rc;
    const struct run_inner_place at = {in->path, in->prefix, kept->inputs, b->env};
    run_inner_nest(in->run, &run->shared, stage, &at);
    return run_load_tree(in->run, err);
}

/* What it kept may have been edited by a person: then there is no run, and the stage says so when it goes on. */
static int inside_open(rv_run *run, struct branch *b, int stage, int64_t now_us, struct inside *in, rv_err **err)
{
    struct rv_kept_inside kept;
    rv_err *cause = NULL;

    *in = (struct inside){.now_us = now_us};
    if (!rv_visit_kept_inside(&run->shared, stage, b->env, &kept) || !kept.state || !kept.inputs)
        return 0;
    int rc = load(run, b, stage, &kept, in, &cause);
    if (rc == 0)
        return 0;
    inside_fini(in);
    if (rc == RV_E_NOMEM)
        return rv_err_pass(err, cause);
    rv_err_free(cause);
    return 0;
}

/* The run inside that put this question of the branch. */
static int open_asking(rv_run *run, struct branch *b, const char *id, int64_t now_us, struct inside *in, rv_err **err)
{
    struct rv_kept_inside kept;

    *in = (struct inside){.run = NULL};
    for (size_t i = 0; id && i < run->pipeline->n_agents; i++)
        if (rv_visit_kept_inside(&run->shared, (int)i, b->env, &kept) && strcmp(kept.interrupt_id, id) == 0)
            return inside_open(run, b, (int)i, now_us, in, err);
    return 0;
}

int run_inside_give_up(rv_run *run, struct branch *b, int stage, const char *why, struct rv_effects *out, rv_err **err)
{
    struct inside in;

    int rc = inside_open(run, b, stage, out->now_us, &in, err);
    if (rc < 0 || !in.run)
        return rc;
    for (struct branch *at = &in.run->main; at && rc == 0; at = run_branch_next(at))
        if (at->state == BRANCH_ALIVE)
            rc = run_give_up_waiting(in.run, at, why, out, err);
    inside_fini(&in);
    return rc < 0 ? rc : rv_envelope_set_suspended(b->env, rv_str_of(run->pipeline->agents[stage].name), NULL, err);
}

int run_inside_tells_denial(rv_run *run, struct branch *b, bool *tells, rv_err **err)
{
    struct inside in;

    int rc = open_asking(run, b, rv_envelope_interrupt(b->env).id, run->last_us, &in, err);
    if (rc == 0 && in.run) {
        struct branch *asks = questions_first(in.run);
        rc = run_tells_denial(in.run, asks ? asks : &in.run->main, tells, err);
    }
    inside_fini(&in);
    return rc;
}

int run_inside_check_arguments(rv_run *run, struct branch *b, const struct rv_response *r, int64_t now_us,
                               bool *is_inside, rv_err **err)
{
    rv_str asked = rv_str_of(rv_envelope_interrupt(b->env).id);
    struct rv_response of_inside = *r;
    char id[RV_ID_MAX];
    struct inside in;

    of_inside.interrupt_id = r->interrupt_id.ptr ? r->interrupt_id : asked;
    if (of_inside.interrupt_id.len >= RV_ID_MAX)
        return 0;
    snprintf(id, sizeof id, "%.*s", RV_STR_ARG(of_inside.interrupt_id));
    int rc = open_asking(run, b, id, now_us, &in, err);
    if (rc == 0 && in.run)
        rc = rv_run_check_answer(in.run, &of_inside, now_us, err);
    *is_inside = in.run != NULL;
    inside_fini(&in);
    return rc;
}
