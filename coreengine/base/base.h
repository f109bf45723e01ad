/* The one header of base: errors, bytes, JSON, time and ids, log. Depends on nothing of ours. */
#ifndef RV_BASE_H
#define RV_BASE_H

#include "coreengine/base/buf.h"
#include "coreengine/base/clock.h"
#include "coreengine/base/err.h"
#include "coreengine/base/hash.h"
#include "coreengine/base/json.h"
#include "coreengine/base/log.h"
#include "coreengine/base/version.h"

#endif
