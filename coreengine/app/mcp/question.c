/* Questions of runs as forms that clients show to a person, and what was filled in as the answer. */
#include <stdio.h>
#include <string.h>

#include "coreengine/app/mcp/mcp_internal.h"

#define MAX_STATE (2 * (size_t)RV_STORE_MAX_ID + 80) /* bytes of a requestState: two ids, a hash and numbers */
#define MARK      16                                 /* hex characters that notice a change */

/* --- forms --- */

struct form {
    struct rv_json_build b;
    json_object *schema, *properties, *required;
};

static int open_form(struct form *f, rv_err **err)
{
    *f = (struct form){.schema = json_object_new_object()};
    f->b = (struct rv_json_build){err, f->schema ? 0 : RV_FAIL(err, RV_E_NOMEM, "ask a client")};
    rv_json_build_text(&f->b, f->schema, "type", "object");
    f->properties = rv_json_build(&f->b, f->schema, "properties", f->b.rc < 0 ? NULL : json_object_new_object());
    f->required = rv_json_build(&f->b, f->schema, "required", f->b.rc < 0 ? NULL : json_object_new_array());
    return f->b.rc;
}

static json_object *add_field(struct form *f, const char *name, const char *type, const char *title, bool is_needed)
{
    json_object *field = rv_json_build(&f->b, f->properties, name, f->b.rc < 0 ? NULL : json_object_new_object());

    rv_json_build_text(&f->b, field, "type", type);
    rv_json_build_text(&f->b, field, "title", title);
    if (is_needed)
        rv_json_build(&f->b, f->required, NULL, f->b.rc < 0 ? NULL : json_object_new_string(name));
    return field;
}

static void add_choices(struct form *f, const char *name, const char *title, const char *const *words, size_t n)
{
    json_object *field = add_field(f, name, "string", title, true);
    json_object *list = rv_json_build(&f->b, field, "enum", f->b.rc < 0 ? NULL : json_object_new_array());

    for (size_t i = 0; i < n; i++)
        rv_json_build(&f->b, list, NULL, f->b.rc < 0 ? NULL : json_object_new_string(words[i]));
}

/* A choice of the pipeline's author: a text, or an object with a value. */
static rv_str option_text(json_object *option)
{
    json_object *value = NULL;

    if (json_object_is_type(option, json_type_string))
        return rv_json_str(option);
    json_object_object_get_ex(option, "value", &value);
    return rv_json_str(value);
}

static void add_options(struct form *f, json_object *options)
{
    json_object *field = add_field(f, "choice", "string", "Choice", true);
    json_object *list = rv_json_build(&f->b, field, "enum", f->b.rc < 0 ? NULL : json_object_new_array());

    for (size_t i = 0; i < json_object_array_length(options); i++) {
        rv_str text = option_text(json_object_array_get_idx(options, i));
        if (text.len > 0 && !rv_str_is(text, RV_CHOICE_TIMEOUT))
            rv_json_build(&f->b, list, NULL, f->b.rc < 0 ? NULL : json_object_new_string_len(text.ptr, (int)text.len));
    }
}

int app_mcp_form_of(const struct rv_app_question *q, json_object **out, rv_err **err)
{
    static const char *const outcomes[] = {"happened", "not_happened", "fail"};
    static const char *const reviews[] = {"approve", "reject", "modify"};
    json_object *options = rv_json_get_arr(q->data, RV_ASK_OPTIONS);
    struct form f;

    *out = NULL;
    if (rv_interrupt_asks_client(q->kind, q->data))
        return 0;
    if (rv_interrupt_asks_input(q->kind, q->data)) { /* the form of the server that asks */
        *out = json_object_get(rv_json_get_obj(q->data, "schema"));
        return 0;
    }
    int rc = open_form(&f, err);
    if (rc == 0 && rv_interrupt_is_ask(q->data) && !rv_ask_takes_text(q->data) && options)
        add_options(&f, options);
    else if (rc == 0 && q->kind == RV_INTERRUPT_CONFIRMATION)
        add_field(&f, "approved", "boolean", "Allow", true);
    else if (rc == 0 && q->kind == RV_INTERRUPT_AGENT_REVIEW && !rv_interrupt_is_ask(q->data))
        add_choices(&f, "decision", "Decision", rv_interrupt_asks_outcome(q->kind, q->data) ? outcomes : reviews, 3);
    if (rc == 0 && json_object_array_length(f.required) == 0)
        add_field(&f, "text", "string", "Answer", true);
    else if (rc == 0)
        add_field(&f, "text", "string", "Remark", false);
    if (f.b.rc < 0)
        json_object_put(f.schema);
    else
        *out = f.schema;
    return f.b.rc;
}

