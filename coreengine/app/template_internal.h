/* The files that new ones are made of, as they stand in templates/. */
#ifndef RV_APP_TEMPLATE_INTERNAL_H
#define RV_APP_TEMPLATE_INTERNAL_H

#include "coreengine/base/base.h"

#include <stddef.h>

/* What it points to is static. */
struct rv_app_template {
    const char *name; /* path below templates/ */
    const char *text; /* not NUL-terminated */
    size_t len;
};
extern const struct rv_app_template app_templates[]; /* ends with a NULL name */

#define RV_APP_MAX_NAME 40 /* characters of a new pipeline's or capability's name: it is in paths and C names */
/** The name of the file without folder and extension; what YAML would not take as plain text becomes "-". */
void app_name_of_file(const char *path, char out[RV_APP_MAX_NAME + 1]);
/** The path of the file that path names: with ".yaml" when it does not end with .yaml or .yml. */
RV_MUST_CHECK int app_path_of_pipeline(const char *path, rv_buf *out, rv_err **err);
/** Text as one word of a shell, or as the beginning of one. */
void app_write_word(rv_str text, rv_buf *out);

#endif
