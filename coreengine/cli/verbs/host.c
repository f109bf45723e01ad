/* reeve capability-host: the process that has the code of a capability with `isolation: process`. Started by the
 * engine; users do not type it. */
#include "coreengine/cli/verbs/verbs.h"

#include <fcntl.h>
#include <stdlib.h>

static int host(struct rv_cli *cli, const struct rv_cli_args *args)
{
    char *end = NULL;
    long fd = strtol(args->words[0], &end, 10);

    if (*end || fd < 3 || fd > 1024 || fcntl((int)fd, F_GETFD) < 0)
        return rv_cli_usage(cli, args, "\"%s\" is not a socket of an engine", args->words[0]);
    return rv_plugin_host((int)fd);
}

const struct rv_cli_verb rv_verb_capability_host = {
    .name = "capability-host",
    .args = "FD",
    .summary = "run the code of one capability for another process",
    .text = "The other side of `isolation: process`; the engine starts it.",
    .examples = "",
    .min_words = 1,
    .max_words = 1,
    .run = host,
    .hidden = true,
};
