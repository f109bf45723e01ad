/* Any history that keeps the rules of coreengine/model/llm/llm.h becomes one that keeps those of the provider; and what
 * a provider wants back with a turn it gets, byte for byte. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/model/wire/wire.h"
#include "tests/kit/kit.h"
#include "tests/unit/wire/suites.h"

#define N_HISTORIES (uint64_t) rv_kit_sample(2000, 20000)

/* --- histories --- */

struct maker {
    uint64_t state;
    rv_buf out;
    rv_jw w;
    int n_ids;
};

static unsigned pick(struct maker *m, unsigned n)
{
    m->state = m->state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(m->state >> 33) % n;
}

static const char *some_text(struct maker *m)
{
    static const char *const texts[] = {"Hello.", "", " \n", "\xC3\xA9\xF0\x9F\x98\x80", "{\"a\":1}", "x"};

    return texts[pick(m, RV_COUNT(texts))];
}

static void make_message(struct maker *m, const char *role)
{
    rv_jw_obj(&m->w);
    rv_jw_kv_text(&m->w, "role", role);
    rv_jw_kv_text(&m->w, "content", some_text(m));
    rv_jw_obj_end(&m->w);
}

static void make_id(struct maker *m, const char *key, int id)
{
    rv_buf text = RV_BUF_INIT(100);

    rv_buf_printf(&text, "call_%d%s", id, id % 3 == 0 ? ".\xC3\xA9" : "" /* not every id is legal there */);
    rv_jw_kv_str(&m->w, key, rv_buf_str(&text));
    rv_buf_fini(&text);
}

static void make_calls(struct maker *m)
{
    static const char *const arguments[] = {"{}", "", "{\"x\":[1.50,{\"y\":null}]}", "{\"x\":", "[1]", "7", "{}{}"};
    int first = m->n_ids, n = 1 + (int)pick(m, 5);

    if (pick(m, 4) == 0)
        first = 0; /* some providers number the calls of each reply anew */
    m->n_ids = first + n;
    rv_jw_obj(&m->w);
    rv_jw_kv_text(&m->w, "role", "assistant");
    if (pick(m, 2))
        rv_jw_kv_text(&m->w, "content", some_text(m));
    rv_jw_key(&m->w, "tool_calls");
    rv_jw_arr(&m->w);
    for (int i = 0; i < n; i++) {
        rv_jw_obj(&m->w);
        make_id(m, "id", first + i);
        rv_jw_kv_text(&m->w, "name", "f");
        rv_jw_kv_text(&m->w, "arguments", arguments[pick(m, RV_COUNT(arguments))]);
        rv_jw_obj_end(&m->w);
    }
    rv_jw_arr_end(&m->w);
    if (pick(m, 3) == 0) {
        rv_jw_key(&m->w, "opaque");
        rv_jw_raw(&m->w,
                  RV_STR_LIT("{\"provider\":\"p\",\"blocks\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":"
                             "\"s\"},{\"type\":\"redacted_thinking\",\"data\":\"d\"}]}"));
    }
    rv_jw_obj_end(&m->w);
    for (int i = 0; i < n; i++) {
        rv_jw_obj(&m->w);
        rv_jw_kv_text(&m->w, "role", "tool");
        make_id(m, "tool_call_id", first + i);
        rv_jw_kv_text(&m->w, "name", "f");
        rv_jw_kv_text(&m->w, "content", some_text(m));
        if (pick(m, 2))
            rv_jw_kv_bool(&m->w, "is_error", pick(m, 2));
        rv_jw_obj_end(&m->w);
    }
}

static void make_messages(struct maker *m, const char *key)
{
    unsigned n = pick(m, 8);

    rv_jw_key(&m->w, key);
    rv_jw_arr(&m->w);
    for (unsigned i = 0; i < n; i++) {
        switch (pick(m, 5)) {
        case 0:
        case 1:
            make_message(m, "user");
            break;
        case 2:
            make_message(m, "assistant");
            break;
        case 3:
            make_message(m, "system");
            break;
        default:
            make_calls(m);
        }
    }
    rv_jw_arr_end(&m->w);
}

