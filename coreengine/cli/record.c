/* --record: a script that plays the same run again, gathered from what the run was told. Secrets never pass here:
 * requests are not recorded, only answers. */
#include "coreengine/cli/cli.h"

#include <stdlib.h>
#include <string.h>

#define MAX_BYTES ((size_t)256 << 20)

struct rv_recorder {
    json_object *calls;  /* call id -> {kind, name} */
    json_object *models; /* stage -> list of entries */
    json_object *tools;  /* tool -> list of entries */
    json_object *answers;
    bool failed; /* memory ran out: reported at the end */
};

rv_recorder *rv_recorder_new(void)
{
    rv_recorder *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->calls = json_object_new_object();
    r->models = json_object_new_object();
    r->tools = json_object_new_object();
    r->answers = json_object_new_array();
    if (!r->calls || !r->models || !r->tools || !r->answers) {
        rv_recorder_free(r);
        return NULL;
    }
    return r;
}

void rv_recorder_free(rv_recorder *r)
{
    if (!r)
        return;
    json_object_put(r->calls);
    json_object_put(r->models);
    json_object_put(r->tools);
    json_object_put(r->answers);
    free(r);
}

static void key_of(int64_t call_id, char out[32])
{
    rv_buf b = RV_BUF_INIT(32);
    rv_buf_printf(&b, "%lld", (long long)call_id);
    memcpy(out, rv_buf_cstr(&b), b.len + 1);
    rv_buf_fini(&b);
}

/* Remember which stage or tool a call belongs to. */
void rv_recorder_event(rv_recorder *r, const struct rv_effect *e, rv_str line)
{
    json_object *json = NULL;
    const char *name = NULL;
    int64_t id = 0;
    char key[32];

    bool is_llm = e->emit == RV_EMIT_LLM_CALL_START, is_tool = e->emit == RV_EMIT_TOOL_CALL_START;
    if ((!is_llm && !is_tool) || rv_json_parse(line, NULL, &json, NULL) < 0)
        return;
    if (rv_json_get_text(json, is_llm ? "stage" : "tool", &name) && rv_json_get_int(json, "call_id", &id)) {
        key_of(id, key);
        json_object *call = json_object_new_object();
        r->failed |= rv_json_set_take(r->calls, key, call, NULL) < 0 ||
                     rv_json_set_text(call, "kind", is_llm ? "model" : "tool", NULL) < 0 ||
                     rv_json_set_text(call, "name", name, NULL) < 0;
    }
    json_object_put(json);
}

/* The answer to a model call: as JSON if it is one object, else as text. */
static int model_entry(const struct rv_event *ev, json_object *entry, rv_err **err)
{
    json_object *json = NULL;

    if (rv_json_parse(ev->reply, NULL, &json, NULL) == 0 && json_object_is_type(json, json_type_object))
        return rv_json_set_take(entry, "json", json, err);
    json_object_put(json);
    return rv_json_set_str(entry, "text", ev->reply, err);
}

static int failure(const struct rv_event *ev, bool is_model, json_object *entry, rv_err **err)
{
    json_object *error = json_object_new_object();
    int rc = rv_json_set_take(entry, "error", error, err);

    if (rc == 0 && is_model) {
        bool timeout = ev->error_type && strcmp(ev->error_type, "TimeoutError") == 0;
        rc = rv_json_set_text(error, "kind", timeout ? "timeout" : ev->retryable ? "connection" : "bad_request", err);
    } else if (rc == 0) {
        rc = rv_json_set_text(error, "type", ev->error_type ? ev->error_type : "ExecutionError", err);
    }
    if (rc == 0)
        rc = rv_json_set_str(error, "message", ev->error, err);
    return rc;
}

static int add_entry(rv_recorder *r, const struct rv_event *ev, rv_err **err)
{
    const char *kind = NULL, *name = NULL;
    json_object *entry = NULL, *result = NULL;
    char key[32];

    key_of(ev->call_id, key);
    json_object *call = rv_json_get_obj(r->calls, key);
    if (!call || !rv_json_get_text(call, "kind", &kind) || !rv_json_get_text(call, "name", &name))
        return 0;
    bool is_model = strcmp(kind, "model") == 0;
    json_object *map = is_model ? r->models : r->tools, *list = rv_json_get_arr(map, name);
    int rc = 0;
    if (!list) {
        list = json_object_new_array();
        rc = rv_json_set_take(map, name, list, err);
    }
    if (rc == 0) {
        entry = json_object_new_object();
        rc = rv_json_push_take(list, entry, err);
    }
    if (rc < 0)
        return rc;
    if (ev->failed)
        return failure(ev, is_model, entry, err);
    if (is_model)
        return model_entry(ev, entry, err);
    rc = rv_json_parse(ev->reply, NULL, &result, err);
    return rc < 0 ? rc : rv_json_set_take(entry, "result", result, err);
}

static int add_answer(rv_recorder *r, const struct rv_response *response, rv_err **err)
{
    json_object *entry = json_object_new_object();
    int rc = rv_json_push_take(r->answers, entry, err);

    if (rc == 0 && response->text.ptr)
        rc = rv_json_set_str(entry, "text", response->text, err);
    if (rc == 0 && response->has_approved)
        rc = rv_json_set_bool(entry, "approved", response->approved, err);
    if (rc == 0 && response->decision.ptr)
        rc = rv_json_set_str(entry, "decision", response->decision, err);
    if (rc == 0 && response->data)
        rc = rv_json_set_ref(entry, "data", response->data, err);
    return rc;
}

void rv_recorder_input(rv_recorder *r, const struct rv_event *ev)
{
    int rc = 0;

    if (ev->kind == RV_EVENT_LLM_DONE || ev->kind == RV_EVENT_TOOL_DONE)
        rc = add_entry(r, ev, NULL);
    else if (ev->kind == RV_EVENT_ANSWER)
        rc = add_answer(r, &ev->response, NULL);
    r->failed |= rc < 0;
}

int rv_recorder_write(rv_recorder *r, const char *path, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_BYTES);
    rv_jw w = rv_jw_on(&text);

    rv_buf_puts(&text, "# recorded by `reeve run --record`; a script for --script\n");
    rv_jw_obj(&w);
    if (json_object_object_length(r->models))
        rv_jw_kv_value(&w, "models", r->models);
    if (json_object_object_length(r->tools))
        rv_jw_kv_value(&w, "tools", r->tools);
    if (json_object_array_length(r->answers))
        rv_jw_kv_value(&w, "answers", r->answers);
    rv_jw_obj_end(&w);
    rv_buf_putc(&text, '\n');
    int rc = r->failed ? RV_FAIL(err, RV_E_NOMEM, "a part of the recording is missing")
                       : rv_buf_check(&text, "recording", err);
    if (rc == 0)
        rc = rv_file_write(path, rv_buf_str(&text), err);
    rv_buf_fini(&text);
    return rc < 0 ? RV_WRAP(err, rc, "write recording \"%s\"", path) : 0;
}
