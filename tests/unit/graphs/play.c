/* One run, from its first event to its end, by the core alone: which call is done next is drawn from one seed, what it
 * says from another, by the identity of the call. Bounds, ends, numbers and replays are checked on the way. */
#include "tests/unit/graphs/graphs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/graphs/notes.h"

#define MAX_EVENTS 3000
#define MAX_CALLS  4000
#define MAX_TEXT   ((size_t)64 << 20)
#define T0         1700000000000000

struct call {
    int64_t call_id, at_us; /* at_us: of a timer */
    enum rv_effect_kind kind;
    uint64_t identity;
    bool is_over, is_given_up;
};
struct player {
    const struct rv_pipeline *p;
    const char *yaml;
    const struct play_opts *opts;
    struct rv_catalog catalog;
    struct rv_rand_state rand;
    struct dice order;
    rv_run *run;
    struct rv_effects fx;
    struct call calls[MAX_CALLS];
    size_t n_calls;
    int64_t now_us;
    char *events[MAX_EVENTS];                       /* owned; JSON */
    char *states[MAX_EVENTS];                       /* owned; the state after each */
    struct notes branches, tokens, cancelled, lost; /* of calls, of the writers of tokens; paths */
    /* Of stages, by "PATH OF THE RUN|STAGE": visits; groups whose join is not visited yet. Of inner runs: calls. */
    struct tallies visits, settled, inner_calls;
    struct rv_proof proof;
    struct played *out;
    rv_buf story;
};

static uint64_t hash_of(uint64_t h, rv_str text)
{
    for (size_t i = 0; i < text.len; i++)
        h = (h ^ (unsigned char)text.ptr[i]) * 0x100000001b3u;
    return h;
}

#define FAIL(pl, ...)                                                                                                  \
    do {                                                                                                               \
        char fail_text[512];                                                                                           \
        snprintf(fail_text, sizeof fail_text, __VA_ARGS__);                                                            \
        rv_kit_die("%s\nanswers %llu order %d/%llu crash %d\n%s\n%s", fail_text, (unsigned long long)(pl)->opts->seed, \
                   (int)(pl)->opts->order, (unsigned long long)(pl)->opts->order_seed, (pl)->opts->crash_at,           \
                   (pl)->yaml, rv_buf_cstr(&(pl)->story));                                                             \
    } while (0)

/* --- Making runs --- */

static void begin(struct player *pl)
{
    const struct rv_envelope_seed seed = {.raw_input = RV_STR_LIT("what is it?"), .user_id = RV_STR_LIT("ada")};
    struct rv_run_opts opts = RV_RUN_OPTS_INIT;
    rv_envelope *env = NULL;
    rv_err *err = NULL;

    opts.max_parallel = pl->opts->max_parallel;
    opts.saves = RV_SAVES_NONE;
    if (rv_envelope_new(&seed, rv_rand_seeded(&pl->rand, 7), T0, &env, &err) < 0 ||
        rv_run_new(pl->p, &pl->catalog, &opts, env, &pl->run, &err) < 0)
        FAIL(pl, "%s", rv_err_text(err));
}

static char *state_of(struct player *pl)
{
    rv_buf b = RV_BUF_INIT(MAX_TEXT);

    rv_envelope_write_state(rv_run_envelope(pl->run), &b);
    if (rv_buf_check(&b, "state", NULL) < 0)
        FAIL(pl, "no state");
    return rv_buf_steal(&b, NULL);
}

/* --- What the core wants --- */

/* A hook is called with the whole envelope; times and counts in it depend on the order, outputs do not. */
static uint64_t hash_seen(uint64_t identity, const struct rv_effect *e)
{
    const struct rv_json_opts opts = {.max_bytes = MAX_TEXT, .max_depth = RV_STATE_MAX_DEPTH + 8};
    json_object *json = NULL;

    if (rv_json_parse((rv_str){e->request, e->request_len}, &opts, &json, NULL) < 0)
        rv_kit_die("a request that is not JSON");
    json_object *outputs = rv_json_get_obj(rv_json_get_obj(json, "envelope"), "outputs");
    if (outputs)
        identity = hash_of(identity, rv_str_of(json_object_to_json_string(outputs)));
    json_object_put(json);
    return identity;
}

