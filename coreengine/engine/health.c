/* The health of the tools that an engine calls, and the breaker that stops calls of a tool that only fails. A tool that
 * says "there is no such file" or "these arguments are wrong" works: only other failures count against it.
 *
 * A record belongs to what answers the calls: a source with its configuration and credentials, for a tenant. A script
 * answers for its run only, and nothing real happens: that run keeps the records of what it plays. */
#include "coreengine/engine/health_internal.h"
#include "envelope/envelope.h"

#include <stdlib.h>
#include <string.h>

#include "coreengine/engine/engine_internal.h"

/* --- which record --- */

static void add_text(struct rv_hash *h, const char *text)
{
    rv_hash_add(h, (rv_str){text, strlen(text) + 1});
}

/* False: calls of the tool are not counted. */
static bool key_of(const rv_exec *x, const struct rv_tool_source *s, const char *tool, char out[RV_HASH_MAX])
{
    char identity[RV_HASH_MAX] = "";
    struct rv_hash h;

    if (!s || !s->ops || s->is_engines || (s->ops->identity && !s->ops->identity(s->self, rv_str_of(tool), identity)))
        return false;
    rv_hash_init(&h);
    add_text(&h, x->opts.tenant ? x->opts.tenant : "");
    add_text(&h, s->ops->name);
    add_text(&h, identity);
    add_text(&h, tool);
    rv_hash_finish_hex(&h, out);
    return true;
}

static struct tool_records *records_of(const struct call *c)
{
    return c->is_played ? &c->x->played : &c->x->engine->tools;
}

void engine_health_bind(struct call *c, const struct rv_tool_source *s)
{
    c->is_played = s && s->stands_in;
    if (!key_of(c->x, s, c->name, c->health_key) || !engine_tool_records_take(records_of(c), c->health_key, c->name))
        engine_health_unbind(c); /* no memory: not counted */
}

void engine_health_unbind(struct call *c)
{
    c->health_key[0] = 0;
}

/* --- what it says --- */

static bool is_open(const rv_exec *x, const struct tool_record *t)
{
    return rv_tool_breaker_open(&t->health, rv_engine_now_us(x->engine));
}

bool engine_health_blocks(const struct call *c)
{
    const struct tool_record *t = c->health_key[0] ? engine_tool_records_find(records_of(c), c->health_key) : NULL;

    return t && is_open(c->x, t);
}

/* Of a call that failed, or whose reply says that it did. */
static void note_error(struct rv_tool_health *h, const struct call *c)
{
    json_object *standard = c->failed ? NULL : rv_tool_build_reported_error(rv_buf_str(&c->text));
    json_object *error = rv_json_get_obj(standard, "error");
    const char *type = c->error_type[0] ? c->error_type : rv_error_execution, *message = "";

    if (error) {
        type = rv_json_text_or(error, "error_type", rv_error_tool);
        message = rv_json_text_or(error, "message", "");
    }
    rv_tool_health_note_error(h, rv_str_of(type), c->failed ? rv_buf_str(&c->text) : rv_str_of(message));
    json_object_put(standard);
}

void engine_health_note(struct call *c)
{
    rv_engine *e = c->x->engine;
    int64_t now = rv_engine_now_us(e);
    bool ok = c->failed ? rv_tool_is_callers_fault(c->error_type) : !c->reports_error;
    struct tool_record *t = c->health_key[0] ? engine_tool_records_take(records_of(c), c->health_key, c->name) : NULL;

    if (!t)
        return;
    rv_tool_health_note(&t->health, now, ok, (now - c->started_us) / RV_US_PER_MS);
    if (!ok)
        note_error(&t->health, c);
    if (!ok && rv_tool_breaker_open(&t->health, now))
        e->blocked_until_us = now + RV_BREAKER_WINDOW_US;
}

/* Is it what the run calls by that name? */
static bool is_of(const rv_exec *x, const struct tool_record *t)
{
    const struct rv_tool_found found = rv_tool_set_find(&x->tools.set, rv_str_of(t->name));
    char key[RV_HASH_MAX];

    return found.info && key_of(x, found.source, t->name, key) && strcmp(key, t->key) == 0;
}

int engine_health_blocked(const rv_exec *x, json_object **out, rv_err **err)
{
    const struct tool_records *const all[] = {&x->engine->tools, &x->played};
    int rc = 0;

    *out = NULL;
    if (!rv_run_checks_breakers(x->run) || rv_engine_now_us(x->engine) > x->engine->blocked_until_us)
        return 0;
    for (size_t k = 0; k < RV_COUNT(all); k++)
        for (size_t i = 0; i < all[k]->n && rc == 0; i++) {
            const struct tool_record *t = all[k]->items[i];
            if (!is_open(x, t) || !is_of(x, t))
                continue;
            if (!*out && !(*out = json_object_new_array()))
                rc = RV_FAIL(err, RV_E_NOMEM, "list blocked tools");
            else
                rc = rv_json_push_take(*out, json_object_new_string(t->name), err);
        }
    if (rc == 0)
        return 0;
    json_object_put(*out);
    *out = NULL;
    return rc;
}

/* --- what capabilities are told --- */

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct tool_record *const *)a)->name, (*(const struct tool_record *const *)b)->name);
}

/* The records of the run's tools; the caller's. NULL: no memory. */
static const struct tool_record **own_records(const rv_exec *x, size_t *n)
{
    const struct tool_records *const all[] = {&x->engine->tools, &x->played};
    const struct tool_record **own = calloc(all[0]->n + all[1]->n + 1, sizeof *own);

    *n = 0;
    for (size_t k = 0; own && k < RV_COUNT(all); k++)
        for (size_t i = 0; i < all[k]->n; i++)
            if (is_of(x, all[k]->items[i]))
                own[(*n)++] = all[k]->items[i];
    if (own)
        qsort(own, *n, sizeof *own, by_name);
    return own;
}

static void write_record(const rv_exec *x, const struct tool_record *t, rv_jw *w)
{
    const struct rv_tool_health *h = &t->health;

    rv_jw_obj(w);
    rv_jw_kv_text(w, "tool", t->name);
    rv_jw_kv_text(w, "status", rv_health_text(rv_tool_health_status(h)));
    rv_jw_key(w, "success_rate");
    rv_jw_double(w, rv_tool_health_success_rate(h));
    rv_jw_kv_int(w, "calls", (int64_t)h->n);
    rv_jw_kv_bool(w, "breaker_open", is_open(x, t));
    rv_jw_key(w, "errors");
    rv_tool_health_write_errors(h, w);
    rv_jw_obj_end(w);
}

void rv_exec_write_health(const rv_exec *x, rv_jw *w)
{
    enum rv_health worst = RV_HEALTH_UNKNOWN;
    size_t n = 0;
    const struct tool_record **own = own_records(x, &n);

    if (!own) {
        w->out->rc = RV_E_NOMEM;
        return;
    }
    rv_jw_obj(w);
    for (size_t i = 0; i < n; i++) {
        enum rv_health h = rv_tool_health_status(&own[i]->health);
        if (h != RV_HEALTH_UNKNOWN && (worst == RV_HEALTH_UNKNOWN || h > worst)) /* a worse one comes later */
            worst = h;
    }
    rv_jw_kv_text(w, "status", rv_health_text(worst));
    rv_jw_key(w, "tools");
    rv_jw_arr(w);
    for (size_t i = 0; i < n; i++)
        write_record(x, own[i], w);
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
    free(own);
}
