/* Any bytes as an answer of Anthropic or of Ollama: it becomes a reply of valid UTF-8 with calls that are JSON, the
 * same however it is cut; as the body of a bad status, an error with a text; as a request of ours, a body that is JSON
 * or an error. The first byte chooses the wire and the frame. */
#include <stdlib.h>

#include "coreengine/model/wire/wire_internal.h"
#include "tests/kit/fuzz.h"

static void on_delta(void *self, const struct rv_llm_delta *d)
{
    rv_buf *log = self;
    rv_jw w = rv_jw_on(log);

    require(rv_utf8_valid(d->text, NULL) && rv_utf8_valid(d->id, NULL) && rv_utf8_valid(d->name, NULL));
    rv_llm_delta_write(d, &w);
    rv_jw_obj_end(&w);
}

static void check_json(rv_str text, enum json_type type, rv_buf *log)
{
    json_object *value = NULL;

    if (!text.len)
        return;
    require(rv_json_parse(text, NULL, &value, NULL) == 0 && json_object_is_type(value, type));
    json_object_put(value);
    rv_buf_add_str(log, text);
}

static void read_all(const struct rv_wire_target *t, rv_str body, const char *type, size_t step, rv_buf *log)
{
    struct rv_llm_reply reply;
    rv_wire_reader *r = NULL;

    require(rv_wire_reader_new(t, rv_str_of(type), on_delta, log, &r, NULL) == 0);
    for (size_t at = 0; at < body.len; at += step)
        require(rv_wire_read(r, (rv_str){body.ptr + at, step < body.len - at ? step : body.len - at}, NULL) == 0);
    require(rv_wire_end(r, NULL, RV_LLM_ERROR_CONNECTION, &reply, NULL) == 0);
    require(reply.failed == (reply.error.len > 0) && rv_utf8_valid(rv_buf_str(&reply.error), NULL));
    require(rv_utf8_valid(rv_buf_str(&reply.text), NULL));
    require(!reply.failed || (reply.tool_calls.len == 0 && reply.opaque.len == 0));
    require(reply.answer.usage.input_tokens >= 0 && reply.answer.usage.output_tokens >= 0);
    check_json(rv_buf_str(&reply.tool_calls), json_type_array, log);
    check_json(rv_buf_str(&reply.opaque), json_type_object, log);
    rv_buf_add_str(log, rv_buf_str(&reply.text));
    rv_buf_add_str(log, rv_buf_str(&reply.error));
    rv_buf_printf(log, " %d %d", reply.answer.finish, reply.answer.error_kind);
    rv_llm_reply_fini(&reply);
    rv_wire_reader_free(r);
}

static void read_fault(const struct rv_wire_target *t, rv_str body, int status)
{
    struct rv_llm_reply reply;

    require(rv_wire_read_fault(t, status, RV_STR_LIT("text/html"), body, &reply, NULL) == 0);
    require(reply.failed && reply.error.len > 0 && rv_utf8_valid(rv_buf_str(&reply.error), NULL));
    rv_llm_reply_fini(&reply);
}

static void write_request(const struct rv_wire_target *t, rv_str text)
{
    json_object *request = NULL, *written = NULL;
    rv_buf body = RV_BUF_INIT(1 << 24);

    if (rv_json_parse(text, NULL, &request, NULL) == 0 && json_object_is_type(request, json_type_object) &&
        rv_wire_write_request(t, request, &body, NULL) == 0) {
        const struct rv_json_opts opts = {.allow_duplicates = true, .max_depth = 512};
        require(rv_json_parse(rv_buf_str(&body), &opts, &written, NULL) == 0);
    }
    json_object_put(request);
    json_object_put(written);
    rv_buf_fini(&body);
}

RV_FUZZ_TARGET(wire_anthropic)
{
    static const char *const types[] = {"text/event-stream", "application/x-ndjson", "application/json"};
    rv_buf at_once = RV_BUF_INIT(SIZE_MAX / 2), other = RV_BUF_INIT(SIZE_MAX / 2);
    struct rv_wire_target t = {.provider = "p", .model = "m"};
    const char *type;
    rv_str body;

    if (size == 0)
        return 0;
    body = (rv_str){(const char *)data + 1, size - 1};
    type = types[data[0] / 2 % RV_COUNT(types)];
    t.wire = data[0] % 2 ? RV_WIRE_OLLAMA : RV_WIRE_ANTHROPIC;
    read_all(&t, body, type, SIZE_MAX / 2, &at_once);
    require(at_once.rc == 0);
    read_all(&t, body, type, 1, &other);
    require(rv_str_eq(rv_buf_str(&at_once), rv_buf_str(&other)));
    read_fault(&t, body, 300 + 10 * (data[0] % 30));
    write_request(&t, body);
    rv_buf_fini(&at_once);
    rv_buf_fini(&other);
    return 0;
}