static void add_call(struct player *pl, const struct rv_effect *e)
{
    char text[64];

    if (pl->n_calls == MAX_CALLS)
        FAIL(pl, "too many calls");
    snprintf(text, sizeof text, "%d/%lld/%lld/", e->stage, (long long)e->visit, (long long)e->attempt);
    uint64_t identity = hash_of(pl->opts->seed ^ 0xcbf29ce484222325u, rv_str_of(text));
    identity = hash_of(identity, e->label ? rv_str_of(e->label) : rv_str_of(""));
    identity = hash_of(identity, e->key ? rv_str_of(e->key) : rv_str_of(""));
    if (e->kind == RV_EFFECT_CALL_HOOK)
        identity = hash_seen(identity, e);
    pl->calls[pl->n_calls++] = (struct call){e->call_id, e->at_us, e->kind, identity, false, false};
}

static const char *text_of(json_object *line, const char *key)
{
    const char *text = NULL;

    return rv_json_get_text(line, key, &text) ? text : "";
}

/* Another run begins inside of that visit: what was seen in the one before it does not count for it. */
static void forget_inside(struct player *pl, const char *path, const char *stage, rv_buf *b)
{
    size_t len = strlen(path);
    bool follows_name = len > 0 && path[len - 1] != '/' && path[len - 1] != ']';

    rv_buf_clear(b);
    rv_buf_printf(b, "%s%s%s/", path, follows_name ? "/" : "", stage);
    tally_forget(&pl->visits, rv_buf_cstr(b));
    tally_forget(&pl->settled, rv_buf_cstr(b));
    tally_forget(&pl->inner_calls, rv_buf_cstr(b));
    notes_forget(&pl->cancelled, rv_buf_cstr(b));
    notes_forget(&pl->lost, rv_buf_cstr(b));
}

/* A cancelled branch visits nothing more, and a join is visited once for each group that was settled. */
static void see_visit(struct player *pl, const struct rv_effect *e, json_object *line)
{
    const char *path = text_of(line, "path");
    const struct rv_agent *a = &path_pipeline(pl->p, path, strlen(path))->agents[e->agent];
    rv_buf b = RV_BUF_INIT(1 << 16);

    pl->out->visits++;
    pl->out->n_inner += e->label != NULL;
    if (a->inner.pipeline)
        forget_inside(pl, path, a->name, &b);
    if (!json_object_object_get_ex(line, "index", NULL)) { /* it is not an element of a list */
        int64_t *visits = tally_at(&pl->visits, path_key(path, a->name, &b));
        if (++*visits > a->limits.max_visits + pl->out->answers && a->limits.max_visits > 0)
            FAIL(pl, "stage %s passes its max_visits", a->name);
        for (size_t i = 0; i < pl->cancelled.n; i++)
            if (path_is_inside(path, pl->cancelled.keys[i]))
                FAIL(pl, "branch %s goes on after it was cancelled", path);
        if (a->join.wait != RV_WAIT_NOT && --*tally_at(&pl->settled, path_key(path, a->name, &b)) < -pl->out->answers)
            FAIL(pl, "join %s is visited more often than groups are settled", a->name);
    }
    rv_buf_fini(&b);
}

/* A call counts in each of the runs that it is inside of. */
static void count_inner_call(struct player *pl, const char *path)
{
    for (size_t next = path_run_after(path, 0); next > 0; next = path_run_after(path, next)) {
        char *key = rv_str_dup((rv_str){path, next});
        int64_t n = ++*tally_at(&pl->inner_calls, key);
        int64_t most = path_pipeline(pl->p, path, next)->max_llm_calls;

        if (n > most + pl->out->answers)
            FAIL(pl, "inner run %s passes its bound: %lld calls", key, (long long)n);
        pl->out->n_inner_bounds += n >= most; /* a retry may be left out for want of a call */
        free(key);
    }
}

