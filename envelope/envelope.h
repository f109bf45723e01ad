/* The entry to the envelope, the state that is passed from stage to stage, and to the words of the field.
 *
 * state.h: the envelope itself; goals.h, questions.h, merge.h, usage.h: parts of its state; branches.h: its views for
 * stages side by side, and branches of a run, as they are kept; terms.h, tasks.h: words; error_types.h, failures.h: why
 * something failed. */
#ifndef RV_ENVELOPE_H
#define RV_ENVELOPE_H

#include "envelope/branches.h"
#include "envelope/error_types.h"
#include "envelope/failures.h"
#include "envelope/goals.h"
#include "envelope/merge.h"
#include "envelope/questions.h"
#include "envelope/state.h"
#include "envelope/tasks.h"
#include "envelope/terms.h"
#include "envelope/usage.h"

#endif
