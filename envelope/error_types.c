/* The words of the types of errors. */
#include "envelope/error_types.h"

#define X(name, text, meaning) const char rv_error_##name[] = text;
RV_ERROR_TYPES(X)
#undef X
