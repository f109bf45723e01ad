/* Services that capabilities ask for, over the engine's message bus: each service has its one handler there, and the
 * middleware denies what an entry has not declared and writes the log. What the engine knows by itself is answered
 * here; all else by the program (struct rv_exec_services), on the thread that asks. */
#include "coreengine/engine/services_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_EVENTS 1000 /* that the capabilities of one run publish: each is a line of its journal */
/* bytes of a capability's own event as JSON; a longer one is an error of the call */
#define MAX_EVENT      ((size_t)16 << 10) /* bytes of a capability's event: the journal keeps it */
#define MAX_EVENT_NAME 64 /* bytes: a word or two, in each line of the event; a longer one is an error of the call */

struct handler {
    rv_engine *e;
    const struct rv_service_info *info;
    const struct row *row; /* NULL: the program's */
};
/* --- what the engine answers --- */

static int answer_now(const struct service_call *c, rv_buf *text, rv_err **err)
{
    int rc = rv_buf_check(text, "answer of a service", err);

    if (rc == 0)
        engine_service_answer(c->e, c->id, text, NULL);
    rv_buf_fini(text);
    return rc;
}

static int health(const struct service_call *c, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_SERVICE_MAX_ANSWER);
    rv_jw w = rv_jw_on(&text);

    rv_exec_write_health(c->x, &w);
    return answer_now(c, &text, err);
}

static void write_tool(const struct rv_tool_info *info, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", info->name);
    rv_jw_kv_text(w, "description", info->description);
    rv_jw_kv_text(w, "risk", rv_risk_text(rv_tool_risk(info)));
    rv_jw_kv_text(w, "effect", rv_effect_class_text(rv_tool_effect(info)));
    if (info->input_json)
        rv_jw_kv_value(w, "input_schema", info->input_json);
    rv_jw_obj_end(w);
}

static int tools(const struct service_call *c, rv_err **err)
{
    const struct rv_catalog *catalog = &c->x->catalog;
    rv_buf text = RV_BUF_INIT(RV_SERVICE_MAX_ANSWER);
    rv_jw w = rv_jw_on(&text);
    const char *name;

    rv_jw_obj(&w);
    rv_jw_key(&w, "tools");
    rv_jw_arr(&w);
    for (size_t i = 0; catalog->tool_name && (name = catalog->tool_name(catalog->self, i)); i++) {
        const struct rv_tool_info *info = catalog->tool(catalog->self, rv_str_of(name));
        if (info)
            write_tool(info, &w);
    }
    rv_jw_arr_end(&w);
    rv_jw_obj_end(&w);
    return answer_now(c, &text, err);
}

/* --- events --- */

static bool is_event_name(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.-");

    return n > 0 && n <= MAX_EVENT_NAME && name[n] == '\0' && name[0] >= 'a' && name[0] <= 'z';
}

static void write_event(const struct service_call *c, const char *name, json_object *data, rv_buf *out)
{
    const struct rv_service_ask *q = &c->ask->q;
    rv_jw w = rv_jw_on(out);
    char time[RV_TIME_MAX];

    rv_time_format(rv_engine_now_us(c->e), time);
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "type", rv_emit_text(RV_EMIT_CUSTOM));
    rv_jw_kv_text(&w, "time", time);
    rv_jw_kv_bool(&w, "kept", false);
    rv_jw_kv_text(&w, "stage", *q->stage ? q->stage : NULL);
    rv_jw_kv_int(&w, "call_id", q->call_id);
    rv_jw_kv_text(&w, "capability", q->capability);
    rv_jw_kv_text(&w, "name", name);
    rv_jw_key(&w, "data");
    if (data)
        rv_jw_value(&w, data);
    else
        rv_jw_raw(&w, RV_STR_LIT("{}"));
    rv_jw_obj_end(&w);
}

