/* Any bytes as an answer in OpenAI's protocol: it becomes a reply of valid UTF-8 with calls that are JSON, the same
 * however it is cut and whether or not chunks take the short way; and as the body of a bad status: an error with a
 * text. The first byte chooses the frame. */
#include <stdlib.h>

#include "coreengine/model/wire/wire_internal.h"
#include "tests/kit/fuzz.h"

static const struct rv_wire_target target = {.wire = RV_WIRE_OPENAI, .provider = "openai", .model = "m"};

static void on_delta(void *self, const struct rv_llm_delta *d)
{
    rv_buf *log = self;
    rv_jw w = rv_jw_on(log);

    require(rv_utf8_valid(d->text, NULL) && rv_utf8_valid(d->id, NULL) && rv_utf8_valid(d->name, NULL));
    rv_llm_delta_write(d, &w);
    rv_jw_obj_end(&w);
}

static void check_calls(rv_str text, rv_buf *log)
{
    json_object *calls = NULL;

    if (!text.len)
        return;
    require(rv_json_parse(text, NULL, &calls, NULL) == 0);
    require(json_object_is_type(calls, json_type_array) && json_object_array_length(calls) > 0);
    for (size_t i = 0; i < json_object_array_length(calls); i++) {
        json_object *call = json_object_array_get_idx(calls, i);
        const char *id = NULL, *name = NULL, *arguments = NULL;
        require(rv_json_get_text(call, "id", &id) && id[0]);
        require(rv_json_get_text(call, "name", &name));
        require(rv_json_get_text(call, "arguments", &arguments));
    }
    json_object_put(calls);
    rv_buf_add_str(log, text);
}

static void read_all(rv_str body, const char *type, size_t step, bool no_short_way, rv_buf *log)
{
    struct rv_llm_reply reply;
    rv_wire_reader *r = NULL;

    require(rv_wire_reader_new(&target, rv_str_of(type), on_delta, log, &r, NULL) == 0);
    r->no_short_way = no_short_way;
    for (size_t at = 0; at < body.len; at += step)
        require(rv_wire_read(r, (rv_str){body.ptr + at, step < body.len - at ? step : body.len - at}, NULL) == 0);
    require(rv_wire_end(r, NULL, RV_LLM_ERROR_CONNECTION, &reply, NULL) == 0);
    require(reply.failed == (reply.error.len > 0) && rv_utf8_valid(rv_buf_str(&reply.error), NULL));
    require(rv_utf8_valid(rv_buf_str(&reply.text), NULL));
    require(!reply.failed || reply.tool_calls.len == 0);
    check_calls(rv_buf_str(&reply.tool_calls), log);
    rv_buf_add_str(log, rv_buf_str(&reply.text));
    rv_buf_add_str(log, rv_buf_str(&reply.error));
    rv_buf_printf(log, " %d %d", reply.answer.finish, reply.answer.error_kind);
    rv_llm_reply_fini(&reply);
    rv_wire_reader_free(r);
}

static void read_fault(rv_str body, int status)
{
    struct rv_llm_reply reply;

    require(rv_wire_read_fault(&target, status, RV_STR_LIT("text/html"), body, &reply, NULL) == 0);
    require(reply.failed && reply.error.len > 0 && rv_utf8_valid(rv_buf_str(&reply.error), NULL));
    rv_llm_reply_fini(&reply);
}

RV_FUZZ_TARGET(wire_openai)
{
    static const char *const types[] = {"text/event-stream", "application/x-ndjson", "application/json", "text/html"};
    rv_buf at_once = RV_BUF_INIT(SIZE_MAX / 2), other = RV_BUF_INIT(SIZE_MAX / 2);
    const char *type;
    rv_str body;

    if (size == 0)
        return 0;
    body = (rv_str){(const char *)data + 1, size - 1};
    type = types[data[0] % RV_COUNT(types)];
    read_all(body, type, SIZE_MAX / 2, false, &at_once);
    require(at_once.rc == 0);
    read_all(body, type, 1, false, &other);
    require(rv_str_eq(rv_buf_str(&at_once), rv_buf_str(&other)));
    rv_buf_clear(&other);
    read_all(body, type, (size_t)data[0] + 1, true, &other);
    require(rv_str_eq(rv_buf_str(&at_once), rv_buf_str(&other)));
    read_fault(body, 300 + 10 * (data[0] % 30));
    rv_buf_fini(&at_once);
    rv_buf_fini(&other);
    return 0;
}
