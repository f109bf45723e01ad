/* The words of the simulation, the stages and routes that it counts, and its report, as text and as JSON. */
#include "coreengine/base/base.h"
#include "coreengine/sim/sim_internal.h"

#include <stdlib.h>
#include <string.h>

#define TEXT(n, t, m)    t,
#define MEANING(n, t, m) m,
static const char *const fault_texts[] = {RV_SIM_FAULTS(TEXT)};
static const char *const invariant_texts[] = {RV_SIM_INVARIANTS(TEXT)};
static const char *const invariant_meanings[] = {RV_SIM_INVARIANTS(MEANING)};

/* A fault, or all of a family: "crash" is crash-before, crash-after, ... */
static unsigned faults_named(rv_str word)
{
    unsigned bits = 0;

    if (rv_str_is(word, "all"))
        return RV_SIM_ALL_FAULTS;
    for (size_t i = 0; i < RV_N_SIM_FAULTS; i++) {
        rv_str text = rv_str_of(fault_texts[i]);
        bool family = text.len > word.len && text.ptr[word.len] == '-' && memcmp(text.ptr, word.ptr, word.len) == 0;
        if (rv_str_eq(text, word) || family)
            bits |= 1u << i;
    }
    return bits;
}

int rv_sim_faults_of(rv_str text, unsigned *out, rv_err **err)
{
    unsigned bits = 0;

    for (size_t at = 0; at <= text.len;) {
        const char *comma = at < text.len ? memchr(text.ptr + at, ',', text.len - at) : NULL;
        size_t end = comma ? (size_t)(comma - text.ptr) : text.len;
        rv_str word = rv_str_trim((rv_str){text.ptr + at, end - at});
        unsigned found = word.len ? faults_named(word) : 0;
        if (!found && !rv_str_is(word, "none")) {
            rv_str shown = rv_utf8_cut(word, 40);
            const char *near = rv_nearest(word, fault_texts, RV_N_SIM_FAULTS);
            int rc = RV_FAIL(err, RV_E_INVALID, "there is no fault \"%.*s\"", RV_STR_ARG(shown));
            if (near)
                rv_err_set_hint(err, "did you mean \"%s\"?", near);
            else
                rv_err_set_hint(err, "faults are model, tool, hook, person, cancel, crash and zombie, or all, or none");
            return rc;
        }
        bits |= found;
        at = end + 1;
    }
    *out = bits;
    return 0;
}

/* --- stages and routes --- */

static void add_place(struct rv_sim_report *r, enum rv_sim_place_kind kind, const struct rv_agent *a, int rule)
{
    r->places[r->n_places++] = (struct rv_sim_place){.kind = kind, .stage = a->index, .rule = rule};
}

static void add_stage(int mode, struct rv_sim_report *r, const struct rv_agent *a)
{
    bool routes = mode != RV_MODE_PARALLEL; /* only sequential runs look at routes */

    add_place(r, RV_SIM_STAGE, a, -1);
    if (routes && a->routing.function[0]) {
        add_place(r, RV_SIM_FUNCTION, a, -1);
    } else if (routes) {
        for (size_t i = 0; i < a->routing.n_rules; i++)
            add_place(r, RV_SIM_RULE, a, (int)i);
        if (a->routing.default_target != RV_TARGET_NONE)
            add_place(r, RV_SIM_DEFAULT, a, -1);
        else if (a->routing.n_rules > 0)
            add_place(r, RV_SIM_NO_MATCH, a, -1);
    }
    if (routes && a->routing.error_target != RV_TARGET_NONE)
        add_place(r, RV_SIM_ERROR_ROUTE, a, -1);
}

int sim_places_new(const struct rv_pipeline *p, int mode, struct rv_sim_report *r, rv_err **err)
{
    size_t n = 1;

    for (size_t i = 0; i < p->n_agents; i++)
        n += p->agents[i].routing.n_rules + 3;
    r->places = calloc(n, sizeof *r->places);
    if (!r->places)
        return RV_FAIL(err, RV_E_NOMEM, "count the routes of pipeline \"%s\"", p->name);
    for (size_t i = 0; i < p->n_agents; i++)
        add_stage(mode, r, &p->agents[i]);
    return 0;
}

void sim_places_hit(struct rv_sim_report *r, enum rv_sim_place_kind kind, int stage, int64_t rule)
{
    for (size_t i = 0; i < r->n_places; i++) {
        struct rv_sim_place *at = &r->places[i];
        if (at->kind == kind && at->stage == stage && (kind != RV_SIM_RULE || at->rule == rule))
            at->hits++;
    }
}

