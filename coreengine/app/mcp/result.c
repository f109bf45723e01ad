/* Results of tools/call: what a run said, its data in the standard wrapper, and failures that models can read. */
#include <json-c/linkhash.h>
#include <stdio.h>
#include <string.h>

#include "coreengine/app/mcp/mcp_internal.h"
#include "coreengine/plan/plan.h"

#define EXECUTION_KEY                                                                                                  \
    "io.reeve/execution" /* of the result's _meta, the same provenance for clients that look there                     \
                          */

static json_object *new_text(rv_str text)
{
    return json_object_new_string_len(text.ptr ? text.ptr : "", (int)text.len); /* at most MCP_MAX_RESULT */
}

/* --- blocks --- */

static void add_text(struct rv_json_build *b, json_object *result, rv_str text)
{
    json_object *list = rv_json_build(b, result, "content", b->rc < 0 ? NULL : json_object_new_array());
    json_object *block = rv_json_build(b, list, NULL, b->rc < 0 ? NULL : json_object_new_object());

    rv_json_build_text(b, block, "type", "text");
    rv_json_build(b, block, "text", b->rc < 0 ? NULL : new_text(text));
}

bool app_mcp_is_block(json_object *block)
{
    static const struct {
        const char *type, *needs[2];
    } kinds[] = {{"text", {"text", NULL}},
                 {"image", {"data", "mimeType"}},
                 {"audio", {"data", "mimeType"}},
                 {"resource_link", {"uri", "name"}}};
    const char *type = NULL;

    if (!json_object_is_type(block, json_type_object) || !rv_json_get_text(block, "type", &type))
        return false;
    if (strcmp(type, "resource") == 0)
        return json_object_is_type(rv_json_member(rv_json_get_obj(block, "resource"), "uri"), json_type_string);
    for (size_t i = 0; i < RV_COUNT(kinds); i++)
        if (strcmp(type, kinds[i].type) == 0)
            return json_object_is_type(rv_json_member(block, kinds[i].needs[0]), json_type_string) &&
                   (!kinds[i].needs[1] ||
                    json_object_is_type(rv_json_member(block, kinds[i].needs[1]), json_type_string));
    return false;
}

/* Content that a pipeline or a tool has written in the words of the protocol, such as an image; NULL: none. */
static json_object *own_content(json_object *data)
{
    json_object *list = rv_json_get_arr(data, "content");

    for (size_t i = 0; list && i < json_object_array_length(list); i++)
        if (!app_mcp_is_block(json_object_array_get_idx(list, i)))
            return NULL;
    return list && json_object_array_length(list) > 0 ? list : NULL;
}

/* --- failures --- */

/* {content: [text], isError: true} */
static int failure(rv_str text, json_object **out, rv_err **err)
{
    json_object *result = json_object_new_object();
    struct rv_json_build b = {err, result ? 0 : RV_FAIL(err, RV_E_NOMEM, "answer a call")};

    add_text(&b, result, rv_utf8_cut(text, MCP_MAX_RESULT));
    rv_json_build(&b, result, "isError", b.rc < 0 ? NULL : json_object_new_boolean(true));
    if (b.rc < 0)
        json_object_put(result);
    else
        *out = result;
    return b.rc;
}

int app_mcp_failure_of(const rv_err *why, json_object **out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(64 << 10);

    rv_err_write_chain(why, &text);
    if (rv_err_hint_text(why))
        rv_buf_printf(&text, " (%s)", rv_err_hint_text(why));
    int rc = text.rc == RV_E_NOMEM ? RV_FAIL(err, RV_E_NOMEM, "tell why a call failed")
                                   : failure(rv_buf_str(&text), out, err);
    rv_buf_fini(&text);
    return rc;
}

/* --- success --- */

/* The data of an artifact: own content is given beside it, not twice. */
static json_object *artifact_of(struct rv_json_build *b, json_object *data, bool has_content)
{
    json_object *copy = b->rc < 0 ? NULL : json_object_new_object();

    if (!copy && b->rc == 0)
        b->rc = RV_FAIL(b->err, RV_E_NOMEM, "answer a call");
    json_object_object_foreach (data, key, value) {
        if (b->rc == 0 && !(has_content && (strcmp(key, "content") == 0 || strcmp(key, "isError") == 0)))
            b->rc = rv_json_set_ref(copy, key, value, b->err);
    }
    return copy;
}

