/* What a request to a model has besides the prompt and the layers of a declared agent: the system prompt of a stage,
 * its examples, and the images and files that belong to the prompt. They are made once a visit, like the prompt, and
 * kept while the stage waits for a person: whatever the model says afterwards answers to these very texts. */
#include "coreengine/agent/tools_internal.h"

#include <stdlib.h>

static int render(const rv_visit *v, const rv_template *t, rv_buf *text, rv_err **err)
{
    struct rv_stage_scope values;
    struct rv_scope scope = rv_stage_scope_init(&values, v->shared->pipeline, v->env, NULL, true);
    rv_stage_scope_set_place(&values, &v->place);
    scope.is_older = v->shared->rules < RV_RULES_9;
    int rc = rv_template_render(t, &scope, text, err);

    rv_stage_scope_fini(&values);
    return rc;
}

static const rv_template *find_prompt(const rv_visit *v, const char *name)
{
    const struct rv_prompt_config *own = rv_pipeline_find_prompt(v->shared->pipeline, rv_str_of(name));

    return own ? own->compiled : v->shared->catalog.prompt(v->shared->catalog.self, rv_str_of(name));
}

bool agent_prompt_is_known(const rv_visit *v, const char *name)
{
    return !name[0] || find_prompt(v, name);
}

int agent_prompt_render(const rv_visit *v, const struct rv_src *place, const char *name, rv_buf *out, rv_err **err)
{
    const rv_template *t = find_prompt(v, name);

    if (!t)
        return RV_FAIL_AT(err, place, RV_E_NOT_FOUND, "unknown prompt \"%s\"", name);
    int rc = render(v, t, out, err);
    if (rc == 0)
        rc = rv_buf_check(out, "prompt", err);
    return rc < 0 ? RV_WRAP(err, rc, "render prompt \"%s\"", name) : 0;
}

static int make_system(rv_visit *v, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_TEMPLATE_MAX_OUTPUT);
    int rc = agent_prompt_render(v, &v->agent->places.system_key, v->agent->model.system_key, &text, err);

    if (rc == 0 && !(v->model.system = rv_str_dup(rv_buf_str(&text))))
        rc = RV_FAIL(err, RV_E_NOMEM, "render a prompt");
    v->model.system_len = text.len;
    rv_buf_fini(&text);
    return rc;
}

/* One message of an example. left: bytes that all examples may still have. */
static int add_example(const rv_visit *v, json_object *list, const char *role, const rv_template *t, size_t *left,
                       rv_err **err)
{
    rv_buf text = RV_BUF_INIT(*left);
    json_object *message = json_object_new_object();
    int rc = rv_json_push_take(list, message, err);

    if (rc == 0)
        rc = render(v, t, &text, err);
    if (rc == 0)
        rc = rv_buf_check(&text, "examples", err);
    if (rc == 0)
        rc = RV_SET(message, err, RV_M_TEXT("role", role), RV_M_STR("content", rv_buf_str(&text)));
    if (rc == 0)
        *left -= text.len;
    rv_buf_fini(&text);
    return rc;
}

static int make_examples(rv_visit *v, rv_err **err)
{
    const struct rv_agent_model *m = &v->agent->model;
    json_object *list = json_object_new_array();
    size_t left = RV_TEMPLATE_MAX_OUTPUT;
    int rc = list ? 0 : RV_FAIL(err, RV_E_NOMEM, "make examples");

    for (size_t i = 0; i < m->n_examples && rc == 0; i++) {
        rc = add_example(v, list, "user", m->examples[i].user, &left, err);
        if (rc == 0)
            rc = add_example(v, list, "assistant", m->examples[i].assistant, &left, err);
        if (rc < 0 && rc != RV_E_NOMEM)
            rc = RV_WRAP(err, rc, "render examples[%zu]", i);
    }
    if (rc < 0) {
        json_object_put(list);
        return rc;
    }
    v->model.examples = list;
    return 0;
}