/* --- the report --- */

void rv_sim_report_fini(struct rv_sim_report *r)
{
    free(r->places);
    free(r->failure.text);
    free(r->failure.trace);
    free(r->trace);
    memset(r, 0, sizeof *r);
}

static void place_text(const struct rv_sim_place *at, const struct rv_pipeline *p, rv_buf *b)
{
    const struct rv_agent *a = &p->agents[at->stage];

    switch (at->kind) {
    case RV_SIM_STAGE:
        rv_buf_printf(b, "stage %s", a->name);
        break;
    case RV_SIM_RULE:
        rv_buf_printf(b, "%s -> %s (rule %d)", a->name, a->routing.rules[at->rule].target_name, at->rule + 1);
        break;
    case RV_SIM_FUNCTION:
        rv_buf_printf(b, "%s -> whatever %s says", a->name, a->routing.function);
        break;
    case RV_SIM_DEFAULT:
        rv_buf_printf(b, "%s -> %s (default)", a->name, a->routing.default_next);
        break;
    case RV_SIM_NO_MATCH:
        rv_buf_printf(b, "%s -> end (no rule fits)", a->name);
        break;
    case RV_SIM_ERROR_ROUTE:
        rv_buf_printf(b, "%s -> %s (error)", a->name, a->routing.error_next);
        break;
    }
}

static void count_places(const struct rv_sim_report *r, bool stages, size_t *n, size_t *n_hit)
{
    *n = *n_hit = 0;
    for (size_t i = 0; i < r->n_places; i++) {
        if ((r->places[i].kind == RV_SIM_STAGE) != stages)
            continue;
        ++*n;
        *n_hit += r->places[i].hits > 0;
    }
}

static void write_places(const struct rv_sim_report *r, const struct rv_pipeline *p, rv_buf *b)
{
    size_t n, n_hit, n_routes, n_routes_hit;

    count_places(r, true, &n, &n_hit);
    count_places(r, false, &n_routes, &n_routes_hit);
    rv_buf_printf(b, "  stages  %zu of %zu, routes %zu of %zu\n", n_hit, n, n_routes_hit, n_routes);
    for (size_t i = 0; i < r->n_places && r->n_seeds > 1; i++)
        if (r->places[i].hits == 0) {
            rv_buf_puts(b, "          never: ");
            place_text(&r->places[i], p, b);
            rv_buf_putc(b, '\n');
        }
}

static int64_t per_second(const struct rv_sim_report *r)
{
    return r->elapsed_us > 0 ? r->n_seeds * 1000000 / r->elapsed_us : 0;
}

static void write_failure(const struct rv_sim_failure *f, rv_buf *b)
{
    rv_buf_printf(b, "\nseed %llu breaks \"%s\" (%s)\n  %s\n\nhow it comes to that, with %zu of %zu decisions:\n",
                  (unsigned long long)f->seed, invariant_texts[f->invariant], invariant_meanings[f->invariant], f->text,
                  f->n_decisions, f->n_before);
    rv_buf_puts(b, f->trace);
}

static void write_agents(const struct rv_sim_report *r, rv_buf *b)
{
    if (r->n_asked > 0)
        rv_buf_printf(
            b,
            "  agents  %lld times asked, %lld worked and %lld had an answer, %lld deep at most; %lld calls of "
            "theirs, %lld faults hit them\n",
            (long long)r->n_asked, (long long)r->n_agents, (long long)r->n_agents_ok, (long long)r->max_depth,
            (long long)r->n_agent_calls, (long long)r->n_agent_faults);
    if (r->n_turns > 0)
        rv_buf_printf(b, "  turns   %lld kept, with %lld rows\n", (long long)r->n_turns, (long long)r->n_rows);
}

