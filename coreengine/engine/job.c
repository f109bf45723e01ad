/* One call into a capability, as a worker makes it. */
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/engine/engine_internal.h"

void rv_job_free(struct job *j)
{
    if (!j)
        return;
    if (j->work)
        j->work->free(j->work);
    free(j->name);
    free(j->args);
    free(j->run_id);
    free(j->stage);
    free(j->user_id);
    free(j->session_id);
    free(j->context);
    free(j->key);
    rv_buf_fini(&j->error);
    rv_err_free(j->causes);
    rv_buf_fini(&j->reply);
    if (j->llm)
        rv_llm_reply_fini(j->llm);
    free(j->llm);
    free(j);
}

void rv_piece_free(struct piece *p)
{
    free(p->text);
    free(p);
}

static void say_error(struct job *j, const rv_err *err)
{
    const char *type = rv_plugin_error_type(err);

    j->failed = true;
    j->code = rv_plugin_failure_code(err);
    snprintf(j->error_type, sizeof j->error_type, "%s", type);
    for (; err; err = rv_err_cause(err)) {
        if (j->error.len)
            rv_buf_puts(&j->error, ": ");
        rv_buf_puts(&j->error, rv_err_text(err));
    }
}

static struct piece *new_piece(struct job *j, rv_str json)
{
    struct piece *p = calloc(1, sizeof *p);
    json_object *said = NULL, *text = NULL;

    if (!p || rv_json_parse(json, NULL, &said, NULL) < 0) {
        free(p);
        return NULL;
    }
    p->is_thinking = json_object_object_get_ex(said, "thinking", &text);
    if (!p->is_thinking)
        json_object_object_get_ex(said, "text", &text);
    p->job = j;
    p->text = rv_str_dup(rv_json_str(text));
    p->len = rv_json_str(text).len;
    json_object_put(said);
    if (!p->text) {
        free(p);
        return NULL;
    }
    return p;
}

/* A provider hands out a piece. */
static int emit(void *self, rv_str json)
{
    struct job *j = self;
    struct piece *piece = new_piece(j, json);

    if (!piece || j->pool)
        return piece ? rv_pool_take_piece(j->pool, piece) : -1;
    rv_delta_piece(piece); /* the call is made on the loop */
    rv_piece_free(piece);
    return 0;
}

/* What a provider's call came to, as a reply. */
static void take_reply(struct job *j, const rv_err *failure)
{
    rv_err *err = NULL;

    j->llm = calloc(1, sizeof *j->llm);
    if (!j->llm)
        return;
    if (failure) {
        rv_plugin_llm_failure(failure, j->llm);
    } else if (rv_plugin_llm_reply(rv_buf_str(&j->reply), j->llm, &err) < 0) {
        rv_plugin_llm_failure(err, j->llm);
        rv_err_free(err);
    }
}

void rv_job_run(struct job *j)
{
    const struct rv_plugin_call call = {.kind = j->kind,
                                        .name = j->name,
                                        .args = {j->args, j->args_len},
                                        .run_id = j->run_id,
                                        .stage = j->stage,
                                        .user_id = j->user_id,
                                        .session_id = j->session_id,
                                        .context = j->context,
                                        .idempotency_key = j->key,
                                        .timeout_ms = j->timeout_ms,
                                        .cancelled = &j->cancelled,
                                        .on_emit = j->kind == RV_NAME_PROVIDER ? emit : NULL,
                                        .emit_self = j};
    rv_err *err = NULL;

    if (j->work) {
        j->work->run(j->work);
        return;
    }
    rv_buf_init(&j->reply, RV_JSON_MAX_BYTES);
    rv_buf_init(&j->error, RV_ENGINE_MAX_ERROR);
    if (rv_plugins_call(j->plugins, &call, &j->reply, &err) < 0)
        say_error(j, err);
    if (j->kind == RV_NAME_PROVIDER)
        take_reply(j, err);
    j->causes = err;
}
