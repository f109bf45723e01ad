/* Each allocation of the hooks and policies of the capability `guard` fails once: what could not be looked at does not
 * pass. */
#include <check.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coreengine/tools/plugin/plugin.h"
#include "tests/kit/fault.h"
#include "tests/kit/suites.h"

#define SECRET "AKIAABCDEFGHIJKLMNOP" /* as long as an access key id, of no account */

/* A reply that hands over an output with this text. */
#define HANDED(text)                                                                                                   \
    "\"reply\": {\"text\": \"\", \"tool_calls\": [{\"id\": \"c\", \"name\": \"final_result\", "                        \
    "\"arguments\": \"{\\\"a\\\": [1, \\\"" text "\\\"]}\"}]}"

static const struct {
    enum rv_name_kind kind;
    const char *name, *args, *says;
} calls[] = {
    {RV_NAME_HOOK, "guard.redact_secrets",
     "{\"hook\": \"before_model\", \"request\": {\"system\": \"\", \"prompt\": \"key " SECRET "\"}}", "\"replace\""},
    {RV_NAME_HOOK, "guard.redact_secrets", "{\"hook\": \"after_model\", \"reply\": {\"text\": \"key " SECRET "\"}}",
     "\"replace\""},
    {RV_NAME_HOOK, "guard.redact_secrets",
     "{\"hook\": \"after_tool\", \"result\": {\"a\": [\"key " SECRET "\", {\"" SECRET "\": 1}]}}", "\"replace\""},
    {RV_NAME_HOOK, "guard.block_words", "{\"hook\": \"before_model\", \"request\": {\"prompt\": \"a swordfish\"}}",
     "\"block\""},
    {RV_NAME_HOOK, "guard.block_words", "{\"hook\": \"after_model\", \"reply\": {\"text\": \"a swordfish\"}}",
     "\"block\""},
    {RV_NAME_HOOK, "guard.redact_secrets", "{\"hook\": \"after_model\", " HANDED("key " SECRET) "}", "\"replace\""},
    {RV_NAME_HOOK, "guard.block_words", "{\"hook\": \"after_model\", " HANDED("a swordfish") "}", "\"block\""},
    {RV_NAME_HOOK, "guard.redact_secrets", "{\"hook\": \"after_tool\", \"error\": {\"message\": \"key " SECRET "\"}}",
     "\"block\""},
    {RV_NAME_HOOK, "guard.redact_secrets",
     "{\"hook\": \"after_tool\", \"result\": {}, \"content\": [{\"type\": \"text\", \"text\": \"key " SECRET "\"}]}",
     "\"replace\""},
    {RV_NAME_HOOK, "guard.redact_secrets",
     "{\"hook\": \"before_model\", \"request\": {\"attachments\": [{\"data\": \"a2V5IEFLSUFBQkNERUZHSElKS0xNTk9Q\", "
     "\"media_type\": \"text/plain\"}]}}",
     "\"replace\""},
    {RV_NAME_POLICY, "guard.no_secrets", "{\"output\": {\"a\": \"key " SECRET "\"}}", "\"deny\""},
};

#define IS_OPEN 42 /* exit status of a process in which it passed */

/* In a process of its own: json-c itself may not survive it, and then nothing passes, either. *fired false: there are
 * fewer allocations. */
static int call_without(rv_plugins *p, int i, size_t n, bool *fired)
{
    const struct rv_plugin_call call = {.kind = calls[i].kind, .name = calls[i].name, .args = rv_str_of(calls[i].args)};
    rv_buf out = RV_BUF_INIT((size_t)1 << 20);
    int status = 0;
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        rv_fault_arm(n);
        int rc = rv_plugins_call(p, &call, &out, NULL);
        bool was_short = rv_fault_disarm();
        const char *said = rv_buf_cstr(&out);
        _exit(rc == 0 && (!strstr(said, calls[i].says) || strstr(said, SECRET)) ? IS_OPEN : was_short);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    *fired = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

START_TEST(what_could_not_be_looked_at_does_not_pass)
{
    static const char *const dirs[] = {CAPABILITY_DIR};
    const struct rv_plugins_opts opts = {dirs, 1, "/", NULL, NULL, NULL};
    struct rv_capability_config which = {.name = "guard"};
    rv_plugins *p = NULL;
    bool fired = true;

    ck_assert_int_eq(rv_json_parse(RV_STR_LIT("{\"blocked_words\": [\"swordfish\"]}"), NULL, &which.config, NULL), 0);
    ck_assert_int_eq(rv_plugins_new(&opts, &p, NULL), 0);
    ck_assert_int_eq(rv_plugins_load(p, &which, NULL), 0);
    for (size_t n = 0; fired; n++)
        ck_assert_msg(call_without(p, _i, n, &fired) != IS_OPEN, "allocation %zu", n);
    json_object_put(which.config);
    rv_plugins_free(p);
}
END_TEST

static Suite *guard_suite(void)
{
    Suite *s = suite_create("guard without memory");
    TCase *tc = tcase_create("guard");

    suite_add_tcase(s, tc);
    tcase_add_loop_test(tc, what_could_not_be_looked_at_does_not_pass, 0, RV_COUNT(calls));
    return s;
}

int main(void)
{
    static Suite *(*const suites[])(void) = {guard_suite};

    return rv_kit_run_suites(suites, RV_COUNT(suites));
}
