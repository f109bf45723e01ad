/* Runs with their journals: made, driven by a seed, replayed and compared. */
#include "tests/unit/journal/live.h"
#include "tests/kit/catalog.h"

#include <stdlib.h>
#include <string.h>

/* --- catalog --- */

static const struct rv_tool_info tools[] = {
    {.name = "read", .description = "", .risk = RV_RISK_READ_ONLY, .effect = RV_EFFECT_SAFE, .category = RV_UNSET},
    {.name = "put", .description = "", .risk = RV_RISK_WRITE, .effect = RV_EFFECT_IDEMPOTENT, .category = RV_UNSET},
    {.name = "send",
     .description = "",
     .risk = RV_RISK_WRITE,
     .effect = RV_EFFECT_NON_IDEMPOTENT,
     .category = RV_UNSET},
    {.name = "wipe",
     .description = "",
     .risk = RV_RISK_DESTRUCTIVE,
     .effect = RV_EFFECT_NON_IDEMPOTENT,
     .category = RV_UNSET},
};
static struct rv_kit_tools tool_list = {tools, RV_COUNT(tools)};
const struct rv_catalog live_catalog = RV_KIT_CATALOG(&tool_list);

const char *const live_pipelines[] = {
    /* one stage, one call */
    "name: t\nmodels: {r: scripted}\nagents:\n  - {name: a, has_llm: true, model_role: r}\n",
    /* hooks, policies, mocks, routing functions */
    "name: t\nmodels: {r: scripted}\nagents:\n"
    "  - {name: a, stage_order: 1, has_llm: true, model_role: r, pre_process: x.pre, post_process: x.post, "
    "default_next: b}\n"
    "  - {name: b, stage_order: 2, has_policies: true, policies: [x.p, x.q], has_llm: true, model_role: r, "
    "max_retries: 2, mock_handler: x.mock, default_next: c}\n"
    "  - {name: c, stage_order: 3, mock_handler: x.mock, mock: true, routing_function: x.route}\n",
    /* retries and loops */
    "name: t\nmax_iterations: 3\nmodels: {r: scripted}\nagents:\n"
    "  - {name: a, stage_order: 1, has_llm: true, model_role: r, max_retries: 3, default_next: b}\n"
    "  - {name: b, stage_order: 2, has_llm: true, model_role: r, max_retries: 1, error_next: a, routing_rules: "
    "[{condition: v, value: 1, target: a}, {condition: v, value: 2, target: clarification}]}\n",
    /* tools of every effect class, gates */
    "name: t\nmodels: {r: scripted}\nagents:\n"
    "  - {name: a, stage_order: 1, has_llm: true, model_role: r, output_key: plan, default_next: b}\n"
    "  - {name: b, stage_order: 2, has_tools: true, tool_access: all, max_retries: 1, default_next: c}\n"
    "  - {name: c, stage_order: 3, has_llm: true, model_role: r, routing_rules: [{condition: v, value: 1, target: "
    "a}]}\n",
    /* side by side, several interrupts at once */
    "name: t\ndefault_run_mode: parallel\nmodels: {r: scripted}\nagents:\n"
    "  - {name: a, stage_order: 1, has_llm: true, model_role: r, output_key: plan, pre_process: x.pre}\n"
    "  - {name: b, stage_order: 2, has_llm: true, model_role: r, error_next: f, max_retries: 1}\n"
    "  - {name: c, stage_order: 3, requires: [b], has_llm: true, model_role: r}\n"
    "  - {name: f, stage_order: 4, requires: [c], post_process: x.post}\n"
    "  - {name: g, stage_order: 5, requires: [a], has_tools: true, tool_access: all}\n"
    "  - {name: h, stage_order: 6, requires: [a], has_tools: true, tool_access: all}\n",
    /* hooks around calls */
    "name: t\nmodels: {r: scripted}\nagents:\n"
    "  - {name: a, stage_order: 1, has_llm: true, model_role: r, output_key: plan, before_model: [x.around, x.around], "
    "after_model: x.around, max_retries: 1, max_context_tokens: 9000, default_next: b}\n"
    "  - {name: b, stage_order: 2, has_tools: true, tool_access: all, before_tool: [x.around, x.around], after_tool: "
    "x.around, max_retries: 1}\n",
};
const size_t live_n_pipelines = RV_COUNT(live_pipelines);

/* --- making --- */

struct rv_store_scope live_scope(void)
{
    return (struct rv_store_scope){0};
}

const char *live_bundle(rv_store *store)
{
    static char hash[RV_STORE_HASH_MAX];

    if (rv_store_put_blob(store, RV_STR_LIT("a bundle"), hash, NULL) < 0)
        rv_kit_die("no bundle");
    return hash;
}