static void see_line(struct player *pl, const struct rv_effect *e)
{
    const struct rv_json_opts opts = {.max_bytes = MAX_TEXT, .max_depth = RV_STATE_MAX_DEPTH + 8};
    rv_str text = rv_effect_text(&pl->fx, e);
    rv_buf b = RV_BUF_INIT(1 << 16);
    json_object *line = NULL;
    int64_t call_id = 0;
    char number[24];

    rv_buf_add_str(&pl->story, text);
    rv_buf_putc(&pl->story, '\n');
    if (rv_json_parse(text, &opts, &line, NULL) < 0)
        FAIL(pl, "an event is not JSON");
    if (e->emit == RV_EMIT_STAGE_STARTED) {
        see_visit(pl, e, line);
    } else if (e->emit == RV_EMIT_INTERRUPT_PENDING) {
        pl->out->questions++;
    } else if (e->emit == RV_EMIT_GROUP_SETTLED) {
        pl->out->n_groups++;
        ++*tally_at(&pl->settled, path_key(text_of(line, "path"), text_of(line, "join"), &b));
    } else if (e->emit == RV_EMIT_BRANCH_ENDED) {
        const char *end = text_of(line, "end");
        if (strcmp(end, "cancelled") == 0)
            notes_keep(&pl->cancelled, text_of(line, "path"), "");
        if (strcmp(end, "cancelled") == 0 || strcmp(end, "failed") == 0)
            notes_keep(&pl->lost, text_of(line, "path"), "");
    } else if (e->emit == RV_EMIT_LLM_CALL_START && rv_json_get_int(line, "call_id", &call_id)) {
        snprintf(number, sizeof number, "%lld", (long long)call_id);
        notes_keep(&pl->branches, number, text_of(line, "path"));
        count_inner_call(pl, text_of(line, "path"));
        for (size_t i = 0; i < pl->n_calls; i++) /* what it is told depends on where it stands */
            if (pl->calls[i].call_id == call_id)
                pl->calls[i].identity = hash_of(pl->calls[i].identity, rv_str_of(text_of(line, "path")));
    } else if (e->emit == RV_EMIT_STAGE_COMPLETED && strcmp(text_of(line, "error_type"), "LimitError") == 0) {
        pl->out->n_inner_bounds++;
    }
    json_object_put(line);
    rv_buf_fini(&b);
}

/* No branch sees what a sibling wrote: each reply has a token of its own, and requests show all outputs. */
static void check_seen(struct player *pl, const struct rv_effect *e)
{
    char number[24], token[24];
    const char *reader, *at = e->request;

    snprintf(number, sizeof number, "%lld", (long long)e->call_id);
    reader = notes_kept(&pl->branches, number);
    if (!reader)
        FAIL(pl, "no event tells of call %s", number);
    while ((at = strstr(at, "token")) != NULL) {
        const char *writer;
        size_t len;

        at += strcspn(at, "t") + 5;
        at += strcspn(at, "t"); /* its value */
        len = strspn(at, "t0123456789abcdef");
        snprintf(token, sizeof token, "%.*s", (int)len, at);
        writer = notes_kept(&pl->tokens, token);
        if (writer && path_are_siblings(writer, reader))
            FAIL(pl, "branch %s sees what branch %s wrote: %s", reader, writer, token);
        for (size_t i = 0; writer && i < pl->lost.n; i++)
            if (path_is_inside(writer, pl->lost.keys[i]) && !path_is_inside(reader, pl->lost.keys[i]))
                FAIL(pl, "branch %s sees what the lost branch %s wrote: %s", reader, writer, token);
        pl->out->n_seen += writer && *writer && *reader;
    }
}

/* quiet: a replay, of which the calls are known. */
static void take_effects(struct player *pl, bool quiet)
{
    for (size_t i = 0; i < pl->fx.n; i++) {
        const struct rv_effect *e = &pl->fx.items[i];

        if (quiet)
            continue;
        if (e->kind == RV_EFFECT_EMIT)
            see_line(pl, e);
        else if (e->kind == RV_EFFECT_CALL_LLM || e->kind == RV_EFFECT_CALL_TOOL || e->kind == RV_EFFECT_CALL_HOOK ||
                 e->kind == RV_EFFECT_ARM_TIMER)
            add_call(pl, e);
        pl->out->calls += e->kind == RV_EFFECT_CALL_LLM;
        for (size_t k = 0; e->kind == RV_EFFECT_CANCEL_CALL && k < pl->n_calls; k++)
            if (pl->calls[k].call_id == e->call_id) {
                if (pl->calls[k].is_over)
                    FAIL(pl, "call %lld is given up after its end", (long long)e->call_id);
                pl->calls[k].is_over = pl->calls[k].is_given_up = true;
            }
    }
    for (size_t i = 0; i < pl->fx.n && !quiet; i++) /* a call is told after it is asked for */
        if (pl->fx.items[i].kind == RV_EFFECT_CALL_LLM)
            check_seen(pl, &pl->fx.items[i]);
    rv_effects_clear(&pl->fx);
}

