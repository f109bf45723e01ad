/* Calls that the run's script answers: which ones, what it is asked, and how its reply reaches the call. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/engine/engine_internal.h"

#define SCRIPT_ENTRY "script" /* the mock of a stage that a script plays */

/* --- replies that a run got before it was continued --- */

/* Replies of the script to calls whose answers never reached the journal: the same calls get them again. */
struct kept_replies {
    struct kept_reply {
        int64_t call_id;
        struct rv_script_reply reply;
    } * items;
    size_t n, cap;
};

static struct kept_reply *find(struct kept_replies *kept, int64_t call_id)
{
    for (size_t i = 0; kept && i < kept->n; i++)
        if (kept->items[i].call_id == call_id)
            return &kept->items[i];
    return NULL;
}

struct kept_replies *engine_kept_new(void)
{
    return calloc(1, sizeof(struct kept_replies));
}

static void drop(struct kept_replies *kept, struct kept_reply *r)
{
    *r = kept->items[--kept->n];
}

bool engine_kept_take(rv_exec *x, int64_t call_id, struct rv_script_reply *out)
{
    struct kept_reply *r = find(x->kept, call_id);

    if (!r)
        return false;
    *out = r->reply;
    drop(x->kept, r);
    return true;
}

void engine_kept_free(struct kept_replies *kept)
{
    for (size_t i = 0; kept && i < kept->n; i++)
        rv_script_reply_fini(&kept->items[i].reply);
    if (kept)
        free(kept->items);
    free(kept);
}

/* --- answers --- */

/* A script that says nothing of models leaves them to their providers, where they have one. */
static bool plays_model(const rv_script *script, const struct rv_pipeline *p, const struct rv_effect *e)
{
    const struct rv_model_config *model = rv_pipeline_find_model(p, rv_str_of(e->name));

    return rv_script_has_models(script) || !model || strcmp(model->provider, "scripted") == 0;
}

const char *engine_effect_who(const struct rv_pipeline *p, const struct rv_effect *e)
{
    return e->origin ? e->origin->agent : e->label ? e->label : p->agents[e->stage].name;
}

rv_str engine_effect_branch(const struct rv_effect *e)
{
    const char *from = e->path ? strrchr(e->path, ':') : NULL;

    return from ? (rv_str){from + 1, strcspn(from + 1, "[/")} : (rv_str){NULL, 0};
}

static bool plays(const rv_script *script, const struct rv_pipeline *p, const bool *scripted, const struct rv_effect *e)
{
    if (!script)
        return false;
    if (e->kind == RV_EFFECT_CALL_LLM)
        return plays_model(script, e->pipeline ? e->pipeline : p, e);
    if (e->kind == RV_EFFECT_CALL_TOOL)
        return rv_script_has_tool(script, rv_str_of(e->name));
    if (e->kind == RV_EFFECT_CALL_HOOK && e->entry == RV_NAME_HOOK)
        return rv_script_has_hook(script, rv_str_of(e->name), engine_effect_who(p, e));
    if (e->kind == RV_EFFECT_CALL_HOOK && e->label)
        return e->entry == RV_NAME_MOCK && strcmp(e->name, SCRIPT_ENTRY) == 0 &&
               rv_script_has_stage(script, rv_str_of(e->label));
    if (e->kind == RV_EFFECT_CALL_HOOK)
        return e->entry == RV_NAME_MOCK && scripted && scripted[e->stage] && strcmp(e->name, SCRIPT_ENTRY) == 0;
    return false;
}

bool engine_script_plays(const rv_exec *x, const struct rv_effect *e)
{
    return plays(x->opts.script, x->opts.pipeline, x->scripted, e);
}

/* What identifies an attachment: its type, name and address, and its bytes in base64. */
static void tell_attachments(json_object *list, rv_buf *text)
{
    static const char *const keys[] = {"type", "media_type", "name", "url", "data"};

    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        rv_buf_putc(text, '\n');
        for (size_t k = 0; k < RV_COUNT(keys); k++) {
            json_object *part = NULL;
            if (!json_object_object_get_ex(json_object_array_get_idx(list, i), keys[k], &part))
                continue;
            rv_buf_puts(text, k > 0 ? " " : "");
            rv_buf_add_str(text, rv_json_str(part));
        }
    }
}

/* What a model was told, for matchers: the prompt with its attachments and what followed it. */
static int told(json_object *request, rv_buf *text, rv_err **err)
{
    json_object *part = NULL, *turns = rv_json_get_arr(request, "turns");

    json_object_object_get_ex(request, "prompt", &part);
    rv_buf_add_str(text, rv_json_str(part));
    tell_attachments(rv_json_get_arr(request, "attachments"), text);
    for (size_t i = 0; turns && i < json_object_array_length(turns); i++) {
        part = NULL;
        json_object_object_get_ex(json_object_array_get_idx(turns, i), "content", &part);
        rv_buf_putc(text, '\n');
        rv_buf_add_str(text, rv_json_str(part));
    }
    return rv_buf_check(text, "what a model was told", err);
}

