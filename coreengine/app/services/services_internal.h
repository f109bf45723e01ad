/* Shared by the files of this folder. */
#ifndef RV_APP_SERVICES_INTERNAL_H
#define RV_APP_SERVICES_INTERNAL_H

#include "coreengine/app/services.h"
#include "coreengine/app/work.h"

/* One ask while it is served, on the thread that asks. What it points to is borrowed for the ask, but for args. */
struct app_ask {
    struct rv_app app;              /* with the tenant of the run, and its user: "" for none */
    rv_store *store;                /* open; NULL: the service needs none */
    json_object *args;              /* an object; owned */
    const char *key;                /* of the call; "" when it has none */
    const char *capability, *entry; /* who asks */
    const char *run_id;             /* of the run that asks */
    const char *script;             /* text of the script of that run; NULL: none answers for models */
    const char *script_name;        /* its file, for messages */
    bool is_test;                   /* the store is one of a test */
};
/** A text among the arguments; needed: RV_E_INVALID when it is not there. *out NULL: left out. */
RV_MUST_CHECK int app_ask_text(const struct app_ask *a, const char *key, bool needed, const char **out, rv_err **err);
/** RV_E_INVALID: an argument that the service does not know. */
RV_MUST_CHECK int app_ask_check(const struct app_ask *a, const char *const *known, size_t n, rv_err **err);
/** The object "payload" as text; left out: {}. Appended. */
RV_MUST_CHECK int app_ask_payload(const struct app_ask *a, rv_buf *out, rv_err **err);

/* --- handles.c: any thread --- */
void app_handles_keep(rv_app_handles *h);  /* for an ask, which may outlive the owner */
void app_handles_leave(rv_app_handles *h); /* the ask is over */
/** A handle of app->store, which is not NULL, that no other ask has. */
RV_MUST_CHECK int app_handles_take(rv_app_handles *h, const struct rv_app *app, rv_store **out, rv_err **err);
/** Its use is over, with that code. */
void app_handles_give_take(rv_app_handles *h, const struct rv_app *app, rv_store *store, int rc);

/* --- the services --- */
RV_MUST_CHECK int app_agents_save(const struct app_ask *a, rv_jw *w, rv_err **err);
RV_MUST_CHECK int app_files_read(const struct app_ask *a, rv_jw *w, rv_err **err);
RV_MUST_CHECK int app_tasks_add(const struct app_ask *a, rv_jw *w, rv_err **err);
RV_MUST_CHECK int app_schedules_add(const struct app_ask *a, rv_jw *w, rv_err **err);
RV_MUST_CHECK int app_schedules_list(const struct app_ask *a, rv_jw *w, rv_err **err);
RV_MUST_CHECK int app_schedules_cancel(const struct app_ask *a, rv_jw *w, rv_err **err);
RV_MUST_CHECK int app_dreaming_gather(const struct app_ask *a, rv_jw *w, rv_err **err);
RV_MUST_CHECK int app_entities_put(const struct app_ask *a, rv_jw *w, rv_err **err);
RV_MUST_CHECK int app_entities_delete(const struct app_ask *a, rv_jw *w, rv_err **err);
RV_MUST_CHECK int app_entities_merge_metadata(const struct app_ask *a, rv_jw *w, rv_err **err);
RV_MUST_CHECK int app_entities_merge_edges(const struct app_ask *a, rv_jw *w, rv_err **err);
RV_MUST_CHECK int app_entities_get(const struct app_ask *a, rv_jw *w, rv_err **err);
RV_MUST_CHECK int app_entities_find(const struct app_ask *a, rv_jw *w, rv_err **err);
RV_MUST_CHECK int app_entities_lookup(const struct app_ask *a, rv_jw *w, rv_err **err);
RV_MUST_CHECK int app_models_call(const struct app_ask *a, rv_jw *w, rv_err **err);
RV_MUST_CHECK int app_quotas_take(const struct app_ask *a, rv_jw *w, rv_err **err);
RV_MUST_CHECK int app_query(const struct app_ask *a, rv_jw *w, rv_err **err);

#endif
