/* Which stages and routes the tests took. A route is what can decide where a run goes after a stage: a rule, the
 * default, the end that follows when no rule fits, a routing function, the error route, each branch of a list, and each
 * choice of a person that leads somewhere. */
#include "coreengine/app/testing/testing_internal.h"

#include <stdlib.h>
#include <string.h>

enum item_kind {
    ITEM_STAGE,
    ITEM_RULE,
    ITEM_FUNCTION,
    ITEM_DEFAULT,
    ITEM_NO_MATCH,
    ITEM_ERROR,
    ITEM_BRANCH,
    ITEM_ANSWER,
    N_ITEM_KINDS
};

struct item {
    enum item_kind kind;
    int stage, rule;  /* rule: of ITEM_RULE, and of the list of an ITEM_BRANCH; -1: of default_next */
    const char *name; /* of a branch; the choice of an answer; borrowed */
    const char *to;   /* ITEM_ANSWER: where it leads */
    struct rv_src src;
    int64_t hits;
};

struct rv_coverage {
    const struct rv_pipeline *pipeline; /* borrowed */
    struct item *items;                 /* owned */
    size_t n;
    int rc; /* an event could not be read: the count is not complete */
};

static struct rv_src src_or(struct rv_src src, const struct rv_agent *a)
{
    return src.line > 0 ? src : a->places.stage;
}

static void add(rv_coverage *c, enum item_kind kind, const struct rv_agent *a, int rule, struct rv_src src)
{
    c->items[c->n++] = (struct item){.kind = kind, .stage = a->index, .rule = rule, .src = src_or(src, a)};
}

static void add_branches(rv_coverage *c, const struct rv_agent *a, int rule, const struct rv_branches *list)
{
    for (size_t i = 0; i < list->n; i++) {
        add(c, ITEM_BRANCH, a, rule, list->items[i].src);
        c->items[c->n - 1].name = list->items[i].name;
    }
}

static void add_answers(rv_coverage *c, const struct rv_agent *a)
{
    for (size_t i = 0; i < a->ask.n_routes; i++) {
        add(c, ITEM_ANSWER, a, -1, a->ask.routes[i].src);
        c->items[c->n - 1].name = a->ask.routes[i].choice;
        c->items[c->n - 1].to = a->ask.routes[i].target_name;
    }
}

static size_t count_items(const struct rv_agent *a)
{
    size_t n = a->routing.n_rules + 4 + a->routing.branches.n + a->ask.n_routes;

    for (size_t i = 0; i < a->routing.n_rules; i++)
        n += a->routing.rules[i].branches.n;
    return n;
}

static void add_stage(rv_coverage *c, const struct rv_agent *a)
{
    bool routes = c->pipeline->default_run_mode != RV_MODE_PARALLEL; /* only sequential runs look at routes */

    add(c, ITEM_STAGE, a, -1, a->places.name);
    if (routes && a->routing.function[0]) {
        add(c, ITEM_FUNCTION, a, -1, a->places.routing_function);
    } else if (routes) {
        for (size_t i = 0; i < a->routing.n_rules; i++) {
            add(c, ITEM_RULE, a, (int)i, a->routing.rules[i].src);
            add_branches(c, a, (int)i, &a->routing.rules[i].branches);
        }
        if (a->routing.default_target != RV_TARGET_NONE)
            add(c, ITEM_DEFAULT, a, -1, a->places.default_next);
        else if (a->routing.n_rules > 0)
            add(c, ITEM_NO_MATCH, a, -1, a->places.stage);
    }
    if (routes) {
        add_branches(c, a, -1, &a->routing.branches);
        add_answers(c, a);
    }
    if (a->routing.error_target != RV_TARGET_NONE)
        add(c, ITEM_ERROR, a, -1, a->places.error_next);
}

rv_coverage *rv_coverage_new(const struct rv_pipeline *p)
{
    rv_coverage *c = calloc(1, sizeof *c);
    size_t n = 0;

    for (size_t i = 0; i < p->n_agents; i++)
        n += count_items(&p->agents[i]);
    if (!c || !(c->items = calloc(n + 1, sizeof *c->items))) {
        free(c);
        return NULL;
    }
    c->pipeline = p;
    for (size_t i = 0; i < p->n_agents; i++)
        add_stage(c, &p->agents[i]);
    return c;
}

