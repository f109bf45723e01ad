/* The entry to base: errors, bytes, JSON, hashes, time and ids, log. It depends on nothing of ours.
 *
 * Included by those that need them: border.h (texts that may be anything), crypto.h (ciphers, keys, signatures),
 * limit.h (limits in texts), loop.h (loops of libuv), net.h (addresses, streams of events, media types), number.h
 * (numbers in any locale), system.h (threads, processes, folders, descriptors). */
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
