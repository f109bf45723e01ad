/* Envelopes for work below another envelope: whose ids follow from it, so that a replay makes the same ones. */
#include "envelope/envelope_internal.h"

static uint64_t add(uint64_t h, rv_str text)
{
    for (size_t i = 0; i < text.len; i++)
        h = (h ^ (unsigned char)text.ptr[i]) * 1099511628211u;
    return (h ^ 0xff) * 1099511628211u; /* no text has that byte: the end of one is not the middle of another */
}

int rv_envelope_derive(const rv_envelope *env, rv_str raw_input, rv_str name, int64_t now_us, rv_envelope **out,
                       rv_err **err)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(env);
    const struct rv_envelope_seed seed = {.raw_input = raw_input,
                                          .user_id = rv_str_of(f->user_id),
                                          .session_id = rv_str_of(f->session_id),
                                          .request_id = rv_str_of(f->request_id)};
    struct rv_rand_state state;

    return rv_envelope_new(&seed,
                           rv_rand_seeded(&state, add(add(1469598103934665603u, rv_str_of(f->envelope_id)), name)),
                           now_us, out, err);
}
