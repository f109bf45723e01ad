/* How a stage plans its tool calls: with `strategy: planned` a visit asks its model for a plan, runs it, and asks for
 * the answer. A part of struct rv_agent. */
#ifndef RV_CONFIG_AGENT_PLANNING_H
#define RV_CONFIG_AGENT_PLANNING_H

#include <stdbool.h>
#include <stdint.h>

#include "coreengine/base/base.h"

enum rv_strategy { RV_STRATEGY_AUTO, RV_STRATEGY_PLANNED, RV_STRATEGY_STANDARD, RV_N_STRATEGIES };
enum rv_unschematized { RV_UNSCHEMATIZED_REJECT, RV_UNSCHEMATIZED_DEFER, RV_N_UNSCHEMATIZED };
enum rv_confirms {
    RV_CONFIRMS_NEVER,
    RV_CONFIRMS_DECLARED,
    RV_CONFIRMS_DESTRUCTIVE,
    RV_CONFIRMS_WRITES,
    RV_CONFIRMS_ALL,
    RV_N_CONFIRMS
};
enum rv_confirmer { RV_CONFIRMER_NONE, RV_CONFIRMER_PERSON, RV_N_CONFIRMERS };
struct rv_agent_planning {
    enum rv_strategy strategy; /* as it is written */
    bool plans;                /* what follows from it for the stage */
    struct rv_src strategy_src, plan_src, execute_src, respond_src;
    /* plan */
    int64_t max_calls, max_repairs, max_replans;
    bool accept_native_calls;
    enum rv_unschematized unschematized; /* references to outputs without a schema */
    /* execute */
    int64_t parallelism, max_total_ms, call_timeout_ms;
    enum rv_confirms confirm;
    enum rv_confirmer confirmer;
    /* respond */
    int64_t max_output_bytes, max_summary_bytes; /* of one output, of all, as the model that answers reads them */
};
/** Does a visit plan its tool calls before it makes any? */
static inline bool rv_plans(const struct rv_agent_planning *p)
{
    return p->plans;
}

#endif