void rv_coverage_free(rv_coverage *c)
{
    if (!c)
        return;
    free(c->items);
    free(c);
}

static void hit(rv_coverage *c, enum item_kind kind, int stage, int64_t rule)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->items[i].kind == kind && c->items[i].stage == stage && (kind != ITEM_RULE || c->items[i].rule == rule))
            c->items[i].hits++;
}

static void hit_named(rv_coverage *c, enum item_kind kind, int stage, int64_t rule, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->items[i].kind == kind && c->items[i].stage == stage && c->items[i].rule == rule &&
            strcmp(c->items[i].name, name) == 0)
            c->items[i].hits++;
}

/* The branches that were begun, and the choice that decided. */
static void hit_parts(rv_coverage *c, int stage, int64_t rule, json_object *event)
{
    json_object *branches = rv_json_get_arr(event, "branches");
    const char *choice = NULL;

    for (size_t i = 0; branches && i < json_object_array_length(branches); i++) {
        json_object *name = json_object_array_get_idx(branches, i);
        if (json_object_is_type(name, json_type_string))
            hit_named(c, ITEM_BRANCH, stage, rule, json_object_get_string(name));
    }
    if (rv_json_get_text(event, "choice", &choice))
        hit_named(c, ITEM_ANSWER, stage, -1, choice);
}

static void hit_route(rv_coverage *c, int stage, json_object *event)
{
    /* Only decisions: the other routes are hit by the events of their own kinds. */
    static const enum item_kind kinds[RV_ROUTE_NO_MATCH + 1] = {
        [RV_ROUTE_RULE] = ITEM_RULE,
        [RV_ROUTE_FUNCTION] = ITEM_FUNCTION,
        [RV_ROUTE_DEFAULT] = ITEM_DEFAULT,
        [RV_ROUTE_NO_MATCH] = ITEM_NO_MATCH,
    };

    const char *reason = rv_json_text_or(event, "reason", "");
    int64_t rule = rv_json_int_or(event, "rule", -1);
    for (size_t by = 0; by < RV_COUNT(kinds); by++)
        if (strcmp(rv_route_by_text((enum rv_route_by)by), reason) == 0)
            hit(c, kinds[by], stage, rule);
    hit_parts(c, stage, rule, event);
}

/* Decisions are announced in sequential runs only; a routed failure shows in how the stage ended, in both. */
void rv_coverage_note_event(rv_coverage *c, const struct rv_effect *e, rv_str line)
{
    const struct rv_json_opts opts = {.max_bytes = TEST_MAX_LINE, .max_depth = RV_STATE_MAX_DEPTH};
    json_object *event = NULL;
    const char *status = NULL;

    if (e->stage < 0)
        return;
    if (e->emit == RV_EMIT_STAGE_STARTED) {
        hit(c, ITEM_STAGE, e->stage, -1);
        return;
    }
    bool ended =
        e->emit == RV_EMIT_STAGE_COMPLETED && c->pipeline->agents[e->stage].routing.error_target != RV_TARGET_NONE;
    if (e->emit != RV_EMIT_ROUTING_DECISION && !ended)
        return;
    int rc =
        rv_json_parse(line, &opts, &event, RV_CODE_ONLY("the collector keeps the code and reports it with its count"));
    if (rc < 0) {
        c->rc = rc;
        return;
    }
    if (!ended)
        hit_route(c, e->stage, event);
    else if (rv_json_get_text(event, "status", &status) && strcmp(status, "error") == 0)
        hit(c, ITEM_ERROR, e->stage, -1);
    json_object_put(event);
}

int rv_coverage_check(const rv_coverage *c, rv_err **err)
{
    return c->rc < 0 ? RV_FAIL(err, c->rc, "count coverage") : 0;
}

struct rv_coverage_counts rv_coverage_counts(const rv_coverage *c)
{
    struct rv_coverage_counts n = {0};

    for (size_t i = 0; i < c->n; i++) {
        bool is_stage = c->items[i].kind == ITEM_STAGE, is_hit = c->items[i].hits > 0;
        n.n_stages += is_stage;
        n.n_stages_hit += is_stage && is_hit;
        n.n_routes += !is_stage;
        n.n_routes_hit += !is_stage && is_hit;
    }
    n.percent = c->n ? 100.0 * (double)(n.n_stages_hit + n.n_routes_hit) / (double)c->n : 100.0;
    return n;
}

