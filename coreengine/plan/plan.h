/* The entry to plan, what a model plans before any tool runs. calls.h: a plan and its calls; planner.h: what a planner
 * is given, and whether its plan is sound; artifact.h: what tools make for people. */
#ifndef RV_PLAN_PLAN_H
#define RV_PLAN_PLAN_H

#include "coreengine/plan/artifact.h"
#include "coreengine/plan/calls.h"
#include "coreengine/plan/planner.h"

#endif
