/* The shared object itself: opened with dlopen(), asked for its descriptor, told to open and to close. In the engine's
 * process for a capability that shares it, in the child for one that does not. */
#include "coreengine/tools/plugin/plugin_internal.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_ERROR_SIZE 1024

/* dlopen() tells why in text only, and running out of memory has to keep its code. glibc gives no reason at all for two
 * of those failures: a text that ends where the reason should follow, for a file that was there a moment ago. */
static bool is_out_of_memory(const char *why)
{
    static const char *const always[] = {"out of memory", "Cannot allocate memory", "cannot create shared object"};
    static const char bare[] = "cannot open shared object file";
    size_t len = strlen(why);

    for (size_t i = 0; i < RV_COUNT(always); i++)
        if (strstr(why, always[i]))
            return true;
    return len >= sizeof bare - 1 && strcmp(why + len - (sizeof bare - 1), bare) == 0;
}

static int fail_dl(const char *path, rv_err **err)
{
    const char *why = dlerror();
    int rc;

    if (!why || is_out_of_memory(why))
        rc = RV_FAIL(err, RV_E_NOMEM, "open \"%s\"", path);
    else
        rc = RV_FAIL(err, RV_E_PLUGIN, "\"%s\" is no capability that can be loaded: %s", path, why);
    (void)dlerror(); /* lets go of the text */
    return rc;
}

int rv_plugin_fetch(struct rv_plugin *pl, const struct rv_cap_desc **out, rv_err **err)
{
    const struct rv_cap_desc *(*entry_point)(void);
    void *symbol;

    pl->handle = dlopen(pl->path, RTLD_NOW | RTLD_LOCAL);
    if (!pl->handle)
        return fail_dl(pl->path, err);
    symbol = dlsym(pl->handle, "rv_capability");
    if (!symbol) {
        int rc = RV_FAIL(err, RV_E_PLUGIN, "\"%s\" has no function rv_capability()", pl->path);
        rv_err_hint(err, "define it with RV_CAPABILITY() of capability.h");
        return rc;
    }
    memcpy(&entry_point, &symbol, sizeof entry_point); /* ISO C has no cast from object to function pointers */
    *out = entry_point();
    return 0;
}

int rv_plugin_open(struct rv_plugin *pl, const char *base_dir, const char *config, rv_err **err)
{
    char why[OPEN_ERROR_SIZE] = "";

    pl->host = (struct rv_cap_host){sizeof pl->host, RV_CAP_ABI, RV_VERSION, base_dir};
    if (pl->desc.open && pl->desc.open(&pl->host, config, &pl->self, why, sizeof why) != 0) {
        why[sizeof why - 1] = '\0'; /* the function may have filled the whole buffer */
        return RV_FAIL(err, RV_E_PLUGIN, "it failed to open: %s", *why ? why : "it does not say why");
    }
    pl->is_open = true;
    return 0;
}

void rv_plugin_free(struct rv_plugin *pl)
{
    if (!pl)
        return;
    if (pl->is_open && pl->desc.close)
        pl->desc.close(pl->self);
    rv_isolated_free(pl->isolated);
    rv_plugin_logging_free(pl);
    rv_plugin_agents_free(pl);
    rv_plugin_entries_free(pl);
    rv_schema_free(pl->config_schema);
    json_object_put(pl->config_schema_json);
    free(pl->description);
    free(pl->version);
    free(pl->name);
    free(pl->path);
    if (pl->handle)
        dlclose(pl->handle);
    free(pl);
}
