/* The cases of this suite. */
#ifndef RV_TESTS_UNIT_OPENAPI_SUITES_H
#define RV_TESTS_UNIT_OPENAPI_SUITES_H

#include "coreengine/mcp/mcp.h"
#include "coreengine/openapi/openapi.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

TCase *tools_case(void);
TCase *request_case(void);
TCase *answer_case(void);

/** A document of 3.1 with these paths and components, in JSON with ' for ". */
json_object *openapi_document(const char *paths, const char *components);
/** The definitions of its operations, for a server at https://api.test/v1. */
json_object *openapi_tools(const char *paths, const char *components);

#endif