int live_pick(struct live *l, int n)
{
    return (int)rv_rand_below(l->rand, (uint64_t)n);
}

static bool chance(struct live *l, int percent)
{
    return live_pick(l, 100) < percent;
}

static void make_journal(struct live *l, const rv_envelope *env)
{
    struct rv_journal_start start = {.bundle = live_bundle(l->store),
                                     .pipeline = l->p,
                                     .begin = l->begin,
                                     .env = env,
                                     .owner = "here/1",
                                     .now_us = l->now_us};
    rv_err *err = NULL;

    if (rv_journal_create(l->store, &start, &l->j, &err) < 0)
        rv_kit_die("%s", rv_kit_err_take(err));
}

char *live_state(const rv_run *run)
{
    rv_buf b = RV_BUF_INIT(LIVE_MAX_TEXT);

    rv_envelope_write_state(rv_run_envelope(run), &b);
    return rv_buf_steal(&b, NULL);
}

static void take_shot(struct live *l)
{
    rv_buf open = RV_BUF_INIT(LIVE_MAX_TEXT);

    rv_buf_puts(&open, "");
    for (size_t i = 0; i < l->n_calls; i++)
        rv_buf_printf(&open, "%s\n", l->calls[i].json);
    l->shots = realloc(l->shots, (l->n_shots + 1) * sizeof *l->shots);
    l->shots[l->n_shots++] = (struct shot){.seq = rv_journal_seq(l->j),
                                           .state = live_state(l->run),
                                           .open = rv_buf_steal(&open, NULL),
                                           .effects_len = l->effects.len,
                                           .now_us = l->now_us,
                                           .n_events = l->n_events};
}

struct live *live_new(rv_store *store, const char *yaml, uint64_t seed, int mode)
{
    struct live *l = calloc(1, sizeof *l);
    struct rv_run_opts opts = RV_RUN_OPTS_INIT;
    rv_envelope *env = NULL;
    rv_err *err = NULL;

    if (!l)
        rv_kit_die("no memory");
    l->store = store;
    l->catalog = live_catalog;
    l->findings = rv_findings_new();
    l->rand = rv_rand_seeded(&l->bits, seed);
    l->now_us = LIVE_T0;
    l->effects = RV_BUF_INIT(LIVE_MAX_TEXT);
    rv_buf_puts(&l->effects, "");
    if (rv_pipeline_parse(rv_str_of(yaml), "test.yaml", ".", l->findings, &l->p, &err) < 0 || !l->p->is_sound) {
        rv_buf b = RV_BUF_INIT(LIVE_MAX_TEXT);
        rv_findings_write_text(l->findings, false, &b);
        rv_kit_die("%s\nin:\n%s", rv_buf_cstr(&b), yaml);
    }
    json_object *state = rv_kit_json("{'envelope_id':'" LIVE_RUN "','raw_input':'what is it?','user_id':'ada',"
                                     "'session_id':'s','request_id':'q'}");
    if (rv_envelope_load(state, rv_rand_seeded(&l->bits, seed), l->now_us, &env, &err) < 0)
        rv_kit_die("%s", rv_err_text(err));
    json_object_put(state);
    static const bool scripted[16] = {true, false, true};
    l->begin = (struct rv_journal_begin){.mode = mode,
                                         .max_parallel = seed % 3 == 0 ? 2 : 0,
                                         .use_mocks = seed % 4 == 0,
                                         .scripted = seed % 5 == 0 ? scripted : NULL};
    make_journal(l, env);
    opts.mode = l->begin.mode;
    opts.max_parallel = l->begin.max_parallel;
    opts.use_mocks = l->begin.use_mocks;
    opts.scripted_stages = l->begin.scripted;
    if (rv_run_new(l->p, &l->catalog, &opts, env, &l->run, &err) < 0)
        rv_kit_die("%s", rv_err_text(err));
    take_shot(l);
    return l;
}

static void drop_calls(struct live *l)
{
    for (size_t i = 0; i < l->n_calls; i++)
        free(l->calls[i].json);
    l->n_calls = 0;
}

void live_free(struct live *l)
{
    drop_calls(l);
    free(l->calls);
    for (size_t i = 0; i < l->n_shots; i++) {
        free(l->shots[i].state);
        free(l->shots[i].open);
    }
    free(l->shots);
    rv_journal_free(l->j);
    rv_run_free(l->run);
    rv_effects_fini(&l->fx);
    rv_buf_fini(&l->effects);
    rv_pipeline_free(l->p);
    rv_findings_free(l->findings);
    free(l);
}

