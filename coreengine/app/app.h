/* The application: what every front of reeve needs (a command line, a server, a program that embeds the library).
 *
 * A front fills in struct rv_app (where stores, capabilities and agents are, and for whom the front works), loads
 * pipelines, runs them and reads what was kept. Nothing here knows arguments, a terminal or an exit status, and nothing
 * prints: results are structs, errors are rv_err, findings are rv_findings, and what happens during a run goes to the
 * callbacks of an observer.
 *
 * Threads: one thread at a time may use a struct rv_app and what was made with it; two threads use one each.
 *
 * This is the entry. workspace.h is struct rv_app, loading and running; each other part is what a front may offer:
 * chat.h, streams.h (turns), recover.h, past.h, top.h (runs that were left, are over, are under way), rows.h (what was
 * kept, as JSON), work.h, schedules.h (the queue), entities.h, memory.h (what a store knows and remembers), models.h,
 * services.h (models, services for capabilities), check.h, testing.h (proofs, tests), upkeep.h (the store in order),
 * mcp.h (both sides of MCP), gallery.h (examples). */
#ifndef RV_APP_H
#define RV_APP_H

#include "coreengine/app/chat.h"
#include "coreengine/app/check.h"
#include "coreengine/app/entities.h"
#include "coreengine/app/gallery.h"
#include "coreengine/app/mcp.h"
#include "coreengine/app/memory.h"
#include "coreengine/app/models.h"
#include "coreengine/app/past.h"
#include "coreengine/app/recover.h"
#include "coreengine/app/rows.h"
#include "coreengine/app/schedules.h"
#include "coreengine/app/services.h"
#include "coreengine/app/streams.h"
#include "coreengine/app/testing.h"
#include "coreengine/app/top.h"
#include "coreengine/app/upkeep.h"
#include "coreengine/app/work.h"
#include "coreengine/app/workspace.h"

#endif
