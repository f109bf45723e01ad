/* Names of tools that a provider does not take: said in another way, each its own, and heard as what they are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/model/wire/wire_internal.h"
#include "tests/kit/kit.h"
#include "tests/unit/wire/suites.h"

#define N_LISTS    200
#define MANY_LISTS 20000
#define MAX_TOOLS  12

static const struct rv_wire_target targets[] = {{.wire = RV_WIRE_OPENAI, .provider = "p", .model = "m"},
                                                {.wire = RV_WIRE_ANTHROPIC, .provider = "p", .model = "m"},
                                                {.wire = RV_WIRE_OLLAMA, .provider = "p", .model = "m"}};

/* {system, prompt, tools, turns: a call of each, options} */
static json_object *request_of(const char *const *names, size_t n)
{
    rv_buf text = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&text);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "prompt", "go");
    rv_jw_key(&w, "options");
    rv_jw_raw(&w, RV_STR_LIT("{}"));
    rv_jw_key(&w, "tools");
    rv_jw_arr(&w);
    for (size_t i = 0; i < n; i++) {
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "name", names[i]);
        rv_jw_obj_end(&w);
    }
    rv_jw_arr_end(&w);
    rv_jw_obj_end(&w);
    json_object *request = rv_kit_json(rv_buf_cstr(&text));
    rv_buf_fini(&text);
    return request;
}

/* The name of the i-th tool of a body. Borrowed. */
static const char *sent_name(json_object *body, size_t i)
{
    json_object *tool = json_object_array_get_idx(rv_json_get_arr(body, "tools"), i);
    const char *name = NULL;

    ck_assert(
        rv_json_get_text(rv_json_get_obj(tool, "function") ? rv_json_get_obj(tool, "function") : tool, "name", &name));
    return name;
}

static json_object *body_of(const struct rv_wire_target *t, json_object *request)
{
    rv_buf text = RV_BUF_INIT(1 << 20);

    ck_assert_int_eq(rv_wire_write_request(t, request, &text, NULL), 0);
    json_object *body = rv_kit_json(rv_buf_cstr(&text));
    rv_buf_fini(&text);
    return body;
}

static void note_start(void *self, const struct rv_llm_delta *d)
{
    if (d->kind == RV_LLM_DELTA_TOOL_START)
        rv_buf_add_str(self, d->name);
}

/* A whole answer that calls it is heard as a call of `real`. */
static void must_hear(const struct rv_wire_target *t, json_object *names, const char *sent, const char *real)
{
    static const char *const bodies[] = {
        "{\"choices\":[{\"index\":0,\"finish_reason\":\"tool_calls\",\"message\":{\"role\":\"assistant\",\"content\":"
        "null,\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":%s,\"arguments\":\"{}\"}}]}}]"
        "}",
        "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c\",\"name\":%s,"
        "\"input\":{}}],\"stop_reason\":\"tool_use\"}",
        "{\"message\":{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":%s,"
        "\"arguments\":{}}}]},\"done\":true,\"done_reason\":\"stop\"}"};
    rv_buf started = RV_BUF_INIT(1 << 16), quoted = RV_BUF_INIT(1 << 16), text = RV_BUF_INIT(1 << 16);
    rv_jw w = rv_jw_on(&quoted);
    struct rv_llm_reply reply;
    rv_wire_reader *r;

    rv_jw_text(&w, sent);
    const char *at = strstr(bodies[t->wire], "%s");
    rv_buf_add(&text, bodies[t->wire], (size_t)(at - bodies[t->wire]));
    rv_buf_add_buf(&text, &quoted);
    rv_buf_puts(&text, at + 2);
    ck_assert_int_eq(rv_wire_reader_new(t, RV_STR_LIT("application/json"), note_start, &started, &r, NULL), 0);
    rv_wire_reader_set_tool_names(r, names);
    ck_assert_int_eq(rv_wire_read(r, rv_buf_str(&text), NULL), 0);
    ck_assert_int_eq(rv_wire_end(r, NULL, RV_LLM_ERROR_CONNECTION, &reply, NULL), 0);
    ck_assert_msg(!reply.failed, "%s", rv_buf_cstr(&reply.error));
    ck_assert_str_eq(rv_buf_cstr(&started), real);
    json_object *calls = rv_kit_json(rv_buf_cstr(&reply.tool_calls));
    ck_assert(rv_str_is(wire_text(json_object_array_get_idx(calls, 0), "name"), real));
    json_object_put(calls);
    rv_llm_reply_fini(&reply);
    rv_wire_reader_free(r);
    rv_buf_fini(&started);
    rv_buf_fini(&quoted);
    rv_buf_fini(&text);
}

static bool is_taken(const struct rv_wire_target *t, const char *name)
{
    size_t max = t->wire == RV_WIRE_OPENAI ? 64 : 128;

    return t->wire == RV_WIRE_OLLAMA ||
           (strlen(name) <= max &&
            strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == strlen(name));
}

