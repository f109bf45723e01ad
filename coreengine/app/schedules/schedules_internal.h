/* Shared by the files of this folder. */
#ifndef RV_SCHEDULES_INTERNAL_H
#define RV_SCHEDULES_INTERNAL_H

#include "coreengine/app/schedules.h"
#include "coreengine/app/work.h"

/* What a schedule of runs keeps as its payload. */
#define RV_SCHEDULE_STATE   "state"
#define RV_SCHEDULE_MODE    "mode"
#define RV_SCHEDULE_MOCKS   "use_mocks"
#define RV_SCHEDULE_SESSION "session"

/* Member of a task's payload and of a run's metadata that says which schedule made it. */
#define RV_SCHEDULE_MEMBER "schedule"

#endif
