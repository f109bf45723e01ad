#include <string.h>

#include "tests/unit/sim/suites.h"

static const char *const agent_names[MAX_AGENTS] = {"asker", "counter", "helper"}; /* those of tests/sim/agents */

static void load_agents(struct subjects *s)
{
    rv_buf path = RV_BUF_INIT(4096);

    for (size_t i = 0; i < MAX_AGENTS; i++) {
        s->documents[i] = RV_BUF_INIT(RV_JSON_MAX_BYTES);
        rv_buf_clear(&path);
        rv_buf_printf(&path, "%s/tests/sim/agents/%s.yaml", RV_SOURCE_DIR, agent_names[i]);
        ck_assert_int_eq(rv_file_read(rv_buf_cstr(&path), &s->documents[i], NULL), 0);
        s->agents[i] = (struct rv_sim_agent){agent_names[i], rv_buf_str(&s->documents[i])};
    }
    rv_buf_fini(&path);
}

static int find_agent(void *self, const char *name, rv_str *text, const char **place, rv_err **err)
{
    const struct subjects *s = self;

    for (size_t i = 0; i < MAX_AGENTS; i++)
        if (strcmp(s->agents[i].name, name) == 0) {
            *text = s->agents[i].document;
            *place = name;
            return 0;
        }
    return RV_FAIL(err, RV_E_NOT_FOUND, "there is no agent \"%s\"", name);
}

void subjects_init(struct subjects *s, const char *path, size_t n)
{
    *s = (struct subjects){.n = n, .findings = rv_findings_new()};
    ck_assert_ptr_nonnull(s->findings);
    load_agents(s);
    const struct rv_agent_source source = {find_agent, s};
    for (size_t i = 0; i < n; i++) {
        ck_assert_int_eq(rv_pipeline_load(path, s->findings, &s->pipelines[i], NULL), 0);
        ck_assert_ptr_nonnull(s->pipelines[i]);
        ck_assert_int_eq(rv_pipeline_bind_agents(s->pipelines[i], &source, s->findings, NULL), 0);
        ck_assert(s->pipelines[i]->is_sound);
        const struct rv_pipeline *p = s->pipelines[i];
        s->catalogs[i] = rv_catalog_empty;
        if (p->n_tests > 0 && p->tests[0].inline_script) {
            ck_assert_int_eq(rv_script_read_node(p->tests[0].inline_script, s->findings, &s->scripts[i], NULL), 0);
            ck_assert_ptr_nonnull(s->scripts[i]);
            s->catalogs[i] = rv_script_catalog(s->scripts[i], &rv_catalog_empty);
        }
        s->of[i] = (struct rv_sim_subject){
            .pipeline = p, .catalog = &s->catalogs[i], .agents = s->agents, .n_agents = MAX_AGENTS};
    }
    ck_assert_uint_eq(rv_findings_n_errors(s->findings), 0);
}

void subjects_fini(struct subjects *s)
{
    for (size_t i = 0; i < s->n; i++) {
        rv_script_free(s->scripts[i]);
        rv_pipeline_free(s->pipelines[i]);
    }
    for (size_t i = 0; i < MAX_AGENTS; i++)
        rv_buf_fini(&s->documents[i]);
    rv_findings_free(s->findings);
}

struct rv_sim_opts subjects_opts(const struct subjects *s, int64_t n_seeds)
{
    struct rv_sim_opts o = RV_SIM_OPTS_INIT;

    o.subjects = s->of;
    o.n_subjects = s->n;
    o.first_seed = 1;
    o.n_seeds = n_seeds;
    return o;
}
