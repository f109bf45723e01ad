/* Allocations of the scenes of unit_run and unit_agent fail: no crash, no leak, RV_E_NOMEM. A scene is run once as it
 * is; its events are then fed to a new run of the same state, while one allocation fails, for each of its allocations.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/fault.h"
#include "tests/kit/scene.h"
#include "tests/kit/suites.h"

#define MAX_EVENTS 4096

static struct {
    json_object *state, *json[MAX_EVENTS];
    struct rv_event events[MAX_EVENTS];
    size_t n;
} part;

static json_object *parse(rv_str text)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STATE_MAX_BYTES, .max_depth = RV_STATE_MAX_DEPTH};
    json_object *json = NULL;

    ck_assert_int_eq(rv_json_parse(text, &opts, &json, NULL), 0);
    return json;
}

static void read_part(const struct drive *d)
{
    rv_str rest = rv_buf_str(&d->events), line;

    part.state = parse(rv_str_of(d->first));
    for (part.n = 0; part.n < MAX_EVENTS && rest.len; part.n++) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        line = (rv_str){rest.ptr, (size_t)(end - rest.ptr)};
        rest = (rv_str){end + 1, rest.len - line.len - 1};
        part.json[part.n] = parse(line);
        ck_assert_int_eq(rv_event_read_json(part.json[part.n], &part.events[part.n], NULL), 0);
    }
}

static void forget_part(void)
{
    json_object_put(part.state);
    for (size_t i = 0; i < part.n; i++)
        json_object_put(part.json[i]);
}

static int run_part(const struct drive *d)
{
    struct rv_rand_state bits;
    struct rv_effects fx = {0};
    rv_envelope *env = NULL;
    rv_run *run = NULL;
    rv_err *err = NULL;

    int rc = rv_envelope_load(part.state, rv_rand_seeded(&bits, 7), DRIVE_T0, &env, &err);
    if (rc == 0)
        rc = rv_run_new(d->p, &d->catalog, &d->opts, env, &run, &err);
    for (size_t i = 0; rc == 0 && i < part.n; i++) {
        rv_effects_clear(&fx);
        rc = rv_run_step(run, &part.events[i], &fx, &err);
    }
    rv_effects_fini(&fx);
    rv_run_free(run);
    rv_err_free(err);
    return rc;
}

static void fail_each(void *self, struct drive *d)
{
    const struct rv_scene *s = self;

    if (d->has_changed)
        return;
    read_part(d);
    ck_assert_msg(run_part(d) == 0, "%s: its events cannot be fed again", s->name);
    size_t i = 0;
    for (bool fired = true; fired; i++) {
        rv_fault_arm(i);
        int rc = run_part(d);
        fired = rv_fault_disarm();
        ck_assert_msg(rc == (fired ? RV_E_NOMEM : 0), "%s: allocation %zu: %d", s->name, i, rc);
        ck_assert_msg(!fired || rv_fault_balance() == 0, "%s: allocation %zu leaks %ld", s->name, i,
                      rv_fault_balance());
    }
    ck_assert(i > 50 || !rv_fault_works());
    forget_part();
}

static struct rv_scenes scenes[2];

START_TEST(allocations_of_a_scene_may_fail)
{
    size_t i = (size_t)_i;
    const struct rv_scene *s = i < scenes[0].n ? &scenes[0].items[i] : &scenes[1].items[i - scenes[0].n];

    rv_scene_run(s, fail_each, (void *)s);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fault_run");
    TCase *tc = tcase_create("run");

    scenes[0] = rv_scenes_read("run");
    scenes[1] = rv_scenes_read("agent");
    tcase_add_loop_test(tc, allocations_of_a_scene_may_fail, 0, (int)(scenes[0].n + scenes[1].n));
    suite_add_tcase(s, tc);
    int rc = rv_kit_run(s);
    rv_scenes_free(&scenes[0]);
    rv_scenes_free(&scenes[1]);
    return rc;
}
