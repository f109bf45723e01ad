/* A session may be as long as it likes: what begins a turn stays what it was. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#define SHORT 60 /* turns: more than the budget of history shows */
#define LONG  500
#define T0    INT64_C(1700000000000000)

struct watch {
    size_t allocations[LONG + 1], bytes[LONG + 1]; /* until the request of a turn was made; of the request */
    size_t turn;
    bool seen;
};

static void on_effect(void *self, const struct rv_effects *all, const struct rv_effect *e)
{
    struct watch *w = self;

    (void)all;
    if (w->seen || e->kind != RV_EFFECT_CALL_LLM)
        return;
    w->seen = true;
    w->allocations[w->turn] = rv_fault_count();
    w->bytes[w->turn] = e->request_len;
}

static void talk(rv_chat *chat, struct watch *w)
{
    char question[401];

    memset(question, 'q', sizeof question - 1);
    question[sizeof question - 1] = '\0';
    for (w->turn = 1; w->turn <= LONG; w->turn++) {
        struct rv_chat_turn t;
        rv_err *err = NULL;
        w->seen = false;
        rv_fault_arm(SIZE_MAX);
        int rc = rv_chat_send(chat, rv_str_of(question), NULL, &t, &err);
        ck_assert(!rv_fault_disarm());
        ck_assert_msg(rc == 0 && t.status == RV_RUN_COMPLETED && t.was_kept && w->seen, "turn %zu", w->turn);
    }
}

START_TEST(a_long_session_begins_turns_as_a_short_one_does)
{
    const struct rv_plugins_opts po = {.base_dir = "."};
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "talker.yaml");
    const char *folders[] = {dir};
    rv_findings *f = rv_findings_new();
    struct watch *w = calloc(1, sizeof *w);
    rv_store *store = NULL;
    rv_plugins *plugins = NULL;
    rv_agents *agents = NULL;
    rv_script *script = NULL;
    rv_engine *engine = NULL;
    rv_chat *chat = NULL;

    rv_kit_write(path, "type: object\nname: talker\ndescription: You talk.\n");
    ck_assert_int_eq(rv_store_open("memory:", NULL, &store, NULL), 0);
    ck_assert_int_eq(rv_plugins_new(&po, &plugins, NULL), 0);
    const struct rv_agents_opts ao = {.store = store, .plugins = plugins, .dirs = folders, .n_dirs = 1};
    ck_assert_int_eq(rv_agents_new(&ao, &agents, NULL), 0);
    ck_assert_int_eq(
        rv_script_parse(RV_STR_LIT("repeat: true\nmodels: {talker: [{text: yes}]}\n"), "s.yaml", f, &script, NULL), 0);
    const struct rv_engine_opts eo = {
        .store = store, .owner = "test/0/1/1", .virtual_time = true, .virtual_start_us = T0, .workers = 1};
    ck_assert_int_eq(rv_engine_new(&eo, &engine, NULL), 0);
    struct rv_chat_opts o = {.engine = engine,
                             .store = store,
                             .owner = "test/0/1/1",
                             .plugins = plugins,
                             .agents = agents,
                             .script = script,
                             .context = {.user_id = "ada"},
                             .agent = "talker",
                             .on_effect = on_effect,
                             .self = w};
    ck_assert_int_eq(rv_chat_settings_read(&o.settings, NULL), 0);
    o.settings.history.max_tokens = 2000;
    o.settings.moment_token_threshold = 1000; /* both have as many moments as are told */
    ck_assert_int_eq(rv_chat_new(&o, &chat, NULL), 0);
    talk(chat, w);
    ck_assert_msg(w->allocations[LONG] <= w->allocations[SHORT] + w->allocations[SHORT] / 20, "%zu, and %zu after %d",
                  w->allocations[SHORT], w->allocations[LONG], LONG);
    ck_assert_msg(w->bytes[LONG] <= w->bytes[SHORT] + w->bytes[SHORT] / 20, "%zu, and %zu after %d", w->bytes[SHORT],
                  w->bytes[LONG], LONG);
    ck_assert_uint_gt(w->bytes[SHORT], 2 * w->bytes[1]); /* there is a history */
    rv_chat_free(chat);
    rv_engine_free(engine);
    rv_agents_free(agents);
    rv_plugins_free(plugins);
    rv_script_free(script);
    rv_store_close(store);
    rv_findings_free(f);
    rv_kit_tmpdir_remove(dir);
    free(path);
    free(w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("growth_turns");
    TCase *tc = tcase_create("growth");

    tcase_add_test(tc, a_long_session_begins_turns_as_a_short_one_does);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
