#include <stdlib.h>

#include "tests/unit/wire/suites.h"

int main(void)
{
    Suite *s = suite_create("wire");
    SRunner *runner;
    int n_failed;

    suite_add_tcase(s, sse_case());
    suite_add_tcase(s, reader_case());
    suite_add_tcase(s, openai_request_case());
    suite_add_tcase(s, strict_case());
    suite_add_tcase(s, openai_stream_case());
    suite_add_tcase(s, openai_chunk_case());
    suite_add_tcase(s, fault_case());
    suite_add_tcase(s, volume_case());
    suite_add_tcase(s, bodies_case());
    suite_add_tcase(s, order_case());
    suite_add_tcase(s, anthropic_case());
    suite_add_tcase(s, ollama_case());
    suite_add_tcase(s, embed_case());
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