static void check_bounds(struct player *pl)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(rv_run_envelope(pl->run));
    int64_t over = pl->out->answers * (1 + GRAPH_MAX_INNER); /* the stages around the one that asked, too */

    if (pl->out->visits > pl->p->max_agent_hops || pl->out->calls > pl->p->max_llm_calls)
        FAIL(pl, "a bound is passed: %lld visits, %lld calls", (long long)pl->out->visits, (long long)pl->out->calls);
    if (pl->out->visits > pl->proof.max_visits + over)
        FAIL(pl, "%lld visits, proved %lld", (long long)pl->out->visits, (long long)pl->proof.max_visits);
    if (over == 0 && pl->out->calls > pl->proof.max_llm_calls)
        FAIL(pl, "%lld calls, proved %lld", (long long)pl->out->calls, (long long)pl->proof.max_llm_calls);
    if (f->iteration > pl->p->max_iterations + GRAPH_MAX_STAGES) /* each branch may break it in one step */
        FAIL(pl, "%lld loop-backs", (long long)f->iteration);
}

static void step(struct player *pl, const struct rv_event *ev)
{
    rv_buf b = RV_BUF_INIT(MAX_TEXT);
    rv_jw w = rv_jw_on(&b);
    rv_err *err = NULL;

    if (pl->out->n_events == MAX_EVENTS)
        FAIL(pl, "the run does not end");
    rv_event_write_json(ev, &w);
    rv_buf_printf(&pl->story, "> %s\n", rv_buf_cstr(&b));
    if (rv_run_step(pl->run, ev, &pl->fx, &err) < 0)
        FAIL(pl, "refused: %s", rv_err_text(err));
    take_effects(pl, false);
    pl->events[pl->out->n_events] = rv_buf_steal(&b, NULL);
    pl->states[pl->out->n_events++] = state_of(pl);
    check_bounds(pl);
}

/* --- Answers --- */

/* An answer depends on the call alone, so that every order gets the same ones. */
static void answer(struct player *pl, struct call *c)
{
    static const char *const failures[] = {"LLMError", "TimeoutError", "ExecutionError"};
    struct dice d = {c->identity};
    char text[128];
    struct rv_event ev = {.now_us = pl->now_us, .call_id = c->call_id, .llm = RV_LLM_ANSWER_NONE};

    c->is_over = true;
    ev.kind = c->kind == RV_EFFECT_ARM_TIMER   ? RV_EVENT_TIMER
              : c->kind == RV_EFFECT_CALL_LLM  ? RV_EVENT_LLM_DONE
              : c->kind == RV_EFFECT_CALL_TOOL ? RV_EVENT_TOOL_DONE
                                               : RV_EVENT_HOOK_DONE;
    if (c->kind != RV_EFFECT_ARM_TIMER && dice_chance(&d, 12)) {
        ev.failed = true;
        ev.error_type = failures[dice_pick(&d, 3)];
        ev.error = RV_STR_LIT("bad");
        ev.retryable = dice_chance(&d, 50);
    } else if (c->kind == RV_EFFECT_CALL_LLM && dice_chance(&d, 6)) {
        static const char *const odd[] = {"no object",
                                          "{\"v\":",
                                          "[1]",
                                          "",
                                          "{\"v\":1,\"outcome\":\"odd\"}",
                                          "{\"v\":{\"x\":1}}",
                                          "{\"v\":2,\"outcome\":\"replan\",\"verdict\":\"proceed\"}"};
        ev.reply = rv_str_of(odd[dice_pick(&d, RV_COUNT(odd))]);
    } else if (c->kind == RV_EFFECT_CALL_LLM && pl->opts->terminate && dice_chance(&d, 12)) {
        snprintf(text, sizeof text, "%lld", (long long)c->call_id);
        pl->out->n_terminated++;
        pl->out->n_inner_terminated += path_run_after(notes_kept(&pl->branches, text), 0) > 0;
        ev.reply = RV_STR_LIT("{\"v\":1,\"outcome\":\"terminate\"}");
    } else if (c->kind == RV_EFFECT_CALL_LLM) {
        snprintf(text, sizeof text, "{\"v\":%d,\"token\":\"t%llx\"}", dice_pick(&d, 4),
                 (unsigned long long)c->identity);
        ev.reply = rv_str_of(text);
        char number[24], token[24];
        snprintf(number, sizeof number, "%lld", (long long)c->call_id);
        snprintf(token, sizeof token, "t%llx", (unsigned long long)c->identity);
        notes_keep(&pl->tokens, token, notes_kept(&pl->branches, number));
    } else if (c->kind == RV_EFFECT_CALL_HOOK) {
        snprintf(text, sizeof text, dice_chance(&d, 50) ? "{\"envelope\":{\"metadata\":{\"k\":%d}}}" : "{}",
                 dice_pick(&d, 9));
        ev.reply = rv_str_of(text);
    }
    pl->now_us += 1000;
    ev.now_us = pl->now_us;
    step(pl, &ev);
}

