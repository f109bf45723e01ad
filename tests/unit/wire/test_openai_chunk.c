/* The short way through a chunk gives what the parser gives, or nothing. */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/wire/hear.h"
#include "tests/unit/wire/suites.h"

static const struct rv_wire_target target = {.wire = RV_WIRE_OPENAI, .provider = "openai", .model = "gpt-x"};

static const struct {
    const char *chunk;
    const char *text; /* NULL: left to the parser */
    bool is_thinking;
} chunks[] = {
    {"{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"gpt-x\","
     "\"system_fingerprint\":null,\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"},\"logprobs\":null,"
     "\"finish_reason\":null}],\"usage\":null,\"obfuscation\":\"a8Hq\"}",
     "Hel", false},
    {" {\"choices\" : [ { \"delta\" : { \"content\" : \"a\\nb\\u00e9\" } } ] } ", "a\nb\xC3\xA9", false},
    {"{\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}", "", false},
    {"{\"choices\":[{\"delta\":{\"content\":null,\"reasoning_content\":\"hm\"}}]}", "hm", true},
    {"{\"choices\":[{\"delta\":{\"reasoning\":\"\xE2\x82\xAC\"},\"index\":0}]}", "\xE2\x82\xAC", true},
    {"{\"choices\":[{\"delta\":{}}]}", "", false},
    {"{\"choices\":[{\"delta\":{\"tool_calls\":null,\"function_call\":null,\"refusal\":null,\"content\":\"x\"}}],"
     "\"error\":null}",
     "x", false},
    {"{\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}", NULL, false},
    {"{\"choices\":[{\"delta\":{\"content\":\"x\",\"content\":\"y\"}}]}", NULL, false},
    {"{\"choices\":[{\"delta\":{\"content\":\"x\",\"reasoning\":\"y\"}}]}", NULL, false},
    {"{\"choices\":[{\"delta\":{\"content\":\"x\"},\"delta\":{}}]}", NULL, false},
    {"{\"choices\":[{\"delta\":{\"content\":\"x\"}}],\"choices\":[]}", NULL, false},
    {"{\"choices\":[{\"delta\":{\"content\":\"x\"}},{\"index\":1}]}", NULL, false},
    {"{\"choices\":[{\"delta\":{\"content\":\"x\"},\"index\":1}]}", NULL, false},
    {"{\"choices\":[{\"delta\":{\"content\":\"x\"}}],\"usage\":{\"prompt_tokens\":1}}", NULL, false},
    {"{\"choices\":[{\"delta\":{\"content\":\"x\"}}],\"error\":{}}", NULL, false},
    {"{\"choices\":[{\"delta\":{\"content\":\"\\ud83d\"}}]}", NULL, false},
    {"{\"choices\":[{\"delta\":{\"content\":\"\\ud83d\\ude00\"}}]}", NULL, false},
    {"{\"choices\":[{\"delta\":{\"cont\\u0065nt\":\"x\"}}]}", NULL, false},
    {"{\"choices\":[{\"delta\":{\"content\":\"x\"}}],\"t\":1.5}", NULL, false},
    {"{\"choices\":[{\"delta\":{\"content\":\"x\"}}],\"t\":01}", NULL, false},
    {"{\"choices\":[{\"delta\":{\"content\":\"x\"}}],\"t\":1234567890123456}", NULL, false},
    {"{\"choices\":[{\"delta\":{\"content\":\"x\"}}],}", NULL, false},
    {"{\"choices\":[{\"delta\":{\"content\":\"x\"}}]}x", NULL, false},
    {"{\"choices\":[{\"delta\":{\"content\":\"\xC3\"}}]}", NULL, false},
    {"{\"choices\":[{\"delta\":{\"content\":\"\x01\"}}]}", NULL, false},
    {"{\"choices\":[{\"delta\":{\"content\":\"\\x\"}}]}", NULL, false},
    {"{\"choices\":[{\"delta\":{\"content\":\"x", NULL, false},
    {"{\"choices\":[]}", NULL, false},
    {"{\"id\":\"x\"}", NULL, false},
    {"", NULL, false},
};

START_TEST(only_the_commonest_chunk_goes_the_short_way)
{
    rv_buf scratch = RV_BUF_INIT(1000);
    rv_str text = {NULL, 0};
    bool is_thinking = false;

    if (!chunks[_i].text) {
        ck_assert(!wire_openai_short_chunk(rv_str_of(chunks[_i].chunk), &scratch, &text, &is_thinking));
    } else {
        ck_assert(wire_openai_short_chunk(rv_str_of(chunks[_i].chunk), &scratch, &text, &is_thinking));
        ck_assert(rv_str_is(text, chunks[_i].text));
        ck_assert_int_eq(is_thinking, chunks[_i].is_thinking);
    }
    rv_buf_fini(&scratch);
}
END_TEST

static void both_ways_agree(rv_str chunk)
{
    rv_buf body = RV_BUF_INIT((size_t)1 << 16);
    char *by_tree;

    rv_buf_puts(&body, "data: ");
    rv_buf_add_str(&body, chunk);
    rv_buf_puts(&body, "\n\n");
    by_tree = hear(&(struct hear){.target = &target, .no_short_way = true}, rv_buf_str(&body));
    same_text(rv_buf_cstr(&body), hear(&(struct hear){.target = &target}, rv_buf_str(&body)), by_tree);
    free(by_tree);
    rv_buf_fini(&body);
}

/* Each byte replaced by each of these, left out, or doubled. */
START_TEST(the_short_way_gives_what_the_parser_gives)
{
    static const char bytes[] = "{}[]:,\"\\0-1.enu/ x\t\x01\x7F\xC3\xED";
    rv_str chunk = rv_str_of(chunks[_i].chunk);
    char *copy = malloc(chunk.len + 2);

    ck_assert_ptr_nonnull(copy);
    both_ways_agree(chunk);
    for (size_t step = rv_kit_stride(5), i = rv_kit_first(step); i < chunk.len; i += step) {
        for (size_t b = 0; b < sizeof bytes - 1; b++) {
            memcpy(copy, chunk.ptr, chunk.len);
            copy[i] = bytes[b];
            both_ways_agree((rv_str){copy, chunk.len});
        }
        memcpy(copy, chunk.ptr, i);
        memcpy(copy + i, chunk.ptr + i + 1, chunk.len - i - 1);
        both_ways_agree((rv_str){copy, chunk.len - 1});
        memcpy(copy, chunk.ptr, i + 1);
        memcpy(copy + i + 1, chunk.ptr + i, chunk.len - i);
        both_ways_agree((rv_str){copy, chunk.len + 1});
    }
    free(copy);
}
END_TEST

TCase *openai_chunk_case(void)
{
    TCase *c = tcase_create("openai_chunk");

    tcase_add_loop_test(c, only_the_commonest_chunk_goes_the_short_way, 0, RV_COUNT(chunks));
    tcase_add_loop_test(c, the_short_way_gives_what_the_parser_gives, 0, RV_COUNT(chunks));
    return c;
}
