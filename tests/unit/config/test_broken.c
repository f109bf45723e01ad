/* The broken pipelines of tests/golden/broken: every fault in one pass, with place, kind, name, reason and hint. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/config/world.h"

static const char *const *list(void *self, enum rv_name_kind kind, size_t *n)
{
    static const char *const tools[] = {"list_files", "read_file", "search_files", "write_file"};
    static const char *const hooks[] = {"files.collect_sources"};
    static const char *const providers[] = {"anthropic", "openai", "scripted"};

    (void)self;
    *n = kind == RV_NAME_TOOL ? 4 : kind == RV_NAME_HOOK ? 1 : kind == RV_NAME_PROVIDER ? 3 : 0;
    return kind == RV_NAME_TOOL ? tools : kind == RV_NAME_HOOK ? hooks : providers;
}

static const char *const broken[] = {"bad-yaml",     "unknown-agent",    "wrong-type",
                                     "missing-tool", "dependency-cycle", "model-keys"};

/* Proves 4.3/all */
START_TEST(findings_are_as_recorded)
{
    rv_findings *findings = rv_findings_new();
    struct rv_known_names known = {.list = list, .self = NULL};
    struct rv_pipeline *p = NULL;
    rv_buf b = RV_BUF_INIT(1 << 20);
    char path[128];
    char golden[128];

    /* tests run at the root of the tree, so that the printed paths are the same everywhere */
    snprintf(path, sizeof path, "tests/golden/broken/%s.yaml", broken[_i]);
    snprintf(golden, sizeof golden, "broken/%s.txt", broken[_i]);
    ck_assert_int_eq(rv_pipeline_load(path, findings, &p, NULL), 0);
    if (p)
        rv_pipeline_check_names(p, &known, findings);
    ck_assert(!p || !p->is_sound);
    ck_assert_uint_gt(rv_findings_n_errors(findings), 0);
    rv_findings_sort(findings);
    rv_findings_write_text(findings, false, &b);
    ck_assert(rv_kit_golden(golden, rv_buf_cstr(&b)));
    rv_buf_fini(&b);
    rv_findings_free(findings);
    rv_pipeline_free(p);
}
END_TEST

TCase *broken_case(void)
{
    TCase *tc = tcase_create("broken");

    tcase_add_loop_test(tc, findings_are_as_recorded, 0, RV_COUNT(broken));
    return tc;
}
