/* The entries of a folder, one after another, to its end. */
#ifndef RV_BASE_FOLDER_H
#define RV_BASE_FOLDER_H

#include "coreengine/base/err.h"

#include <dirent.h>

/** The next entry of an open folder; *out is NULL behind the last one, and valid until the next call. `path` is for the
 * message. The code of the system: the folder cannot be read to its end. */
RV_MUST_CHECK int rv_folder_next(DIR *dir, const char *path, const struct dirent **out, rv_err **err);

#endif
