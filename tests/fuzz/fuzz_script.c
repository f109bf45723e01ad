/* Any bytes as a script: it loads or is refused with findings that have places; what loads answers calls. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/tools/script/script.h"
#include "tests/kit/fuzz.h"

/* What the core is promised about replies of models. */
static void see_reply(const struct rv_script_reply *reply)
{
    json_object *calls = NULL;
    size_t text = 0;

    require(reply->failed == (reply->answer.error_kind != RV_UNSET));
    require(!reply->failed || reply->answer.tool_calls.len == 0);
    for (size_t i = 0; i < reply->n_deltas; i++) {
        require(reply->deltas[i].delay_ms >= 0);
        text += reply->deltas[i].is_thinking ? 0 : reply->deltas[i].text.len;
    }
    require(reply->n_deltas == 0 || text == reply->body.len);
    if (reply->answer.tool_calls.len == 0)
        return;
    require(rv_json_parse(reply->answer.tool_calls, NULL, &calls, NULL) == 0);
    require(json_object_is_type(calls, json_type_array) && json_object_array_length(calls) > 0);
    for (size_t i = 0; i < json_object_array_length(calls); i++) {
        const char *text_of = NULL;
        json_object *call = json_object_array_get_idx(calls, i);
        require(rv_json_get_text(call, "id", &text_of) && text_of[0]);
        require(rv_json_get_text(call, "name", &text_of) && rv_json_get_text(call, "arguments", &text_of));
    }
    json_object_put(calls);
}

static void ask(rv_script *s, enum rv_script_kind kind, const char *name, int64_t visit)
{
    const struct rv_script_call call = {
        .kind = kind, .stage = name, .tool = name, .visit = visit, .text = RV_STR_LIT("what is x?")};
    struct rv_script_reply reply;
    rv_err *err = NULL;
    int rc = rv_script_next(s, &call, &reply, &err);

    require((rc < 0) == (err != NULL));
    if (rc == 0) {
        require(reply.failed ? reply.error && reply.error_type : reply.error == NULL);
        require((reply.n_deltas == 0) == (reply.deltas == NULL));
        require(reply.answer.finish == RV_UNSET || rv_finish_reason_text((enum rv_finish_reason)reply.answer.finish));
        if (kind == RV_SCRIPT_MODEL)
            see_reply(&reply);
        rv_script_reply_fini(&reply);
    }
    rv_err_free(err);
}

static void use(rv_script *s)
{
    struct rv_catalog catalog = rv_script_catalog(s, &rv_catalog_empty);
    struct rv_response response;
    size_t n;
    const char *const *tools = rv_script_tool_names(s, &n);

    for (int64_t visit = 1; visit < 4; visit++)
        for (int kind = RV_SCRIPT_MODEL; kind <= RV_SCRIPT_HOOK; kind++)
            ask(s, (enum rv_script_kind)kind, "a", visit);
    for (size_t i = 0; i < n && i < 100; i++) {
        require(catalog.tool(catalog.self, rv_str_of(tools[i])) != NULL);
        ask(s, RV_SCRIPT_TOOL, tools[i], 1);
    }
    for (n = 0; n < 5 && rv_script_answer(s, &response, NULL); n++)
        continue;
    rv_script_rewind(s);
}

RV_FUZZ_TARGET(script)
{
    rv_findings *f = rv_findings_new();
    rv_yaml *doc = NULL;
    rv_script *s = NULL;

    if (f && rv_yaml_parse((rv_str){(const char *)data, size}, "s.yaml", f, &doc, NULL) == 0 && doc &&
        rv_findings_n_errors(f) == 0 && rv_yaml_root(doc) && rv_script_read_node(rv_yaml_root(doc), f, &s, NULL) == 0) {
        require((s != NULL) == (rv_findings_n_errors(f) == 0));
        for (size_t i = 0; i < rv_findings_n(f); i++)
            require(rv_findings_at(f, i).src.line > 0);
        if (s)
            use(s);
    }
    rv_script_free(s);
    rv_yaml_free(doc);
    rv_findings_free(f);
    return 0;
}
