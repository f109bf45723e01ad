/* The branches of a run as JSON, and back: what its envelope keeps of them while the run pauses. A list with one entry
 * for each branch, those of a group after the one that opened it; the first entry is the main branch. What is read may
 * have come from a file, so every word is checked. */
#include "coreengine/run/group_internal.h"

#include <stdlib.h>
#include <string.h>

#define TREE_MAX_BYTES RV_STATE_MAX_BYTES

const char *const run_branch_states[] = {
    [BRANCH_ALIVE] = "alive",   [BRANCH_ARRIVED] = "arrived",     [BRANCH_ENDED] = "ended",
    [BRANCH_FAILED] = "failed", [BRANCH_CANCELLED] = "cancelled",
};
RV_EACH_HAS_ROW(run_branch_states, N_BRANCH_STATES);

/* --- writing --- */

static void write_failure(const struct failure *f, const char *key, rv_jw *w)
{
    if (!f->text)
        return;
    rv_jw_key(w, key);
    rv_jw_obj(w);
    rv_jw_kv_text(w, "stage", f->stage);
    rv_jw_kv_text(w, "type", f->type);
    rv_jw_kv_text(w, "text", f->text);
    if (f->code != RV_FAILURE_NONE)
        rv_jw_kv_text(w, "code", rv_failure_text(f->code));
    rv_jw_kv_text(w, "reason", rv_reason_text(f->reason));
    rv_jw_kv_text(w, "status", rv_run_status_text(f->status));
    rv_jw_kv_int(w, "attempt", f->attempt);
    rv_jw_obj_end(w);
}

/* Which list of the stage it is: a rule, or -1 for default_next. */
static int64_t rule_of(const struct rv_agent *a, const struct rv_branches *list)
{
    for (size_t i = 0; i < a->routing.n_rules; i++)
        if (&a->routing.rules[i].branches == list)
            return (int64_t)i;
    return -1;
}

static void write_held(const rv_run *run, const struct branch *b, rv_jw *w)
{
    const struct rv_agent *a = b->held ? &run->pipeline->agents[b->held_by] : NULL;

    if (!a)
        return;
    rv_jw_key(w, "goes_to");
    rv_jw_obj(w);
    rv_jw_kv_text(w, "stage", a->name);
    rv_jw_kv_int(w, "rule", rule_of(a, b->held));
    rv_jw_key(w, "taken");
    rv_jw_arr(w);
    for (size_t i = 0; i < b->held->n; i++)
        rv_jw_bool(w, b->held_taken[i]);
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}

static void write_group(const rv_run *run, const struct group *g, rv_jw *w)
{
    const struct rv_agent *a = &run->pipeline->agents[g->stage];

    rv_jw_key(w, "group");
    rv_jw_obj(w);
    rv_jw_kv_text(w, "stage", a->name);
    rv_jw_kv_int(w, "rule", rule_of(a, g->list));
    if (g->failed_first)
        rv_jw_kv_int(w, "failed_first", g->failed_first - g->items);
    rv_jw_obj_end(w);
}

static int write_branch(const rv_run *run, const struct branch *b, rv_jw *w, rv_err **err)
{
    int rc = 0;

    rv_jw_obj(w);
    if (b->group) {
        rv_jw_kv_text(w, "name", b->name);
        rv_jw_kv_text(w, "path", b->path);
        rv_jw_kv_text(w, "state", run_branch_states[b->state]);
        rc = rv_envelope_write_branch(b->env, w, err);
    } else {
        rv_envelope_write_hidden(run->env, w);
    }
    if (b->asked_by >= 0)
        rv_jw_kv_text(w, "asked_by", run->pipeline->agents[b->asked_by].name);
    if (b->joined)
        rv_jw_kv_value(w, "joined", b->joined);
    write_failure(&b->missed, "missed", w);
    write_failure(&b->failure, "failure", w);
    write_held(run, b, w);
    if (b->opened)
        write_group(run, b->opened, w);
    rv_jw_obj_end(w);
    return rc;
}

