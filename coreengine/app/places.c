/* Folders and files of this machine that the environment names. */
#include "coreengine/app/app_internal.h"

#include <stdlib.h>

const char *app_env(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

/* A relative folder would be another store in each directory. */
static const char *folder_from_environment(const char *name)
{
    const char *value = app_env(name);
    return value && value[0] == '/' ? value : NULL;
}

int rv_app_find_state_folder(rv_buf *out, rv_err **err)
{
    const char *state = folder_from_environment("XDG_STATE_HOME"), *home = folder_from_environment("HOME");

    if (!state && !home)
        return RV_FAIL(err, RV_E_NOT_FOUND, "neither XDG_STATE_HOME nor HOME names a folder for runs");
    rv_buf_printf(out, "%s%s/reeve", state ? state : home, state ? "" : "/.local/state");
    return rv_buf_check(out, "path", err);
}

int app_config_file(const char *name, rv_buf *out, rv_err **err)
{
    const char *config = folder_from_environment("XDG_CONFIG_HOME"), *home = folder_from_environment("HOME");

    if (!config && !home)
        return RV_FAIL(err, RV_E_NOT_FOUND, "neither XDG_CONFIG_HOME nor HOME names a folder for settings");
    rv_buf_printf(out, "%s%s/reeve/%s", config ? config : home, config ? "" : "/.config", name);
    return rv_buf_check(out, "path", err);
}