/* --- answers --- */

static rv_str text_member(json_object *content, const char *key)
{
    json_object *value = NULL;

    if (!json_object_object_get_ex(content, key, &value) || !json_object_is_type(value, json_type_string))
        return (rv_str){NULL, 0};
    rv_str text = rv_json_str(value);
    return text.ptr ? text : RV_STR_LIT("");
}

int app_mcp_response_of(const struct rv_app_question *q, enum rv_mcp_action action, json_object *content,
                        struct rv_response *out, rv_err **err)
{
    *out = (struct rv_response){.text = {NULL, 0}};
    out->interrupt_id = rv_str_of(q->id);
    if (rv_interrupt_asks_input(q->kind, q->data)) {
        out->decision = action == RV_MCP_ACCEPT    ? RV_STR_LIT("accept")
                        : action == RV_MCP_DECLINE ? RV_STR_LIT("decline")
                                                   : RV_STR_LIT("cancel");
        out->data = action == RV_MCP_ACCEPT ? content : NULL;
        return rv_app_check_answer(q, out, err);
    }
    if (action != RV_MCP_ACCEPT && q->kind == RV_INTERRUPT_CONFIRMATION && !rv_interrupt_is_ask(q->data)) {
        out->has_approved = true;
        out->text = action == RV_MCP_DECLINE ? RV_STR_LIT("declined") : RV_STR_LIT("dismissed");
    } else if (action != RV_MCP_ACCEPT) {
        out->cancelled = true;
        out->text = action == RV_MCP_DECLINE ? RV_STR_LIT("the client declined to answer")
                                             : RV_STR_LIT("the client dismissed the question");
        return rv_answer_check_cancel(out, err);
    } else {
        out->text = text_member(content, "text");
        out->choice = text_member(content, "choice");
        out->decision = text_member(content, "decision");
        out->has_approved = rv_json_get_bool(content, "approved", &out->approved);
    }
    return rv_app_check_answer(q, out, err);
}

/* --- which question --- */

struct first {
    char id[RV_STORE_MAX_ID + 1];
};

static int take_first(void *self, const struct rv_pending *p, rv_err **err)
{
    struct first *f = self;

    (void)err;
    if (!f->id[0])
        snprintf(f->id, sizeof f->id, "%s", p->id);
    return 0;
}

int app_mcp_question_of(const struct rv_app_mcp_at *at, const struct rv_run_row *row, const char *id,
                        struct rv_app_question *out, rv_err **err)
{
    struct first f = {""};
    int rc = 0;

    *out = (struct rv_app_question){.n = 0};
    if (!id)
        rc = rv_store_list_pending(at->sources->store, &at->app->scope, row->id, take_first, &f, err);
    if (rc < 0)
        return rc;
    rv_str wanted = rv_str_of(id ? id : f.id);
    return rv_app_find_question(at->sources->store, &at->app->scope, row, wanted.len ? wanted : (rv_str){NULL, 0}, out,
                                err);
}

struct asking {
    const char *id;
    rv_buf *stage;
};

static int take_stage(void *self, const struct rv_pending *p, rv_err **err)
{
    const struct asking *a = self;

    (void)err;
    if (strcmp(p->id, a->id) == 0 && a->stage->len == 0)
        rv_buf_puts(a->stage, p->stage ? p->stage : "");
    return 0;
}

int app_mcp_question_key(const struct rv_app_mcp_at *at, const char *run, const char *id, rv_buf *key, rv_err **err)
{
    struct asking a = {id, key};
    int rc = rv_store_list_pending(at->sources->store, &at->app->scope, run, take_stage, &a, err);

    if (rc == 0 && (key->len == 0 || rv_str_is(rv_buf_str(key), OUTER_STAGE))) { /* "": it was answered meanwhile */
        rv_buf_clear(key);
        rv_buf_puts(key, "answer");
    }
    return rc < 0 ? rc : rv_buf_check(key, "the name of a question", err);
}

static int take_task(void *self, const struct rv_task_row *row, rv_err **err)
{
    bool *is_queued = self;

    (void)err;
    *is_queued = *is_queued || !rv_task_status_is_final(row->status);
    return 0;
}