/* A result that no one waits for any more changes nothing. */
static void answer_late(struct player *pl, struct call *c)
{
    struct rv_event ev = {.now_us = pl->now_us, .call_id = c->call_id, .llm = RV_LLM_ANSWER_NONE};

    c->is_given_up = false;
    ev.kind = c->kind == RV_EFFECT_CALL_LLM ? RV_EVENT_LLM_DONE : RV_EVENT_HOOK_DONE;
    ev.reply = c->kind == RV_EFFECT_CALL_LLM ? RV_STR_LIT("{\"v\":1,\"late\":true}") : RV_STR_LIT("{}");
    if (c->kind == RV_EFFECT_ARM_TIMER || c->kind == RV_EFFECT_CALL_TOOL)
        return;
    char *before = state_of(pl), *after;
    int rc = rv_run_step(pl->run, &ev, &pl->fx, NULL);
    after = state_of(pl);
    if (rc < 0 || pl->fx.n > 0 || strcmp(before, after) != 0)
        FAIL(pl, "a late result changes something");
    free(before);
    free(after);
    pl->out->n_late++;
}

/* Which of the calls under way is done next; timers last. NULL: none is under way. */
static struct call *next_call(struct player *pl)
{
    struct call *found = NULL, *timer = NULL;
    int n = 0;

    for (size_t i = 0; i < pl->n_calls; i++) {
        struct call *c = &pl->calls[i];

        if (c->is_over)
            continue;
        if (c->kind == RV_EFFECT_ARM_TIMER) {
            timer = !timer || c->at_us < timer->at_us ? c : timer;
            continue;
        }
        n++;
        if (!found || pl->opts->order == PLAY_LAST || (pl->opts->order == PLAY_ANY && dice_pick(&pl->order, n) == 0))
            found = c;
    }
    if (!found && timer && timer->at_us > pl->now_us)
        pl->now_us = timer->at_us;
    return found ? found : timer;
}

/* --- People --- */

static void answer_question(struct player *pl)
{
    struct rv_interrupt in = rv_envelope_interrupt(rv_run_envelope(pl->run));

    if (!in.exists)
        FAIL(pl, "the run waits, and no question is open");
    char *id = rv_str_dup(rv_str_of(in.id));
    struct dice d = {hash_of(pl->opts->seed, rv_str_of(id))};
    struct rv_event ev = {.kind = RV_EVENT_ANSWER, .now_us = pl->now_us};

    ev.response =
        (struct rv_response){.has_approved = true, .approved = dice_chance(&d, 70), .interrupt_id = rv_str_of(id)};
    pl->out->answers++;
    step(pl, &ev);
    free(id);
}

/* --- Another process --- */

/* All events again: the same states, and the same calls under way. */
static void replay(struct player *pl, int n)
{
    const struct rv_json_opts opts = {.max_bytes = MAX_TEXT};

    rv_run_free(pl->run);
    pl->run = NULL;
    begin(pl);
    for (int i = 0; i < n; i++) {
        json_object *json = NULL;
        struct rv_event ev;
        rv_err *err = NULL;

        if (rv_json_parse(rv_str_of(pl->events[i]), &opts, &json, NULL) < 0 || rv_event_read_json(json, &ev, NULL) < 0)
            FAIL(pl, "event %d does not load", i);
        if (rv_run_step(pl->run, &ev, &pl->fx, &err) < 0)
            FAIL(pl, "replay of event %d refused: %s", i, rv_err_text(err));
        take_effects(pl, true);
        char *state = state_of(pl);
        if (strcmp(state, pl->states[i]) != 0) {
            rv_buf_printf(&pl->story, "--- state\n%s\n--- replayed\n%s\n", pl->states[i], state);
            FAIL(pl, "replay has another state after event %d", i);
        }
        free(state);
        json_object_put(json);
    }
}

