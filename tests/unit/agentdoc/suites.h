/* Shared by the tests of agentdoc. */
#ifndef RV_TESTS_UNIT_AGENTDOC_SUITES_H
#define RV_TESTS_UNIT_AGENTDOC_SUITES_H

#include <check.h>

#include "config/agentdoc/agentdoc_internal.h"
#include "tests/kit/kit.h"

TCase *forms_case(void);
TCase *scalars_case(void);
TCase *tools_case(void);
TCase *schema_case(void);
TCase *prompt_case(void);
TCase *output_case(void);
TCase *write_case(void);
TCase *with_case(void);
TCase *source_case(void);

/** The findings about text as they are printed, sorted; free() them. out may be NULL. */
char *findings_of(const char *text, struct rv_agentdoc **out);
/** A document that must have no error. */
struct rv_agentdoc *doc_of(const char *text);
/** The flat document as compact JSON; free() it. */
char *flat_of(const struct rv_agentdoc *d);
/** Texts that hold what a line of a table says: NULL wants no finding at all. */
void ck_findings(const char *text, const char *want);

#endif
