/* Answers of servers that speak Chat Completions, by the book and otherwise. Each stream is fed cut at every byte, with
 * every kind of line end, and without the short way: the same must come of it. */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/wire/hear.h"
#include "tests/unit/wire/suites.h"

static const struct rv_wire_target target = {.wire = RV_WIRE_OPENAI, .provider = "openai", .model = "gpt-x"};

#define DATA(json) "data: " json "\n\n"
#define DELTA(members)                                                                                                 \
    DATA("{\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{" members "},\"finish_reason\":null}]}")
#define CALL(members)   DELTA("\"tool_calls\":[{" members "}]")
#define FINISH(reason)  DATA("{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" reason "\"}]}")
#define DONE            "data: [DONE]\n\n"
#define PROTOCOL_FAILED "! protocol retryable billed: openai:gpt-x: "

static const struct {
    const char *what, *body, *want;
} streams[] = {
    {"text",
     DELTA("\"role\":\"assistant\",\"content\":\"\"") DELTA("\"content\":\"Hel\"") DELTA("\"content\":\"lo\"")
         FINISH("stop") DATA("{\"choices\":[],\"usage\":{\"prompt_tokens\":61,\"completion_tokens\":14,"
                             "\"prompt_tokens_details\":{\"cached_tokens\":5,\"cache_write_tokens\":2},"
                             "\"completion_tokens_details\":{\"reasoning_tokens\":3}}}") DONE,
     "text Hel\ntext lo\nusage 61 14 cached=5 written=2 reasoning=3\nfinish stop\n"
     "= Hello\nusage 61 14 cached=5 written=2 reasoning=3\nfinish stop\n"},
    {"one call in pieces",
     DELTA(
         "\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"index\":0,\"id\":\"call_7\",\"type\":\"function\","
         "\"function\":{\"name\":\"find_order\",\"arguments\":\"\"}}]")
         CALL("\"index\":0,\"function\":{\"arguments\":\"{\\\"order_no\\\":\\\"A\"}")
             CALL("\"index\":0,\"function\":{\"arguments\":\"12\\\"}\"}") FINISH("tool_calls") DONE,
     "start 0 call_7 find_order\narguments 0 {\"order_no\":\"A\narguments 0 12\"}\nend 0\nfinish tool_calls\n"
     "= \ncalls [{\"id\":\"call_7\",\"name\":\"find_order\",\"arguments\":\"{\\\"order_no\\\":\\\"A12\\\"}\"}]\n"
     "finish tool_calls\n"},
    {"two calls interleaved, their finish called stop",
     CALL("\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\"}")
         CALL("\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"g\"}")
             CALL("\"index\":1,\"function\":{\"arguments\":\"{\\\"y\\\":\"}")
                 CALL("\"index\":0,\"function\":{\"arguments\":\"{\\\"x\\\":\"}")
                     CALL("\"index\":1,\"function\":{\"arguments\":\"2}\"}")
                         CALL("\"index\":0,\"function\":{\"arguments\":\"1}\"}") FINISH("stop") DONE,
     "start 0 a f\nstart 1 b g\narguments 1 {\"y\":\narguments 0 {\"x\":\narguments 1 2}\narguments 0 1}\nend 0\nend "
     "1\n"
     "finish tool_calls\n= \ncalls [{\"id\":\"a\",\"name\":\"f\",\"arguments\":\"{\\\"x\\\":1}\"},"
     "{\"id\":\"b\",\"name\":\"g\",\"arguments\":\"{\\\"y\\\":2}\"}]\nfinish tool_calls\n"},
    {"a call ends when the next one begins",
     CALL("\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}")
         CALL("\"index\":0,\"function\":{\"arguments\":\"{\\\"x\\\":1}\"}")
             CALL("\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"g\"}")
                 CALL("\"index\":1,\"function\":{\"arguments\":\"{}\"}") FINISH("tool_calls") DONE,
     "start 0 a f\narguments 0 {\"x\":1}\nend 0\nstart 1 b g\narguments 1 {}\nend 1\n"
     "finish tool_calls\n= \ncalls [{\"id\":\"a\",\"name\":\"f\",\"arguments\":\"{\\\"x\\\":1}\"},"
     "{\"id\":\"b\",\"name\":\"g\",\"arguments\":\"{}\"}]\nfinish tool_calls\n"},
    {"counts that can not be true are not told",
     DELTA("\"content\":\"a\"") FINISH("stop")
         DATA("{\"choices\":[],\"usage\":{\"prompt_tokens\":9223372036854775807,\"completion_tokens\":3}}")
             DATA("{\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":3}}") DONE,
     "text a\nfinish stop\n= a\nfinish stop\n"},
    {"a whole number counts however it is written, and what a later usage leaves out stays",
     DELTA("\"content\":\"a\"") DATA("{\"choices\":[],\"usage\":{\"prompt_tokens\":4000.0,\"completion_tokens\":1e0}}")
         FINISH("stop") DATA("{\"choices\":[],\"usage\":{\"completion_tokens\":3,\"prompt_tokens\":null}}") DONE,
     "text a\nusage 4000 1\nusage 4000 3\nfinish stop\n= a\nusage 4000 3\nfinish stop\n"},
    {"a count that is never said is not 0",
     DELTA("\"content\":\"a\"") DATA("{\"choices\":[],\"usage\":{\"completion_tokens\":1}}") FINISH("stop")
         DATA("{\"choices\":[],\"usage\":{\"completion_tokens\":3,\"prompt_tokens\":null}}") DONE,
     "text a\nfinish stop\n= a\nfinish stop\n"},
    {"nor is that of what was written", FINISH("stop") DATA("{\"choices\":[],\"usage\":{\"prompt_tokens\":4000}}") DONE,
     "finish stop\n= \nfinish stop\n"},
    {"two usages say it together",
     DELTA("\"content\":\"a\"") DATA("{\"choices\":[],\"usage\":{\"prompt_tokens\":4000}}") FINISH("stop")
         DATA("{\"choices\":[],\"usage\":{\"completion_tokens\":0}}") DONE,
     "text a\nusage 4000 0\nfinish stop\n= a\nusage 4000 0\nfinish stop\n"},
    {"a text is not a count, and not 0 either",
     FINISH("stop") DATA("{\"choices\":[],\"usage\":{\"prompt_tokens\":\"4000\",\"completion_tokens\":3}}") DONE,
     "finish stop\n= \nfinish stop\n"},
    {"nor is less than nothing",
     FINISH("stop") DATA("{\"choices\":[],\"usage\":{\"prompt_tokens\":-5,\"completion_tokens\":3}}") DONE,
     "finish stop\n= \nfinish stop\n"},
    {"nor a part of a token, nor more than can be",
     FINISH("stop") DATA("{\"choices\":[],\"usage\":{\"prompt_tokens\":0.5,\"completion_tokens\":3}}")
         DATA("{\"choices\":[],\"usage\":{\"prompt_tokens\":1e300,\"completion_tokens\":3}}") DONE,
     "finish stop\n= \nfinish stop\n"},
    {"empty arguments",
     CALL("\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}") FINISH("tool_calls") DONE,
     "start 0 a f\nend 0\nfinish tool_calls\n= \ncalls [{\"id\":\"a\",\"name\":\"f\",\"arguments\":\"{}\"}]\n"
     "finish tool_calls\n"},
    {"arguments that are no JSON are the model's own",
     CALL("\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{x\"}") FINISH("tool_calls") DONE,
     "start 0 a f\narguments 0 {x\nend 0\nfinish tool_calls\n= \ncalls "
     "[{\"id\":\"a\",\"name\":\"f\",\"arguments\":\"{x\"}]\n"
     "finish tool_calls\n"},
    {"the last call is cut off by the length",
     CALL("\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}") CALL(
         "\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"g\",\"arguments\":\"{\\\"y\\\":\"}") FINISH("length") DONE,
     "start 0 a f\narguments 0 {}\nend 0\nstart 1 b g\narguments 1 {\"y\":\nfinish length\n"
     "= \ncalls [{\"id\":\"a\",\"name\":\"f\",\"arguments\":\"{}\"}]\nfinish length\n"},
    {"the only call is cut off before its arguments",
     DELTA("\"content\":\"Let me\"") CALL("\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\"}") FINISH("length")
         DONE,
     "text Let me\nstart 0 a f\nfinish length\n= Let me\nfinish length\n"},
    {"a complete call survives the length",
     CALL("\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\" {\\\"a\\\":1} \"}") FINISH("length")
         DONE,
     "start 0 a f\narguments 0  {\"a\":1} \nend 0\nfinish length\n"
     "= \ncalls [{\"id\":\"a\",\"name\":\"f\",\"arguments\":\" {\\\"a\\\":1} \"}]\nfinish length\n"},
    {"no index, no id, everything in one delta",
     DELTA("\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}},"
           "{\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]") FINISH("stop") DONE,
     "start 0 call_1 f\narguments 0 {\"a\":1}\nend 0\nstart 1 call_2 f\narguments 1 {}\nend 1\nfinish tool_calls\n= \n"
     "calls [{\"id\":\"call_1\",\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"},{\"id\":\"call_2\",\"name\":\"f\","
     "\"arguments\":\"{}\"}]\nfinish tool_calls\n"},
    {"no index: a new id begins a call, nothing goes on with it",
     CALL("\"id\":\"x\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}") CALL("\"function\":{\"arguments\":\"}\"}")
         CALL("\"id\":\"y\",\"function\":{\"name\":\"g\",\"arguments\":\"{\"}")
             CALL("\"id\":\"y\",\"function\":{\"name\":\"g\",\"arguments\":\"}\"}") FINISH("tool_calls") DONE,
     "start 0 x f\narguments 0 {\narguments 0 }\nend 0\nstart 1 y g\narguments 1 {\narguments 1 }\nend 1\n"
     "finish tool_calls\n= \ncalls [{\"id\":\"x\",\"name\":\"f\",\"arguments\":\"{}\"},{\"id\":\"y\",\"name\":\"g\","
     "\"arguments\":\"{}\"}]\nfinish tool_calls\n"},
    {"id and name repeated with each piece",
     CALL("\"index\":0,\"id\":\"x\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}")
         CALL("\"index\":0,\"id\":\"x\",\"function\":{\"name\":\"f\",\"arguments\":\"}\"}") FINISH("tool_calls") DONE,
     "start 0 x f\narguments 0 {\narguments 0 }\nend 0\nfinish tool_calls\n"
     "= \ncalls [{\"id\":\"x\",\"name\":\"f\",\"arguments\":\"{}\"}]\nfinish tool_calls\n"},
    {"every call has the number 0",
     CALL("\"index\":0,\"id\":\"x\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}")
         CALL("\"index\":0,\"id\":\"y\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}") FINISH("tool_calls") DONE,
     "start 0 x f\narguments 0 {}\nend 0\nstart 1 y g\narguments 1 {}\nend 1\nfinish tool_calls\n"
     "= \ncalls "
     "[{\"id\":\"x\",\"name\":\"f\",\"arguments\":\"{}\"},{\"id\":\"y\",\"name\":\"g\",\"arguments\":\"{}\"}]\n"
     "finish tool_calls\n"},
    {"every call has the number 0, and none an id",
     CALL("\"index\":0,\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":\"}")
         CALL("\"index\":0,\"function\":{\"name\":\"f\",\"arguments\":\"1}\"}")
             CALL("\"index\":0,\"function\":{\"name\":\"f\",\"arguments\":\"\"}")
                 CALL("\"index\":0,\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}") FINISH("stop") DONE,
     "start 0 call_1 f\narguments 0 {\"a\":\narguments 0 1}\nend 0\nstart 1 call_2 f\narguments 1 {}\nend 1\n"
     "finish tool_calls\n= \ncalls [{\"id\":\"call_1\",\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"},"
     "{\"id\":\"call_2\",\"name\":\"f\",\"arguments\":\"{}\"}]\nfinish tool_calls\n"},
    {"the number 0 and another name",
     CALL("\"index\":0,\"function\":{\"name\":\"f\",\"arguments\":\"\"}")
         CALL("\"index\":0,\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}") FINISH("stop") DONE,
     "start 0 call_1 f\nstart 1 call_2 g\narguments 1 {}\nend 0\nend 1\nfinish tool_calls\n= \n"
     "calls [{\"id\":\"call_1\",\"name\":\"f\",\"arguments\":\"{}\"},"
     "{\"id\":\"call_2\",\"name\":\"g\",\"arguments\":\"{}\"}]\nfinish tool_calls\n"},
    {"no index, no id, no arguments, in one list",
     DELTA("\"tool_calls\":[{\"function\":{\"name\":\"f\"}},{\"function\":{\"name\":\"f\"}}]") FINISH("stop") DONE,
     "start 0 call_1 f\nstart 1 call_2 f\nend 0\nend 1\nfinish tool_calls\n= \n"
     "calls [{\"id\":\"call_1\",\"name\":\"f\",\"arguments\":\"{}\"},"
     "{\"id\":\"call_2\",\"name\":\"f\",\"arguments\":\"{}\"}]\nfinish tool_calls\n"},
    {"no index, one id for two calls, the second in pieces",
     CALL("\"id\":\"x\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}")
         CALL("\"id\":\"x\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}")
             CALL("\"id\":\"x\",\"function\":{\"arguments\":\"}\"}") FINISH("stop") DONE,
     "start 0 x f\narguments 0 {}\nend 0\nstart 1 call_1 f\narguments 1 {\narguments 1 }\nend 1\nfinish tool_calls\n= "
     "\n"
     "calls [{\"id\":\"x\",\"name\":\"f\",\"arguments\":\"{}\"},"
     "{\"id\":\"call_1\",\"name\":\"f\",\"arguments\":\"{}\"}]\nfinish tool_calls\n"},
    {"two calls with one id",
     CALL("\"index\":0,\"id\":\"call_1\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}") CALL(
         "\"index\":1,\"id\":\"call_1\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}") FINISH("tool_calls") DONE,
     "start 0 call_1 f\narguments 0 {}\nend 0\nstart 1 call_2 g\narguments 1 {}\nend 1\nfinish tool_calls\n"
     "= \ncalls [{\"id\":\"call_1\",\"name\":\"f\",\"arguments\":\"{}\"},{\"id\":\"call_2\",\"name\":\"g\","
     "\"arguments\":\"{}\"}]\nfinish tool_calls\n"},
    {"arguments before the name",
     CALL("\"index\":0,\"function\":{\"arguments\":\"{\"}")
         CALL("\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"}\"}") FINISH("tool_calls") DONE,
     "start 0 a f\narguments 0 {\narguments 0 }\nend 0\nfinish tool_calls\n"
     "= \ncalls [{\"id\":\"a\",\"name\":\"f\",\"arguments\":\"{}\"}]\nfinish tool_calls\n"},
    {"arguments that are an object",
     CALL("\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":{\"a\":[1]}}") FINISH("tool_calls") DONE,
     "start 0 a f\narguments 0 {\"a\":[1]}\nend 0\nfinish tool_calls\n"
     "= \ncalls [{\"id\":\"a\",\"name\":\"f\",\"arguments\":\"{\\\"a\\\":[1]}\"}]\nfinish tool_calls\n"},
    {"the older form of a call",
     DELTA("\"function_call\":{\"name\":\"f\",\"arguments\":\"\"}") DELTA("\"function_call\":{\"arguments\":\"{}\"}")
         FINISH("function_call") DONE,
     "start 0 call_1 f\narguments 0 {}\nend 0\nfinish tool_calls\n"
     "= \ncalls [{\"id\":\"call_1\",\"name\":\"f\",\"arguments\":\"{}\"}]\nfinish tool_calls\n"},
    {"a call without a name",
     CALL("\"index\":0,\"id\":\"a\",\"function\":{\"arguments\":\"{}\"}") FINISH("tool_calls") DONE,
     "= \n" PROTOCOL_FAILED "a tool call has no name\n"},
    {"tool_calls without any", DELTA("\"content\":\"x\"") FINISH("tool_calls") DONE,
     "text x\nfinish stop\n= x\nfinish stop\n"},
    {"no end mark after a finish", DELTA("\"content\":\"x\"") FINISH("stop"),
     "text x\nfinish stop\n= x\nfinish stop\n"},
    {"two end marks, and what follows them",
     DELTA("\"content\":\"x\"") FINISH("stop") DONE DONE DELTA("\"content\":\"y\""),
     "text x\nfinish stop\n= x\nfinish stop\n"},
    {"an end mark without a finish", DELTA("\"content\":\"x\"") DONE,
     "text x\n= x\n" PROTOCOL_FAILED "the stream ended without a finish reason\n"},
    {"no end", DELTA("\"content\":\"x\""),
     "text x\n= x\n" PROTOCOL_FAILED "the stream ended before the answer was complete\n"},
    {"nothing", "", "= \n" PROTOCOL_FAILED "the stream ended before the answer was complete\n"},
    {"the last event is not finished",
     DELTA("\"content\":\"x\"") "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}",
     "text x\n= x\n" PROTOCOL_FAILED "the stream ended before the answer was complete\n"},
    {"usage with every chunk is a total",
     DATA("{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}],\"usage\":{\"prompt_tokens\":9,\"completion_"
          "tokens\":1}}") DATA("{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"}}],\"usage\":{\"prompt_"
                               "tokens\":9,\"completion_tokens\":1}}")
         DATA("{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],"
              "\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}") DONE,
     "usage 9 1\ntext a\ntext b\nusage 9 2\nfinish stop\n= ab\nusage 9 2\nfinish stop\n"},
    {"usage of zeros is none", FINISH("stop") DATA("{\"choices\":[],\"usage\":{\"prompt_tokens\":0}}") DONE,
     "finish stop\n= \nfinish stop\n"},
    {"thinking",
     DELTA("\"reasoning_content\":\"hm\"") DELTA("\"reasoning\":\"ah\"") DELTA("\"content\":\"so\"") FINISH("stop")
         DONE,
     "thinking hm\nthinking ah\ntext so\nfinish stop\n= so\nfinish stop\n"},
    {"both at once", DELTA("\"content\":\"b\",\"reasoning_content\":\"a\",\"reasoning\":\"a\"") FINISH("stop") DONE,
     "thinking a\ntext b\nfinish stop\n= b\nfinish stop\n"},
    {"content in parts",
     DELTA("\"content\":[{\"type\":\"text\",\"text\":\"a\"},7,{\"type\":\"thinking\"}]") FINISH("stop") DONE,
     "text a\nfinish stop\n= a\nfinish stop\n"},
    {"a refusal",
     DELTA("\"content\":null,\"refusal\":\"I can not \"") DELTA("\"refusal\":\"do that\"") FINISH("stop") DONE,
     "text I can not \ntext do that\nfinish refusal\n= I can not do that\nfinish refusal\n"},
    {"a filter", DELTA("\"content\":\"x\"") FINISH("content_filter") DONE,
     "text x\nfinish content_filter\n= x\nfinish content_filter\n"},
    {"a reason nobody knows", DELTA("\"content\":\"x\"") FINISH("banana") DONE,
     "text x\nfinish other\n= x\nfinish other\n"},
    {"an error in the middle",
     DELTA("\"content\":\"x\"")
         DATA("{\"error\":{\"message\":\"The server had an error\",\"type\":\"server_error\",\"code\":null}}")
             DELTA("\"content\":\"y\""),
     "text x\n= x\n! overloaded retryable billed: openai:gpt-x: the provider broke off: The server had an error "
     "(server_error)\n"},
    {"errors that say nothing are none",
     DATA("{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}],\"error\":\"\"}")
         DATA("{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"y\"}}],\"error\":{}}")
             DATA("{\"choices\":[],\"error\":false}") DATA("{\"choices\":[],\"error\":null}")
                 DATA("{\"choices\":[],\"error\":[]}") FINISH("stop") DONE,
     "text x\ntext y\nfinish stop\n= xy\nfinish stop\n"},
    {"an error that is true", DATA("{\"error\":true,\"message\":\"boom\"}"),
     "= \n! overloaded retryable billed: openai:gpt-x: the provider broke off: boom\n"},
    {"an error event", "event: error\n" DATA("{\"error\":{\"message\":\"used up\",\"code\":\"insufficient_quota\"}}"),
     "= \n! rate_limited billed: openai:gpt-x: the provider broke off: used up (insufficient_quota)\n"},
    {"an error with a status for a code", DATA("{\"error\":{\"message\":\"no such model\",\"code\":404}}"),
     "= \n! bad_request billed: openai:gpt-x: the provider broke off: no such model\n"},
    {"an error event with a text", "event: error\n" DATA("{\"message\":\"boom\"}"),
     "= \n! overloaded retryable billed: openai:gpt-x: the provider broke off: boom\n"},
    {"an error for a finish", DELTA("\"content\":\"x\"") FINISH("error"),
     "text x\n= x\n! overloaded retryable billed: openai:gpt-x: the provider broke off: finish reason \"error\"\n"},
    {"unknown events, unknown fields, comments, a mark, several lines",
     "\xEF\xBB\xBF: hello\n\nevent: surprise\n" DATA(
         "{\"a\":[{}]}") ": ping\n\n"
                         "data: {\"choices\":[{\"index\":0,\ndata: "
                         "\"delta\":{\"content\":\"x\",\"new\":{\"deep\":[1.5]}}}]}\n\n" DATA(
                             "{\"object\":\"other\",\"choices\":null}")
                             DATA("{\"choices\":[],\"timings\":{\"prompt_n\":1}}")
                                 DATA("{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"not asked for\"}}]}")
                                     FINISH("stop") DONE,
     "text x\nfinish stop\n= x\nfinish stop\n"},
    {"escapes", DELTA("\"content\":\"a\\n\\t\\\"\\\\\\/\\u00e9\\u20ac\\ud83d\\ude00\"") FINISH("stop") DONE,
     "text a\n\t\"\\/\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\nfinish stop\n= "
     "a\n\t\"\\/\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\nfinish stop\n"},
    {"a character in two halves",
     DELTA("\"content\":\"a\\ud83d\"") DELTA("\"content\":\"\"") DELTA("\"content\":\"\\ude00b\"") FINISH("stop") DONE,
     "text a\ntext \xF0\x9F\x98\x80"
     "b\nfinish stop\n= a\xF0\x9F\x98\x80"
     "b\nfinish stop\n"},
    {"halves that stay alone",
     DELTA("\"content\":\"\\ud83d\"") DELTA("\"content\":\"x\\ude00\"") DELTA("\"content\":\"\\ud83d\"") FINISH("stop")
         DONE,
     "text \xEF\xBF\xBDx\xEF\xBF\xBD\ntext \xEF\xBF\xBD\nfinish stop\n"
     "= \xEF\xBF\xBDx\xEF\xBF\xBD\xEF\xBF\xBD\nfinish stop\n"},
    {"halves in arguments",
     CALL("\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":\\\"\\ud83d\"}")
         CALL("\"index\":0,\"function\":{\"arguments\":\"\\ude00\\\"}\"}") FINISH("tool_calls") DONE,
     "start 0 a f\narguments 0 {\"a\":\"\narguments 0 \xF0\x9F\x98\x80\"}\nend 0\nfinish tool_calls\n= \n"
     "calls [{\"id\":\"a\",\"name\":\"f\",\"arguments\":\"{\\\"a\\\":\\\"\xF0\x9F\x98\x80\\\"}\"}]\nfinish "
     "tool_calls\n"},
    {"no JSON", DELTA("\"content\":\"x\"") DATA("{oops") DELTA("\"content\":\"y\""),
     "text x\n= x\n" PROTOCOL_FAILED
     "the answer cannot be understood: its JSON: line 1, column 2: expected a key in double "
     "quotes, found 'o': {oops\n"},
    {"no object", DATA("[1]"),
     "= \n" PROTOCOL_FAILED "the answer cannot be understood: it is not a JSON object: [1]\n"},
    {"no UTF-8", DATA("{\"choices\":[{\"delta\":{\"content\":\"\xFF\"}}]}"),
     "= \n" PROTOCOL_FAILED "the answer cannot be understood: its JSON: line 1, column 34: a string holds bytes that "
     "are not UTF-8: {\"choices\":[{\"delta\":{\"content\":\"?\"}}]}\n"},
};

