/* The loop of fault.h over a scenario that says all there is to say with its code. */
#ifndef RV_KIT_FAULT_LOOP_H
#define RV_KIT_FAULT_LOOP_H

#include <stddef.h>

struct rv_fault_scenario {
    const char *name;
    int (*run)(void); /* 0, or RV_E_NOMEM when an allocation failed; leaves nothing behind */
};
/** Within a test of Check: the scenario runs well, then with its first allocation failing, its second, and so on until
 *  all did. Each failure is RV_E_NOMEM and leaks nothing. more_than: so many allocations there are at least. */
void rv_fault_each(const struct rv_fault_scenario *scenario, size_t more_than);

#endif
