/* What the config tests share. */
#ifndef RV_TESTS_UNIT_CONFIG_WORLD_H
#define RV_TESTS_UNIT_CONFIG_WORLD_H

#include <check.h>

#include "config/config.h"
#include "tests/kit/kit.h"

TCase *defaults_case(void);
TCase *rules_case(void);
TCase *sections_case(void);
TCase *secrets_case(void);
TCase *names_case(void);
TCase *broken_case(void);
TCase *views_case(void);
TCase *texts_case(void);
TCase *capabilities_case(void);
TCase *models_case(void);
TCase *prices_case(void);
TCase *outputs_case(void);
TCase *requests_case(void);
TCase *value_names_case(void);
TCase *asks_case(void);
TCase *planning_case(void);

struct loaded {
    struct rv_pipeline *p;
    char *findings; /* printed, sorted */
    size_t n_errors;
};
/** Parse text as "t.yaml" with paths from dir. */
struct loaded load_text(const char *text, const char *dir);
/** Load, and expect no finding at all. */
struct loaded load_clean(const char *text);
void loaded_fini(struct loaded *l);
/** The findings of a text, against the whole expected print. */
void expect_findings(const char *text, const char *want);

#endif
