/* Subscribers of capabilities: they are told the observable events of their run on worker threads, each in order and
 * one at a time, so that none of them keeps the run or another one waiting. What they answer is not looked at. A run
 * that is over waits for them a moment, so that they hear of its end. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/bus/bus.h"
#include "coreengine/engine/engine_internal.h"

#define TIMEOUT_MS 5000              /* for one event, unless its specification says otherwise */
#define GRACE_US   (5 * RV_US_PER_S) /* of a run that is over, for all of them */

struct reader {
    rv_exec *x;
    const char *name;   /* of the capabilities' catalog */
    int64_t timeout_ms; /* for one event */
    uint64_t id;
    struct rv_plugin_work *work; /* under way; NULL: none */
};
struct subscribers {
    rv_bus *bus;            /* owned */
    struct reader *readers; /* owned */
    size_t n;
    int64_t held_until_us; /* the run is over and waits for them; 0: it does not */
};

static int64_t real_us(const rv_exec *x)
{
    return x->engine->clock.now_us(x->engine->clock.self);
}

/* --- one event to one of them --- */

static void taken(struct rv_plugin_work *w)
{
    struct reader *r = w->self;

    r->work = NULL;
    rv_bus_settle(r->x->subscribers->bus, r->id, w->failure);
}

static int deliver(void *self, uint64_t sub, const char *type, rv_str line, rv_err **err)
{
    struct reader *r = self;
    const rv_envelope *env = r->x->run ? rv_run_envelope(r->x->run) : NULL;
    if (!env)
        return RV_FAIL(err, RV_E_STATE, "the run of the event is gone");
    const struct rv_envelope_fields *f = rv_envelope_fields(env);
    const struct rv_plugin_call what = {.kind = RV_NAME_SUBSCRIBER,
                                        .name = r->name,
                                        .args = line,
                                        .run_id = f->envelope_id,
                                        .stage = "",
                                        .user_id = rv_envelope_user(env),
                                        .session_id = f->session_id,
                                        .idempotency_key = "",
                                        .timeout_ms = r->timeout_ms};
    const struct rv_tool_workers workers = engine_pool(r->x->engine);

    (void)type;
    r->id = sub;
    struct rv_plugin_work *w = rv_plugin_work_new(r->x->opts.plugins, &what, taken, r);
    if (!w)
        return RV_FAIL(err, RV_E_NOMEM, "tell subscriber \"%s\"", r->name);
    r->work = w;
    int rc = workers.begin(workers.self, &w->work, err);
    if (rc < 0) {
        r->work = NULL;
        w->work.free(&w->work);
    }
    return rc;
}

static void give_up(void *self)
{
    struct reader *r = self;
    const struct rv_tool_workers workers = engine_pool(r->x->engine);

    if (r->work)
        workers.give_up(workers.self, &r->work->work);
    r->work = NULL;
}

/* --- all of a run --- */

static int fail_unknown(const char *name, const char *type, rv_err **err)
{
    const char *known[RV_N_EMITS];

    for (int k = 0; k < RV_N_EMITS; k++)
        known[k] = rv_emit_text((enum rv_emit_kind)k);
    int rc = RV_FAIL(err, RV_E_PLUGIN, "subscriber \"%s\": there is no event \"%.100s\"", name, type);
    const char *near = rv_nearest(rv_str_of(type), known, RV_COUNT(known));
    if (near)
        rv_err_set_hint(err, "did you mean \"%s\"?", near);
    return rc;
}

static int subscribe(rv_exec *x, struct reader *r, const char *name, rv_err **err)
{
    const struct rv_entry_info *info = x->under.entry(x->under.self, RV_NAME_SUBSCRIBER, rv_str_of(name));
    const int64_t timeout_ms = info && info->timeout_ms ? info->timeout_ms : TIMEOUT_MS;
    const struct rv_bus_sub how = {.name = name,
                                   .types = info ? (const char *const *)info->sees.items : NULL,
                                   .n_types = info ? info->sees.n : 0,
                                   .timeout_us = timeout_ms * RV_US_PER_MS,
                                   .deliver = deliver,
                                   .give_up = give_up,
                                   .self = r};

    *r = (struct reader){.x = x, .name = name, .timeout_ms = timeout_ms};
    for (size_t i = 0; i < how.n_types; i++)
        if (rv_emit_of(rv_str_of(how.types[i])) < 0)
            return fail_unknown(name, how.types[i], err);
    return rv_bus_subscribe(x->subscribers->bus, &how, &r->id, err);
}

int engine_subscribers_init(rv_exec *x, rv_err **err)
{
    size_t n = 0;

    if (!x->opts.plugins)
        return 0;
    const struct rv_known_names k = rv_plugins_names(x->opts.plugins);
    const char *const *names = k.list(k.self, RV_NAME_SUBSCRIBER, &n);
    if (n == 0)
        return 0;
    struct subscribers *s = x->subscribers = calloc(1, sizeof *s);
    if (!s || !(s->readers = calloc(n, sizeof *s->readers)))
        return RV_FAIL(err, RV_E_NOMEM, "tell the subscribers of a run");
    int rc = rv_bus_new(&x->engine->clock, x->engine->opts.log, &s->bus, err);
    for (; rc == 0 && s->n < n; s->n++)
        rc = subscribe(x, &s->readers[s->n], names[s->n], err);
    return rc;
}

/* Logs once how many events a subscriber missed, with those that it was too slow for. */
static void leave(const rv_exec *x, const struct reader *r, rv_bus *bus)
{
    struct rv_bus_counts c;

    if (rv_bus_find_counts(bus, r->id, &c) && c.failed + c.dropped + c.blocked + c.waiting > 0)
        RV_LOG(x->log, INFO, "subscriber.missed", RV_F_TEXT("name", r->name), RV_F_I64("taken", c.taken),
               RV_F_I64("failed", c.failed), RV_F_I64("dropped", c.dropped), RV_F_I64("blocked", c.blocked),
               RV_F_I64("waiting", c.waiting));
    rv_bus_unsubscribe(bus, r->id);
}

void engine_subscribers_stop(rv_exec *x)
{
    struct subscribers *s = x->subscribers;

    x->subscribers = NULL;
    if (!s)
        return;
    if (x->is_held)
        x->engine->n_held--;
    x->is_held = false;
    for (size_t i = 0; i < s->n; i++)
        leave(x, &s->readers[i], s->bus);
    rv_bus_free(s->bus);
    free(s->readers);
    free(s);
}

void engine_subscribers_tell(rv_exec *x, enum rv_emit_kind kind, rv_str line)
{
    rv_bus_tick(x->subscribers->bus);
    rv_bus_publish(x->subscribers->bus, rv_emit_text(kind), line);
}

bool engine_subscribers_hold(rv_exec *x)
{
    struct subscribers *s = x->subscribers;

    if (!s || x->is_held || rv_bus_is_idle(s->bus))
        return s && x->is_held;
    s->held_until_us = real_us(x) + GRACE_US;
    x->is_held = true;
    x->engine->n_held++;
    return true;
}

void engine_subscribers_go_on(rv_exec *x)
{
    x->is_held = false;
    x->engine->n_held--;
}

bool engine_subscribers_let_go(rv_exec *x)
{
    struct subscribers *s = x->subscribers;

    rv_bus_tick(s->bus);
    if (!rv_bus_is_idle(s->bus) && real_us(x) < s->held_until_us)
        return false;
    engine_subscribers_go_on(x);
    return true;
}