/* --- one step --- */

static void end_call(struct live *l, int64_t id)
{
    for (size_t i = 0; i < l->n_calls; i++)
        if (l->calls[i].id == id) {
            free(l->calls[i].json);
            memmove(&l->calls[i], &l->calls[i + 1], (--l->n_calls - i) * sizeof *l->calls);
            return;
        }
}

static char *effect_text(const struct rv_effects *all, const struct rv_effect *e)
{
    rv_buf b = RV_BUF_INIT(LIVE_MAX_TEXT);
    rv_jw w = rv_jw_on(&b);

    rv_effect_write_json(all, e, &w);
    return rv_buf_steal(&b, NULL);
}

static void take_effects(struct live *l)
{
    for (size_t i = 0; i < l->fx.n; i++) {
        const struct rv_effect *e = &l->fx.items[i];
        char *text = effect_text(&l->fx, e);
        rv_buf_printf(&l->effects, "%s\n", text);
        if (e->kind <= RV_EFFECT_CALL_HOOK || e->kind == RV_EFFECT_ARM_TIMER) {
            l->calls = realloc(l->calls, (l->n_calls + 1) * sizeof *l->calls);
            l->calls[l->n_calls++] = (struct live_call){e->call_id, e->at_us, e->kind, e->entry, text};
            continue;
        }
        free(text);
        if (e->kind == RV_EFFECT_CANCEL_CALL)
            end_call(l, e->call_id);
        if (e->kind == RV_EFFECT_FINISH)
            drop_calls(l);
    }
}

int live_step(struct live *l, const struct rv_event *ev, rv_err **err)
{
    rv_effects_clear(&l->fx);
    int rc = rv_run_step(l->run, ev, &l->fx, err);
    if (rc < 0)
        return rc;
    rc = rv_journal_step(l->j, ev, &l->fx, l->run, err);
    if (rc < 0)
        return rc;
    l->n_events++;
    end_call(l, ev->call_id);
    take_effects(l);
    take_shot(l);
    if (l->after)
        l->after(l->self, l);
    return 0;
}

/* --- answers --- */

static const char *const outputs[] = {
    "{\"v\":0}",
    "{\"v\":1}",
    "{\"v\":2}",
    "{\"v\":1,\"outcome\":\"replan\",\"feedback\":\"f\"}",
    "{\"steps\":[{\"tool\":\"read\"},{\"tool\":\"wipe\",\"parameters\":{\"x\":[1,2.50]}},5],\"v\":0}",
    "{\"steps\":[{\"tool\":\"send\",\"parameters\":{\"to\":\"ada\"}},{\"tool\":\"put\"}],\"v\":3}",
    "{\"v\":1,\"outcome\":\"clarify\"}",
    "so: {\"v\":2,\"outcome\":\"confirm\"}",
    "no object",
    "",
};
static const char *const hook_replies[] = {
    "",
    "{}",
    "{\"envelope\":{\"metadata\":{\"k\":1}}}",
    "{\"envelope\":{\"outputs\":{\"o\":{\"v\":2}}}}",
};

/* What a hook around a call says: mostly what fits its place. */
static const char *around_call(struct live *l, const char *call)
{
    static const struct {
        const char *hook, *replies[3];
    } places[] = {
        {"before_model",
         {"{\"action\":\"replace\",\"request\":{\"prompt\":\"other\"}}",
          "{\"action\":\"answer\",\"reply\":{\"output\":{\"steps\":[{\"tool\":\"read\"},{\"tool\":\"wipe\"}],\"v\":1}}"
          "}",
          "{\"action\":\"block\",\"reason\":\"no\"}"}},
        {"after_model",
         {"{\"action\":\"replace\",\"reply\":{\"output\":{\"steps\":[{\"tool\":\"put\"}],\"v\":2}}}",
          "{\"action\":\"continue\"}", "{\"action\":\"perhaps\"}"}},
        {"before_tool",
         {"{\"action\":\"replace\",\"arguments\":{\"x\":7}}", "{\"action\":\"answer\",\"result\":{\"data\":{\"k\":1}}}",
          "{\"action\":\"block\",\"reason\":\"no\"}"}},
        {"after_tool",
         {"{\"action\":\"replace\",\"result\":{\"data\":{\"k\":2}}}", "{\"action\":\"block\",\"reason\":\"no\"}",
          "{}"}},
    };

    for (size_t i = 0; i < RV_COUNT(places); i++)
        if (strstr(call, places[i].hook))
            return chance(l, 40) ? "" : places[i].replies[live_pick(l, 3)];
    return "";
}

