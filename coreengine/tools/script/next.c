/* Which entry answers a call, and handing it out. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/tools/script/script_internal.h"

#define HEAD_BYTES 80 /* of a prompt, in the message about a call that nothing matches */

struct script_list *rv_script_list(rv_script *s, enum rv_script_kind kind, rv_str name)
{
    struct script_section *section = &s->sections[kind];

    if (section->is_flat)
        return &section->lists[0];
    int at = rv_index_get(&section->by_name, name);
    return at < 0 ? NULL : &section->lists[at];
}

static bool matches(const struct script_entry *e, const struct rv_script_call *call)
{
    if (e->stage && (!call->stage || strcmp(e->stage, call->stage) != 0))
        return false;
    if (e->tool && (!call->tool || strcmp(e->tool, call->tool) != 0))
        return false;
    if (e->visit && e->visit != call->visit)
        return false;
    return !e->contains || (call->text.len && memmem(call->text.ptr, call->text.len, e->contains, strlen(e->contains)));
}

/* The first entry that matches and was not used yet; else the last one that matches, if entries repeat. */
static struct script_entry *choose(const rv_script *s, struct script_list *list, const struct rv_script_call *call,
                                   bool *any)
{
    *any = false;
    for (size_t i = list->first_unused; i < list->n; i++)
        if (!list->items[i].used && matches(&list->items[i], call))
            return &list->items[i];
    for (size_t i = list->n; i-- > 0;)
        if (matches(&list->items[i], call)) {
            *any = true;
            return s->repeat ? &list->items[i] : NULL;
        }
    return NULL;
}

static const char *call_text(enum rv_script_kind kind)
{
    return kind == RV_SCRIPT_MODEL ? "model reply" : kind == RV_SCRIPT_STAGE ? "stage entry" : "tool entry";
}

static int no_entry(const struct script_list *list, const struct rv_script_call *call, bool ran_dry, rv_err **err)
{
    rv_str head = rv_utf8_cut(call->text, HEAD_BYTES);
    rv_buf line = RV_BUF_INIT(2048);
    int rc;

    rv_buf_printf(&line, "the script has no %s%s for ", ran_dry ? "further " : "", call_text(call->kind));
    if (call->kind == RV_SCRIPT_TOOL)
        rv_buf_printf(&line, "tool \"%.200s\" in ", call->tool ? call->tool : "");
    rv_buf_printf(&line, "stage \"%.200s\", visit %lld", call->stage ? call->stage : "", (long long)call->visit);
    if (ran_dry)
        rv_buf_puts(&line, " (all were used, and repeat is off)");
    rv_buf_printf(&line, ", %s \"%.*s%s\"", call->kind == RV_SCRIPT_MODEL ? "prompt" : "input", RV_STR_ARG(head),
                  head.len < call->text.len ? "..." : "");
    rc = rv_buf_check(&line, "message", err);
    if (rc == 0 && list)
        rc = RV_FAIL_AT(err, &list->src, RV_E_NOT_FOUND, "%s", rv_buf_cstr(&line));
    else if (rc == 0)
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "%s", rv_buf_cstr(&line));
    rv_buf_fini(&line);
    return rc;
}

int rv_script_next(rv_script *s, const struct rv_script_call *call, struct rv_script_reply *out, rv_err **err)
{
    const char *name = call->kind == RV_SCRIPT_TOOL ? call->tool : call->stage;
    struct script_list *list = rv_script_list(s, call->kind, rv_str_of(name));
    bool any = false;
    struct script_entry *e = list ? choose(s, list, call, &any) : NULL;

    if (!e)
        return no_entry(list, call, any, err);
    struct rv_script_reply reply = {.failed = e->failed,
                                    .error_type = e->error_type,
                                    .error = e->error,
                                    .retryable = e->retryable,
                                    .delay_ms = e->delay_ms,
                                    .body = RV_BUF_INIT(RV_JSON_MAX_BYTES),
                                    .deltas = e->deltas,
                                    .n_deltas = e->n_deltas,
                                    .answer = e->answer};
    rv_buf_add_str(&reply.body, e->body);
    int rc = rv_buf_check(&reply.body, "reply of a script", err);
    if (rc < 0) {
        rv_buf_fini(&reply.body);
        return rc;
    }
    e->used = true;
    while (list->first_unused < list->n && list->items[list->first_unused].used)
        list->first_unused++;
    *out = reply;
    return 0;
}

void rv_script_reply_fini(struct rv_script_reply *r)
{
    rv_buf_fini(&r->body);
}

bool rv_script_answer(rv_script *s, struct rv_response *out, int64_t *delay_ms)
{
    if (s->next_answer >= s->n_answers)
        return false;
    const struct script_answer *a = &s->answers[s->next_answer++];
    *out = a->response;
    if (delay_ms)
        *delay_ms = a->delay_ms;
    return true;
}

void rv_script_rewind(rv_script *s)
{
    for (size_t k = 0; k < RV_SCRIPT_N_KINDS; k++)
        for (size_t i = 0; i < s->sections[k].n; i++) {
            struct script_list *list = &s->sections[k].lists[i];
            list->first_unused = 0;
            for (size_t e = 0; e < list->n; e++)
                list->items[e].used = false;
        }
    s->next_answer = 0;
}
