/* The entry to tools. catalog.h: tools as data and rules, for all who look at tools; source.h: who answers calls, for
 * those who add a kind of tool or make calls. */
#ifndef RV_TOOLS_H
#define RV_TOOLS_H

#include "coreengine/tools/catalog.h"
#include "coreengine/tools/source.h"

#endif