static int wrap(const struct mcp_about *about, const char *text, json_object *artifact, json_object **out, rv_err **err)
{
    const struct rv_artifact_context context = {.context_id =
                                                    about->session && about->session[0] ? about->session : about->run,
                                                .request_id = about->request,
                                                .trace_id = about->request,
                                                .session_id = about->session,
                                                .user_id = about->scope->user,
                                                .execution_id = about->run};
    char id[RV_UUID_MAX], time[RV_TIME_MAX];

    rv_uuid_make(rv_rand_system(), id);
    rv_time_format(about->now_us, time);
    return rv_artifact_wrap(&(struct rv_artifact_made){artifact, id, about->tool, time, text}, &context, out, err);
}

int app_mcp_success(const struct mcp_about *about, const rv_str *text, json_object *data, json_object **out,
                    rv_err **err)
{
    json_object *content = own_content(data), *result = NULL;
    rv_buf json = RV_BUF_INIT(MCP_MAX_RESULT);
    struct rv_json_build b = {.err = err};
    bool is_failure = false;

    rv_json_write(data, &json);
    if (json.rc == RV_E_LIMIT) { /* not cut: what is cut is not JSON any more */
        rv_buf_fini(&json);
        return failure(RV_STR_LIT("the result is larger than 12 MiB"), out, err);
    }
    b.rc = rv_buf_check(&json, "answer of a call", err);
    if (b.rc == 0 && text) {
        rv_buf_clear(&json);
        rv_buf_add_str(&json, *text);
        b.rc = rv_buf_check(&json, "answer of a call", err);
    }
    json_object *artifact = artifact_of(&b, data, content != NULL);
    if (b.rc == 0)
        b.rc = wrap(about, rv_buf_cstr(&json), artifact, &result, err);
    if (content)
        rv_json_build(&b, result, "content", b.rc < 0 ? NULL : json_object_get(content));
    if (content && rv_json_get_bool(data, "isError", &is_failure) && is_failure)
        rv_json_build(&b, result, "isError", b.rc < 0 ? NULL : json_object_new_boolean(true));
    json_object_put(artifact);
    rv_buf_fini(&json);
    if (b.rc < 0)
        json_object_put(result);
    else
        *out = result;
    return b.rc;
}

/* --- runs --- */

/* What a text is as data: an object that it is the JSON of, else a text artifact. */
static int data_of_text(rv_str text, json_object **out, bool *is_data, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = MCP_MAX_RESULT, .max_depth = RV_MCP_MAX_DEPTH - 8};
    rv_str trimmed = rv_str_trim(text);
    rv_err *why = NULL;

    *is_data = trimmed.len > 0 && trimmed.ptr[0] == '{' && rv_json_parse(trimmed, &opts, out, &why) == 0;
    bool no_memory = rv_err_is(why, RV_E_NOMEM);
    rv_err_free(why);
    if (no_memory)
        return RV_FAIL(err, RV_E_NOMEM, "answer a call");
    if (*is_data)
        return 0;
    json_object *data = json_object_new_object();
    struct rv_json_build b = {err, data ? 0 : RV_FAIL(err, RV_E_NOMEM, "answer a call")};
    rv_json_build_text(&b, data, "x-artifact-type", "text");
    rv_json_build(&b, data, "content", b.rc < 0 ? NULL : new_text(text));
    if (b.rc < 0)
        json_object_put(data);
    else
        *out = data;
    return b.rc;
}

static int give_text(const struct mcp_about *about, rv_str text, json_object **out, rv_err **err)
{
    json_object *data = NULL;
    bool is_data = false;

    if (text.len > MCP_MAX_RESULT)
        return failure(RV_STR_LIT("the result is larger than 12 MiB"), out, err);
    int rc = data_of_text(text, &data, &is_data, err);
    if (rc == 0)
        rc = app_mcp_success(about, &text, data, out, err);
    json_object_put(data);
    return rc;
}

/* The one step of the one stage: {data} or {error: {message}}. */
static int give_tool(const struct mcp_about *about, json_object *outputs, json_object **out, rv_err **err)
{
    json_object *list = rv_json_get_arr(rv_json_get_obj(outputs, MCP_OUTPUT), "results");
    json_object *step = list ? json_object_array_get_idx(list, 0) : NULL, *message = NULL;

    json_object_object_get_ex(rv_json_get_obj(step, "error"), "message", &message);
    if (message)
        return failure(rv_json_str(message), out, err);
    json_object *data = rv_json_get_obj(step, "data");
    return data ? app_mcp_success(about, NULL, data, out, err)
                : failure(RV_STR_LIT("the tool gave no result"), out, err);
}