int run_keep_tree(rv_run *run, rv_err **err)
{
    const struct rv_json_opts opts = {
        .max_bytes = TREE_MAX_BYTES, .max_depth = RV_STATE_MAX_DEPTH, .what = "the branches of a run"};
    rv_buf text = RV_BUF_INIT(TREE_MAX_BYTES);
    json_object *value = NULL;
    rv_jw w = rv_jw_on(&text);
    int rc = 0;

    if (!run->main.opened && !run->main.joined && !run->main.held) {
        rv_envelope_set_branches(run->env, NULL);
        return 0;
    }
    rv_jw_arr(&w);
    for (struct branch *b = &run->main; b && rc == 0; b = run_branch_next(b))
        rc = write_branch(run, b, &w, err);
    rv_jw_arr_end(&w);
    if (rc == 0)
        rc = rv_buf_check(&text, "the branches of a run", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&text), &opts, &value, err);
    if (rc == 0)
        rv_envelope_set_branches(run->env, value);
    json_object_put(value);
    rv_buf_fini(&text);
    return rc;
}

/* --- reading --- */

struct reader {
    rv_run *run;
    json_object *entries;
    size_t at; /* the entry that is read next */
    rv_err **err;
};

static int bad(struct reader *rd, const char *what)
{
    return RV_FAIL(rd->err, RV_E_INVALID, "state key \"branches\": entry %zu %s", rd->at, what);
}

static int stage_of(struct reader *rd, json_object *obj, const char *key)
{
    const char *name = NULL;

    return rv_json_get_text(obj, key, &name) ? rv_pipeline_find_stage(rd->run->pipeline, rv_str_of(name)) : -1;
}

static int read_failure(struct reader *rd, json_object *entry, const char *key, struct failure *out)
{
    json_object *obj = rv_json_get_obj(entry, key);
    const char *stage = NULL, *type = NULL, *text = NULL, *code = NULL, *reason = NULL, *status = NULL;
    struct failure f = {.code = RV_FAILURE_NONE, .reason = RV_REASON_NONE, .status = RV_RUN_FAILED, .attempt = 1};

    if (!obj)
        return 0;
    if (!rv_json_get_text(obj, "stage", &stage) || !rv_json_get_text(obj, "type", &type) ||
        !rv_json_get_text(obj, "text", &text))
        return bad(rd, "has a failure without stage, type or text");
    if (rv_json_get_text(obj, "code", &code) && rv_failure_of(rv_str_of(code), &f.code, rd->err) < 0)
        return RV_E_INVALID;
    if (rv_json_get_text(obj, "reason", &reason) && rv_reason_of(rv_str_of(reason), &f.reason, rd->err) < 0)
        return RV_E_INVALID;
    if (rv_json_get_text(obj, "status", &status) && rv_run_status_of(rv_str_of(status), &f.status, rd->err) < 0)
        return RV_E_INVALID;
    f.attempt = rv_json_int_or(obj, "attempt", f.attempt);
    f.stage = (char *)stage;
    f.type = (char *)type;
    f.text = (char *)text;
    return run_failure_copy(&f, out, rd->err);
}

/* The list that a stage and a rule name; NULL: there is none. */
static const struct rv_branches *list_of(struct reader *rd, json_object *obj, int *stage)
{
    const struct rv_agent *a;
    int64_t rule = -1;

    *stage = stage_of(rd, obj, "stage");
    if (*stage < 0 || !rv_json_get_int(obj, "rule", &rule))
        return NULL;
    a = &rd->run->pipeline->agents[*stage];
    if (rule >= 0 ? (size_t)rule >= a->routing.n_rules || a->routing.rules[rule].target != RV_TARGET_LIST
                  : a->routing.default_target != RV_TARGET_LIST)
        return NULL;
    return rv_agent_list(a, rule >= 0 ? (int)rule : -1);
}

static int read_held(struct reader *rd, json_object *entry, struct branch *b)
{
    json_object *obj = rv_json_get_obj(entry, "goes_to"), *taken = obj ? rv_json_get_arr(obj, "taken") : NULL;
    int stage;

    if (!obj)
        return 0;
    const struct rv_branches *list = list_of(rd, obj, &stage);
    if (!list || !taken || json_object_array_length(taken) != list->n)
        return bad(rd, "goes on to a list that the pipeline does not have");
    bool *words = calloc(list->n, sizeof *words);
    if (!words)
        return RV_FAIL(rd->err, RV_E_NOMEM, "load a branch");
    for (size_t i = 0; i < list->n; i++)
        words[i] = json_object_get_boolean(json_object_array_get_idx(taken, i));
    int rc = run_branch_hold(b, stage, list, words, rd->err);
    free(words);
    return rc;
}

