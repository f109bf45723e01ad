/* What a worker offers: its labels, and each capability on its path in the version that is there. Each is looked at in
 * a process of its own: one that crashes when it is loaded is not offered, and takes nothing with it. */
#include "coreengine/app/worker/worker_internal.h"

#define MAX_VERSION ((size_t)4 << 10) /* bytes of a capability's version, as RV_PLUGIN_MAX_TEXT */

static int offer_one(const struct rv_app *app, rv_plugins *plugins, const char *name, struct rv_needs *out,
                     rv_err **err)
{
    rv_buf version = RV_BUF_INIT(MAX_VERSION);
    rv_err *why = NULL;

    int rc = rv_plugins_read_version(plugins, name, &version, &why);
    if (rc == 0)
        rc = rv_needs_add_capability(out, name, rv_buf_cstr(&version), err);
    else if (rc != RV_E_NOMEM)
        RV_LOG(app->log, WARN, "worker.not_offered", RV_F_TEXT("capability", name), RV_F_ERR("error", why));
    else
        rv_err_pass(err, why);
    if (rc < 0 && rc != RV_E_NOMEM) {
        rv_err_free(why);
        rc = 0;
    }
    rv_buf_fini(&version);
    return rc;
}

static int offer_all(const struct rv_app *app, const char *const *dirs, size_t n_dirs, struct rv_needs *out,
                     rv_err **err)
{
    const struct rv_plugins_opts opts = {
        .dirs = dirs, .n_dirs = n_dirs, .base_dir = ".", .log = app->log, .host_program = app->host_program};
    rv_plugins *plugins = NULL;
    char **names = NULL;
    size_t n = 0;

    int rc = rv_plugins_find_available(dirs, n_dirs, &names, &n, err);
    if (rc == 0)
        rc = rv_plugins_new(&opts, &plugins, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = offer_one(app, plugins, names[i], out, err);
    rv_plugins_free(plugins);
    rv_plugins_path_free(names);
    return rc;
}

int app_work_offers(const struct rv_app *app, const char *const *labels, size_t n_labels, struct rv_needs *out,
                    rv_err **err)
{
    char **dirs = NULL;
    size_t n_dirs = 0;

    int rc = rv_plugins_path_new(app->capability_dirs, app->n_capability_dirs, NULL, &dirs, &n_dirs, err);
    if (rc == 0)
        rc = offer_all(app, (const char *const *)dirs, n_dirs, out, err);
    rv_plugins_path_free(dirs);
    for (size_t i = 0; rc == 0 && i < n_labels; i++)
        rc = rv_needs_add_label(out, labels[i], err);
    return rc;
}