static void must_go_and_come(const char *const *names, size_t n)
{
    json_object *request = request_of(names, n);

    for (size_t k = 0; k < RV_COUNT(targets); k++) {
        const struct rv_wire_target *t = &targets[k];
        json_object *body = body_of(t, request), *heard = NULL;
        ck_assert_int_eq(rv_wire_build_tool_names(t, request, &heard, NULL), 0);
        for (size_t i = 0; i < n; i++) {
            const char *sent = sent_name(body, i);
            ck_assert_msg(is_taken(t, sent), "wire %d: \"%s\" is sent as \"%s\"", t->wire, names[i], sent);
            if (is_taken(t, names[i]))
                ck_assert_str_eq(sent, names[i]);
            for (size_t j = 0; j < i; j++)
                ck_assert_msg(strcmp(sent, sent_name(body, j)) != 0, "\"%s\" and \"%s\" are both \"%s\"", names[j],
                              names[i], sent);
            must_hear(t, heard, sent, names[i]);
        }
        json_object_put(heard);
        json_object_put(body);
    }
    json_object_put(request);
}

START_TEST(names_are_said_as_a_provider_takes_them)
{
    static const char *const names[] = {"s.put", "plain", "a.b", "a_b", "a:b", "final.result", "caf\xC3\xA9"};
    static const char *const sent[] = {"s_put", "plain", NULL, "a_b", NULL, NULL, "caf__"};
    json_object *request = request_of(names, RV_COUNT(names)), *body = body_of(&targets[0], request);

    for (size_t i = 0; i < RV_COUNT(names); i++)
        if (sent[i])
            ck_assert_str_eq(sent_name(body, i), sent[i]);
        else /* another one would be the same: a hash tells them apart */
            ck_assert_uint_eq(strlen(sent_name(body, i)), strlen(names[i]) + 9);
    json_object_put(body);
    json_object_put(request);
    must_go_and_come(names, RV_COUNT(names));
}
END_TEST

/* Without tools a conversation lists those that were called before: each name once, as its calls have it. */
START_TEST(tools_of_before_are_listed_once)
{
    static const char *const names[] = {"a.b", "a_b", "s.put"};
    rv_buf text = RV_BUF_INIT(1 << 20);

    rv_buf_puts(&text, "{'prompt':'go','options':{},'turns':[");
    for (size_t i = 0; i < RV_COUNT(names); i++)
        rv_buf_printf(&text,
                      "%s{'role':'assistant','content':'','tool_calls':[{'id':'c%zu','name':'%s','arguments':'{}'}]},"
                      "{'role':'tool','tool_call_id':'c%zu','name':'%s','content':'x'}",
                      i ? "," : "", i, names[i], i, names[i]);
    rv_buf_puts(&text, "]}");
    json_object *request = rv_kit_json(rv_buf_cstr(&text)), *body = body_of(&targets[1], request);
    json_object *tools = rv_json_get_arr(body, "tools");
    ck_assert_uint_eq(tools ? json_object_array_length(tools) : 0, 2);
    ck_assert_str_eq(sent_name(body, 0), "a_b");
    ck_assert_str_eq(sent_name(body, 1), "s_put");
    json_object_put(body);
    json_object_put(request);
    rv_buf_fini(&text);
}
END_TEST

static unsigned pick(uint64_t *state, unsigned n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33) % n;
}

/* A short alphabet makes many that would be the same; free() it. */
static char *any_name(uint64_t *state)
{
    static const char *const pieces[] = {"a", "_", ".", ":", "\xC3\xA9", "-", " ", "/"};
    unsigned length = 1 + (pick(state, 16) == 0 ? 66 : pick(state, 3));
    rv_buf name = RV_BUF_INIT(1 << 10);

    for (unsigned i = 0; i < length; i++)
        rv_buf_puts(&name, pieces[pick(state, RV_COUNT(pieces))]);
    char *text = rv_str_dup(rv_buf_str(&name));
    rv_buf_fini(&name);
    return text;
}

START_TEST(names_of_any_tools_go_and_come)
{
    uint64_t state = 1 + (uint64_t)_i;
    char *names[MAX_TOOLS];

    for (int run = 0; run < rv_kit_sample(N_LISTS, MANY_LISTS); run++) {
        size_t n = 0;
        for (size_t i = 0; i < MAX_TOOLS; i++) {
            bool is_new = true;
            names[n] = any_name(&state);
            for (size_t k = 0; k < n; k++)
                is_new = is_new && strcmp(names[k], names[n]) != 0;
            if (is_new)
                n++;
            else
                free(names[n]);
        }
        must_go_and_come((const char *const *)names, n);
        for (size_t i = 0; i < n; i++)
            free(names[i]);
    }
}
END_TEST

TCase *tool_names_case(void)
{
    TCase *tc = tcase_create("tool_names");

    tcase_add_test(tc, names_are_said_as_a_provider_takes_them);
    tcase_add_test(tc, tools_of_before_are_listed_once);
    tcase_add_loop_test(tc, names_of_any_tools_go_and_come, 0, 2);
    return tc;
}