/* An agent's words, or its structured output. */
static int give_agent(const struct mcp_about *about, json_object *outputs, json_object **out, rv_err **err)
{
    static const char *const words[] = {"response", "text", "answer", "content"};
    json_object *output = NULL, *text = NULL;

    json_object_object_get_ex(outputs, MCP_OUTPUT, &output);
    if (json_object_is_type(output, json_type_string))
        return give_text(about, rv_json_str(output), out, err);
    for (size_t i = 0; i < RV_COUNT(words) && json_object_is_type(output, json_type_object); i++)
        if (json_object_object_length(output) == 1 && json_object_object_get_ex(output, words[i], &text) &&
            json_object_is_type(text, json_type_string))
            return give_text(about, rv_json_str(text), out, err);
    return json_object_is_type(output, json_type_object) ? app_mcp_success(about, NULL, output, out, err)
                                                         : failure(RV_STR_LIT("the agent gave no answer"), out, err);
}

/* A pipeline without a final response: the output that `response` names, that of its only stage, or the outputs by
 * their keys. */
static int give_outputs(const struct mcp_about *about, const struct rv_pipeline *p, json_object *outputs,
                        json_object **out, rv_err **err)
{
    json_object *data = p->response.output_key ? rv_json_get_obj(outputs, p->response.output_key) : NULL;

    if (data)
        return app_mcp_success(about, NULL, data, out, err);
    data = outputs;
    if (json_object_object_length(outputs) == 1) {
        json_object_object_foreach (outputs, key, value) {
            (void)key;
            data = json_object_is_type(value, json_type_object) ? value : outputs;
        }
    }
    return app_mcp_success(about, NULL, data, out, err);
}

/* The outputs of a pipeline that ran as a stage: the text where its own response is, else as above. */
static int give_inner(const struct mcp_about *about, const struct rv_pipeline *inner, json_object *outputs,
                      json_object **out, rv_err **err)
{
    json_object *all = rv_json_get_obj(outputs, MCP_OUTPUT), *text;

    if (!all)
        return give_outputs(about, inner, outputs, out, err);
    text = rv_json_member(inner->response.output_key ? rv_json_get_obj(all, inner->response.output_key) : NULL,
                          inner->response.field ? inner->response.field : "");
    return json_object_is_type(text, json_type_string) ? give_text(about, rv_json_str(text), out, err)
                                                       : give_outputs(about, inner, all, out, err);
}

static int give_failure(enum rv_run_status status, const rv_envelope *env, json_object **out, rv_err **err)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(env);
    rv_buf text = RV_BUF_INIT(64 << 10);

    rv_buf_printf(&text, "the run ended with status %s", rv_run_status_text(status));
    if (f->termination_reason)
        rv_buf_printf(&text, ": %s", f->termination_reason);
    int rc =
        text.rc == RV_E_NOMEM ? RV_FAIL(err, RV_E_NOMEM, "tell why a run ended") : failure(rv_buf_str(&text), out, err);
    rv_buf_fini(&text);
    return rc;
}

int app_mcp_result_of_run(const struct mcp_about *about, const struct mcp_ended *run, json_object **out, rv_err **err)
{
    const struct rv_pipeline *pipeline = run->pipeline;
    const rv_envelope *env = run->env;
    enum offer_kind kind = run->kind;
    const struct rv_response_place place = {pipeline->response.output_key, pipeline->response.field};
    const struct rv_envelope_fields *f = rv_envelope_fields(env);
    const struct rv_pipeline *inner = app_mcp_offered(pipeline);
    struct mcp_about whole = *about;
    json_object *outputs = NULL;
    rv_str text;

    whole.session = f->session_id;
    whole.request = f->request_id;
    if (!rv_app_has_answer(run->status, env))
        return give_failure(run->status, env, out, err);
    if (kind != OFFER_TOOL && kind != OFFER_AGENT && rv_envelope_find_final_response(env, &place, &text))
        return give_text(&whole, text, out, err);
    int rc = rv_envelope_build_outputs(env, &outputs, err);
    if (rc < 0)
        return rc;
    rc = kind == OFFER_TOOL    ? give_tool(&whole, outputs, out, err)
         : kind == OFFER_AGENT ? give_agent(&whole, outputs, out, err)
         : inner != pipeline   ? give_inner(&whole, inner, outputs, out, err)
                               : give_outputs(&whole, pipeline, outputs, out, err);
    json_object_put(outputs);
    return rc;
}
