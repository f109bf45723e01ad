#include "tests/kit/suites.h"
#include "tests/unit/wire/suites.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {reader_case,       openai_request_case, strict_case, openai_stream_case,
                                            openai_chunk_case, fault_case,          volume_case, bodies_case,
                                            order_case,        anthropic_case,      ollama_case, embed_case,
                                            round_case,        tool_names_case};

    return rv_kit_run_cases("wire", cases, RV_COUNT(cases));
}
