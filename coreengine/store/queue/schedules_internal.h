/* Shared by the files about schedules. */
#ifndef RV_STORE_SCHEDULES_INTERNAL_H
#define RV_STORE_SCHEDULES_INTERNAL_H

#include "coreengine/store/store_internal.h"

/* Kinds, as the store keeps them. */
#define RV_SCHEDULE_ONCE "once"
#define RV_SCHEDULE_CRON "cron"

/* schedules_read.c */
int rv_schedule_fail_none(const char *word, rv_err **err);

#endif