static int ask(rv_script *script, const struct rv_pipeline *p, const struct rv_effect *e, struct rv_script_reply *out,
               rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = e->request_len + 1, .what = "model request"};
    json_object *request = NULL;
    rv_buf text = RV_BUF_INIT(2 * e->request_len + 1);
    char hash[RV_HASH_MAX];
    bool is_hook = e->kind == RV_EFFECT_CALL_HOOK && e->entry == RV_NAME_HOOK;
    struct rv_script_call from = {.kind = e->kind == RV_EFFECT_CALL_TOOL   ? RV_SCRIPT_TOOL
                                          : is_hook                        ? RV_SCRIPT_HOOK
                                          : e->kind == RV_EFFECT_CALL_HOOK ? RV_SCRIPT_STAGE
                                                                           : RV_SCRIPT_MODEL,
                                  .stage = engine_effect_who(p, e),
                                  .tool = e->kind == RV_EFFECT_CALL_TOOL || is_hook ? e->name : NULL,
                                  .visit = e->visit,
                                  .index = e->index,
                                  .branch = engine_effect_branch(e),
                                  .text = {e->request, e->request_len}};
    int rc = 0;

    if (e->kind == RV_EFFECT_CALL_LLM && rv_script_knows_requests(script)) {
        rv_script_request_make_key(e->pipeline ? e->pipeline : p, e->name, from.text, hash);
        from.request = hash;
    }
    if (e->kind == RV_EFFECT_CALL_LLM) {
        rc = rv_json_parse(from.text, &opts, &request, err);
        if (rc == 0)
            rc = told(request, &text, err);
        from.text = rv_buf_str(&text);
    }
    if (rc == 0)
        rc = rv_script_next(script, &from, out, err);
    json_object_put(request);
    rv_buf_fini(&text);
    return rc;
}

/* The script's next reply to that effect; RV_E_NOT_FOUND: it has none. */
static int ask_script(const rv_exec *x, const struct rv_effect *e, struct rv_script_reply *out, rv_err **err)
{
    return ask(x->opts.script, x->opts.pipeline, e, out, err);
}

int rv_engine_pass_script(rv_script *script, const struct rv_pipeline *p, const bool *scripted,
                          const struct rv_effect *e, rv_err **err)
{
    struct rv_script_reply reply;
    rv_err *hole = NULL;

    if (!plays(script, p, scripted, e))
        return 0;
    int rc = ask(script, p, e, &reply, &hole);
    rv_err_free(hole); /* it had no answer then either */
    if (rc == 0)
        rv_script_reply_fini(&reply);
    return rc == RV_E_NOMEM ? RV_FAIL(err, rc, "bring a script to where it stood") : 0;
}

/* The script has answered this call before, so it does now. A reply that it lacks is reported again when the call is
 * made. */
int engine_kept_ask(rv_exec *x, const struct rv_effect *e, rv_err **err)
{
    struct kept_replies *kept = x->kept;
    struct rv_script_reply reply;
    rv_err *hole = NULL;

    if (!rv_has_room(&kept->items, &kept->cap, kept->n + 1, sizeof *kept->items))
        return RV_FAIL(err, RV_E_NOMEM, "replay a script");
    int rc = ask_script(x, e, &reply, &hole);
    rv_err_free(hole);
    if (rc < 0)
        return rc == RV_E_NOMEM ? RV_FAIL(err, rc, "replay a script") : 0;
    kept->items[kept->n++] = (struct kept_reply){e->call_id, reply};
    return 0;
}

void engine_call_schedule(struct call *c)
{
    rv_engine *e = c->x->engine;

    c->due_us = rv_engine_now_us(e) + c->delay_us;
    if (c->deadline_us && c->due_us > c->deadline_us) {
        c->due_us = c->deadline_us;
        engine_call_timed_out(c);
    }
    engine_due_moved(&e->due, c);
}

static void take_reply(struct call *c, bool is_model, struct rv_script_reply *reply)
{
    rv_buf *body = reply->failed ? &c->partial : &c->text;

    c->delay_us = (reply->n_deltas ? reply->deltas[0].delay_ms : reply->delay_ms) * 1000;
    c->answer = reply->answer;
    c->answer.is_scripted = is_model && !reply->answer.has_usage;
    if (reply->failed)
        engine_call_fail(c, reply->error_type, reply->retryable, "%s", reply->error);
    rv_buf_fini(body);
    *body = reply->body;
    reply->body = RV_BUF_INIT(0);
    c->deltas = reply->deltas;
    c->n_deltas = reply->n_deltas;
    rv_script_reply_fini(reply);
    engine_call_schedule(c);
}

int engine_call_script(struct call *c, const struct rv_effect *e, rv_err **err)
{
    struct rv_script_reply reply;

    int rc = engine_kept_take(c->x, c->call_id, &reply) ? 0 : ask_script(c->x, e, &reply, err);
    if (rc == 0)
        take_reply(c, e->kind == RV_EFFECT_CALL_LLM, &reply);
    return rc;
}