static json_object *make_request(uint64_t seed)
{
    struct maker m = {.state = seed * 2 + 1, .out = RV_BUF_INIT(1 << 20)};
    json_object *request;

    m.w = rv_jw_on(&m.out);
    rv_jw_obj(&m.w);
    if (pick(&m, 2))
        rv_jw_kv_text(&m.w, "system", some_text(&m));
    make_messages(&m, "examples");
    make_messages(&m, "history");
    rv_jw_kv_text(&m.w, "prompt", some_text(&m));
    make_messages(&m, "turns");
    rv_jw_key(&m.w, "options");
    rv_jw_raw(&m.w, RV_STR_LIT("{\"num_predict\":5,\"num_ctx\":6}"));
    rv_jw_obj_end(&m.w);
    ck_assert_int_eq(m.out.rc, 0);
    request = rv_kit_json(rv_buf_cstr(&m.out));
    rv_buf_fini(&m.out);
    return request;
}

static json_object *body_of(enum rv_wire_kind wire, json_object *request)
{
    const struct rv_wire_target t = {.wire = wire, .provider = "p", .model = "m"};
    rv_buf body = RV_BUF_INIT(1 << 20);
    rv_err *err = NULL;
    json_object *json;

    ck_assert_msg(rv_wire_write_request(&t, request, &body, &err) == 0, "%s", rv_err_text(err));
    json = rv_kit_json(rv_buf_cstr(&body));
    rv_buf_fini(&body);
    return json;
}

/* --- the rules; each returns what is wrong, or NULL --- */

static const char *text_at(json_object *obj, const char *key)
{
    const char *text = NULL;

    return rv_json_get_text(obj, key, &text) ? text : "";
}

static bool is_blank(const char *text)
{
    return text[strspn(text, " \t\r\n")] == '\0';
}

