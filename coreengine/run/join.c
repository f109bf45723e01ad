/* The rule of a join: when its group is settled, whether that satisfies it, whose values are merged, and what the
 * variable `group` and the error of an unsatisfied join say. */
#include "coreengine/run/group_internal.h"
#include "envelope/envelope.h"

#include <stdlib.h>

void run_failure_fini(struct failure *f)
{
    free(f->stage);
    free(f->type);
    free(f->text);
    *f = (struct failure){0};
}

int run_failure_copy(const struct failure *from, struct failure *to, rv_err **err)
{
    struct failure f = *from;

    f.stage = rv_str_dup(rv_str_of(from->stage));
    f.type = rv_str_dup(rv_str_of(from->type));
    f.text = rv_str_dup(rv_str_of(from->text));
    if (!f.stage || !f.type || !f.text) {
        run_failure_fini(&f);
        return RV_FAIL(err, RV_E_NOMEM, "keep a failure");
    }
    run_failure_fini(to);
    *to = f;
    return 0;
}

static size_t count(const struct group *g, enum branch_state state)
{
    size_t n = 0;

    for (size_t i = 0; i < g->n; i++)
        n += g->items[i].state == state;
    return n;
}

/* The table of joins. A group without a join is settled, and merged, as by a join that waits for all. */
struct verdict run_join_verdict(const rv_run *run, const struct group *g)
{
    static const struct rv_agent_join none = {.wait = RV_WAIT_ALL, .failures = RV_FAILURES_DRAIN};
    const struct rv_agent_join *join = g->join >= 0 ? &run->pipeline->agents[g->join].join : &none;
    struct verdict v = {.is_settled = g->n_alive == 0, .takes_arrived = true, .takes_ended = true};
    size_t wanted = join->wait == RV_WAIT_COUNT ? (size_t)join->count : 0;

    if (join->wait == RV_WAIT_COUNT) {
        v.is_settled = g->n_arrived >= wanted || g->n_arrived + g->n_alive < wanted;
        v.is_satisfied = g->n_arrived >= wanted;
        v.takes_arrived = v.is_satisfied;
        v.takes_ended = false;
    } else if (join->wait == RV_WAIT_ANY) {
        v.is_satisfied = g->n_arrived > 0;
    } else {
        v.is_satisfied = !g->failed_first || join->failures == RV_FAILURES_COLLECT;
        if (join->failures == RV_FAILURES_FAST && g->failed_first) {
            v.is_settled = true;
            v.takes_arrived = v.takes_ended = false;
        }
    }
    return v;
}

const struct branch *run_join_first_failed(const struct group *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->items[i].state == BRANCH_FAILED)
            return &g->items[i];
    return NULL;
}

/* `any` and N: too few arrived. */
static int too_few(const rv_run *run, const struct group *g, struct failure *out, rv_err **err)
{
    const struct rv_agent *at = &run->pipeline->agents[g->join];
    const struct branch *failed = run_join_first_failed(g);
    int64_t wanted = at->join.wait == RV_WAIT_COUNT ? at->join.count : 1;
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    rv_buf_printf(&text, "join \"%s\" needs %lld of %zu branches to arrive: %zu arrived, %zu ended, %zu failed",
                  at->name, (long long)wanted, g->n, g->n_arrived, count(g, BRANCH_ENDED), count(g, BRANCH_FAILED));
    if (failed)
        rv_buf_printf(&text, "; branch \"%s\": %s", failed->name, failed->failure.text);
    int rc = rv_buf_check(&text, "the failure of a join", err);
    const struct failure f = {.stage = (char *)at->name,
                              .type = (char *)rv_error_join,
                              .text = (char *)rv_buf_cstr(&text),
                              .code = RV_FAILURE_JOIN_FAILED,
                              .reason = RV_REASON_JOIN,
                              .status = RV_RUN_FAILED,
                              .attempt = 1};
    if (rc == 0)
        rc = run_failure_copy(&f, out, err);
    rv_buf_fini(&text);
    return rc;
}

int run_join_failure(const rv_run *run, const struct group *g, struct failure *out, rv_err **err)
{
    const struct rv_agent_join *join = &run->pipeline->agents[g->join].join;

    if (join->wait != RV_WAIT_ALL)
        return too_few(run, g, out, err);
    const struct branch *b = join->failures == RV_FAILURES_FAST ? g->failed_first : run_join_first_failed(g);
    return run_failure_copy(&b->failure, out, err);
}

static int names(const struct group *g, enum branch_state state, json_object *to, const char *key, rv_err **err)
{
    json_object *list = json_object_new_array();
    int rc = rv_json_set_take(to, key, list, err);

    for (size_t i = 0; i < g->n && rc == 0; i++)
        if (g->items[i].state == state)
            rc = rv_json_push_take(list, json_object_new_string(g->items[i].name), err);
    return rc;
}

static int failures(const struct group *g, json_object *to, rv_err **err)
{
    json_object *list = json_object_new_array();
    int rc = rv_json_set_take(to, "failed", list, err);

    for (size_t i = 0; i < g->n && rc == 0; i++) {
        const struct branch *b = &g->items[i];
        json_object *entry = NULL;

        if (b->state != BRANCH_FAILED)
            continue;
        entry = json_object_new_object();
        rc = RV_SET(entry, err, RV_M_TEXT("branch", b->name), RV_M_TEXT("stage", b->failure.stage),
                    RV_M_TEXT("code", b->failure.type), RV_M_TEXT("text", b->failure.text));
        if (rc == 0)
            rc = rv_json_push_ref(list, entry, err);
        json_object_put(entry);
    }
    return rc;
}

int run_join_describe(const struct group *g, json_object **out, rv_err **err)
{
    json_object *obj = json_object_new_object();
    int rc = obj ? names(g, BRANCH_ARRIVED, obj, "arrived", err) : RV_FAIL(err, RV_E_NOMEM, "describe a group");

    if (rc == 0)
        rc = names(g, BRANCH_ENDED, obj, "ended", err);
    if (rc == 0)
        rc = names(g, BRANCH_CANCELLED, obj, "cancelled", err);
    if (rc == 0)
        rc = failures(g, obj, err);
    if (rc < 0) {
        json_object_put(obj);
        return rc;
    }
    *out = obj;
    return 0;
}
