/* Any lines as the events of a run, through each encoder: whatever they say, in whatever order, a stream has an end and
 * nothing behind it. The lines come from our engine; what they quote comes from models and tools. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/protocols/protocols.h"
#include "tests/kit/fuzz.h"

static void tell(enum rv_protocol_kind kind, rv_str lines)
{
    static const char *const client_tools[] = {"pick"};
    const struct rv_protocol_opts opts = {.kind = kind,
                                          .run_id = "r",
                                          .session_id = "s",
                                          .child_text = RV_UNSET,
                                          .tells_steps = true,
                                          .tells_events = true,
                                          .tells_metadata = true,
                                          .client_tools = client_tools,
                                          .n_client_tools = 1};
    const struct rv_protocol_end end = {.status = RV_RUN_COMPLETED, .finish = RV_UNSET};
    rv_buf out = RV_BUF_INIT(RV_PROTOCOL_MAX_OUT);
    rv_protocol *p = NULL;
    int rc = rv_protocol_new(&opts, &p, NULL);

    if (rc == 0)
        rc = rv_protocol_begin(p, NULL, &out, NULL);
    while (rc == 0 && lines.len > 0) {
        const char *lf = memchr(lines.ptr, '\n', lines.len);
        rv_str line = {lines.ptr, lf ? (size_t)(lf - lines.ptr) : lines.len};
        size_t used = line.len + (lf != NULL);
        RV_IGNORE(rv_protocol_on_event(p, NULL, line, &out, NULL), "a line that cannot be read breaks the stream");
        lines = (rv_str){lines.ptr + used, lines.len - used};
    }
    if (rc < 0 || rv_protocol_end(p, NULL, &end, &out, NULL) < 0 || !rv_protocol_has_ended(p))
        abort();
    if (out.len < 2 || memcmp(out.ptr + out.len - 2, "\n\n", 2) != 0 || !rv_utf8_valid(rv_buf_str(&out), NULL))
        abort();
    rv_protocol_free(p);
    rv_buf_fini(&out);
}

RV_FUZZ_TARGET(protocols)
{
    for (int kind = 0; kind < RV_N_PROTOCOLS; kind++)
        tell((enum rv_protocol_kind)kind, (rv_str){(const char *)data, size});
    return 0;
}