void rv_sim_report_write_text(const struct rv_sim_report *r, const struct rv_pipeline *p, rv_buf *b)
{
    const char *sep = "  runs    ";

    rv_buf_printf(b, "%s: %lld seed%s, %lld steps, %lld calls, %lld seeds/s\n", p->file, (long long)r->n_seeds,
                  r->n_seeds == 1 ? "" : "s", (long long)r->n_steps, (long long)r->n_calls, (long long)per_second(r));
    for (int i = 0; i < RV_N_RUN; i++)
        if (r->by_status[i]) {
            rv_buf_printf(b, "%s%s %lld", sep, rv_run_status_text((enum rv_run_status)i), (long long)r->by_status[i]);
            sep = ", ";
        }
    rv_buf_puts(b, sep[0] == ',' ? "\n" : "");
    write_places(r, p, b);
    rv_buf_printf(b, "  people  %lld answers; the world: %lld effects of tools; %lld take-overs of a run\n",
                  (long long)r->n_answers, (long long)r->n_effects, (long long)r->n_recoveries);
    write_agents(r, b);
    sep = "  faults  ";
    for (int i = 0; i < RV_N_SIM_FAULTS; i++)
        if (r->faults[i]) {
            rv_buf_printf(b, "%s%s %lld", sep, fault_texts[i], (long long)r->faults[i]);
            sep = ", ";
        }
    rv_buf_puts(b, sep[0] == ',' ? "\n" : "  faults  none\n");
    if (!r->has_failure)
        rv_buf_printf(b, "  hash    %s\n", r->hash);
    if (r->trace) {
        rv_buf_putc(b, '\n');
        rv_buf_puts(b, r->trace);
    }
    if (r->has_failure)
        write_failure(&r->failure, b);
}

static void write_hits(const struct rv_sim_report *r, const struct rv_pipeline *p, rv_jw *w)
{
    rv_buf name = RV_BUF_INIT(4096);

    for (size_t i = 0; i < r->n_places; i++) {
        rv_buf_clear(&name);
        place_text(&r->places[i], p, &name);
        if (name.rc < 0)
            rv_buf_add_buf(w->out, &name);
        rv_jw_kv_int(w, rv_buf_cstr(&name), r->places[i].hits);
    }
    rv_buf_fini(&name);
}

void rv_sim_report_write_json(const struct rv_sim_report *r, const struct rv_pipeline *p, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_path(w, "file", p->file);
    rv_jw_kv_int(w, "seeds", r->n_seeds);
    rv_jw_kv_int(w, "steps", r->n_steps);
    rv_jw_kv_int(w, "calls", r->n_calls);
    rv_jw_kv_int(w, "answers", r->n_answers);
    rv_jw_kv_int(w, "effects", r->n_effects);
    rv_jw_kv_int(w, "take_overs", r->n_recoveries);
    rv_jw_key(w, "agents");
    rv_jw_obj(w);
    rv_jw_kv_int(w, "asked", r->n_asked);
    rv_jw_kv_int(w, "worked", r->n_agents);
    rv_jw_kv_int(w, "answered", r->n_agents_ok);
    rv_jw_kv_int(w, "max_depth", r->max_depth);
    rv_jw_kv_int(w, "calls", r->n_agent_calls);
    rv_jw_kv_int(w, "faults", r->n_agent_faults);
    rv_jw_obj_end(w);
    rv_jw_kv_int(w, "turns", r->n_turns);
    rv_jw_kv_int(w, "rows", r->n_rows);
    rv_jw_kv_int(w, "elapsed_ms", r->elapsed_us / RV_US_PER_MS);
    rv_jw_key(w, "runs");
    rv_jw_obj(w);
    for (int i = 0; i < RV_N_RUN; i++)
        if (r->by_status[i])
            rv_jw_kv_int(w, rv_run_status_text((enum rv_run_status)i), r->by_status[i]);
    rv_jw_obj_end(w);
    rv_jw_key(w, "faults");
    rv_jw_obj(w);
    for (int i = 0; i < RV_N_SIM_FAULTS; i++)
        rv_jw_kv_int(w, fault_texts[i], r->faults[i]);
    rv_jw_obj_end(w);
    rv_jw_key(w, "coverage");
    rv_jw_obj(w);
    write_hits(r, p, w);
    rv_jw_obj_end(w);
    rv_jw_kv_text(w, "hash", r->has_failure ? NULL : r->hash);
    rv_jw_key(w, "failure");
    if (r->has_failure) {
        rv_jw_obj(w);
        rv_jw_kv_int(w, "seed", (int64_t)r->failure.seed);
        rv_jw_kv_text(w, "invariant", invariant_texts[r->failure.invariant]);
        rv_jw_kv_text(w, "text", r->failure.text);
        rv_jw_kv_int(w, "decisions", (int64_t)r->failure.n_decisions);
        rv_jw_kv_int(w, "decisions_before", (int64_t)r->failure.n_before);
        rv_jw_kv_text(w, "trace", r->failure.trace);
        rv_jw_obj_end(w);
    } else {
        rv_jw_null(w);
    }
    if (r->trace)
        rv_jw_kv_text(w, "trace", r->trace);
    rv_jw_obj_end(w);
}
