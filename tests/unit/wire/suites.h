/* The test cases of the files in this folder. */
#ifndef RV_TESTS_WIRE_SUITES_H
#define RV_TESTS_WIRE_SUITES_H

#include <check.h>

TCase *fault_case(void);
TCase *openai_chunk_case(void);
TCase *openai_request_case(void);
TCase *openai_stream_case(void);
TCase *reader_case(void);
TCase *round_case(void);
TCase *strict_case(void);
TCase *tool_names_case(void);
TCase *volume_case(void);
/* The other wires. */
TCase *anthropic_case(void);
TCase *bodies_case(void);
TCase *embed_case(void);
TCase *ollama_case(void);
TCase *order_case(void);

#endif
