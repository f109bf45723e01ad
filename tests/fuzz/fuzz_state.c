/* Any JSON read as a state either fails or dumps to text that loads back to the same bytes; so does a copy of it, a
 * fork of it, and the same state handed back as a patch. */
#include "envelope/envelope.h"
#include "tests/kit/fuzz.h"

#include <stdint.h>
#include <stdlib.h>

static rv_buf dump(const rv_envelope *env)
{
    rv_buf b = RV_BUF_INIT(RV_STATE_MAX_BYTES);

    rv_envelope_write_state(env, &b);
    require(rv_buf_check(&b, "state", NULL) == 0);
    return b;
}

static void must_dump_to(const rv_envelope *env, const rv_buf *want)
{
    rv_buf got = dump(env);

    require(rv_str_eq(rv_buf_str(&got), rv_buf_str(want)));
    rv_buf_fini(&got);
}

static void check(json_object *state)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STATE_MAX_BYTES, .max_depth = RV_STATE_MAX_DEPTH};
    struct rv_rand_state bits;
    struct rv_rand rand = rv_rand_seeded(&bits, 1);
    rv_envelope *env = NULL, *loaded = NULL, *copy = NULL, *fork = NULL;
    json_object *again = NULL;
    struct rv_merge m = {0};
    rv_buf text, result = RV_BUF_INIT(RV_STATE_MAX_BYTES);

    if (rv_envelope_load(state, rand, 0, &env, NULL) < 0)
        return;
    text = dump(env);
    require(rv_json_parse(rv_buf_str(&text), &opts, &again, NULL) == 0);
    require(rv_envelope_load(again, rand, 1, &loaded, NULL) == 0);
    must_dump_to(loaded, &text);
    require(rv_envelope_dup(env, &copy, NULL) == 0);
    must_dump_to(copy, &text);
    require(rv_envelope_fork(env, &fork, NULL) == 0);
    must_dump_to(fork, &text);
    require(rv_envelope_patch(fork, again, NULL) == 0);
    must_dump_to(fork, &text);
    if (!rv_envelope_has_interrupt(env)) { /* else it would be queued as one more */
        require(rv_envelope_merge(env, fork, RV_STR_LIT("s"), &m, NULL) == 0);
        must_dump_to(env, &text);
    }
    require(rv_envelope_patch(copy, again, NULL) == 0);
    must_dump_to(copy, &text);
    rv_envelope_write_result(env, NULL, &result);
    require(rv_buf_check(&result, "result", NULL) == 0);
    rv_buf_fini(&result);
    rv_buf_fini(&text);
    rv_merge_fini(&m);
    json_object_put(again);
    rv_envelope_free(fork);
    rv_envelope_free(copy);
    rv_envelope_free(loaded);
    rv_envelope_free(env);
}

RV_FUZZ_TARGET(state)
{
    json_object *state = NULL;

    if (rv_json_parse((rv_str){(const char *)data, size}, NULL, &state, NULL) == 0)
        check(state);
    json_object_put(state);
    return 0;
}
