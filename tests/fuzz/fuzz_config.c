/* Any bytes as a pipeline: it loads or is refused with findings that have places; what loads can be printed. */
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "tests/kit/fuzz.h"

static const char *const *list(void *self, enum rv_name_kind kind, size_t *n)
{
    static const char *const names[] = {"openai", "read_file"};

    (void)self;
    (void)kind;
    *n = 2;
    return names;
}

static void print(const struct rv_pipeline *p, const rv_findings *findings)
{
    rv_buf b = RV_BUF_INIT((size_t)64 << 20);
    rv_jw w = rv_jw_on(&b);

    rv_findings_write_text(findings, true, &b);
    rv_findings_write_json(findings, &w);
    require(b.rc == 0); /* messages are valid UTF-8, whatever the input */
    rv_buf_clear(&b);
    if (p && p->is_sound) {
        json_object *again = NULL;
        w = rv_jw_on(&b);
        rv_pipeline_write_json(p, &w);
        require(b.rc == RV_E_LIMIT ||
                rv_json_parse(rv_buf_str(&b), &(struct rv_json_opts){.max_bytes = b.max}, &again, NULL) != RV_E_PARSE);
        json_object_put(again);
    }
    rv_buf_fini(&b);
}

static void check(const struct rv_pipeline *p, const rv_findings *findings)
{
    for (size_t i = 0; i < rv_findings_n(findings); i++) {
        struct rv_finding x = rv_findings_at(findings, i);
        require(x.text && x.text[0] && x.src.file && x.src.line > 0 && x.src.col > 0);
    }
    if (!p) {
        require(rv_findings_n_errors(findings) > 0);
        return;
    }
    require(p->is_sound == (rv_findings_n_errors(findings) == 0));
    for (size_t i = 0; p->is_sound && i < p->n_agents; i++) {
        const struct rv_agent *a = &p->agents[i];
        require(rv_pipeline_find_stage(p, rv_str_of(a->name)) == (int)i && a->output.key[0] &&
                a->routing.default_target < (int)p->n_agents);
        require(a->routing.default_target != RV_TARGET_UNKNOWN && a->routing.error_target != RV_TARGET_UNKNOWN);
        for (size_t k = 0; k < a->routing.n_rules; k++)
            require((a->routing.rules[k].when != NULL) != (a->routing.rules[k].condition != NULL));
    }
}

/* Agents whose name begins with "x" are whatever the input says; the others are sound. */
static int find(void *self, const char *name, rv_str *text, const char **place, rv_err **err)
{
    const rv_str *input = self;

    (void)err;
    *text = name[0] == 'x' ? *input
                           : RV_STR_LIT("description: x\ntype: object\nproperties: {a: {type: string}}\n"
                                        "model: openai:gpt-4.1\ntools: [read_file, ask_agent]\n");
    *place = "agent.yaml";
    return 0;
}

/* The input as the document of an agent that is asked: all that comes of it is an agent, or an error. */
static void delegate(const struct rv_pipeline *of, rv_str text)
{
    const struct rv_delegate d = {.name = "child", .document = text, .structured = RV_UNSET};
    struct rv_pipeline *p = NULL;
    rv_err *err = NULL;
    int rc = rv_pipeline_delegate(of, &d, &p, &err);

    require((rc == 0) == (p != NULL) && (rc < 0) == (err != NULL));
    if (p) {
        require(p->is_sound && p->n_agents == 1 && p->agents[0].declared.doc && p->agents[0].model.role[0] &&
                p->agents[0].limits.llm.request_limit > 0);
        require(rv_pipeline_find_stage(p, rv_str_of("child")) == 0);
    }
    rv_pipeline_free(p);
    rv_err_free(err);
}

RV_FUZZ_TARGET(config)
{
    rv_findings *findings = rv_findings_new();
    struct rv_known_names known = {.list = list, .self = NULL};
    struct rv_pipeline *p = NULL;
    rv_err *err = NULL;
    rv_str text = {size > 0 ? (const char *)data : "", size};

    require(findings != NULL);
    /* a folder that does not exist, so that no prompt or secret is read from this machine */
    require(rv_pipeline_parse(text, "fuzz.yaml", "/nonexistent", findings, &p, &err) == 0 && !err);
    rv_findings_sort(findings);
    check(p, findings);
    print(p, findings);
    if (p) {
        const struct rv_agent_source source = {find, &text};
        int rc = rv_pipeline_bind_agents(p, &source, findings, NULL);
        require(rc == 0);
        check(p, findings);
        delegate(p, text);
        print(p, findings);
    }
    if (p)
        rv_pipeline_check_names(p, &known, findings);
    rv_pipeline_free(p);
    rv_findings_free(findings);
    return 0;
}
