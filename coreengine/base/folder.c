/* readdir() has one answer for the end of a folder and for a failure: only errno tells which it is. */
#include "coreengine/base/system.h"

#include <errno.h>

int rv_folder_next(DIR *dir, const char *path, const struct dirent **out, rv_err **err)
{
    errno = 0;
    const struct dirent *entry = readdir(dir);

    if (!entry && errno)
        return RV_FAIL_SYSTEM(err, errno, "cannot read folder \"%s\" to its end", path);
    *out = entry;
    return 0;
}
