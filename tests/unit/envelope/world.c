#include "tests/unit/envelope/world.h"

#include <stdlib.h>
#include <string.h>

struct rv_rand world_rand(void)
{
    static struct rv_rand_state state;

    return rv_rand_seeded(&state, 1);
}

rv_envelope *world_fresh(void)
{
    rv_envelope *env = NULL;

    OK(rv_envelope_new(NULL, world_rand(), T0, &env, NULL));
    return env;
}

rv_envelope *world_load(const char *partial)
{
    json_object *state = rv_kit_json(partial);
    rv_envelope *env = NULL;
    rv_err *err = NULL;
    int rc = rv_envelope_load(state, world_rand(), T0, &env, &err);

    ck_assert_msg(rc == 0, "%s: %s", partial, rv_err_text(err));
    json_object_put(state);
    return env;
}

static char *taken(rv_buf *b)
{
    char *text;

    OK(rv_buf_check(b, "state", NULL));
    text = rv_buf_steal(b, NULL);
    ck_assert_ptr_nonnull(text);
    return text;
}

char *world_state(const rv_envelope *env)
{
    rv_buf b = RV_BUF_INIT(RV_STATE_MAX_BYTES);

    rv_envelope_write_state(env, &b);
    return taken(&b);
}

static json_object *parsed(char *text)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STATE_MAX_BYTES, .max_depth = RV_STATE_MAX_DEPTH};
    json_object *v = NULL;

    OK(rv_json_parse(rv_str_of(text), &opts, &v, NULL));
    free(text);
    return v;
}

json_object *world_state_json(const rv_envelope *env)
{
    return parsed(world_state(env));
}

json_object *world_result_json(const rv_envelope *env)
{
    rv_buf b = RV_BUF_INIT(RV_STATE_MAX_BYTES);

    rv_envelope_write_result(env, NULL, &b);
    return parsed(taken(&b));
}

void world_expect_in(json_object *obj, const char *key, const char *want)
{
    json_object *got = NULL;
    bool found = json_object_object_get_ex(obj, key, &got);
    json_object *wanted;
    char *got_text;
    char *want_text;

    ck_assert_msg(found == (want != NULL), "key %s is %s", key, found ? "present" : "absent");
    if (!want)
        return;
    wanted = rv_kit_json(want);
    got_text = rv_kit_text(got);
    want_text = rv_kit_text(wanted);
    ck_assert_msg(strcmp(got_text, want_text) == 0, "%s is %s, not %s", key, got_text, want_text);
    free(got_text);
    free(want_text);
    json_object_put(wanted);
}

void world_expect(const rv_envelope *env, const char *key, const char *want)
{
    json_object *state = world_state_json(env);

    world_expect_in(state, key, want);
    json_object_put(state);
}

void world_set_output(rv_envelope *env, const char *key, const char *json)
{
    json_object *v = rv_kit_json(json);

    OK(rv_envelope_set_output(env, rv_str_of(key), v, NULL));
    json_object_put(v);
}

void world_set_metadata(rv_envelope *env, const char *key, const char *json)
{
    json_object *v = rv_kit_json(json);

    OK(rv_envelope_set_metadata(env, rv_str_of(key), v, NULL));
    json_object_put(v);
}

bool world_has_output(const rv_envelope *env, const char *key)
{
    bool found = false;

    (void)rv_envelope_output(env, rv_str_of(key), &found);
    return found;
}

int world_patch(rv_envelope *env, const char *partial, rv_err **err)
{
    json_object *v = rv_kit_json(partial);
    int rc = rv_envelope_patch(env, v, err);

    json_object_put(v);
    return rc;
}
