/* What the tests of declared agents share. */
#ifndef RV_TESTS_UNIT_CONFIG_AGENTS_WORLD_H
#define RV_TESTS_UNIT_CONFIG_AGENTS_WORLD_H

#include <check.h>

#include "config/config.h"
#include "tests/kit/kit.h"

TCase *bind_case(void);
TCase *faults_case(void);
TCase *models_case(void);
TCase *delegate_case(void);

/* The documents that are there. */
struct docs {
    const char *const (*items)[2]; /* name, text */
    size_t n, n_asked;
};
#define DOCS(list)                                                                                                     \
    {                                                                                                                  \
        (list), RV_COUNT(list), 0                                                                                      \
    }

struct bound {
    struct rv_pipeline *p;
    char *findings; /* printed, sorted: those of parsing and of binding */
};
/** Parse text as "t.yaml" and bind it; a document NAME has the place "NAME.yaml". */
struct bound bind_text(const char *text, struct docs *docs);
/** The same, and expect no finding at all. */
struct bound bind_clean(const char *text, struct docs *docs);
void bound_fini(struct bound *b);
struct rv_agent_source docs_source(struct docs *docs);
/** Tools a, b and send, nothing else. */
struct rv_known_names known_tools(void);
/** The names of a list, with blanks between. */
char *joined(const struct rv_str_list *list);

#endif
