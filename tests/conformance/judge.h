/* A judge answers each line of its input, a JSON value, with a line of its output. */
#ifndef RV_TESTS_CONFORMANCE_JUDGE_H
#define RV_TESTS_CONFORMANCE_JUDGE_H

#include "coreengine/base/base.h"

/** Print the answer to a line; each judge has its own. row is borrowed. */
void judge(json_object *row);

#endif
