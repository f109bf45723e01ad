/* Any bytes as a request of each protocol: read, or an error with a path; never more than the limits. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/protocols/protocols.h"
#include "tests/kit/fuzz.h"

static void look(const struct rv_request *r)
{
    if (r->text.len > RV_REQUEST_MAX_TEXT || r->n_results > RV_REQUEST_MAX_RESULTS ||
        r->n_answers > RV_REQUEST_MAX_ANSWERS || !r->body)
        abort();
    for (size_t i = 0; i < r->n_results; i++)
        if (!r->results[i].call_id || !rv_utf8_valid(r->results[i].content, NULL))
            abort();
    for (size_t i = 0; i < r->n_answers; i++)
        if (!r->answers[i].interrupt_id)
            abort();
    if (r->has_message && r->text.len == 0 && !r->attachments)
        abort();
}

RV_FUZZ_TARGET(requests)
{
    static const enum rv_protocol_kind kinds[] = {RV_PROTOCOL_AGUI, RV_PROTOCOL_OPENAI, RV_PROTOCOL_RESPONSES,
                                                  RV_PROTOCOL_REMLIGHT};
    rv_str body = {(const char *)data, size};

    for (size_t i = 0; i < RV_COUNT(kinds); i++) {
        char path[RV_REQUEST_MAX_PATH] = "x";
        struct rv_request r;
        rv_err *err = NULL;
        int rc = rv_request_read(kinds[i], body, &r, path, &err);
        if (strlen(path) >= RV_REQUEST_MAX_PATH || (rc < 0) != (err != NULL))
            abort();
        if (rc == 0) {
            look(&r);
            rv_request_fini(&r);
        }
        rv_err_free(err);
    }
    return 0;
}
