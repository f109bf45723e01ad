/* The agent context as a value. */
#include "coreengine/context/context.h"
