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

/** Keep it: the first instant is computed here. row has what differs from one kind to another. */
RV_MUST_CHECK int rv_schedule_add(rv_store *store, const struct rv_app_schedule *s, const struct rv_needs *needs,
                                  struct rv_schedule_row *row, char id[RV_ID_MAX], rv_err **err);
RV_MUST_CHECK int rv_schedule_labels(const struct rv_app_schedule *s, struct rv_needs *needs, rv_err **err);

#endif
