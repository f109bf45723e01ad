/* Capabilities that are part of the program: those of a static binary, which cannot open shared objects. */
#include "coreengine/tools/plugin/plugin_internal.h"

#include <string.h>

/* Weak: a program that has any defines the list itself. */
__attribute__((weak)) const struct rv_capability_linked rv_capabilities_linked[] = {{NULL, NULL}};

const struct rv_capability_linked *plugin_linked(const char *name)
{
    for (const struct rv_capability_linked *c = rv_capabilities_linked; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}
