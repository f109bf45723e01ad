/* Stages that wait for a person, and the runs that wait inside of them: what is asked of such a run, or said to it,
 * without it going on. The stage keeps its state, from which it is made for that moment. */
#include "coreengine/run/work_kinds_internal.h"

#include <stdlib.h>
#include <string.h>

struct inside {
    rv_run *run; /* owned; NULL: none waits there, or its state does not fit the pipeline any more */
    char *path, *prefix;
};

static void inside_free(struct inside *in)
{
    rv_run_free(in->run);
    free(in->path);
    free(in->prefix);
    *in = (struct inside){NULL};
}

static int load(rv_run *run, struct branch *b, int stage, const struct rv_kept_inside *kept, int64_t now_us,
                struct inside *in, rv_err **err)
{
    const struct rv_run_opts opts = {
        .mode = RV_UNSET, .rules = run->shared.rules, .conversation = run->shared.conversation};
    const struct rv_agent *agent = &run->pipeline->agents[stage];
    rv_envelope *env = NULL;

    int rc = run_inner_path(run_branch_place(run, b).path, agent->name, &in->path, err);
    if (rc == 0)
        rc = run_inner_path(run->shared.prefix, agent->name, &in->prefix, err);
    if (rc == 0)
        rc = rv_envelope_restore(kept->state, now_us, &env, err);
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

    *in = (struct inside){NULL};
    if (!rv_visit_kept_inside(&run->shared, stage, b->env, &kept) || !kept.state || !kept.inputs)
        return 0;
    int rc = load(run, b, stage, &kept, now_us, in, &cause);
    if (rc == 0)
        return 0;
    inside_free(in);
    if (rc == RV_E_NOMEM)
        return rv_err_pass(err, cause);
    rv_err_free(cause);
    return 0;
}

/* The run inside that put this question of the branch. */
static int open_asking(rv_run *run, struct branch *b, const char *id, int64_t now_us, struct inside *in, rv_err **err)
{
    struct rv_kept_inside kept;

    *in = (struct inside){NULL};
    for (size_t i = 0; id && i < run->pipeline->n_agents; i++)
        if (rv_visit_kept_inside(&run->shared, (int)i, b->env, &kept) && strcmp(kept.interrupt_id, id) == 0)
            return inside_open(run, b, (int)i, now_us, in, err);
    return 0;
}

/* --- giving up --- */

int run_give_up(rv_run *run, struct branch *b, int stage, const char *why, struct rv_effects *out, rv_err **err)
{
    struct inside in;

    int rc = rv_visit_give_up(&run->shared, stage, b->env, why, out, err);
    if (rc < 0 || run->shared.rules < RV_RULES_9)
        return rc;
    rc = inside_open(run, b, stage, out->now_us, &in, err);
    if (rc < 0 || !in.run)
        return rc;
    for (struct branch *at = &in.run->main; at && rc == 0; at = run_branch_next(at))
        if (at->state == BRANCH_ALIVE)
            rc = run_give_up_waiting(in.run, at, why, out, err);
    inside_free(&in);
    return rc < 0 ? rc : rv_envelope_set_suspended(b->env, rv_str_of(run->pipeline->agents[stage].name), NULL, err);
}

int run_give_up_waiting(rv_run *run, struct branch *b, const char *why, struct rv_effects *out, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < run->pipeline->n_agents && rc == 0; i++)
        rc = run_give_up(run, b, (int)i, why, out, err);
    return rc;
}

/* --- answers --- */

static struct branch *asking_branch(rv_run *run)
{
    struct branch *b = questions_first(run);

    return b ? b : &run->main;
}

int run_tells_denial(rv_run *run, struct branch *b, bool *tells, rv_err **err)
{
    struct inside in;

    *tells = rv_visit_tells_denial(&run->shared, b->env);
    if (*tells || run->shared.rules < RV_RULES_9)
        return 0;
    int rc = open_asking(run, b, rv_envelope_interrupt(b->env).id, run->last_us, &in, err);
    if (rc == 0 && in.run)
        rc = run_tells_denial(in.run, asking_branch(in.run), tells, err);
    inside_free(&in);
    return rc;
}

int run_check_answer(rv_run *run, struct branch *b, const struct rv_response *r, int64_t now_us, rv_err **err)
{
    rv_str asked = rv_str_of(rv_envelope_interrupt(b->env).id);
    struct rv_response without = *r, of_inside = *r;
    char id[RV_ID_MAX];
    struct inside in;

    of_inside.interrupt_id = r->interrupt_id.ptr ? r->interrupt_id : asked;
    if (!r->arguments || of_inside.interrupt_id.len >= RV_ID_MAX)
        return rv_visit_check_answer(&run->shared, b->env, r, now_us, err);
    snprintf(id, sizeof id, "%.*s", RV_STR_ARG(of_inside.interrupt_id));
    int rc = open_asking(run, b, id, now_us, &in, err);
    if (rc == 0 && !in.run)
        return rv_visit_check_answer(&run->shared, b->env, r, now_us, err);
    without.arguments = NULL;
    if (rc == 0)
        rc = rv_visit_check_answer(&run->shared, b->env, &without, now_us, err);
    if (rc == 0)
        rc = rv_run_check_answer(in.run, &of_inside, now_us, err);
    inside_free(&in);
    return rc;
}
