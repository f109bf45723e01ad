/* Handlers that need no store, and that tell what may be used. */
#include "coreengine/server/server_internal.h"

int srv_healthz(struct srv_call *c, rv_err **err)
{
    rv_jw w = srv_call_json(c, 200);

    (void)err;
    rv_jw_raw(&w, RV_STR_LIT("{\"status\":\"ok\"}"));
    return 0;
}

int srv_readyz(struct srv_call *c, rv_err **err)
{
    bool drains = atomic_load(&c->server->is_draining);
    rv_jw w = srv_call_json(c, drains ? 503 : 200);

    (void)err;
    if (drains)
        srv_call_field(c, "Retry-After", "5");
    rv_jw_raw(&w, drains ? RV_STR_LIT("{\"status\":\"draining\"}") : RV_STR_LIT("{\"status\":\"ready\"}"));
    return 0;
}

int srv_openapi(struct srv_call *c, rv_err **err)
{
    (void)err;
    RV_IGNORE((srv_call_json(c, 200), 0), "the document writes itself");
    rv_server_write_openapi(&c->out);
    return 0;
}

/* --- quotas --- */

static void write_usage(void *self, const struct rv_app_usage *row)
{
    rv_jw *w = self;

    rv_jw_obj(w);
    rv_jw_kv_text(w, "user", row->user);
    rv_jw_kv_bool(w, "tenant", row->is_tenants);
    rv_jw_kv_text(w, "kind", rv_quota_kind_word(row->kind));
    rv_jw_kv_text(w, "span", rv_quota_span_word(row->span));
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
        rc = rv_app_usage_list(quotas, c->store, &c->app.scope, srv_now_us(), write_usage, &w, err);
    rv_jw_arr_end(&w);
    rv_quotas_free(quotas);
    return rc;
}