static int publish(const struct service_call *c, rv_err **err)
{
    static const char *const known[] = {"name", "data"};
    RV_AUTO(rv_buf_fini) rv_buf line = RV_BUF_INIT(MAX_EVENT);
    json_object *data = NULL;
    const char *name = "";

    int rc = rv_service_check_args(c->args, known, RV_COUNT(known), err);

    if (rc < 0)
        return rc;
    if (!rv_json_get_text(c->args, "name", &name) || !is_event_name(name))
        return RV_FAIL(err, RV_E_INVALID, "\"name\" is not a name of an event (a-z, then a-z 0-9 _ . -, at most %d)",
                       MAX_EVENT_NAME);
    if (json_object_object_get_ex(c->args, "data", &data) && !json_object_is_type(data, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "\"data\" is not an object but %s", rv_json_type_text(data));
    if (c->x->n_published == MAX_EVENTS)
        return RV_FAIL(err, RV_E_LIMIT, "the capabilities of this run have published %d events", MAX_EVENTS);
    write_event(c, name, data, &line);
    rc = rv_buf_check(&line, "event", err);
    if (rc < 0)
        return rc;
    c->x->n_published++;
    engine_observe_unkept(c->x, RV_EMIT_CUSTOM, rv_buf_str(&line));
    engine_service_answer(c->e, c->id, NULL, NULL);
    return 0;
}

/* For each service the function that begins to answer, and the one that cancels that. The program answers services that
 * are not in this table. */
static const struct row {
    const char *name;
    int (*begin)(const struct service_call *c, rv_err **err);
    void (*give_up)(rv_engine *e, uint64_t id); /* NULL: it has answered when `begin` returns */
} rows[] = {
    {"engine.health", health, NULL},
    {"engine.tools", tools, NULL},
    {"events.publish", publish, NULL},
    {"http.get", engine_service_http, engine_service_http_give_up},
    {"http.request", engine_service_http, engine_service_http_give_up},
};

/* --- handlers of the bus --- */

static struct asks *asks_of(const rv_engine *e)
{
    return e->pool ? engine_pool_asks(e->pool) : NULL;
}

/* The run is looked for by its id: a call that was given up may outlive it. */
static rv_exec *run_of(const rv_engine *e, const char *id)
{
    for (rv_exec *x = e->execs; x; x = x->next)
        if (x->run && rv_run_envelope(x->run) &&
            strcmp(rv_envelope_fields(rv_run_envelope(x->run))->envelope_id, id) == 0)
            return x;
    return NULL;
}

static int begin_job(const struct service_call *c, rv_err **err)
{
    const struct rv_exec_services *s = c->x->opts.services;
    struct rv_service_job *job = NULL;

    if (!s)
        return RV_FAIL(err, RV_E_STATE, "service \"%s\": the program that runs this engine does not offer it",
                       c->ask->q.service);
    c->ask->q.script = c->x->opts.script;
    int rc = s->make(s->self, &c->ask->q, c->args, &job, err);
    if (rc == 0)
        asks_run(c->ask->list, c->ask, job);
    return rc;
}

static int read_args(rv_str text, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {
        .max_bytes = RV_SERVICE_MAX_ARGS, .max_depth = RV_SERVICE_MAX_DEPTH, .what = "arguments"};
    int rc = rv_json_parse(text, &opts, out, err);

    if (rc < 0 || json_object_is_type(*out, json_type_object))
        return rc;
    rc = RV_FAIL(err, RV_E_INVALID, "the arguments are not an object but %s", rv_json_type_text(*out));
    json_object_put(*out);
    return rc;
}

static int begin(void *self, uint64_t id, const struct rv_bus_message *m, rv_err **err)
{
    const struct handler *h = self;
    struct ask *a = (struct ask *)(uintptr_t)m->about;
    struct service_call c = {.e = h->e, .id = id, .ask = a, .x = run_of(h->e, a->q.run_id)};

    if (!c.x)
        return RV_FAIL(err, RV_E_STATE, "service \"%s\": the run that asks is over", m->type);
    int rc = read_args(m->text, &c.args, err);
    if (rc < 0)
        return rc;
    rc = h->row ? h->row->begin(&c, err) : begin_job(&c, err);
    json_object_put(c.args);
    return rc;
}

static void give_up(void *self, uint64_t id)
{
    const struct handler *h = self;

    if (h->row && h->row->give_up)
        h->row->give_up(h->e, id);
}

/* --- middleware --- */

/* Denied by default: what an entry may ask is what its specification says, and no configuration adds to that. */
static int guard(void *self, struct rv_bus_message *m, rv_buf *room, rv_err **err)
{
    const struct ask *a = m->about;

    (void)self;
    (void)room;
    if (a->q.is_declared || !rv_service_find(rv_str_of(m->type))) /* the bus names the services that exist */
        return 0;
    int rc = RV_FAIL(err, RV_E_DENIED, "%s \"%s\" of capability \"%s\" does not say that it asks for \"%s\"", a->q.kind,
                     a->q.entry, a->q.capability, m->type);
    rv_err_set_hint(err, "add it to \"services\" of its specification");
    return rc;
}

static void note(void *self, const struct rv_bus_message *m, struct rv_bus_outcome *o)
{
    const rv_engine *e = self;
    const struct rv_service_ask *q = &((const struct ask *)m->about)->q;

    RV_LOG(e->opts.log, DEBUG, "service.asked", RV_F_TEXT("service", m->type), RV_F_TEXT("capability", q->capability),
           RV_F_TEXT("entry", q->entry), RV_F_TEXT("run_id", q->run_id), RV_F_I64("call_id", q->call_id),
           RV_F_I64("args_bytes", (int64_t)m->text.len), RV_F_I64("answer_bytes", (int64_t)o->text.len),
           RV_F_I64("took_us", o->took_us), RV_F_ERR("error", o->why));
}

/* --- from the workers to the bus and back --- */

static const struct row *row_of(const char *name)
{
    for (size_t i = 0; i < RV_COUNT(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static int add_handlers(rv_engine *e, struct services *s, rv_err **err)
{
    size_t n = 0;
    int rc = 0;

    while (rv_service_at(n))
        n++;
    s->handlers = calloc(n, sizeof *s->handlers);
    if (!s->handlers)
        return RV_FAIL(err, RV_E_NOMEM, "offer services");
    for (size_t i = 0; i < n && rc == 0; i++) {
        struct handler *h = &s->handlers[i];
        *h = (struct handler){e, rv_service_at(i), row_of(rv_service_at(i)->name)};
        const struct rv_bus_handler how = {.type = h->info->name,
                                           .timeout_us = h->info->timeout_ms * RV_US_PER_MS,
                                           .begin = begin,
                                           .give_up = give_up,
                                           .self = h};
        rc = rv_bus_register_handler(s->bus, &how, err);
    }
    return rc;
}

static void services_free(struct services *s)
{
    if (!s)
        return;
    rv_bus_free(s->bus);
    rv_egress_free(s->egress);
    free(s->handlers);
    free(s);
}

static void withdraw(rv_engine *e, uint64_t id)
{
    rv_bus_withdraw(e->services->bus, id);
}

static int ensure(rv_engine *e, rv_err **err)
{
    const struct rv_bus_middleware logs = {.after = note, .self = e}, guards = {.before = guard};

    if (e->services)
        return 0;
    struct services *s = calloc(1, sizeof *s);
    if (!s)
        return RV_FAIL(err, RV_E_NOMEM, "offer services");
    int rc = rv_bus_new(&e->clock, e->opts.log, &s->bus, err);
    if (rc == 0)
        rc = rv_bus_add_middleware(s->bus, &logs, err);
    if (rc == 0)
        rc = rv_bus_add_middleware(s->bus, &guards, err);
    if (rc == 0)
        rc = add_handlers(e, s, err);
    if (rc < 0) {
        services_free(s);
        return rc;
    }
    e->services = s;
    e->withdraw = withdraw;
    return 0;
}

static void done(void *self, struct rv_bus_outcome *o)
{
    struct ask *a = self;
    rv_err *why = o->why;

    o->why = NULL;
    if (!why && o->text.ptr != a->answer.ptr)
        rv_buf_add_str(&a->answer, o->text.len ? o->text : RV_STR_LIT("{}"));
    if (!why)
        RV_IGNORE(rv_buf_check(&a->answer, "answer of a service", &why), "the error says it");
    asks_done(a->list, a, why);
}

/* A new request goes to the bus. */
static void put(rv_engine *e, struct ask *a)
{
    const struct rv_service_info *info = rv_service_find(rv_str_of(a->q.service));
    const struct rv_bus_question q = {.message = {.kind = info && info->is_command ? RV_BUS_COMMAND : RV_BUS_QUERY,
                                                  .type = a->q.service,
                                                  .text = a->q.args,
                                                  .about = a},
                                      .done = done,
                                      .self = a};
    rv_err *err = NULL;

    int rc = ensure(e, &err);
    if (rc == 0)
        rc = rv_bus_ask(e->services->bus, &q, &a->id, &err);
    if (rc < 0)
        asks_done(a->list, a, err);
}

void engine_services_tick(rv_engine *e)
{
    struct asks *d = asks_of(e);
    enum ask_state was;
    struct ask *a;

    while (d && (a = asks_take(d, &was))) {
        if (a->is_left) {
            if (a->id)
                withdraw(e, a->id);
            engine_ask_free(a);
        } else if (was == ASK_NEW) {
            put(e, a);
        } else {
            rv_err *why = a->why;
            a->why = NULL;
            rv_bus_answer(e->services->bus, a->id, rv_buf_str(&a->answer), why);
        }
    }
    if (e->services)
        rv_bus_tick(e->services->bus);
}

int64_t engine_services_due_us(const rv_engine *e)
{
    return e->services ? rv_bus_due_us(e->services->bus) : RV_NEVER;
}

void engine_services_fini(rv_engine *e)
{
    struct asks *d = asks_of(e);
    uint64_t id = 0;

    if (d)
        asks_stop(d);
    while (d && asks_drop(d, NULL, &id))
        if (id)
            withdraw(e, id);
    services_free(e->services); /* gives up what is under way */
    e->services = NULL;
}
