/* What a client of a chat is told of a failure. The text of a failure of the server's own (its provider, its
 * capabilities, its pipeline, its store) may name hosts, files and settings: the client gets the meaning of the code
 * and the id of the run, the log has the text under that id. What the person said or may do, and bounds, are told as
 * they are. */
#include "coreengine/server/turns_internal.h"

#include <stdio.h>
#include <string.h>

static const char *const meanings[] = {
#define X(name, text, meaning) [RV_FAILURE_##name] = (meaning),
    RV_FAILURES(X)
#undef X
};
static const char *const codes[] = {
#define X(name, text, meaning) [RV_FAILURE_##name] = (text),
    RV_FAILURES(X)
#undef X
};

static bool is_of_the_server(int failure)
{
    switch (failure) {
    case RV_FAILURE_MODEL_NO_KEY:
    case RV_FAILURE_MODEL_REFUSED:
    case RV_FAILURE_MODEL_NO_CONNECTION:
    case RV_FAILURE_MODEL_RATE_LIMITED:
    case RV_FAILURE_MODEL_OVERLOADED:
    case RV_FAILURE_MODEL_TIMED_OUT:
    case RV_FAILURE_MODEL_BAD_ANSWER:
    case RV_FAILURE_MODEL_BAD_REQUEST:
    case RV_FAILURE_MODEL_FAILED:
    case RV_FAILURE_HOOK_FAILED:
    case RV_FAILURE_HOOK_TIMED_OUT:
    case RV_FAILURE_PLUGIN_FAILED:
    case RV_FAILURE_POLICY_FAILED:
    case RV_FAILURE_EXPRESSION_FAILED:
    case RV_FAILURE_TEMPLATE_FAILED:
    case RV_FAILURE_SCRIPT_NO_ENTRY:
    case RV_FAILURE_STAGE_FAILED:
        return true;
    default:
        return false;
    }
}

const char *srv_reason(const struct rv_chat_turn *turn, const char *run, char out[SRV_MAX_REASON])
{
    const char *meaning = turn->was_kept ? NULL : "the turn could not be kept";

    for (size_t i = 0; turn->error && !meaning && turn->code && i < RV_COUNT(codes); i++)
        if (strcmp(codes[i], turn->code) == 0 && is_of_the_server((int)i))
            meaning = meanings[i];
    if (!turn->error || !meaning)
        return turn->error;
    (void)snprintf(out, SRV_MAX_REASON, "%s; the log of the server says more under %.*s", meaning, RV_STORE_MAX_ID,
                   run);
    return out;
}