/* Proves 12.2/cuts: The same stream cut at every byte gives the same answer, with any line ends
 * Proves 12.2/calls: Interleaved, empty, repeated and cut-off tool calls come whole or not at all
 * Proves 12.2/usage: Usage in a chunk of its own, none at all, totals that are told again
 * Proves 12.2/sse */
START_TEST(a_stream_gives_the_same_however_it_is_cut)
{
    static const char *const ends[] = {"\n", "\r\n", "\r"};

    for (size_t e = 0; e < RV_COUNT(ends); e++) {
        char *body = with_line_ends(streams[_i].body, ends[e]);
        rv_str bytes = rv_str_of(body);
        for (size_t step = rv_kit_stride(7), cut = rv_kit_first(step); cut < bytes.len; cut += step)
            same_text(streams[_i].what, hear(&(struct hear){.target = &target, .first = cut}, bytes), streams[_i].want);
        same_text(streams[_i].what, hear(&(struct hear){.target = &target, .step = 1}, bytes), streams[_i].want);
        same_text(streams[_i].what, hear(&(struct hear){.target = &target, .no_short_way = true}, bytes),
                  streams[_i].want);
        free(body);
    }
}
END_TEST

/* Proves 12.2/text: NUL, surrogates split over deltas, a megabyte in one delta, a hundred thousand deltas */
START_TEST(a_nul_in_the_text_is_text)
{
    rv_str bytes = RV_STR_LIT(DELTA("\"content\":\"a\\u0000b\"") FINISH("stop") DONE);

    for (int slow = 0; slow < 2; slow++) {
        struct rv_llm_reply reply;
        rv_wire_reader *r = NULL;
        ck_assert_int_eq(rv_wire_reader_new(&target, RV_STR_LIT("text/event-stream"), NULL, NULL, &r, NULL), 0);
        r->no_short_way = slow;
        ck_assert_int_eq(rv_wire_read(r, bytes, NULL), 0);
        ck_assert_int_eq(rv_wire_end(r, NULL, RV_LLM_ERROR_CONNECTION, &reply, NULL), 0);
        ck_assert(rv_str_eq(rv_buf_str(&reply.text), RV_STR_LIT("a\0b")));
        rv_llm_reply_fini(&reply);
        rv_wire_reader_free(r);
    }
}
END_TEST

