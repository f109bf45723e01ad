/* Answers with a bad status: what kind they are, whether it is worth to try again, and what people are told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/wire/hear.h"
#include "tests/unit/wire/suites.h"

static const struct {
    int status;
    const char *type, *body;
    enum rv_llm_error kind;
    bool retryable;
    const char *error; /* behind "openai:gpt-x answered with status N" */
} faults[] = {
    {400, "application/json",
     "{\"error\":{\"message\":\"Unsupported "
     "value\",\"type\":\"invalid_request_error\",\"param\":\"temperature\",\"code\":"
     "\"unsupported_value\"}}",
     RV_LLM_ERROR_BAD_REQUEST, false, ": Unsupported value (unsupported_value)"},
    {400, "application/json",
     "{\"error\":{\"message\":\"too long\",\"type\":\"invalid_request_error\",\"code\":\"context_length_exceeded\"}}",
     RV_LLM_ERROR_CONTEXT_TOO_LONG, false, ": too long (context_length_exceeded)"},
    {400, "application/json",
     "{\"object\":\"error\",\"message\":\"This model's Maximum context length is 4096 "
     "tokens\",\"type\":\"BadRequestError\"}",
     RV_LLM_ERROR_CONTEXT_TOO_LONG, false, ": This model's Maximum context length is 4096 tokens (BadRequestError)"},
    {400, "application/json", "{\"error\":{\"message\":\"no\",\"type\":\"exceed_context_size_error\",\"code\":400}}",
     RV_LLM_ERROR_CONTEXT_TOO_LONG, false, ": no (exceed_context_size_error)"},
    {400, "application/json", "{\"error\":{\"message\":\"filtered\",\"code\":\"content_filter\"}}",
     RV_LLM_ERROR_CONTENT_FILTER, false, ": filtered (content_filter)"},
    {400, "application/json", "{\"error\":{\"message\":\"no\",\"code\":\"content_policy_violation\"}}",
     RV_LLM_ERROR_CONTENT_FILTER, false, ": no (content_policy_violation)"},
    {401, "application/json",
     "{\"error\":{\"message\":\"Incorrect key\",\"type\":\"invalid_request_error\",\"code\":"
     "\"invalid_api_key\"}}",
     RV_LLM_ERROR_AUTH, false, ": Incorrect key (invalid_api_key)"},
    {402, "text/plain", "pay", RV_LLM_ERROR_RATE_LIMITED, false, " (text/plain): pay"},
    {403, "application/json", "{\"error\":\"not in your region\"}", RV_LLM_ERROR_AUTH, false, ": not in your region"},
    {404, "application/json", "{\"detail\":\"Not Found\"}", RV_LLM_ERROR_BAD_REQUEST, false, ": Not Found"},
    {404, "application/json", "{\"error\":{\"type\":\"not_found\"}}", RV_LLM_ERROR_BAD_REQUEST, false, ": not_found"},
    {408, "", "", RV_LLM_ERROR_TIMEOUT, true, " and no text"},
    {409, "", "", RV_LLM_ERROR_OVERLOADED, true, " and no text"},
    {413, "text/plain", "too big", RV_LLM_ERROR_CONTEXT_TOO_LONG, false, " (text/plain): too big"},
    {422, "application/json", "{\"error\":{\"message\":\"no\"}}", RV_LLM_ERROR_BAD_REQUEST, false, ": no"},
    {429, "application/json",
     "{\"error\":{\"message\":\"slow down\",\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}}",
     RV_LLM_ERROR_RATE_LIMITED, true, ": slow down (rate_limit_exceeded)"},
    {429, "application/json", "{\"error\":{\"message\":\"used up\",\"type\":\"insufficient_quota\",\"code\":null}}",
     RV_LLM_ERROR_RATE_LIMITED, false, ": used up (insufficient_quota)"},
    {429, "application/json", "[{\"error\":{\"message\":\"quota\",\"code\":429,\"status\":\"RESOURCE_EXHAUSTED\"}}]",
     RV_LLM_ERROR_RATE_LIMITED, true, ": quota"},
    {500, "application/json", "{\"error\":{\"message\":\"oops\",\"type\":\"server_error\"}}", RV_LLM_ERROR_OVERLOADED,
     true, ": oops (server_error)"},
    {502, "text/html; charset=UTF-8", "<html>\r\n<head><title>502 Bad Gateway</title>\n</head>\x01\xFF</html>\n",
     RV_LLM_ERROR_OVERLOADED, true,
     " (text/html; charset=UTF-8): <html> <head><title>502 Bad Gateway</title> </head> ?</html> "},
    {503, "application/json", "{\"error\":{\"message\":\"Loading model\",\"type\":\"unavailable_error\",\"code\":503}}",
     RV_LLM_ERROR_OVERLOADED, true, ": Loading model (unavailable_error)"},
    {504, "", "", RV_LLM_ERROR_TIMEOUT, true, " and no text"},
    {529, "application/json", "{\"error\":{}}", RV_LLM_ERROR_OVERLOADED, true, " (application/json): {\"error\":{}}"},
    {301, "", "", RV_LLM_ERROR_PROTOCOL, false, " and no text"},
    {500, "application/json", "{\"error\":{\"message\":7,\"code\":{}}}", RV_LLM_ERROR_OVERLOADED, true,
     " (application/json): {\"error\":{\"message\":7,\"code\":{}}}"},
    {500, "application/json", "{\"error\":", RV_LLM_ERROR_OVERLOADED, true, " (application/json): {\"error\":"},
};

static const struct rv_wire_target target = {.wire = RV_WIRE_OPENAI, .provider = "openai", .model = "gpt-x"};

/* Proves 12.2/status: Every status and code has its kind; HTML of a proxy is shown by its first bytes */
START_TEST(a_bad_status_is_an_error_of_a_kind)
{
    struct rv_llm_reply reply;
    char want[1000];

    ck_assert_int_eq(rv_wire_read_fault(&target, faults[_i].status, rv_str_of(faults[_i].type),
                                        rv_str_of(faults[_i].body), &reply, NULL),
                     0);
    (void)snprintf(want, sizeof want, "openai:gpt-x answered with status %d%s", faults[_i].status, faults[_i].error);
    ck_assert_str_eq(rv_buf_cstr(&reply.error), want);
    ck_assert_str_eq(rv_llm_error_text((enum rv_llm_error)reply.answer.error_kind), rv_llm_error_text(faults[_i].kind));
    ck_assert_int_eq(reply.retryable, faults[_i].retryable);
    ck_assert(reply.failed);
    rv_llm_reply_fini(&reply);
}
END_TEST

/* Proves 12.2/status */
START_TEST(a_long_body_is_shown_by_its_beginning)
{
    size_t n = 2 * RV_WIRE_MAX_ERROR;
    char *body = malloc(n);
    struct rv_llm_reply reply;

    ck_assert_ptr_nonnull(body);
    memset(body, '[', n); /* deep JSON, too */
    ck_assert_int_eq(rv_wire_read_fault(&target, 500, RV_STR_LIT("text/html"), (rv_str){body, n}, &reply, NULL), 0);
    ck_assert_uint_lt(reply.error.len, 400);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&reply.error), "[[[[..."));
    rv_llm_reply_fini(&reply);
    free(body);
}
END_TEST

TCase *fault_case(void)
{
    TCase *c = tcase_create("fault");

    tcase_add_loop_test(c, a_bad_status_is_an_error_of_a_kind, 0, RV_COUNT(faults));
    tcase_add_test(c, a_long_body_is_shown_by_its_beginning);
    return c;
}
