/* Headers of trace context from anywhere: what is read is written in its one spelling, and read back equal; what is
 * copied of baggage is copied again unchanged. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/telemetry/telemetry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rv_buf once = RV_BUF_INIT(1 << 20), twice = RV_BUF_INIT(1 << 20), value = RV_BUF_INIT(1 << 20);
    rv_str text = {(const char *)data, size};
    struct rv_trace_context c, again;
    char written[RV_TRACEPARENT_MAX];

    must(rv_traceparent_read(text, &c) == rv_trace_is_set(&c));
    if (rv_trace_is_set(&c)) {
        rv_traceparent_write(&c, written);
        must(rv_traceparent_read(rv_str_of(written), &again) && memcmp(&c, &again, sizeof c) == 0);
        must(memcmp(written + 3, text.ptr + 3, 50) == 0);
    }
    must(!rv_tracestate_is_sound(text) || (size > 0 && size <= RV_TRACESTATE_MAX));
    rv_baggage_copy(text, &once);
    rv_baggage_copy(rv_buf_str(&once), &twice);
    must(once.len <= RV_BAGGAGE_MAX && rv_str_eq(rv_buf_str(&once), rv_buf_str(&twice)));
    if (rv_baggage_find(text, "k", &value))
        must(rv_utf8_valid(rv_buf_str(&value), NULL));
    rv_buf_fini(&once);
    rv_buf_fini(&twice);
    rv_buf_fini(&value);
    return 0;
}