int app_mcp_question_is_answered(const struct rv_app_mcp_at *at, const struct rv_run_row *row, const char *id,
                                 bool *out, rv_err **err)
{
    const struct rv_store_scope scope = {row->tenant, NULL};
    rv_buf key = RV_BUF_INIT(2 * RV_STORE_MAX_ID + 2);

    *out = false;
    rv_buf_printf(&key, "%s/%s", row->id, id);
    const struct rv_task_filter filter = {.type = RV_TASK_OF_RUN, .key = rv_buf_cstr(&key), .limit = 1};
    int rc = rv_buf_check(&key, "key of a task", err);
    if (rc == 0)
        rc = rv_store_list_tasks(at->sources->store, &scope, &filter, take_task, out, err);
    rv_buf_fini(&key);
    return rc;
}

/* --- without a client that can ask a person --- */

int app_mcp_waiting(const struct mcp_about *about, const struct rv_app_question *q, json_object **out, rv_err **err)
{
    json_object *data = json_object_new_object(), *form = NULL;
    struct rv_json_build b = {err, data ? 0 : RV_FAIL(err, RV_E_NOMEM, "answer a call")};
    rv_buf text = RV_BUF_INIT(2 << 20);

    rv_json_build_text(&b, data, "status", rv_run_status_text(RV_RUN_INTERRUPTED));
    rv_json_build_text(&b, data, "run", about->run);
    rv_json_build_text(&b, data, "question", q->id);
    rv_json_build_text(&b, data, "kind", rv_interrupt_kind_text(q->kind));
    rv_json_build_text(&b, data, "asks", rv_buf_cstr(&q->text));
    if (b.rc == 0)
        b.rc = app_mcp_form_of(q, &form, err);
    if (form)
        rv_json_build(&b, data, "answer", form);
    rv_buf_printf(&text,
                  "The run %s waits for an answer (%s): %s\nAsk the person, then call the tool answer_run with run "
                  "\"%s\" and the answer.",
                  about->run, rv_interrupt_kind_text(q->kind), rv_buf_cstr(&q->text), about->run);
    if (b.rc == 0)
        b.rc = rv_buf_check(&text, "answer of a call", err);
    const rv_str said = rv_buf_str(&text);
    if (b.rc == 0)
        b.rc = app_mcp_success(about, &said, data, out, err);
    rv_buf_fini(&text);
    json_object_put(data);
    return b.rc;
}

/* --- the way back: RUN:INTERRUPT:MARK. The mark notices an accident; what a client may answer is judged by its scope.
 */

static void write_mark(const char *tool, rv_str ids, char out[RV_HASH_MAX])
{
    struct rv_hash h;

    rv_hash_init(&h);
    rv_hash_add(&h, rv_str_of(tool));
    rv_hash_add(&h, RV_STR_LIT("\n"));
    rv_hash_add(&h, ids);
    rv_hash_finish_hex(&h, out);
}

void app_mcp_state_write(const char *tool, const char *run, const char *interrupt, rv_buf *out)
{
    char mark[RV_HASH_MAX];

    rv_buf_printf(out, "%s:%s", run, interrupt);
    write_mark(tool, rv_buf_str(out), mark);
    rv_buf_printf(out, ":%.*s", MARK, mark);
}

int app_mcp_state_read(rv_str text, const char *tool, char run[RV_STORE_MAX_ID + 1],
                       char interrupt[RV_STORE_MAX_ID + 1], rv_err **err)
{
    const char *colon = text.len > 0 && text.len < MAX_STATE ? memchr(text.ptr, ':', text.len) : NULL;
    size_t n_run = colon ? (size_t)(colon - text.ptr) : 0;
    char mark[RV_HASH_MAX];

    if (!colon || text.len < n_run + 2 + MARK + 1 || n_run > RV_STORE_MAX_ID)
        return RV_FAIL(err, RV_E_INVALID, "requestState is not one that this tool gave");
    rv_str ids = {text.ptr, text.len - MARK - 1};
    size_t n_interrupt = ids.len - n_run - 1;
    write_mark(tool, ids, mark);
    if (text.ptr[ids.len] != ':' || memcmp(text.ptr + ids.len + 1, mark, MARK) != 0 || n_interrupt > RV_STORE_MAX_ID ||
        memchr(text.ptr, '\0', text.len))
        return RV_FAIL(err, RV_E_INVALID, "requestState is not one that this tool gave");
    memcpy(run, text.ptr, n_run);
    run[n_run] = '\0';
    memcpy(interrupt, colon + 1, n_interrupt);
    interrupt[n_interrupt] = '\0';
    return 0;
}
