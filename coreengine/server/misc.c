/* Handlers that need no store, and that tell what may be used. */
#include <stdlib.h>

#include "coreengine/base/base.h"
#include "coreengine/server/page_internal.h"
#include "coreengine/store/store.h"

#define PROBE_US RV_US_PER_S /* a second: a balancer that asks more often gets the last answer */

int srv_healthz(struct srv_call *c, rv_err **err)
{
    rv_jw w = srv_call_json(c, 200);

    (void)err;
    rv_jw_raw(&w, RV_STR_LIT("{\"status\":\"ok\"}"));
    return 0;
}

/* A read that every store answers at once. */
static bool store_answers(struct srv_call *c)
{
    rv_err *why = NULL;
    bool has_keys;

    if (!c->store)
        return false;
    int rc = rv_store_has_api_keys(c->store, srv_now_us(), &has_keys, &why);
    if (rc < 0)
        RV_LOG(c->server->app.log, ERROR, "store.unreachable", RV_F_ERR("error", why));
    else
        atomic_store(&c->server->is_locked, has_keys);
    rv_err_free(why);
    return rc == 0;
}

/* A store that refused a write is tried until it takes one, once in a while: NULL, or why it cannot be written. */
static const char *refusal_of(struct srv_call *c)
{
    struct srv_server *s = c->server;
    int64_t now_us = srv_now_us(), last_us = atomic_load(&s->probed_us);
    rv_err *why = NULL;
    int rc = __atomic_load_n(&s->health.refused, __ATOMIC_SEQ_CST);

    if (rc == 0)
        return NULL;
    bool is_mine = (now_us >= last_us + PROBE_US || now_us < last_us) &&
                   atomic_compare_exchange_strong(&s->probed_us, &last_us, now_us);
    if (is_mine && (rc = rv_store_probe(c->store, &why)) < 0)
        RV_LOG(s->app.log, ERROR, "store.unwritable", RV_F_ERR("error", why));
    rv_err_free(why);
    switch (rc) {
    case 0:
        return NULL;
    case RV_E_DISK:
        return "the disk of the store is full";
    case RV_E_DENIED:
        return "the store cannot be written: the system does not allow it";
    default:
        return "the store cannot be written; the log says why";
    }
}

int srv_readyz(struct srv_call *c, rv_err **err)
{
    static const char *const workers[] = {[SRV_WORKER_NONE] = "none",
                                          [SRV_WORKER_WORKS] = "ok",
                                          [SRV_WORKER_WAITS] = "waiting",
                                          [SRV_WORKER_ENDED] = "ended"};
    RV_EACH_HAS_ROW(workers, SRV_N_WORKER_STATES);
    bool drains = atomic_load(&c->server->is_draining), has_store = store_answers(c);
    const char *refusal = has_store ? refusal_of(c) : NULL;
    int worker = atomic_load(&c->server->worker);
    bool is_ready = !drains && has_store && !refusal && worker < SRV_WORKER_WAITS;
    rv_jw w = srv_call_json(c, is_ready ? 200 : 503);

    (void)err;
    if (!is_ready)
        srv_call_field(c, "Retry-After", "5");
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "status", is_ready ? "ready" : drains ? "draining" : "not ready");
    rv_jw_key(&w, "checks");
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "store", !has_store ? "unreachable" : refusal ? "unwritable" : "ok");
    rv_jw_kv_text(&w, "worker", workers[worker]);
    rv_jw_kv_bool(&w, "draining", drains);
    rv_jw_obj_end(&w);
    rv_jw_key(&w, "reasons");
    rv_jw_arr(&w);
    if (drains)
        rv_jw_text(&w, "the server ends: nothing new is accepted");
    if (!has_store)
        rv_jw_text(&w, "the store does not answer; the log says why");
    if (refusal)
        rv_jw_text(&w, refusal);
    if (worker == SRV_WORKER_WAITS)
        rv_jw_text(&w, "the worker of this process cannot start now; the log says why");
    if (worker == SRV_WORKER_ENDED)
        rv_jw_text(&w, "the worker of this process has ended");
    rv_jw_arr_end(&w);
    rv_jw_obj_end(&w);
    return 0;
}

int srv_openapi(struct srv_call *c, rv_err **err)
{
    const struct srv_document *d = c->server->openapi;

    (void)err;
    srv_page_tagged(c, d->etag, "application/json", rv_buf_str(&d->text));
    return 0;
}

int srv_openapi_make(struct srv_document **out, rv_err **err)
{
    struct srv_document *d = calloc(1, sizeof *d);
    char hash[RV_HASH_MAX];

    if (!d)
        return RV_FAIL(err, RV_E_NOMEM, "describe the routes");
    rv_buf_init(&d->text, SRV_MAX_ANSWER);
    rv_server_write_openapi(&d->text);
    int rc = rv_buf_check(&d->text, "the description of the routes", err);
    if (rc < 0) {
        srv_document_free(d);
        return rc;
    }
    rv_hash_format(rv_buf_str(&d->text), hash);
    snprintf(d->etag, sizeof d->etag, "\"%.16s\"", hash);
    *out = d;
    return 0;
}

void srv_document_free(struct srv_document *d)
{
    if (d)
        rv_buf_fini(&d->text);
    free(d);
}

/* --- quotas --- */

static void write_usage(void *self, const struct rv_app_usage *row)
{
    rv_jw *w = self;

    rv_jw_obj(w);
    rv_jw_kv_text(w, "user", row->user);
    rv_jw_kv_bool(w, "tenant", row->is_tenants);
    rv_jw_kv_text(w, "kind", rv_quota_kind_text(row->kind));
    rv_jw_kv_text(w, "span", rv_quota_span_text(row->span));
    rv_jw_kv_bool(w, "rate", row->is_rate);
    rv_jw_kv_int(w, "limit", row->limit);
    rv_jw_kv_int(w, "used", row->used);
    rv_jw_kv_int(w, "reserved", row->reserved);
    rv_jw_obj_end(w);
}

int srv_usage(struct srv_call *c, rv_err **err)
{
    rv_jw w = srv_call_json(c, 200);
    rv_quotas *quotas = NULL;
    int rc = rv_app_quotas_open(&c->app, &quotas, err);

    rv_jw_arr(&w);
    if (rc == 0)
        rc = rv_app_list_usage(&(const struct rv_app_usage_of){quotas, c->store, &c->app.scope, srv_now_us()},
                               write_usage, &w, err);
    rv_jw_arr_end(&w);
    rv_quotas_free(quotas);
    return rc;
}
