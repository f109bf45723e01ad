/* The failing allocator. Linking rv::fault replaces malloc for the whole test program, libraries included (json-c,
 * libyaml), so that each allocation of a scenario can be made to fail in turn:
 *
 *   for (size_t n = 0;; n++) {
 *       rv_fault_arm(n);
 *       rc = scenario();
 *       if (!rv_fault_disarm())
 *           break;                                  // fewer than n + 1 allocations: all were tried; rc is 0
 *       ck_assert_int_eq(rc, RV_E_NOMEM);
 *       ck_assert_int_eq(rv_fault_balance(), 0);    // as much freed as allocated
 *   }
 *
 * No ck_assert() inside the scenario: Check allocates for each, and what fails then is Check.
 * Run the scenario once before the loop: what a library sets up at first use is not a leak. The count is of the thread
 * that armed it, other threads allocate undisturbed, unless all of them are armed (rv_fault_arm_all). Under the address
 * sanitizer every fourth allocation fails in turn, in soak each of them, and its own leak check counts the blocks: the
 * balance is always 0. Which of the four follows from REEVE_SHUFFLE. Under the thread sanitizer nothing ever fires, and
 * the loop ends after its first round. */
#ifndef RV_TESTS_KIT_FAULT_H
#define RV_TESTS_KIT_FAULT_H

#include <stdbool.h>
#include <stddef.h>

/** From here, the allocation number n (from 0) of this thread fails, once. Under the address sanitizer 4 * n + k,
 * k = REEVE_SHUFFLE % 4. */
void rv_fault_arm(size_t n);
/** The same of all threads: the allocation number n of the process fails, once. Which one that is depends on how the
 * threads take turns, and so does the balance, because the C library keeps memory of threads that ended. */
void rv_fault_arm_all(size_t n);
/** True if it came to that. Ends both kinds. */
bool rv_fault_disarm(void);
/** Between these two, allocations of this thread are the test's own: none is counted, and none fails. */
void rv_fault_pause(void);
void rv_fault_go_on(void);
/** Blocks allocated minus blocks freed between the last arm and disarm. */
long rv_fault_balance(void);
/** What is left of the balance when `kept` blocks are still in use; 0 where blocks are not counted. */
long rv_fault_lost(long kept);
/** Allocations seen between the last arm and disarm. */
size_t rv_fault_count(void);
/** Does each allocation fail in turn? Then a test may say how many there are at least. */
bool rv_fault_works(void);

#endif
