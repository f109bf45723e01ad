/* Whose rows a verb may see: --user and --tenant, else REEVE_USER and REEVE_TENANT. Other rows do not exist for the
 * command: an id of another user gives the same error as an unknown id. */
#include "coreengine/cli/cli.h"

#include <stdlib.h>
#include <string.h>

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

int rv_cli_check_user(const struct rv_cli_args *args, const char *user_id, rv_err **err)
{
    const char *user = rv_cli_scope(args).user;

    if (!user || strcmp(user, user_id) == 0)
        return 0;
    return RV_FAIL(err, RV_E_DENIED, "the state belongs to another user than \"%s\"", user);
}
