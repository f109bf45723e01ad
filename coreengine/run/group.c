/* Groups of branches: opened by a list of targets, settled by the rule of their join, merged in list order into the
 * branch that waits. A group whose branches all end has no join; then the branch that opened it has ended, too. */
#include "coreengine/run/group_internal.h"

#include <stdlib.h>
#include <string.h>

#define PATH_MAX_BYTES ((size_t)1 << 20) /* of a path: names have 128 bytes and groups 64 levels */

void run_group_free(struct group *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->n; i++) {
        rv_envelope *env = g->items[i].env;
        run_branch_fini(&g->items[i]);
        rv_envelope_free(env); /* after the groups whose branches were forked from it */
    }
    free(g->items);
    free(g->prefix);
    free(g);
}

/* What the paths of its branches begin with: where the group was opened, and in which visit. */
static int make_prefix(const rv_run *run, struct group *g, rv_err **err)
{
    const char *fork = run->pipeline->agents[g->stage].name;
    rv_buf text = RV_BUF_INIT(PATH_MAX_BYTES);

    rv_buf_printf(&text, "%s/%s#%lld:",
                  g->opener->path   ? g->opener->path
                  : run->place.path ? run->place.path
                                    : "",
                  fork, (long long)rv_envelope_visits(g->opener->env, rv_str_of(fork)));
    int rc = rv_buf_check(&text, "the path of a branch", err);
    if (rc == 0)
        g->prefix = rv_buf_steal(&text, &g->prefix_len);
    rv_buf_fini(&text);
    return rc == 0 && !g->prefix ? RV_FAIL(err, RV_E_NOMEM, "open a group") : rc;
}

int run_group_add(struct group *g, const struct rv_branch_target *target, rv_err **err)
{
    struct branch *b = &g->items[g->n++];
    size_t len = strlen(target->name);

    *b = (struct branch){.group = g, .name = target->name, .first = target->target, .asked_by = -1};
    b->path = malloc(g->prefix_len + len + 1);
    if (!b->path)
        return RV_FAIL(err, RV_E_NOMEM, "open a group");
    memcpy(b->path, g->prefix, g->prefix_len);
    memcpy(b->path + g->prefix_len, target->name, len + 1);
    return 0;
}

int run_group_new(rv_run *run, struct branch *b, int stage, const struct rv_branches *list, rv_err **err)
{
    struct group *g = calloc(1, sizeof *g);

    if (!g)
        return RV_FAIL(err, RV_E_NOMEM, "open a group");
    b->opened = g;
    *g =
        (struct group){.opener = b, .stage = stage, .list = list, .join = run->pipeline->agents[stage].routing.join_of};
    g->items = calloc(list->n, sizeof *g->items);
    return g->items ? make_prefix(run, g, err) : RV_FAIL(err, RV_E_NOMEM, "open a group");
}

static int make_group(rv_run *run, struct branch *opener, int stage, const struct rv_branches *list, const bool *taken,
                      rv_err **err)
{
    int rc = run_group_new(run, opener, stage, list, err);

    for (size_t i = 0; i < list->n && rc == 0; i++) {
        struct group *g = opener->opened;
        struct branch *b = &g->items[i];

        rc = run_group_add(g, &list->items[i], err);
        b->state = taken[i] ? BRANCH_ALIVE : BRANCH_ENDED;
        g->n_alive += taken[i];
        if (rc == 0)
            rc = rv_envelope_branch(opener->env, &b->env, err);
        if (rc == 0)
            rc = rv_envelope_set_stage(b->env, rv_str_of(b->name), err);
    }
    return rc;
}

static void tell_started(rv_run *run, const struct branch *b, struct rv_effects *out)
{
    rv_branch_emit(run, b, out, RV_EMIT_BRANCH_STARTED, RV_M_TEXT("name", b->name),
                   RV_M_TEXT("from", run->pipeline->agents[b->group->stage].name));
}

