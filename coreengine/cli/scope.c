/* Whose rows a verb may see: --user and --tenant, else REEVE_USER and REEVE_TENANT. Other rows do not exist for the
 * command: an id of another user gives the same error as an unknown id. */
#include "coreengine/cli/cli.h"

#include <stdlib.h>

/* An option counts also when it is empty; a variable that is empty is none. */
static const char *given(const struct rv_cli_args *args, const char *option, const char *variable)
{
    const char *value = rv_cli_value(args, option);

    if (!value && (value = getenv(variable)) && !value[0])
        value = NULL;
    return value;
}

struct rv_store_scope rv_cli_scope(const struct rv_cli_args *args)
{
    return (struct rv_store_scope){.tenant = given(args, "tenant", "REEVE_TENANT"),
                                   .user = given(args, "user", "REEVE_USER")};
}
