/* Each allocation of keeping, opening and fitting fails once: no crash, no leak, RV_E_NOMEM. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/journal/journal.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

static const char bundle_text[] =
    "{'reeve_bundle':1,'pipeline':{'file':'d/p.yaml','dir':'d','text':'name: t\\nmodels:\\n"
    "  one:\\n    model: ${env:RV_FAULT_NONE}\\n    optional: true\\n"
    "  two:\\n    model: ${env:RV_FAULT_NONE}\\n    api_key: ${file:none}\\nagents:\\n"
    "  - {name: a, has_llm: true, model_role: two, prompt_key: p, default_next: b}\\n"
    "  - {agent: help, default_next: b}\\n"
    "  - {name: b, has_tools: true, allowed_tools: [look]}\\nprompts: {p: {file: p.md}, q: {file: q.md}}\\n',"
    "'models':{'one':null,'two':{'provider':'openai','model':'m','price':{'input':1,'output':2,'cached':3},'max_input_"
    "tokens':9},'agent:help':{'provider':'openai','model':'m','max_input_tokens':9}}},'files':{'d/p.md':'Do "
    "{{raw_input}}','d/q.md':'x'},"
    "'agents':{'help':{'place':'h.yaml','text':'type: object\\nname: help\\ndescription: x\\nmodel: openai:m\\n"
    "tools: [look]\\n'}},"
    "'script':{'file':'s.yaml','text':'models: {a: [{json: {x: 1}}]}\\ntools: {own: [{result: {}}]}\\n'},"
    "'catalog':{'tools':{'look':{'description':'Look.','risk':'read_only','input_schema':{'type':'object'},"
    "'output_schema':true}},'entries':{'hook':{'c.h':{'sees':['raw_input']}},'probe':{'look':{}}},"
    "'prompts':{'c.t':'Hi {{user_id}}'}}}";

static char *text; /* of the above, with double quotes */

/* --- Names, as capabilities would list them --- */
static const char *const *list_names(void *self, enum rv_name_kind kind, size_t *n)
{
    static const char *const tools[] = {"look"}, *const hooks[] = {"c.h"}, *const prompts[] = {"c.t"};

    (void)self;
    *n = kind == RV_NAME_TOOL || kind == RV_NAME_PROBE || kind == RV_NAME_HOOK || kind == RV_NAME_PROMPT;
    return kind == RV_NAME_HOOK ? hooks : kind == RV_NAME_PROMPT ? prompts : tools;
}

static int open_and_keep(void)
{
    const struct rv_bundle_opts opts = {.offline = true};
    const struct rv_known_names names = {.list = list_names, .self = NULL};
    rv_buf out = RV_BUF_INIT(1 << 20);
    rv_bundle *b = NULL;
    rv_err *err = NULL;
    int rc = rv_bundle_open(rv_str_of(text), &opts, &b, &err);

    if (rc == 0) {
        struct rv_catalog catalog = rv_bundle_catalog(b);
        const struct rv_bundle_source from = {rv_bundle_pipeline(b), &catalog, &names, rv_bundle_script(b), NULL, NULL};
        rc = rv_bundle_write(&from, &out, NULL, &err);
    }
    if (rc == 0 && strcmp(rv_buf_cstr(&out), text) != 0)
        rc = RV_E_INTERNAL; /* half of it would be worse than none */
    rv_bundle_free(b);
    rv_buf_fini(&out);
    rv_err_free(err);
    return rc;
}

/* A refusal with reasons must not turn into consent, nor into half of the reasons. */
static int fit(void)
{
    const struct rv_bundle_opts opts = {.offline = true};
    struct rv_rand_state seed;
    json_object *state = NULL;
    rv_envelope *env = NULL;
    rv_bundle *b = NULL;
    rv_err *err = NULL;
    int rc = rv_json_parse(RV_STR_LIT("{\"current_stage\":\"gone\",\"completed_stage_set\":{\"lost\":true}}"), NULL,
                           &state, &err);

    if (rc == 0)
        rc = rv_envelope_load(state, rv_rand_seeded(&seed, 1), 1700000000000000, &env, &err);
    if (rc == 0)
        rc = rv_bundle_open(rv_str_of(text), &opts, &b, &err);
    if (rc == 0) {
        rc = rv_bundle_fits(rv_bundle_pipeline(b), env, &err);
        bool says_all = strstr(rv_err_text(err), "\"gone\"") && strstr(rv_err_text(err), "\"lost\"");
        if (rc == RV_E_STATE && says_all && rv_err_hint_text(err))
            rc = 0;
        else if (rc == RV_E_STATE &&
                 (says_all || rv_err_is(err, RV_E_NOMEM))) /* no memory for the hint, or to say why */
            rc = RV_E_NOMEM;
    }
    json_object_put(state);
    rv_envelope_free(env);
    rv_bundle_free(b);
    rv_err_free(err);
    return rc;
}

static int (*const scenarios[])(void) = {open_and_keep, fit};

START_TEST(every_allocation_may_fail_once)
{
    json_object *json = rv_kit_json(bundle_text);

    text = rv_kit_text(json);
    json_object_put(json);
    ck_assert_int_eq(scenarios[_i](), 0);
    for (size_t n = 0;; n++) {
        rv_fault_arm(n);
        int rc = scenarios[_i]();
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(rc == RV_E_NOMEM, "allocation %zu: %d", n, rc);
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu leaks %ld", n, rv_fault_balance());
    }
    free(text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fault_bundle");
    TCase *tc = tcase_create("bundle");

    tcase_add_loop_test(tc, every_allocation_may_fail_once, 0, RV_COUNT(scenarios));
    suite_add_tcase(s, tc);
    return rv_kit_run(s);
}