static void tell_ended(rv_run *run, const struct branch *b, struct rv_effects *out)
{
    bool failed = b->state == BRANCH_FAILED;

    rv_branch_emit(run, b, out, RV_EMIT_BRANCH_ENDED, RV_M_TEXT("name", b->name),
                   RV_M_TEXT("end", run_branch_states[b->state]),
                   RV_M_IF(b->state == BRANCH_ARRIVED, RV_M_TEXT("join", rv_envelope_fields(b->env)->current_stage)),
                   RV_M_IF(failed, RV_M_TEXT("error_type", b->failure.type)),
                   RV_M_IF(failed, RV_M_TEXT("error", b->failure.text)));
}

void run_group_look_at(rv_run *run, struct group *g)
{
    if (g->is_settled || !run_join_verdict(run, g).is_settled)
        return;
    g->is_settled = true;
    run_branch_ready_first(run, g->opener);
}

/* In the order of the list: the edge is counted, limits are looked at, the first visit begins. */
static int begin_all(rv_run *run, struct group *g, struct rv_effects *out, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < g->n && rc == 0; i++) {
        struct branch *b = &g->items[i];

        if (b->state != BRANCH_ALIVE)
            continue;
        const struct edge edge = {.from = g->stage, .to = b->first, .outcome = RV_OUTCOME_SUCCESS};
        rc = run_take_edge(run, b, &edge, out, err);
        if (rc < 0 || run->finished || run->halt.is_set)
            return rc;
        tell_started(run, b, out);
        rc = run_branch_begin(run, b, out, err);
        if (rc < 0 || run->finished || run->halt.is_set)
            return rc;
    }
    for (size_t i = 0; i < g->n && rc == 0; i++)
        if (g->items[i].state == BRANCH_ALIVE)
            run_branch_ready(run, &g->items[i]);
    return rc;
}

int run_group_open(rv_run *run, struct branch *b, const struct rv_branches *list, const bool *taken,
                   struct rv_effects *out, rv_err **err)
{
    int rc = run_totals_begin(run, err);

    if (rc == 0)
        rc = make_group(run, b, b->held_by, list, taken, err);
    if (rc < 0)
        return rc;
    struct group *g = b->opened;
    for (size_t i = 0; i < g->n; i++)
        if (g->items[i].state != BRANCH_ALIVE) /* its condition is false */
            tell_ended(run, &g->items[i], out);
    run_group_look_at(run, g);
    return g->is_settled ? 0 : begin_all(run, g, out, err);
}

void run_group_branch_over(rv_run *run, struct branch *b, enum branch_state state, struct rv_effects *out)
{
    struct group *g = b->group;

    b->state = state;
    if (b->n_calls > 0)
        run_calls_forget(run, b);
    g->n_alive--;
    g->n_arrived += state == BRANCH_ARRIVED;
    if (state == BRANCH_FAILED && !g->failed_first)
        g->failed_first = b;
    tell_ended(run, b, out);
    if (!run->halt.is_set && state != BRANCH_CANCELLED)
        run_group_look_at(run, g);
}

/* --- settling --- */

static enum rv_merge_mode how_of(const void *self, const char *key)
{
    const struct rv_agent_join *join = self;

    for (size_t i = 0; i < join->n_merges; i++)
        if (strcmp(join->merges[i].key, key) == 0)
            return (enum rv_merge_mode)join->merges[i].how;
    return RV_MERGE_REPLACE;
}

static void warn_conflicts(rv_run *run, const struct rv_joining *j, struct rv_effects *out)
{
    size_t n = j->conflicts ? json_object_array_length(j->conflicts) : 0;

    for (size_t i = 0; i < n; i++)
        rv_run_emit(run, out, RV_EMIT_WARNING,
                    RV_M_TEXT("message", "two branches wrote the same metadata: the later one in the list is kept"),
                    RV_M_OF(VALUE, "conflict", json_object_array_get_idx(j->conflicts, i)));
}