/* The values of one expression. */
static int add_attachments(const rv_visit *v, const rv_expr *e, json_object *list, rv_err **err)
{
    struct rv_stage_scope values;
    struct rv_scope scope = rv_stage_scope_init(&values, v->shared->pipeline, v->env, NULL, false);
    rv_stage_scope_set_place(&values, &v->place);
    json_object *value = NULL;
    int rc = rv_expr_eval(e, &scope, &value, err);

    if (rc == 0)
        rc = rv_attachments_add(list, value, err);
    json_object_put(value);
    rv_stage_scope_fini(&values);
    return rc < 0 && rc != RV_E_NOMEM ? RV_WRAP(err, rc, "attachment \"%s\"", rv_expr_text(e)) : rc;
}

static int make_attachments(rv_visit *v, rv_err **err)
{
    const struct rv_agent_model *m = &v->agent->model;
    json_object *list = json_object_new_array();
    int rc = list ? 0 : RV_FAIL(err, RV_E_NOMEM, "make attachments");

    for (size_t i = 0; i < m->n_attachments && rc == 0; i++)
        rc = add_attachments(v, m->attachments[i], list, err);
    if (rc < 0) {
        json_object_put(list);
        return rc;
    }
    v->model.attachments = list;
    return 0;
}

int agent_parts_make(rv_visit *v, rv_err **err)
{
    int rc = 0;

    if (v->agent->model.system_key[0] && !v->model.system)
        rc = make_system(v, err);
    if (rc == 0 && v->agent->model.n_examples > 0 && !v->model.examples)
        rc = make_examples(v, err);
    if (rc == 0 && v->agent->model.n_attachments > 0 && !v->model.attachments)
        rc = make_attachments(v, err);
    return rc;
}

void agent_parts_write_system(const rv_visit *v, rv_jw *w)
{
    if (v->model.system_len > 0)
        rv_jw_kv_str(w, "system", (rv_str){v->model.system, v->model.system_len});
}

void agent_parts_write(const rv_visit *v, rv_jw *w)
{
    if (v->model.examples)
        rv_jw_kv_value(w, "examples", v->model.examples);
    if (v->model.attachments && json_object_array_length(v->model.attachments) > 0)
        rv_jw_kv_value(w, "attachments", v->model.attachments);
}

/* Those of the request that is about to be sent: hooks may have changed them. */
static json_object *attachments_of(const rv_visit *v)
{
    json_object *request = v->shared->rules >= RV_RULES_4 ? v->model.hooks.request : NULL;

    return request ? rv_json_get_arr(request, "attachments") : v->model.attachments;
}

int64_t agent_parts_worst_tokens(const rv_visit *v)
{
    json_object *list = attachments_of(v);
    size_t n = list ? json_object_array_length(list) : 0;
    int64_t tokens = 0;

    for (size_t i = 0; i < n; i++) {
        const char *type = NULL;
        bool is_image =
            rv_json_get_text(json_object_array_get_idx(list, i), "type", &type) && rv_str_is(rv_str_of(type), "image");
        tokens += is_image ? RV_LLM_IMAGE_TOKENS : RV_LLM_FILE_TOKENS;
    }
    return tokens;
}

/* --- while the stage waits for a person --- */

int agent_parts_keep(const struct model_progress *t, json_object *kept, rv_err **err)
{
    int rc = t->system ? rv_json_set_str(kept, "system", (rv_str){t->system, t->system_len}, err) : 0;

    if (rc == 0)
        rc = visit_keep_copy(kept, "examples", t->examples, err);
    return rc == 0 ? visit_keep_copy(kept, "attachments", t->attachments, err) : rc;
}

int agent_parts_take(struct model_progress *t, json_object *kept, rv_err **err)
{
    json_object *system = NULL, *examples = rv_json_get_arr(kept, "examples"),
                *attachments = rv_json_get_arr(kept, "attachments");
    int rc = 0;

    if (json_object_object_get_ex(kept, "system", &system)) {
        t->system = rv_str_dup(rv_json_str(system));
        t->system_len = rv_json_str(system).len;
        if (!t->system)
            return RV_FAIL(err, RV_E_NOMEM, "go on with a conversation");
    }
    if (examples)
        rc = rv_json_dup(examples, &t->examples, err);
    return rc == 0 && attachments ? rv_json_dup(attachments, &t->attachments, err) : rc;
}
