/* Numbers between text and machine with a point, whatever the locale of the process says: that belongs to the program
 * which embeds the engine. Nothing else of a locale changes what strtod() and printf() do. */
#ifndef RV_BASE_NUMBER_H
#define RV_BASE_NUMBER_H

#include <stdarg.h>
#include <stddef.h>

#include "coreengine/base/err.h"

/** As strtod(). end may be NULL. */
double rv_number_read(const char *text, char **end);
/** As snprintf() and vsnprintf(). rv_buf_printf() and the texts of errors are like them. */
int rv_format(char *out, size_t size, const char *fmt, ...) RV_PRINTF(3, 4);
int rv_vformat(char *out, size_t size, const char *fmt, va_list args) RV_PRINTF(3, 0);

#endif