static int merge(rv_run *run, struct group *g, struct verdict v, struct rv_effects *out, rv_err **err)
{
    struct rv_joining j = {.how = g->join >= 0 ? how_of : NULL,
                           .self = g->join >= 0 ? &run->pipeline->agents[g->join].join : NULL};
    int rc = 0;

    for (size_t i = 0; i < g->n && rc == 0; i++) {
        struct branch *b = &g->items[i];
        bool with_values =
            (b->state == BRANCH_ARRIVED && v.takes_arrived) || (b->state == BRANCH_ENDED && v.takes_ended);
        rc = rv_envelope_join(g->opener->env, b->env, rv_str_of(b->name), with_values, &j, err);
    }
    if (rc == 0)
        rc = rv_envelope_join_end(g->opener->env, &j, err);
    if (rc == 0)
        warn_conflicts(run, &j, out);
    rv_joining_fini(&j);
    return rc;
}

static int cancel_alive(rv_run *run, struct group *g, struct rv_effects *out, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < g->n && rc == 0; i++)
        if (g->items[i].state == BRANCH_ALIVE)
            rc = run_branch_cancel(run, &g->items[i], "the group was settled without this branch", NULL, out, err);
    run_branch_forget_ready(run);
    return rc;
}

static void tell_settled(rv_run *run, const struct group *g, struct verdict v, json_object *described,
                         struct rv_effects *out)
{
    const struct rv_agent *agents = run->pipeline->agents;

    rv_branch_emit(run, g->opener, out, RV_EMIT_GROUP_SETTLED, RV_M_TEXT("from", agents[g->stage].name),
                   RV_M_TEXT("join", g->join >= 0 ? agents[g->join].name : NULL),
                   RV_M_BOOL("satisfied", v.is_satisfied), RV_M_OF(VALUE, "group", described));
}

/* A group without a join is over: so is the branch that opened it. */
static int end_opener(rv_run *run, struct branch *b, const struct failure *failure, struct rv_effects *out,
                      rv_err **err)
{
    if (!failure->text)
        return rv_envelope_set_stage(b->env, RV_STR_LIT(RV_STAGE_END), err);
    int rc = run_failure_copy(failure, &b->failure, err);
    if (rc == 0 && !b->group)
        return run_fail_with(run, &b->failure, out, err);
    if (rc == 0)
        run_group_branch_over(run, b, BRANCH_FAILED, out);
    return rc;
}

int run_group_settle(rv_run *run, struct branch *b, struct rv_effects *out, rv_err **err)
{
    struct group *g = b->opened;
    int join = g->join;
    struct verdict v = run_join_verdict(run, g);
    struct failure failure = {0};
    json_object *described = NULL;

    int rc = cancel_alive(run, g, out, err);
    if (rc == 0)
        rc = run_join_describe(g, &described, err);
    if (rc == 0 && join >= 0 && !v.is_satisfied)
        rc = run_join_failure(run, g, &failure, err);
    else if (rc == 0 && join < 0 && run_join_first_failed(g))
        rc = run_failure_copy(&run_join_first_failed(g)->failure, &failure, err);
    if (rc == 0)
        rc = merge(run, g, v, out, err);
    if (rc == 0) {
        tell_settled(run, g, v, described, out);
        run_group_free(g);
        b->opened = NULL;
    }
    if (rc == 0 && join >= 0) {
        rc = rv_envelope_set_stage(b->env, rv_str_of(run->pipeline->agents[join].name), err);
        json_object_put(b->joined);
        b->joined = json_object_get(described);
        run_failure_fini(&b->missed);
        b->missed = failure;
        failure = (struct failure){0};
    } else if (rc == 0) {
        rc = end_opener(run, b, &failure, out, err);
    }
    if (rc == 0 && !run->finished)
        rc = run_save(run, out, err);
    run_failure_fini(&failure);
    json_object_put(described);
    return rc;
}

int run_group_close_all(rv_run *run, const char *why, json_object *partials, struct rv_effects *out, rv_err **err)
{
    int rc = run->main.opened ? run_keep_tree(run, err) : 0; /* the values of branches that are not merged */

    if (rc < 0 || !run->main.opened)
        return rc;
    return run_branch_cancel(run, &run->main, why, partials, out, err);
}
