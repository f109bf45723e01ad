/* The version of the library, as text. */
#include "coreengine/base/version.h"

const char *rv_version(void)
{
    return REEVE_VERSION;
}
