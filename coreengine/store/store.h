/* The store keeps runs, their journals and the data that belongs to them; an acknowledged write is never lost.
 *
 * It knows rows and bytes, not their meaning: coreengine/store/journal writes and reads the records. It is SQLite, in a
 * file or in memory, or a schema of PostgreSQL. Every call that changes something is one transaction, durable when it
 * returns; a call that fails has changed nothing. A handle belongs to one thread; many handles and processes may use
 * one file or schema.
 *
 * A run has at most one owner, who holds a lease. Each hand-over raises the run's fence; a write with an older fence is
 * refused, however late its process wakes up.
 *
 * This header includes the others, a part each (README.md has the list). */
#ifndef RV_STORE_H
#define RV_STORE_H

#include "coreengine/store/clients.h"
#include "coreengine/store/documents.h"
#include "coreengine/store/encryption.h"
#include "coreengine/store/entities.h"
#include "coreengine/store/handle.h"
#include "coreengine/store/runs.h"
#include "coreengine/store/schedules.h"
#include "coreengine/store/search.h"
#include "coreengine/store/sessions.h"
#include "coreengine/store/tasks.h"
#include "coreengine/store/upkeep.h"
#include "coreengine/store/users.h"

#endif
