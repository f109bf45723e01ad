/* The files that new ones are made of, as they stand in templates/. */
#ifndef RV_APP_TEMPLATE_INTERNAL_H
#define RV_APP_TEMPLATE_INTERNAL_H

#include <stddef.h>

/* What it points to is static. */
struct rv_app_template {
    const char *name; /* path below templates/ */
    const char *text; /* not NUL-terminated */
    size_t len;
};
extern const struct rv_app_template rv_app_templates[]; /* ends with a NULL name */

#define RV_APP_MAX_NAME 40 /* characters of the name of a new pipeline or capability */
/** The name of the file without folder and extension; what YAML would not take as plain text becomes "-". */
void rv_app_name_of_file(const char *path, char out[RV_APP_MAX_NAME + 1]);

#endif