static void crash(struct player *pl)
{
    struct rv_event ev = {.kind = RV_EVENT_RECOVER};

    replay(pl, pl->out->n_events);
    pl->now_us += 5000000;
    ev.now_us = pl->now_us;
    step(pl, &ev);
}

/* --- The whole --- */

static void write_end(struct player *pl)
{
    static const char *const members[] = {"outputs", "state", "terminal_reason", "termination_reason", "current_stage"};
    const struct rv_json_opts opts = {.max_bytes = MAX_TEXT, .max_depth = RV_STATE_MAX_DEPTH};
    rv_buf b = RV_BUF_INIT(MAX_TEXT), end = RV_BUF_INIT(MAX_TEXT);
    json_object *json = NULL;

    rv_envelope_write_state(rv_run_envelope(pl->run), &b);
    if (rv_json_parse(rv_buf_str(&b), &opts, &json, NULL) < 0)
        FAIL(pl, "the state is not JSON");
    rv_buf_puts(&end, rv_run_status_text(rv_run_status(pl->run)));
    for (size_t i = 0; i < RV_COUNT(members); i++) {
        json_object *value = json_object_object_get(json, members[i]);
        rv_buf_printf(&end, "\n%s: %s", members[i], value ? json_object_to_json_string(value) : "absent");
    }
    pl->out->end = rv_buf_steal(&end, NULL);
    json_object_put(json);
    rv_buf_fini(&b);
}

static void play_on(struct player *pl)
{
    for (;;) {
        struct call *c;

        if (rv_run_is_finished(pl->run)) {
            if (rv_run_status(pl->run) != RV_RUN_INTERRUPTED)
                return;
            answer_question(pl);
            continue;
        }
        if (pl->out->n_events == pl->opts->crash_at)
            crash(pl);
        for (size_t i = 0; pl->opts->late && i < pl->n_calls; i++)
            if (pl->calls[i].is_given_up)
                answer_late(pl, &pl->calls[i]);
        c = next_call(pl);
        if (!c)
            FAIL(pl, "nothing is under way, and the run has not ended");
        answer(pl, c);
    }
}

void play(const struct rv_pipeline *p, const char *yaml, const struct play_opts *opts, struct played *out)
{
    const struct rv_event start = {.kind = RV_EVENT_START, .now_us = T0};
    struct player *pl = calloc(1, sizeof *pl);

    if (!pl)
        rv_kit_die("no memory");
    *out = (struct played){0};
    *pl =
        (struct player){.p = p, .yaml = yaml, .opts = opts, .order.state = opts->order_seed, .now_us = T0, .out = out};
    pl->catalog = rv_catalog_empty;
    pl->story = RV_BUF_INIT(MAX_TEXT);
    if (rv_pipeline_prove(p, RV_MODE_SEQUENTIAL, &pl->proof, NULL) < 0)
        FAIL(pl, "no proof");
    begin(pl);
    step(pl, &start);
    play_on(pl);
    out->status = rv_run_status(pl->run);
    out->reason = rv_envelope_fields(rv_run_envelope(pl->run))->terminal_reason;
    if (rv_envelope_fields(rv_run_envelope(pl->run))->agent_hop_count != out->visits)
        FAIL(pl, "%lld visits, and the envelope counts others", (long long)out->visits);
    write_end(pl);
    if (opts->crash_at < 0)
        replay(pl, out->n_events);
    out->story = rv_buf_steal(&pl->story, NULL);
    for (int i = 0; i < out->n_events; i++) {
        free(pl->events[i]);
        free(pl->states[i]);
    }
    notes_forget(&pl->branches, "");
    notes_forget(&pl->tokens, "");
    notes_forget(&pl->cancelled, "");
    notes_forget(&pl->lost, "");
    tally_forget(&pl->visits, "");
    tally_forget(&pl->settled, "");
    tally_forget(&pl->inner_calls, "");
    rv_run_free(pl->run);
    rv_effects_fini(&pl->fx);
    rv_proof_fini(&pl->proof);
    free(pl);
}

void played_fini(struct played *p)
{
    free(p->end);
    free(p->story);
    *p = (struct played){0};
}
