/* A test of a pipeline, as its file has it. All pointers are in its arena, or owned by it; docs/reference/tests.md. */
#ifndef RV_CONFIG_TEST_H
#define RV_CONFIG_TEST_H

#include "coreengine/lang/lang.h"

struct rv_test_schema {
    const char *output_key;
    json_object *schema; /* owned by the pipeline */
    const struct rv_node *written;
    struct rv_src src;
};
/* A number that is near another. */
struct rv_test_near {
    rv_expr *value; /* owned by the pipeline */
    double to, within;
};
#define RV_TEST_COMPARES_NOTHING "test_compares_nothing" /* code of the warning about a test without expectations */
#define RV_TEST_JUDGE            "expect.judge"          /* the stage of a judge, as scripts name it */
/* A model that scores the response. */
struct rv_test_judge {
    const char *model;  /* role of the pipeline, or "provider:model" */
    const char *rubric; /* NULL: there is no judge */
    int64_t votes;
    double threshold; /* 0..1: the least score of a vote for it */
    double max_cost_usd;
    bool has_max_cost;
    int64_t max_tokens; /* of all votes; 0: no limit */
    struct rv_src model_src;
};
/* Where a test stands in the matrix that it is written with. */
struct rv_test_axis_label {
    const char *axis, *label;
    size_t number; /* of the value on its axis, from 1 */
};
struct rv_test_place {
    const struct rv_test_axis_label *labels; /* one for each axis, in their order */
    size_t n_labels;                         /* 0: it has no matrix */
    size_t written;                          /* number of the test in the list `tests`, from 0 */
    const char *name;                        /* as it is written there: that of all cases and combinations */
    int number;                              /* of its case, from 1; 0: it has no cases */
    bool is_named;                           /* its name has something of the matrix */
    const char *model;                       /* of the axis `model`: in the place of each model; NULL: their own */
    const char *prompts;                     /* label on the axis `prompts`; NULL: the pipeline's own */
};
struct rv_test_config {
    const char *name;
    json_object *input;                  /* {raw_input, user_id, session_id, metadata}; may be NULL */
    json_object *envelope;               /* partial state dict; may be NULL */
    const char *script;                  /* path as resolved against the pipeline's folder; NULL */
    const struct rv_node *inline_script; /* a map in place of the path; NULL */
    int mode;                            /* enum rv_run_mode or RV_UNSET */
    bool mock;
    double min_pass_rate; /* 0..1, of the runs of the test */
    bool has_min_pass_rate;
    struct rv_str_list without; /* capabilities that it does without where they cannot be loaded */
    json_object *expect;        /* see docs/reference/tests.md; checked keys, never NULL */
    rv_expr **that;             /* of `expect`, compiled: hold at the end; owned by the pipeline */
    size_t n_that;
    struct rv_test_schema *schemas; /* of `expect` */
    size_t n_schemas;
    struct rv_test_near *near; /* of `expect` */
    size_t n_near;
    const char *similar_to;     /* of `expect`; NULL: not compared */
    double similar_at_least;    /* 0..1 */
    struct rv_test_judge judge; /* of `expect` */
    struct rv_test_place place;
    const struct rv_node *node; /* its keys; of a case, with the values of the case */
    struct rv_src src, script_src;
};

#endif
