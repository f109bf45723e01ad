/* Any bytes as a journal: a replay fails with a reason, or ends in a run whose state loads again; so does one of its
 * first half. A record a line: digit of the kind, body, tab, value. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/journal/journal.h"
#include "tests/kit/catalog.h"
#include "tests/kit/fuzz.h"

#define MAX_RECORDS 200
#define RUN         "env_live" /* as in the states of the corpus */

static const char yaml[] =
    "name: t\nmodels: {r: scripted}\nmax_iterations: 3\nagents:\n"
    "  - {name: a, stage_order: 1, has_llm: true, model_role: r, output_key: plan, max_retries: 1, "
    "pre_process: x.pre, default_next: b}\n"
    "  - {name: b, stage_order: 2, has_tools: true, tool_access: all, default_next: c}\n"
    "  - {name: c, stage_order: 3, has_llm: true, model_role: r, requires: [a], routing_rules: "
    "[{condition: v, value: 1, target: a}, {condition: v, value: 2, target: clarification}]}\n";

static const struct rv_tool_info tools[] = {
    {.name = "read", .description = "", .risk = RV_RISK_READ_ONLY, .effect = RV_EFFECT_SAFE, .category = RV_UNSET},
    {.name = "put", .description = "", .risk = RV_RISK_WRITE, .effect = RV_EFFECT_IDEMPOTENT, .category = RV_UNSET},
    {.name = "send", .description = "", .risk = RV_RISK_WRITE, .effect = RV_UNSET, .category = RV_UNSET},
    {.name = "wipe", .description = "", .risk = RV_RISK_DESTRUCTIVE, .effect = RV_UNSET, .category = RV_UNSET},
};
static struct rv_kit_tools tool_list = {tools, RV_COUNT(tools)};
static const struct rv_catalog catalog = RV_KIT_CATALOG(&tool_list);

static const struct rv_pipeline *the_pipeline(void)
{
    static struct rv_pipeline *p;

    if (!p) {
        rv_findings *findings = rv_findings_new();
        require(rv_pipeline_parse(rv_str_of(yaml), "t.yaml", ".", findings, &p, NULL) == 0 && p->is_sound);
        rv_findings_free(findings);
    }
    return p;
}

static size_t cut(rv_str text, struct rv_record *records)
{
    size_t n = 0;

    while (text.len > 0 && n < MAX_RECORDS) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end ? (size_t)(end - text.ptr) : text.len;
        const char *tab = len > 0 ? memchr(text.ptr + 1, '\t', len - 1) : NULL;
        size_t body = tab ? (size_t)(tab - text.ptr) : len;
        if (len > 0) {
            records[n] = (struct rv_record){
                .seq = (int64_t)n + 1,
                .kind = text.ptr[0] - '0',
                .body = {text.ptr + 1, body - 1},
                .value = {tab ? tab + 1 : NULL, tab ? len - body - 1 : 0},
            };
            n++;
        }
        text = (rv_str){text.ptr + len + (end != NULL), text.len - len - (end != NULL)};
    }
    return n;
}

static void check_state(const rv_run *run)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STATE_MAX_BYTES, .max_depth = RV_STATE_MAX_DEPTH};
    rv_buf state = RV_BUF_INIT(RV_STATE_MAX_BYTES);
    struct rv_rand_state bits;
    rv_envelope *env = NULL;
    json_object *json = NULL;

    rv_envelope_write_state(rv_run_envelope(run), &state);
    require(rv_buf_check(&state, "state", NULL) == 0);
    require(rv_json_parse(rv_buf_str(&state), &opts, &json, NULL) == 0);
    require(rv_envelope_load(json, rv_rand_seeded(&bits, 1), 0, &env, NULL) == 0);
    rv_envelope_free(env);
    json_object_put(json);
    rv_buf_fini(&state);
}

static void replay(rv_store *store, int64_t upto)
{
    const struct rv_store_scope scope = {0};
    const struct rv_replay_opts opts = {.pipeline = the_pipeline(), .catalog = &catalog, .upto = upto};
    struct rv_replayed r;
    rv_err *err = NULL;

    int rc = rv_journal_replay(store, &scope, RUN, &opts, &r, &err);
    require((rc < 0) == (err != NULL));
    rv_err_free(err);
    if (rc < 0)
        return;
    check_state(r.run);
    for (size_t i = 0; i < r.open.n; i++)
        require(r.open.items[i].call_id > 0 && (i == 0 || r.open.items[i].call_id > r.open.items[i - 1].call_id));
    rv_replayed_fini(&r);
}

static void show(const struct rv_record *r)
{
    rv_buf b = RV_BUF_INIT(64 << 20);
    rv_jw w = rv_jw_on(&b);
    json_object *json = NULL;
    const struct rv_json_opts opts = {.max_bytes = b.max, .max_depth = 2000, .allow_duplicates = true};

    rv_record_write_json(r, &w);
    require(rv_buf_check(&b, "line", NULL) == 0);
    require(rv_json_parse(rv_buf_str(&b), &opts, &json, NULL) == 0);
    json_object_put(json);
    rv_buf_fini(&b);
}

RV_FUZZ_TARGET(journal)
{
    struct rv_record records[MAX_RECORDS];
    char hash[RV_STORE_HASH_MAX];
    rv_store *store = NULL;
    size_t n = cut((rv_str){(const char *)data, size}, records);

    require(rv_store_open("memory:", NULL, &store, NULL) == 0);
    require(rv_store_put_blob(store, RV_STR_LIT("b"), hash, NULL) == 0);
    const struct rv_store_new_run run = {.id = RUN,
                                         .user = "u",
                                         .session = "s",
                                         .pipeline = "t",
                                         .bundle = hash,
                                         .stage = "a",
                                         .records = records,
                                         .n_records = n};
    for (size_t i = 0; i < n; i++)
        show(&records[i]);
    if (n > 0 && rv_store_create_run(store, &run, NULL) == 0) {
        replay(store, 0);
        replay(store, (int64_t)(n / 2) + 1);
    }
    rv_store_close(store);
    return 0;
}