static bool is_legal_id(const char *id)
{
    return *id && id[strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")] == '\0';
}

/* The ids of calls that wait for their results. */
struct open_calls {
    const char *ids[RV_LLM_MAX_TOOL_CALLS];
    size_t n;
    json_object *all; /* every id of the conversation */
};

static bool take(struct open_calls *open, const char *id)
{
    for (size_t i = 0; i < open->n; i++) {
        if (strcmp(open->ids[i], id) == 0) {
            open->ids[i] = open->ids[--open->n];
            return true;
        }
    }
    return false;
}

static const char *check_user_block(json_object *block, bool *saw_text, struct open_calls *open)
{
    const char *type = text_at(block, "type");
    bool is_error = false;

    if (strcmp(type, "tool_result") == 0) {
        if (*saw_text)
            return "a tool result after a text";
        if (rv_json_get_bool(block, "is_error", &is_error) && is_error && is_blank(text_at(block, "content")))
            return "an error without words";
        return take(open, text_at(block, "tool_use_id")) ? NULL : "a result without a call";
    }
    *saw_text = true;
    if (strcmp(type, "text") != 0)
        return "a block that users have not";
    return is_blank(text_at(block, "text")) ? "a blank text" : NULL;
}

static const char *check_assistant_block(json_object *block, bool *saw_other, struct open_calls *open)
{
    const char *type = text_at(block, "type"), *id = text_at(block, "id");
    bool is_thinking = strcmp(type, "thinking") == 0 || strcmp(type, "redacted_thinking") == 0;

    if (is_thinking)
        return *saw_other ? "thinking after something else" : NULL;
    *saw_other = true;
    if (strcmp(type, "text") == 0)
        return open->n ? "a text after a call" : is_blank(text_at(block, "text")) ? "a blank text" : NULL;
    if (strcmp(type, "tool_use") != 0)
        return "a block that assistants have not";
    if (!rv_json_get_obj(block, "input"))
        return "input that is no object";
    if (!is_legal_id(id))
        return "an id that is refused";
    if (json_object_object_get_ex(open->all, id, NULL))
        return "an id that was there before";
    ck_assert_int_eq(rv_json_set_null(open->all, id, NULL), 0);
    open->ids[open->n++] = id;
    return NULL;
}

static const char *check_anthropic_turn(json_object *message, bool is_user, struct open_calls *open)
{
    json_object *content = rv_json_get_arr(message, "content");
    size_t n = content ? json_object_array_length(content) : 0, n_open = open->n;
    bool saw = false;
    const char *wrong = NULL;

    if (n == 0)
        return "a message without content";
    if (n_open && !is_user)
        return "calls without results";
    for (size_t i = 0; !wrong && i < n; i++) {
        json_object *block = json_object_array_get_idx(content, i);
        wrong = is_user ? check_user_block(block, &saw, open) : check_assistant_block(block, &saw, open);
    }
    if (!wrong && is_user && open->n)
        wrong = "a call whose result is not in the next message";
    return wrong ? wrong : is_user || saw ? NULL : "a message of thoughts alone";
}

static const char *check_anthropic(json_object *body)
{
    json_object *messages = rv_json_get_arr(body, "messages");
    size_t n = json_object_array_length(messages);
    struct open_calls open = {.all = json_object_new_object()};
    const char *before = "assistant", *wrong = n ? NULL : "no message";

    for (size_t i = 0; !wrong && i < n; i++) {
        json_object *message = json_object_array_get_idx(messages, i);
        const char *role = text_at(message, "role");
        bool is_user = strcmp(role, "user") == 0;
        if (!is_user && strcmp(role, "assistant") != 0)
            wrong = "a role of its own";
        else if (strcmp(role, before) == 0)
            wrong = i ? "two turns of the same" : "the first is not of the user";
        else
            wrong = check_anthropic_turn(message, is_user, &open);
        before = role;
    }
    json_object_put(open.all);
    return wrong ? wrong : open.n ? "calls without results at the end" : NULL;
}

/* Every call of a turn is answered before any other message. */
static const char *check_openai(json_object *body)
{
    json_object *messages = rv_json_get_arr(body, "messages");
    size_t n = json_object_array_length(messages);
    struct open_calls open = {.n = 0};

    for (size_t i = 0; i < n; i++) {
        json_object *message = json_object_array_get_idx(messages, i), *content = NULL;
        json_object *calls = rv_json_get_arr(message, "tool_calls");
        const char *role = text_at(message, "role");

        if (!json_object_object_get_ex(message, "content", &content))
            return "no content";
        if (!content && !calls)
            return "content that is null";
        if (strcmp(role, "tool") == 0) {
            if (!take(&open, text_at(message, "tool_call_id")))
                return "a result without a call";
            continue;
        }
        if (open.n)
            return "calls without results";
        if (strcmp(role, "user") != 0 && strcmp(role, "assistant") != 0 && strcmp(role, "system") != 0)
            return "a role of its own";
        for (size_t k = 0; calls && k < json_object_array_length(calls); k++)
            open.ids[open.n++] = text_at(json_object_array_get_idx(calls, k), "id");
        if (calls && json_object_array_length(calls) == 0)
            return "an empty list of calls";
    }
    return open.n ? "calls without results at the end" : NULL;
}

/* Proves 12/well-formed: Each call of a turn has its result before anything else is said, for every provider, also
 * after pauses and repairs; a kept conversation that is torn begins anew */
START_TEST(any_history_becomes_one_that_the_provider_takes)
{
    for (uint64_t seed = 0; seed < N_HISTORIES; seed++) {
        json_object *request = make_request(seed), *anthropic = body_of(RV_WIRE_ANTHROPIC, request);
        json_object *openai = body_of(RV_WIRE_OPENAI, request);
        const char *wrong = check_anthropic(anthropic);
        char *shown = rv_kit_text(anthropic);

        ck_assert_msg(!wrong, "history %d: %s: %s", (int)seed, wrong, shown);
        free(shown);
        wrong = check_openai(openai);
        shown = rv_kit_text(openai);
        ck_assert_msg(!wrong, "history %d: %s: %s", (int)seed, wrong, shown);
        free(shown);
        json_object_put(anthropic);
        json_object_put(openai);
        json_object_put(request);
    }
}
END_TEST

START_TEST(the_checks_of_this_file_find_what_is_wrong)
{
    static const struct {
        const char *body, *wrong;
    } cases[] = {
        {"{'messages':[]}", "no message"},
        {"{'messages':[{'role':'assistant','content':[{'type':'text','text':'x'}]}]}", "the first is not of the user"},
        {"{'messages':[{'role':'user','content':[{'type':'text','text':' '}]}]}", "a blank text"},
        {"{'messages':[{'role':'user','content':[]}]}", "a message without content"},
        {"{'messages':[{'role':'user','content':[{'type':'text','text':'x'}]},{'role':'assistant','content':[{'type':"
         "'tool_use','id':'a','input':{}}]}]}",
         "calls without results at the end"},
        {"{'messages':[{'role':'user','content':[{'type':'text','text':'x'}]},{'role':'assistant','content':[{'type':"
         "'tool_use','id':'a','input':{}}]},{'role':'user','content':[{'type':'text','text':'x'},{'type':'tool_result',"
         "'tool_use_id':'a'}]}]}",
         "a tool result after a text"},
        {"{'messages':[{'role':'user','content':[{'type':'text','text':'x'}]},{'role':'assistant','content':[{'type':"
         "'tool_use','id':'a','input':[]}]}]}",
         "input that is no object"},
    };

    for (size_t i = 0; i < RV_COUNT(cases); i++) {
        json_object *body = rv_kit_json(cases[i].body);
        ck_assert_str_eq(check_anthropic(body), cases[i].wrong);
        json_object_put(body);
    }
}
END_TEST

/* --- what is handed back --- */

static const char BLOCKS[] =
    "{\"type\":\"thinking\",\"thinking\":\"Let me\\nsee: \xC3\xA9\",\"signature\":\"EqQB/+=\"},"
    "{\"type\":\"redacted_thinking\",\"data\":\"zz=\",\"n\":1.50}";
static const char ANSWER[] =
    "data: "
    "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\"}}\n\n"
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"Let "
    "me\\n\"}}"
    "\n\n"
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"see: "
    "\\u00e9\"}}\n\n"
    "data: "
    "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"EqQB/+=\"}}"
    "\n\n"
    "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
    "data: "
    "{\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"redacted_thinking\",\"data\":\"zz=\","
    "\"n\":1.50}}\n\n"
    "data: {\"type\":\"content_block_stop\",\"index\":1}\n\n"
    "data: "
    "{\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"tool_use\",\"id\":\"toolu_1\","
    "\"name\":"
    "\"f\",\"input\":{}}}\n\n"
    "data: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":"
    "\"{\\\"x\\\":1}\"}}\n\n"
    "data: {\"type\":\"content_block_stop\",\"index\":2}\n\n"
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\n"
    "data: {\"type\":\"message_stop\"}\n\n";

/* Proves 12/opaque */
START_TEST(thinking_goes_back_byte_for_byte)
{
    const struct rv_wire_target t = {.wire = RV_WIRE_ANTHROPIC, .provider = "anthropic", .model = "m"};
    struct rv_llm_reply reply;
    rv_wire_reader *r = NULL;
    rv_buf request = RV_BUF_INIT(1 << 16), body = RV_BUF_INIT(1 << 16), want = RV_BUF_INIT(1 << 16);
    rv_jw w = rv_jw_on(&request);
    json_object *json;

    ck_assert_int_eq(rv_wire_reader_new(&t, RV_STR_LIT("text/event-stream"), NULL, NULL, &r, NULL), 0);
    ck_assert_int_eq(rv_wire_read(r, rv_str_of(ANSWER), NULL), 0);
    ck_assert_int_eq(rv_wire_end(r, NULL, RV_LLM_ERROR_PROTOCOL, &reply, NULL), 0);
    ck_assert(!reply.failed);
    rv_jw_raw(&w, RV_STR_LIT("{\"prompt\":\"x\",\"turns\":[{\"role\":\"assistant\",\"tool_calls\":"));
    rv_buf_add_str(&request, rv_buf_str(&reply.tool_calls));
    rv_buf_puts(&request, ",\"opaque\":");
    rv_buf_add_str(&request, rv_buf_str(&reply.opaque));
    rv_buf_puts(&request, "},{\"role\":\"tool\",\"tool_call_id\":\"toolu_1\",\"name\":\"f\",\"content\":\"y\"}]}");
    json = rv_kit_json(rv_buf_cstr(&request));
    ck_assert_int_eq(rv_wire_write_request(&t, json, &body, NULL), 0);
    rv_buf_printf(&want,
                  "{\"role\":\"assistant\",\"content\":[%s,{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"f\","
                  "\"input\":{\"x\":1}}]}",
                  BLOCKS);
    ck_assert_msg(strstr(rv_buf_cstr(&body), rv_buf_cstr(&want)) != NULL, "%s", rv_buf_cstr(&body));
    json_object_put(json);
    rv_buf_fini(&want);
    rv_buf_fini(&body);
    rv_buf_fini(&request);
    rv_llm_reply_fini(&reply);
    rv_wire_reader_free(r);
}
END_TEST

TCase *order_case(void)
{
    TCase *tc = tcase_create("order");

    tcase_add_test(tc, any_history_becomes_one_that_the_provider_takes);
    tcase_add_test(tc, the_checks_of_this_file_find_what_is_wrong);
    tcase_add_test(tc, thinking_goes_back_byte_for_byte);
    return tc;
}
