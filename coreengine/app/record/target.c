/* Can a file be written there? Asked before a run that is paid for, and that writes it at its end. */
#include "coreengine/app/testing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int no_folder(const char *path, const char *folder, rv_err **err)
{
    int rc = RV_FAIL(err, RV_E_NOT_FOUND, "cannot write \"%s\": there is no folder \"%s\"", path, folder);

    rv_err_set_hint(err, "make it first: mkdir -p \"%s\"", folder);
    return rc;
}

/* The folder of a path, the caller's. NULL: no memory. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return !slash          ? rv_str_dup(RV_STR_LIT("."))
           : slash == path ? rv_str_dup(RV_STR_LIT("/"))
                           : rv_str_dup((rv_str){path, (size_t)(slash - path)});
}

static int check_folder(const char *path, const char *folder, bool makes_folders, rv_err **err)
{
    struct stat st;

    if (stat(folder, &st) < 0) {
        if (errno != ENOENT)
            return RV_FAIL_SYSTEM(err, errno, "cannot write \"%s\": the folder \"%s\"", path, folder);
        if (!makes_folders)
            return no_folder(path, folder, err);
        char *above = folder_of(folder);
        int rc = above ? check_folder(path, above, true, err) : RV_FAIL(err, RV_E_NOMEM, "look at \"%s\"", path);
        free(above);
        return rc;
    }
    if (!S_ISDIR(st.st_mode))
        return RV_FAIL(err, RV_E_INVALID, "cannot write \"%s\": \"%s\" is not a folder", path, folder);
    if (access(folder, W_OK | X_OK) == 0)
        return 0;
    int rc = RV_FAIL_SYSTEM(err, errno, "cannot write \"%s\": the folder \"%s\"", path, folder);
    if (rc == RV_E_DENIED)
        rv_err_set_hint(err, "choose a folder that you may write to");
    return rc;
}

int rv_app_check_target(const char *path, bool makes_folders, rv_err **err)
{
    struct stat st;

    if (stat(path, &st) < 0 || S_ISREG(st.st_mode)) { /* a file is replaced as a whole, by one beside it */
        char *folder = folder_of(path);
        int rc =
            folder ? check_folder(path, folder, makes_folders, err) : RV_FAIL(err, RV_E_NOMEM, "look at \"%s\"", path);
        free(folder);
        return rc;
    }
    if (S_ISDIR(st.st_mode)) {
        int rc = RV_FAIL(err, RV_E_INVALID, "cannot write \"%s\": it is a folder", path);
        rv_err_set_hint(err, "name a file in it");
        return rc;
    }
    return access(path, W_OK) < 0 ? RV_FAIL_SYSTEM(err, errno, "cannot write \"%s\"", path) : 0;
}
