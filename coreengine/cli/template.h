/* The files that `reeve new` writes, as they stand in templates/. */
#ifndef RV_CLI_TEMPLATE_H
#define RV_CLI_TEMPLATE_H

#include <stddef.h>

struct rv_cli_template {
    const char *name; /* path below templates/ */
    const char *text; /* not NUL-terminated */
    size_t len;
};
extern const struct rv_cli_template rv_cli_templates[]; /* ends with a NULL name */

#endif
