/* The check of a plugin's reply: whatever bytes come, the answer is "one JSON object" or an error, and what is accepted
 * is accepted by the strict reader again. The same bytes as the reply of a provider and as a piece of it: what becomes
 * of them is a reply as the rest of the engine expects it, or an error. */
#include <stdlib.h>

#include "coreengine/model/llm/llm.h"
#include "coreengine/tools/plugin/plugin_internal.h"
#include "tests/kit/fuzz.h"

static int judge(enum rv_name_kind kind, rv_str text, rv_err **err)
{
    const struct rv_plugin_said said = {.n_replies = 1};
    const rv_buf out = {.ptr = (char *)text.ptr, .len = text.len};

    return plugin_judge(kind, &said, &out, 0, err);
}

static void look_at_call(json_object *list, size_t i)
{
    static const char *const keys[] = {"id", "name", "arguments"};
    json_object *call = json_object_array_get_idx(list, i);

    if (!json_object_is_type(call, json_type_object) || json_object_object_length(call) != RV_COUNT(keys))
        abort();
    for (size_t k = 0; k < RV_COUNT(keys); k++) {
        rv_str text = rv_json_str(json_object_object_get(call, keys[k]));
        if (!text.ptr || (k < 2 && text.len == 0))
            abort();
    }
    for (size_t j = 0; j < i; j++) /* ids are unique: results are matched by them */
        if (rv_json_equal(json_object_object_get(json_object_array_get_idx(list, j), "id"),
                          json_object_object_get(call, "id")))
            abort();
}

static bool as_provider(rv_str text)
{
    struct rv_llm_reply reply;
    json_object *calls = NULL;

    if (rv_plugin_read_llm_reply(text, &reply, NULL) < 0)
        return false;
    if (reply.failed || reply.answer.finish < 0 || reply.answer.finish >= RV_N_FINISH ||
        !rv_utf8_valid(rv_buf_str(&reply.text), NULL) || reply.answer.usage.input_tokens < 0)
        abort();
    if (reply.tool_calls.len > 0) {
        if (rv_json_parse(rv_buf_str(&reply.tool_calls), NULL, &calls, NULL) < 0 ||
            !json_object_is_type(calls, json_type_array) || json_object_array_length(calls) > RV_LLM_MAX_TOOL_CALLS)
            abort();
        for (size_t i = 0; i < json_object_array_length(calls); i++)
            look_at_call(calls, i);
    }
    json_object_put(calls);
    rv_llm_reply_fini(&reply);
    return true;
}

static int hear(void *self, rv_str json)
{
    rv_str *heard = self;

    *heard = json;
    return 0;
}

/* Whether it was a piece. */
static bool as_piece(rv_str text)
{
    rv_str heard = {NULL, 0};
    const struct rv_plugin_call call = {.on_emit = hear, .emit_self = &heard};
    struct rv_plugin_pieces pieces = {.call = &call};
    rv_err *err = NULL;
    bool enough = plugin_piece(&pieces, text);
    int rc = plugin_pieces_check(&pieces, RV_PIECE_GOOD, &err);

    plugin_pieces_fini(&pieces);
    if (enough != (rc < 0) || (rc < 0) != (err != NULL) || (rc < 0 && heard.ptr))
        abort();
    rv_err_free(err);
    return rc == 0;
}

RV_FUZZ_TARGET(plugin_reply)
{
    rv_str text = {(const char *)data, size};
    rv_err *err = NULL;
    json_object *value = NULL;
    int rc = judge(RV_NAME_TOOL, text, &err), as_probe;

    if ((rc == 0) != (err == NULL))
        abort();
    if (rc == 0 && (rv_json_parse(text, NULL, &value, NULL) < 0 || !json_object_is_type(value, json_type_object)))
        abort();
    if (rc < 0 && rc != RV_E_PLUGIN && rc != RV_E_NOMEM)
        abort();
    as_probe = judge(RV_NAME_PROBE, text, NULL); /* says less, never more */
    if (as_probe == 0 && (rc != 0 || json_object_object_length(value) > 2))
        abort();
    if (as_provider(text) && rc < 0)
        abort();
    if (as_piece(text) && (rc < 0 || json_object_object_length(value) != 1))
        abort();
    json_object_put(value);
    rv_err_free(err);
    return 0;
}
