/* A recording played back: the core is told what it was told then, and nothing is performed. */
#include <string.h>

#include "coreengine/shell/shell_internal.h"

struct replay {
    const struct rv_pipeline *pipeline;
    const struct rv_catalog *catalog;
    const struct rv_run_opts *opts;
    rv_run *run; /* owned */
    struct rv_effects effects;
    rv_buf *out; /* borrowed */
};

static int play(struct replay *r, rv_str line, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = line.len + 1, .what = "recorded event"};
    json_object *json = NULL;
    struct rv_event ev;

    int rc = rv_json_parse(line, &opts, &json, err);
    if (rc == 0)
        rc = rv_event_read_json(json, &ev, err);
    if (rc == 0)
        rc = rv_run_step(r->run, &ev, &r->effects, err);
    for (size_t i = 0; rc == 0 && i < r->effects.n; i++) {
        rv_jw w = rv_jw_on(r->out);
        rv_effect_write_json(&r->effects, &r->effects.items[i], &w);
        rv_buf_putc(r->out, '\n');
    }
    rv_effects_clear(&r->effects);
    json_object_put(json);
    return rc < 0 ? rc : rv_buf_check(r->out, "effects", err);
}

static int play_all(struct replay *r, rv_str recording, rv_err **err)
{
    int number = 0, rc = 0;

    while (recording.len > 0 && rc == 0) {
        const char *end = memchr(recording.ptr, '\n', recording.len);
        rv_str line = {recording.ptr, end ? (size_t)(end - recording.ptr) : recording.len};
        size_t used = line.len + (end != NULL);

        number++;
        recording = (rv_str){recording.ptr + used, recording.len - used};
        if (rv_str_trim(line).len == 0)
            continue;
        rc = play(r, line, err);
        if (rc < 0)
            rc = RV_WRAP(err, rc, "line %d of the recording", number);
    }
    return rc;
}

int rv_replay(const struct rv_pipeline *pipeline, const struct rv_catalog *catalog, const struct rv_run_opts *opts,
              rv_envelope *env, rv_str recording, rv_buf *effects, rv_buf *state, rv_err **err)
{
    struct replay r = {.pipeline = pipeline, .catalog = catalog, .opts = opts, .out = effects};

    int rc = rv_run_new(pipeline, catalog, opts, env, &r.run, err);
    if (rc == 0)
        rc = play_all(&r, recording, err);
    if (rc == 0) {
        rv_envelope_write_state(rv_run_envelope(r.run), state);
        rc = rv_buf_check(state, "state", err);
    }
    rv_run_free(r.run);
    rv_effects_fini(&r.effects);
    return rc;
}