/* "rule 2 of "judge" (verdict) -> read" */
static void write_name(const rv_coverage *c, const struct item *it, rv_buf *b)
{
    const struct rv_agent *a = &c->pipeline->agents[it->stage];
    const struct rv_rule *rule = it->kind == ITEM_RULE ? &a->routing.rules[it->rule] : NULL;

    switch (it->kind) {
    case ITEM_STAGE:
        rv_buf_printf(b, "stage \"%s\"", a->name);
        break;
    case ITEM_RULE:
        rv_buf_printf(b, "rule %d of \"%s\" (%s) -> %s", it->rule + 1, a->name,
                      rule->when ? rv_expr_text(rule->when) : rule->condition,
                      rule->branches.is_list ? "a list" : rule->target_name);
        break;
    case ITEM_BRANCH:
        rv_buf_printf(b, "branch \"%s\" of \"%s\"", it->name, a->name);
        break;
    case ITEM_ANSWER:
        rv_buf_printf(b, "answer \"%s\" of \"%s\" -> %s", it->name, a->name, it->to);
        break;
    case ITEM_FUNCTION:
        rv_buf_printf(b, "routing function of \"%s\" (%s)", a->name, a->routing.function);
        break;
    case ITEM_DEFAULT:
        rv_buf_printf(b, "default of \"%s\" -> %s", a->name,
                      a->routing.branches.is_list ? "a list" : a->routing.default_next);
        break;
    case ITEM_NO_MATCH:
        rv_buf_printf(b, "\"%s\" when no rule fits -> end", a->name);
        break;
    case ITEM_ERROR:
        rv_buf_printf(b, "error route of \"%s\" -> %s", a->name, a->routing.error_next);
        break;
    case N_ITEM_KINDS:
        break;
    }
}

void rv_coverage_write_text(const rv_coverage *c, rv_buf *b)
{
    struct rv_coverage_counts n = rv_coverage_counts(c);

    rv_buf_printf(b, "  coverage: %zu of %zu stages, %zu of %zu routes (%.1f %%)\n", n.n_stages_hit, n.n_stages,
                  n.n_routes_hit, n.n_routes, n.percent);
    for (size_t i = 0; i < c->n; i++) {
        const struct item *it = &c->items[i];
        if (it->hits > 0)
            continue;
        rv_buf_printf(b, "    %s:%d:%d: not taken: ", it->src.file ? it->src.file : c->pipeline->file, it->src.line,
                      it->src.col);
        write_name(c, it, b);
        rv_buf_putc(b, '\n');
    }
}

void rv_coverage_write_json(const rv_coverage *c, rv_jw *w)
{
    static const char *const kinds[] = {
        [ITEM_STAGE] = "stage",     [ITEM_RULE] = "rule",         [ITEM_FUNCTION] = "function",
        [ITEM_DEFAULT] = "default", [ITEM_NO_MATCH] = "no_match", [ITEM_ERROR] = "error_route",
        [ITEM_BRANCH] = "branch",   [ITEM_ANSWER] = "answer"};
    RV_EACH_HAS_ROW(kinds, N_ITEM_KINDS);
    struct rv_coverage_counts n = rv_coverage_counts(c);
    rv_buf name = RV_BUF_INIT(1 << 16);

    rv_jw_obj(w);
    rv_jw_kv_int(w, "stages", (int64_t)n.n_stages);
    rv_jw_kv_int(w, "stages_hit", (int64_t)n.n_stages_hit);
    rv_jw_kv_int(w, "routes", (int64_t)n.n_routes);
    rv_jw_kv_int(w, "routes_hit", (int64_t)n.n_routes_hit);
    rv_jw_key(w, "percent");
    rv_jw_double(w, n.percent);
    rv_jw_key(w, "items");
    rv_jw_arr(w);
    for (size_t i = 0; i < c->n; i++) {
        const struct item *it = &c->items[i];
        rv_buf_clear(&name);
        write_name(c, it, &name);
        rv_jw_obj(w);
        rv_jw_kv_text(w, "kind", kinds[it->kind]);
        rv_jw_kv_text(w, "stage", c->pipeline->agents[it->stage].name);
        rv_jw_kv_buf(w, "name", &name);
        rv_jw_kv_int(w, "line", it->src.line);
        rv_jw_kv_int(w, "hits", it->hits);
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
    rv_buf_fini(&name);
}
