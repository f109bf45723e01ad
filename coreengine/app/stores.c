/* Stores: where they are, how much a commit survives, the keys of encryption, and what it means when there is none. */
#include "coreengine/app/app_internal.h"
#include "coreengine/store/store.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int default_path(rv_buf *out, rv_err **err)
{
    int rc = rv_app_find_state_folder(out, err);

    if (rc < 0) {
        rv_err_set_hint(err, "name a store, or set REEVE_STORE");
        return rc;
    }
    rv_buf_puts(out, "/reeve.db");
    return rv_buf_check(out, "path", err);
}

static const char *named_store(const struct rv_app *app)
{
    return app->store ? app->store : app_env("REEVE_STORE");
}

int rv_app_find_store_path(const struct rv_app *app, rv_buf *out, rv_err **err)
{
    const char *named = named_store(app);

    if (!named)
        return default_path(out, err);
    if (!named[0])
        return RV_FAIL(err, RV_E_INVALID, "the store needs the name of a file");
    rv_buf_puts(out, named);
    return rv_buf_check(out, "path", err);
}

static int sync_of(const struct rv_app *app, enum rv_store_sync *out, rv_err **err)
{
    static const char *const words[] = {
        [RV_STORE_SYNC_FULL] = "full", [RV_STORE_SYNC_NORMAL] = "normal", [RV_STORE_SYNC_OFF] = "off"};
    RV_EACH_HAS_ROW(words, RV_N_STORE_SYNCS);
    const char *word = app->sync ? app->sync : app_env("REEVE_SYNC");

    *out = RV_STORE_SYNC_FULL;
    for (size_t i = 0; word && i < RV_COUNT(words); i++)
        if (strcmp(word, words[i]) == 0) {
            *out = (enum rv_store_sync)i;
            return 0;
        }
    if (!word)
        return 0;
    return RV_FAIL(err, RV_E_INVALID, "invalid REEVE_SYNC \"%s\": use full, normal or off", word);
}

/* The master keys and private keys that the environment names; NULL: none. The caller has a reference. */
static int keyring_of(rv_keyring **out, rv_err **err)
{
    const char *file = app_env("REEVE_ENCRYPTION_KEY_FILE"), *text = app_env("REEVE_ENCRYPTION_KEY");
    const char *private = app_env("REEVE_PRIVATE_KEY_FILE");
    int rc = 0;

    *out = NULL;
    if (file && text)
        return RV_FAIL(err, RV_E_INVALID, "REEVE_ENCRYPTION_KEY_FILE and REEVE_ENCRYPTION_KEY are both set: use one");
    if (file)
        rc = rv_keyring_read_file(file, out, err);
    else if (text)
        rc = rv_keyring_read(rv_str_of(text), "REEVE_ENCRYPTION_KEY", out, err);
    return rc == 0 && private ? rv_keyring_add_private(out, private, err) : rc;
}

static int no_store(const char *path, rv_err **err)
{
    rv_buf shown = RV_BUF_INIT(4096);

    rv_store_show_url(path, &shown);
    int rc = RV_FAIL(err, RV_E_NOT_FOUND, "the store \"%s\" does not exist", rv_buf_cstr(&shown));
    rv_buf_fini(&shown);
    rv_err_set_hint(err, "the first run creates it; REEVE_STORE names another store");
    return rc;
}

/* The first process that opens a store of an older version upgrades it, even if it only reads. *cause: that it is
 * older; afterwards why it cannot be read, which is still that where this process may not write. */
static int bring_forward(const char *path, const struct rv_store_opts *reading, rv_store **out, rv_err **cause)
{
    struct rv_store_opts opts = *reading;
    rv_store *store = NULL;
    rv_err *why = NULL;

    opts.read_only = false;
    int rc = rv_store_open(path, &opts, &store, &why);
    if (rc == RV_E_VERSION || rc == RV_E_DENIED) {
        rv_err_free(why);
        return RV_E_VERSION;
    }
    rv_store_close(store);
    rv_err_free(rv_err_steal(cause));
    if (rc < 0)
        return rv_err_pass(cause, why);
    return rv_store_open(path, reading, out, cause);
}

static void log_store(const struct rv_app *app, const char *url)
{
    rv_buf shown = RV_BUF_INIT(4096);

    rv_store_show_url(url, &shown);
    RV_LOG(app->log, DEBUG, "store.open", RV_F_STR("url", rv_buf_str(&shown)));
    rv_buf_fini(&shown);
}

int rv_app_store_open(const struct rv_app *app, enum rv_app_store_use use, rv_store **out, rv_err **err)
{
    struct rv_store_opts opts = {.read_only = use == RV_APP_STORE_READ,
                                 .must_exist = use == RV_APP_STORE_READ || use == RV_APP_STORE_CHANGE,
                                 .takes_copy = use == RV_APP_STORE_FILL,
                                 .health = app->health};
    rv_buf path = RV_BUF_INIT(4096);
    rv_err *cause = NULL;

    int rc = rv_app_find_store_path(app, &path, err);
    if (rc == 0)
        rc = sync_of(app, &opts.sync, err);
    if (rc == 0 && use == RV_APP_STORE_MAKE && !named_store(app)) { /* a file */
        rc = rv_file_make_folders(rv_buf_cstr(&path), err);
        if (rc < 0)
            rc = RV_WRAP(err, rc, "open store \"%s\"", rv_buf_cstr(&path));
    }
    if (rc == 0)
        rc = keyring_of(&opts.ring, err);
    if (rc == 0) {
        log_store(app, rv_buf_cstr(&path));
        rc = rv_store_open(rv_buf_cstr(&path), &opts, out, &cause);
        if (rc == RV_E_VERSION && opts.read_only)
            rc = bring_forward(rv_buf_cstr(&path), &opts, out, &cause);
        if (rc == RV_E_NOT_FOUND && opts.must_exist && !rv_store_is_postgres(rv_buf_cstr(&path))) {
            rv_err_free(cause);
            rc = no_store(rv_buf_cstr(&path), err);
        } else if (rc < 0) {
            rv_err_pass(err, cause);
        } else {
            rv_err_free(cause);
        }
    }
    if (rc == RV_E_DENIED && err && !rv_err_hint_text(*err))
        rv_err_set_hint(err, "name another place for the store");
    rv_keyring_unref(opts.ring);
    rv_buf_fini(&path);
    return rc;
}

int rv_app_store_open_if_any(const struct rv_app *app, rv_store **out, rv_err **err)
{
    rv_err *cause = NULL;
    int rc = rv_app_store_open(app, RV_APP_STORE_READ, out, &cause);

    if (rc == RV_E_NOT_FOUND && !app->store) {
        rv_err_free(cause);
        *out = NULL;
        return 0;
    }
    if (rc < 0)
        rv_err_pass(err, cause);
    return rc;
}
