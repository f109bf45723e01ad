/* The tables of a store brought forward, and from which version to which. */
#include "coreengine/app/upkeep.h"

#include <stdlib.h>
#include <string.h>

static int check_version(const struct rv_app_migrated *m, rv_err **err)
{
    if (!m->was.is_there) {
        RV_FAIL(err, RV_E_NOT_FOUND, "there is no store \"%s\"", m->url);
        rv_err_set_hint(err, "a new store has the current tables at once");
        return RV_E_NOT_FOUND;
    }
    if (m->was.has <= m->was.current)
        return 0;
    RV_FAIL(err, RV_E_VERSION, "\"%s\" has schema version %lld, this program knows versions up to %lld", m->url,
            (long long)m->was.has, (long long)m->was.current);
    rv_err_set_hint(err, "use the newer program that wrote it");
    return RV_E_VERSION;
}

static int look(const char *url, struct rv_app_migrated *out, rv_err **err)
{
    rv_buf shown = RV_BUF_INIT(4096);

    rv_store_show_url(url, &shown);
    int rc = rv_buf_check(&shown, "URL", err);
    if (rc == 0 && !(out->url = rv_str_dup(rv_buf_str(&shown))))
        rc = RV_FAIL(err, RV_E_NOMEM, "look at a store");
    rv_buf_fini(&shown);
    return rc < 0 ? rc : rv_store_read_version(url, &out->was, err);
}

int rv_app_migrate_store(const struct rv_app *app, bool is_dry, struct rv_app_migrated *out, rv_err **err)
{
    rv_buf path = RV_BUF_INIT(4096);
    rv_store *store = NULL;

    memset(out, 0, sizeof *out);
    int rc = rv_app_find_store_path(app, &path, err);
    if (rc == 0)
        rc = look(rv_buf_cstr(&path), out, err);
    if (rc == 0)
        rc = check_version(out, err);
    if (rc == 0 && !is_dry && out->was.has < out->was.current)
        rc = rv_app_store_open(app, RV_APP_STORE_CHANGE, &store, err);
    rv_store_close(store);
    rv_buf_fini(&path);
    if (rc < 0)
        rv_app_migrated_fini(out);
    return rc;
}

void rv_app_migrated_fini(struct rv_app_migrated *m)
{
    free(m->url);
    memset(m, 0, sizeof *m);
}