static const struct {
    const char *what, *body, *want;
} wholes[] = {
    {"text",
     "{\"object\":\"chat.completion\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":"
     "\"Hello\","
     "\"refusal\":null},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}",
     "usage 3 2\ntext Hello\nfinish stop\n= Hello\nusage 3 2\nfinish stop\n"},
    {"calls",
     "{\"choices\":[{\"message\":{\"content\":null,\"tool_calls\":[{\"id\":\"a\",\"type\":\"function\",\"function\":"
     "{\"name\":\"f\",\"arguments\":\"{}\"}},{\"id\":\"b\",\"type\":\"function\",\"function\":{\"name\":\"f\","
     "\"arguments\":"
     "\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}",
     "start 0 a f\narguments 0 {}\nend 0\nstart 1 b f\narguments 1 {}\nend 1\nfinish tool_calls\n= \n"
     "calls [{\"id\":\"a\",\"name\":\"f\",\"arguments\":\"{}\"},{\"id\":\"b\",\"name\":\"f\",\"arguments\":\"{}\"}]\n"
     "finish tool_calls\n"},
    {"calls with one id, and calls without",
     "{\"choices\":[{\"message\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}},"
     "{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}},{\"function\":{\"name\":\"f\"}},"
     "{\"function\":{\"name\":\"f\"}}]},\"finish_reason\":\"stop\"}]}",
     "start 0 a f\narguments 0 {}\nend 0\nstart 1 call_1 f\narguments 1 {\nstart 2 call_2 f\nstart 3 call_3 f\nend "
     "1\nend 2\n"
     "end 3\nfinish tool_calls\n= \ncalls [{\"id\":\"a\",\"name\":\"f\",\"arguments\":\"{}\"},"
     "{\"id\":\"call_1\",\"name\":\"f\",\"arguments\":\"{\"},{\"id\":\"call_2\",\"name\":\"f\",\"arguments\":\"{}\"},"
     "{\"id\":\"call_3\",\"name\":\"f\",\"arguments\":\"{}\"}]\nfinish tool_calls\n"},
    {"no finish reason", "{\"choices\":[{\"message\":{\"content\":\"x\"}}]}", "text x\n= x\nfinish -\n"},
    {"an error under a good status", "{\"error\":{\"message\":\"slow down\",\"code\":429}}",
     "= \n! rate_limited retryable billed: openai:gpt-x: the provider broke off: slow down\n"},
    {"an error that says nothing",
     "{\"choices\":[{\"message\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}],\"error\":\"\"}",
     "text x\nfinish stop\n= x\nfinish stop\n"},
    {"content of another type", "{\"choices\":[{\"message\":{\"content\":5},\"finish_reason\":\"stop\"}]}",
     "= \n" PROTOCOL_FAILED "the text of the answer is not a string but integer\n"},
    {"no choices", "{\"id\":\"x\"}", "= \n" PROTOCOL_FAILED "the answer has no choices\n"},
    {"cut off", "{\"choices\":[{\"message\":{\"cont",
     "= \n" PROTOCOL_FAILED "the answer cannot be understood: its JSON: line 1, column 30: expected '\"' to end "
     "the string, found the end of the text: "
     "{\"choices\":[{\"message\":{\"cont\n"},
    {"nothing", "",
     "= \n" PROTOCOL_FAILED
     "the answer cannot be understood: its JSON: line 1, column 1: expected a value, found the end of the text: \n"},
};

START_TEST(an_answer_may_come_at_once)
{
    rv_str bytes = rv_str_of(wholes[_i].body);
    struct hear h = {.target = &target, .content_type = "Application/JSON; charset=utf-8"};

    for (h.step = 0; h.step < 4; h.step++)
        same_text(wholes[_i].what, hear(&h, bytes), wholes[_i].want);
}
END_TEST

TCase *openai_stream_case(void)
{
    TCase *c = tcase_create("openai_stream");

    tcase_add_loop_test(c, a_stream_gives_the_same_however_it_is_cut, 0, RV_COUNT(streams));
    tcase_add_test(c, a_nul_in_the_text_is_text);
    tcase_add_loop_test(c, an_answer_may_come_at_once, 0, RV_COUNT(wholes));
    return c;
}
