/* Forms of tools that ask a person. An answer that is kept for later is checked first, because a run that waits has no
 * process that could refuse it. */
#ifndef RV_AGENT_FORMS_H
#define RV_AGENT_FORMS_H

#include "envelope/questions.h"

/** Does the answer to a question of rv_interrupt_asks_input() fit its form? data: of the question. RV_E_INVALID. */
RV_MUST_CHECK int rv_input_check(json_object *data, const struct rv_response *response, rv_err **err);

#endif