static int read_common(struct reader *rd, json_object *entry, struct branch *b)
{
    int rc = read_failure(rd, entry, "missed", &b->missed);

    if (rc == 0)
        rc = read_failure(rd, entry, "failure", &b->failure);
    if (rc == 0)
        rc = read_held(rd, entry, b);
    if (rc == 0) {
        b->asked_by = stage_of(rd, entry, "asked_by");
        b->joined = json_object_get(rv_json_get_obj(entry, "joined"));
    }
    return rc;
}

static int read_branch(struct reader *rd, struct branch *b, json_object *entry);

static int read_items(struct reader *rd, struct group *g, const struct rv_branches *list)
{
    int rc = 0;

    for (size_t i = 0; i < list->n && rc == 0; i++) {
        json_object *entry = json_object_array_get_idx(rd->entries, rd->at);
        const char *name = NULL;

        if (!json_object_is_type(entry, json_type_object) || !rv_json_get_text(entry, "name", &name) ||
            strcmp(name, list->items[i].name) != 0)
            return bad(rd, "is not the branch that stands there in the pipeline");
        rc = run_group_add(g, &list->items[i], rd->err);
        if (rc == 0)
            rc = read_branch(rd, &g->items[i], entry);
    }
    return rc;
}

static int read_group(struct reader *rd, struct branch *b, json_object *obj)
{
    int64_t first = 0;
    int stage;
    const struct rv_branches *list = list_of(rd, obj, &stage);

    if (!list)
        return bad(rd, "opened a list that the pipeline does not have");
    int rc = run_group_new(rd->run, b, stage, list, rd->err);
    rd->at++;
    if (rc == 0)
        rc = read_items(rd, b->opened, list);
    if (rc < 0 || !rv_json_get_int(obj, "failed_first", &first))
        return rc;
    if (first < 0 || (size_t)first >= list->n || b->opened->items[first].state != BRANCH_FAILED)
        return bad(rd, "says that a branch failed first which did not fail");
    b->opened->failed_first = &b->opened->items[first];
    return 0;
}

/* The entry at rd->at, and those of what it opened. */
static int read_branch(struct reader *rd, struct branch *b, json_object *entry)
{
    json_object *group = rv_json_get_obj(entry, "group");
    const char *word = NULL;
    size_t state = 0;

    if (b->group) {
        while (state < N_BRANCH_STATES && rv_json_get_text(entry, "state", &word) &&
               strcmp(run_branch_states[state], word) != 0)
            state++;
        if (!word || state == N_BRANCH_STATES)
            return bad(rd, "is in no known state");
        int rc = rv_envelope_load_branch(b->group->opener->env, entry, &b->env, rd->err);
        if (rc < 0)
            return rc;
        b->state = (enum branch_state)state;
        b->group->n_alive += b->state == BRANCH_ALIVE;
        b->group->n_arrived += b->state == BRANCH_ARRIVED;
    }
    int rc = read_common(rd, entry, b);
    if (rc == 0 && b->state == BRANCH_FAILED && !b->failure.text)
        rc = bad(rd, "has failed without a failure");
    if (rc == 0 && group && b->state == BRANCH_ALIVE)
        return read_group(rd, b, group);
    rd->at++;
    return rc;
}

/* No branch could move when the run paused; in a state that a person has edited one may. */
static void wake(rv_run *run)
{
    for (struct branch *b = &run->main; b; b = run_branch_next(b)) {
        if (b->opened)
            run_group_look_at(run, b->opened);
        else if (b->state == BRANCH_ALIVE)
            run_branch_ready(run, b);
    }
}

int run_load_tree(rv_run *run, rv_err **err)
{
    struct reader rd = {.run = run, .entries = rv_envelope_branches(run->env), .err = err};
    json_object *entry = rd.entries ? json_object_array_get_idx(rd.entries, 0) : NULL;

    if (!entry || run->has_tree)
        return 0;
    int rc = json_object_is_type(entry, json_type_object) ? rv_envelope_expect_questions(run->env, err)
                                                          : bad(&rd, "is not an object");
    if (rc == 0)
        rc = read_branch(&rd, &run->main, entry);
    if (rc == 0 && rd.at != json_object_array_length(rd.entries))
        rc = bad(&rd, "belongs to no group");
    if (rc == 0 && run->main.opened)
        rc = run_totals_begin(run, err);
    if (rc < 0) { /* as if it had not been tried */
        run_branch_fini(&run->main);
        run->main.env = run->env;
        return rc;
    }
    run->has_tree = true;
    wake(run);
    return 0;
}
