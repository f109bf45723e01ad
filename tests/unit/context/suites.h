/* The test cases of the files in this folder. */
#ifndef RV_TESTS_CONTEXT_SUITES_H
#define RV_TESTS_CONTEXT_SUITES_H

#include <check.h>

#include "coreengine/conversation/conversation.h"

TCase *context_case(void);
TCase *headers_case(void);
TCase *ids_case(void);
TCase *routing_case(void);
TCase *conversation_case(void);
TCase *instructions_case(void);
TCase *spaced_json_case(void);

/** The JSON of a context; free() it. */
char *text_of_context(const struct rv_context *c);

#endif
