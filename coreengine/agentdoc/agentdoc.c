/* Reading agent documents. */
#include "coreengine/agentdoc/agentdoc.h"
