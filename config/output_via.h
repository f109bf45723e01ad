/* The words of `output_via`: one table for files, for requests and for the wires that read them. */
#ifndef RV_OUTPUT_VIA_H
#define RV_OUTPUT_VIA_H

#include "config/agent.h"

extern const struct rv_term_list rv_output_vias; /* by enum rv_output_via */

#endif
