/* Tests of @NAME@ alone, without engine and pipeline. `make check` runs them. */
#include <reeve/capability_test.h>

int main(void)
{
    struct rv_cap_test t = rv_cap_test_open("{}");

    rv_cap_test_reply(&t, RV_CAP_TOOL, "@IDENT@_greet", "{\"name\": \"Ada\"}", "{\"text\": \"Hello, Ada!\"}");
    rv_cap_test_fail(&t, RV_CAP_TOOL, "@IDENT@_greet", "{\"name\": \"\"}", "ValidationError");
    rv_cap_test_reply(
        &t, RV_CAP_HOOK, "plan", "{\"envelope\": {\"raw_input\": \"Ada\"}}",
        "{\"output\": {\"steps\": [{\"tool\": \"@IDENT@_greet\", \"parameters\": {\"name\": \"Ada\"}}]}}");

    /* Calls that are cancelled, run out of memory, have malformed arguments or come from an older host. */
    rv_cap_test_abuse(&t, RV_CAP_TOOL, "@IDENT@_greet", "{\"name\": \"Ada\"}");
    rv_cap_test_abuse(&t, RV_CAP_HOOK, "plan", "{\"envelope\": {\"raw_input\": \"Ada\"}}");
    rv_cap_test_abuse(&t, RV_CAP_HOOK, "answer", "{\"envelope\": {\"outputs\": {}}}");
    return rv_cap_test_close(&t);
}
