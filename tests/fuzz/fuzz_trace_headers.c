/* Headers of trace context from anywhere: what is read is written in its one spelling, and read back equal. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/telemetry/telemetry.h"
#include "tests/kit/fuzz.h"

/* In its one spelling. */
static void write_parent(const struct rv_trace_context *c, char out[56])
{
    memcpy(out, "00-", 3);
    rv_hex_make(c->trace, sizeof c->trace, out + 3);
    out[35] = '-';
    rv_hex_make(c->span, sizeof c->span, out + 36);
    out[52] = '-';
    rv_hex_make(&c->flags, 1, out + 53);
    out[55] = '\0';
}

RV_FUZZ_TARGET(trace_headers)
{
    rv_str text = {(const char *)data, size};
    struct rv_trace_context c, again;
    char written[56];

    require(rv_traceparent_read(text, &c) == rv_trace_is_set(&c));
    if (rv_trace_is_set(&c)) {
        write_parent(&c, written);
        require(rv_traceparent_read(rv_str_of(written), &again) && memcmp(&c, &again, sizeof c) == 0);
        require(memcmp(written + 3, text.ptr + 3, 50) == 0);
    }
    return 0;
}
