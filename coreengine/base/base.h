/* The entry to base: errors, bytes, JSON, hashes, ciphers, time and ids, log, limits, numbers, addresses, threads and
 * processes. It depends on nothing of ours.
 *
 * A header of its own, because it includes libuv: loop.h (event loops). */
#ifndef RV_BASE_H
#define RV_BASE_H

#include "coreengine/base/border.h"
#include "coreengine/base/buf.h"
#include "coreengine/base/clock.h"
#include "coreengine/base/crypto.h"
#include "coreengine/base/err.h"
#include "coreengine/base/hash.h"
#include "coreengine/base/json.h"
#include "coreengine/base/limit.h"
#include "coreengine/base/log.h"
#include "coreengine/base/net.h"
#include "coreengine/base/number.h"
#include "coreengine/base/system.h"
#include "coreengine/base/version.h"

#endif
