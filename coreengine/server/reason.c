/* What a client of a chat is told of a failure. The text of a failure of the server's own (its provider, its
 * capabilities, its pipeline, its store) may name hosts, files and settings: the client gets the meaning of the code
 * and the id of the run, the log has the text under that id. What the person said or may do, and bounds, are told as
 * they are. */
#include <stdio.h>
#include <string.h>

#include "coreengine/server/turns_internal.h"

enum whose { OF_THE_SERVER, OF_THE_REQUEST };
static const struct {
    const char *code, *meaning;
    enum whose whose;
} failures[] = {
#define ROW(X, name, whose, text, meaning, remedy) [RV_FAILURE_##name] = {(text), (meaning), OF_THE_##whose},
    RV_FAILURE_ROWS(ROW, )
#undef ROW
};

/* NULL: the failure is told as it is. */
static const char *meaning_of(const char *code)
{
    for (size_t i = 0; code && i < RV_COUNT(failures); i++)
        if (strcmp(failures[i].code, code) == 0 && failures[i].whose == OF_THE_SERVER)
            return failures[i].meaning;
    return NULL;
}

const char *srv_reason(const struct rv_chat_turn *turn, const char *run, char out[SRV_MAX_REASON])
{
    const char *meaning = turn->was_kept ? meaning_of(turn->code) : "the turn could not be kept";

    if (!turn->error || !meaning)
        return turn->error;
    snprintf(out, SRV_MAX_REASON, "%s; the log of the server says more under %.*s", meaning, RV_STORE_MAX_ID, run);
    return out;
}

const char *srv_reason_of_run(const char *error, const char *code, const char *run, char out[SRV_MAX_REASON])
{
    const char *meaning = meaning_of(code);

    if (!error || !meaning)
        return error;
    snprintf(out, SRV_MAX_REASON, "%s; GET /runs/%.*s says more", meaning, RV_STORE_MAX_ID, run);
    return out;
}

bool srv_tell_break(rv_protocol *encoder, const char *run, int code, rv_buf *out)
{
    char text[SRV_MAX_REASON];
    const struct rv_protocol_at at = {.id = NULL};
    const struct rv_protocol_end end = {
        .status = RV_RUN_FAILED, .finish = RV_UNSET, .error = text, .code = rv_code_text(code)};

    if (out->rc < 0 || rv_protocol_has_ended(encoder))
        return false;
    snprintf(text, sizeof text, "the stream broke off; the log of the server says more under %.*s", RV_STORE_MAX_ID,
             run);
    return rv_protocol_end(
               encoder, &at, &end, out,
               RV_CODE_ONLY("false: the stream ends without a last block, and why it broke is in the log")) == 0;
}