static rv_str reply_to(struct live *l, const struct live_call *c)
{
    if (c->kind == RV_EFFECT_CALL_TOOL)
        return rv_str_of(chance(l, 80) ? "{\"status\":\"ok\",\"data\":[1]}"
                                       : "{\"status\":\"error\",\"error\":\"no\"}");
    if (c->kind == RV_EFFECT_CALL_HOOK && c->entry == RV_NAME_POLICY)
        return rv_str_of(chance(l, 80) ? "{\"decision\":\"allow\"}" : "{\"decision\":\"confirm\"}");
    if (c->kind == RV_EFFECT_CALL_HOOK && c->entry == RV_NAME_ROUTE)
        return rv_str_of(chance(l, 50) ? "{\"next\":\"end\"}" : "{}");
    if (c->kind == RV_EFFECT_CALL_HOOK && c->entry == RV_NAME_HOOK && strstr(c->json, "x.around"))
        return rv_str_of(around_call(l, c->json));
    if (c->kind == RV_EFFECT_CALL_HOOK && c->entry == RV_NAME_HOOK)
        return rv_str_of(hook_replies[live_pick(l, RV_COUNT(hook_replies))]);
    return rv_str_of(outputs[live_pick(l, RV_COUNT(outputs))]);
}

static struct rv_event answer_to(struct live *l, const struct live_call *c)
{
    struct rv_event ev = {.call_id = c->id};

    l->now_us += 1 + live_pick(l, 2000000);
    if (c->kind == RV_EFFECT_ARM_TIMER) {
        ev.kind = RV_EVENT_TIMER;
        if (l->now_us < c->at_us)
            l->now_us = c->at_us;
    } else {
        ev.kind = c->kind == RV_EFFECT_CALL_LLM    ? RV_EVENT_LLM_DONE
                  : c->kind == RV_EFFECT_CALL_TOOL ? RV_EVENT_TOOL_DONE
                                                   : RV_EVENT_HOOK_DONE;
        ev.reply = reply_to(l, c);
        if (c->kind == RV_EFFECT_CALL_LLM && chance(l, 50))
            ev.llm.has_usage = true, ev.llm.usage.input_tokens = 5, ev.llm.usage.output_tokens = live_pick(l, 3);
    }
    ev.now_us = l->now_us;
    if (ev.kind == RV_EVENT_TIMER || l->is_calm)
        return ev;
    if (c->kind == RV_EFFECT_CALL_TOOL && chance(l, 15)) {
        ev.unknown = true;
        ev.reply = (rv_str){NULL, 0};
    } else if (chance(l, 20)) {
        ev.failed = true;
        ev.reply = (rv_str){NULL, 0};
        ev.error = chance(l, 80) ? RV_STR_LIT("it is \"busy\"") : RV_STR_LIT("bad \xff byte");
        ev.error_type = chance(l, 50) ? "TimeoutError" : NULL;
        ev.retryable = chance(l, 50);
    }
    return ev;
}

/* Answers of every kind until one fits. */
static void answer_interrupt(struct live *l)
{
    json_object *data = rv_kit_json("{'data':{'sent':true},'status':'ok'}");
    const char *const words[] = {"approve", "not_happened", "happened", "reject"};
    int first = chance(l, 70) ? 0 : 3, rc = -1;
    rv_err *err = NULL;

    live_hand_over(l);
    l->now_us += 1000;
    for (int i = 0; i < 4 && rc < 0; i++) {
        struct rv_event ev = {.kind = RV_EVENT_ANSWER,
                              .now_us = l->now_us,
                              .response = {.text = RV_STR_LIT("it \"is\"\n"),
                                           .has_approved = true,
                                           .approved = chance(l, 70),
                                           .decision = rv_str_of(words[(first + i) % 4]),
                                           .data = data}};
        const char *id = NULL;
        char *kept = NULL; /* the queue that it stands in changes with the answer */
        if (rv_envelope_n_queued(rv_run_envelope(l->run)) > 0 && chance(l, 50) &&
            rv_json_get_text(rv_envelope_queued_at(rv_run_envelope(l->run), 0), "id", &id))
            ev.response.interrupt_id = rv_str_of(kept = rv_str_dup(rv_str_of(id)));
        rv_err_free(err);
        err = NULL;
        rc = live_step(l, &ev, &err);
        free(kept);
    }
    json_object_put(data);
    if (rc < 0)
        rv_kit_die("no answer fits: %s", rv_kit_err_take(err));
    l->n_pauses++;
}

