/* Answers of a person to a tool that asked: judged by its form, kept with the step, written for the call that follows.
 * input.c has what is kept. */
#include "coreengine/agent/tools_internal.h"

json_object *agent_input_open(const rv_visit *v)
{
    json_object *list = v->tools.input ? rv_json_get_arr(v->tools.input, "requests") : NULL;

    return list && json_object_array_length(list) > 0 ? json_object_array_get_idx(list, 0) : NULL;
}

/* What a person accepts with: an object with the defaults of the form put in; the caller's. RV_E_INVALID: it does not
 * fit the form. */
static int fill_in(json_object *schema, json_object *given, json_object **out, rv_err **err)
{
    rv_schema *form = NULL;
    json_object *content = NULL;

    if (given && !json_object_is_type(given, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "the data of the answer must be an object, found %s",
                       rv_json_type_text(given));
    int rc = rv_schema_compile_foreign(schema, "form of the tool", &form, err);
    if (rc == 0 && given)
        rc = rv_json_dup(given, &content, err);
    else if (rc == 0 && !(content = json_object_new_object()))
        rc = RV_FAIL(err, RV_E_NOMEM, "read an answer");
    if (rc == 0)
        rc = rv_schema_fill_defaults(form, content, err);
    if (rc == 0)
        rc = rv_schema_check(form, content, err);
    rv_schema_free(form);
    if (rc < 0)
        json_object_put(content);
    else
        *out = content;
    return rc;
}

int rv_input_check(json_object *data, const struct rv_response *response, rv_err **err)
{
    json_object *schema = rv_json_get_obj(data, "schema"), *content = NULL;
    bool accepts = rv_str_is(response->decision, "accept");

    if (!accepts && response->data)
        return RV_FAIL(err, RV_E_INVALID, "an answer that does not accept has no data");
    if (!accepts || !schema)
        return 0;
    int rc = fill_in(schema, response->data, &content, err);
    json_object_put(content);
    return rc < 0 ? RV_WRAP(err, rc, "the data of the answer does not fit the form (data.schema of the question)") : 0;
}

/* The answer to a request as it is kept; the caller's. */
static int note_answer(const rv_visit *v, json_object *one, json_object *answer, json_object **out, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *noted = json_object_new_object(), *content = NULL, *given = NULL;

    if (!noted)
        return RV_FAIL(err, RV_E_NOMEM, "note an answer");
    const char *decision = rv_json_text_or(answer, "decision", "cancel");
    const char *key = rv_json_text_or(one, "key", "");
    const char *message = rv_json_text_or(one, "message", "");
    int64_t round = rv_json_int_or(v->tools.input, "round", 1);
    rv_json_build_int(&b, noted, "round", round);
    rv_json_build_text(&b, noted, "key", key);
    rv_json_build_text(&b, noted, "message", message);
    rv_json_build(&b, noted, "schema", json_object_get(rv_json_get_obj(one, "schema")));
    json_object_object_get_ex(answer, "data", &given);
    if (b.rc == 0 && strcmp(decision, "accept") == 0)
        b.rc = fill_in(rv_json_get_obj(one, "schema"), given, &content, err);
    rv_json_build_text(&b, noted, "action", decision);
    if (content)
        rv_json_build(&b, noted, "content", content);
    if (b.rc < 0)
        json_object_put(noted);
    else
        *out = noted;
    return b.rc;
}

int agent_input_answered(rv_visit *v, json_object *answer, rv_err **err)
{
    json_object *one = agent_input_open(v), *noted = NULL;
    json_object *answers = one ? rv_json_get_arr(v->tools.input, "answers") : NULL;

    if (!one || !answer || !answers)
        return 0;
    int rc = note_answer(v, one, answer, &noted, err);
    if (rc == 0)
        rc = rv_json_push_take(answers, noted, err);
    if (rc == 0)
        rv_json_cut(rv_json_get_arr(v->tools.input, "requests"), 0, 1);
    return rc;
}

int agent_input_write(const rv_visit *v, char **out, size_t *len, rv_err **err)
{
    static const char *const keys[] = {"round", "state", "answers"};
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    rv_jw w = rv_jw_on(&text);

    if (!v->tools.input)
        return 0;
    rv_jw_obj(&w);
    for (size_t i = 0; i < RV_COUNT(keys); i++) {
        json_object *part = NULL;
        if (json_object_object_get_ex(v->tools.input, keys[i], &part))
            rv_jw_kv_value(&w, keys[i], part);
    }
    rv_jw_obj_end(&w);
    int rc = rv_buf_check(&text, "answers for a tool", err);
    if (rc == 0 && !(*out = rv_buf_steal(&text, len)))
        rc = RV_FAIL(err, RV_E_NOMEM, "answer a tool");
    rv_buf_fini(&text);
    return rc;
}
