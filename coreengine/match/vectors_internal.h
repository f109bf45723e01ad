/* What the files about vectors share. */
#ifndef RV_MATCH_VECTORS_INTERNAL_H
#define RV_MATCH_VECTORS_INTERNAL_H

#include "coreengine/match/match.h"
#include "coreengine/match/match_internal.h"

/** The same sum as rv_vector_dot(), without the registers of a newer processor. */
float match_vector_dot_portable(const float *a, const float *b, size_t dims);
/** Of at most RV_VECTOR_MAX_DIMS elements: the sum fits. */
int32_t match_vector_dot_bytes(const int8_t *a, const int8_t *b, size_t dims);
double match_vector_length(const float *v, size_t dims);
/** The cosine of two vectors whose lengths are known. */
double match_vector_cosine_of(const float *a, double a_length, const float *b, double b_length, size_t dims);

#endif