void live_hand_over(struct live *l)
{
    const struct rv_store_scope scope = live_scope();
    rv_err *err = NULL;

    rv_journal_free(l->j);
    l->j = NULL;
    if (rv_journal_open(l->store, &scope, LIVE_RUN, &(struct rv_journal_claim){.owner = "there/2", .now_us = l->now_us},
                        &l->j, &err) < 0)
        rv_kit_die("%s", rv_kit_err_take(err));
    if (rv_journal_seq(l->j) > l->shots[l->n_shots - 1].seq) /* an OWNER record */
        take_shot(l);
}

static void must_step(struct live *l, struct rv_event ev)
{
    rv_err *err = NULL;

    if (live_step(l, &ev, &err) < 0)
        rv_kit_die("%s", rv_kit_err_take(err));
}

void live_go(struct live *l, int max_steps)
{
    must_step(l, (struct rv_event){.kind = RV_EVENT_START, .now_us = l->now_us});
    for (int i = 0; i < max_steps; i++) {
        if (rv_run_status(l->run) == RV_RUN_INTERRUPTED && l->n_pauses < 8) {
            answer_interrupt(l);
        } else if (rv_run_is_finished(l->run) || l->n_calls == 0) {
            return;
        } else if (!l->is_calm && chance(l, 3)) {
            live_hand_over(l);
            l->now_us += 5000000;
            must_step(l, (struct rv_event){.kind = RV_EVENT_RECOVER, .now_us = l->now_us});
        } else if (!l->is_calm && chance(l, 1)) {
            must_step(l, (struct rv_event){.kind = RV_EVENT_CANCEL, .now_us = ++l->now_us});
        } else {
            must_step(l, answer_to(l, &l->calls[live_pick(l, (int)l->n_calls)]));
        }
    }
}

/* --- replays --- */

static int on_step(void *self, const struct rv_record *record, const struct rv_event *ev,
                   const struct rv_effects *effects, const rv_run *run, rv_err **err)
{
    struct played *p = self;

    (void)err;
    p->n_told++;
    ck_assert_ptr_nonnull(run);
    ck_assert_int_eq(record->kind, ev ? RV_RECORD_EVENT : RV_RECORD_BEGIN);
    for (size_t i = 0; i < effects->n; i++) {
        char *text = effect_text(effects, &effects->items[i]);
        rv_buf_printf(&p->effects, "%s\n", text);
        free(text);
    }
    return 0;
}

int play(struct live *l, int64_t upto, bool from_snapshot, struct played *out, rv_err **err)
{
    const struct rv_store_scope scope = live_scope();
    const struct rv_replay_opts opts = {.pipeline = l->p,
                                        .catalog = &l->catalog,
                                        .upto = upto,
                                        .from_snapshot = from_snapshot,
                                        .on_step = on_step,
                                        .self = out};

    *out = (struct played){.effects = RV_BUF_INIT(LIVE_MAX_TEXT)};
    rv_buf_puts(&out->effects, "");
    return rv_journal_replay(l->store, &scope, LIVE_RUN, &opts, &out->r, err);
}

void played_fini(struct played *p)
{
    rv_replayed_fini(&p->r);
    rv_buf_fini(&p->effects);
}

char *live_open_text(const struct rv_effects *open)
{
    rv_buf b = RV_BUF_INIT(LIVE_MAX_TEXT);

    rv_buf_puts(&b, "");
    for (size_t i = 0; i < open->n; i++) {
        char *text = effect_text(open, &open->items[i]);
        rv_buf_printf(&b, "%s\n", text);
        free(text);
    }
    return rv_buf_steal(&b, NULL);
}

void live_check_at(struct live *l, int64_t seq, bool from_snapshot)
{
    const struct shot *want = l->shots;
    struct played got;
    rv_err *err = NULL;

    while (want->seq < seq) /* the step that the record belongs to */
        want++;
    if (play(l, seq, from_snapshot, &got, &err) < 0)
        ck_abort_msg("record %d: %s", (int)seq, rv_kit_err_take(err));
    char *state = live_state(got.r.run), *open = live_open_text(&got.r.open);
    ck_assert_str_eq(state, want->state);
    ck_assert_str_eq(open, want->open);
    ck_assert_int_eq(got.r.seq, seq);
    ck_assert_int_eq(got.r.n_events, want->n_events);
    ck_assert_int_eq(got.r.last_us, want->now_us);
    const char *effects = rv_buf_cstr(&l->effects) + want->effects_len - got.effects.len;
    if (!from_snapshot)
        ck_assert_uint_eq(got.effects.len, want->effects_len);
    ck_assert_uint_le(got.effects.len, want->effects_len);
    ck_assert_mem_eq(rv_buf_cstr(&got.effects), effects, got.effects.len);
    free(state);
    free(open);
    played_fini(&got);
}
