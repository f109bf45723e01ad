/* Shared by the files of this folder. */
#ifndef RV_APP_TESTING_INTERNAL_H
#define RV_APP_TESTING_INTERNAL_H

#include "coreengine/app/testing.h"

/** Compare; each difference is added to failures. */
RV_MUST_CHECK int rv_test_compare(const struct rv_pipeline *p, const rv_envelope *env, struct rv_test_report *r,
                                  rv_err **err);
/** Add {path, message}. */
RV_MUST_CHECK int rv_test_complain(struct rv_test_report *r, const char *path, const char *message, rv_err **err);

#endif
