/* Journals that runs have for themselves: on a given loop the store thread opens them and gives them up. */
#include <stdlib.h>

#include "coreengine/engine/engine_internal.h"

void engine_response_fini(struct rv_response *r)
{
    char *const texts[] = {(char *)r->text.ptr, (char *)r->decision.ptr, (char *)r->interrupt_id.ptr,
                           (char *)r->choice.ptr};

    for (size_t i = 0; i < RV_COUNT(texts); i++)
        free(texts[i]);
    json_object_put(r->data);
    json_object_put(r->arguments);
}

static void own_free(struct own_journal *o)
{
    engine_response_fini(&o->response);
    free(o->run);
    free(o->tenant);
    free(o->user);
    rv_err_free(o->write.err);
    free(o);
}

/* NULL for none; false: memory is short. */
static bool dup_text(char **out, const char *text)
{
    *out = text ? rv_str_dup(rv_str_of(text)) : NULL;
    return *out || !text;
}

struct own_journal *engine_own_new(rv_exec *x, const struct rv_store_scope *scope, const char *run)
{
    struct own_journal *o = calloc(1, sizeof *o);

    if (!o)
        return NULL;
    o->engine = x->engine;
    o->x = x;
    if (dup_text(&o->run, run) && dup_text(&o->tenant, scope->tenant) && dup_text(&o->user, scope->user))
        return o;
    own_free(o);
    return NULL;
}

static bool copy_text(rv_str *to, rv_str from)
{
    *to = (rv_str){from.ptr ? rv_str_dup(from) : NULL, from.len};
    return !from.ptr || to->ptr;
}

int engine_response_copy(const struct rv_response *from, struct rv_response *to, rv_err **err)
{
    *to = (struct rv_response){.has_approved = from->has_approved,
                               .approved = from->approved,
                               .expired = from->expired,
                               .cancelled = from->cancelled,
                               .data = json_object_get(from->data),
                               .arguments = json_object_get(from->arguments)};
    bool ok = copy_text(&to->text, from->text);
    ok = copy_text(&to->decision, from->decision) && ok;
    ok = copy_text(&to->interrupt_id, from->interrupt_id) && ok;
    ok = copy_text(&to->choice, from->choice) && ok;
    return ok ? 0 : RV_FAIL(err, RV_E_NOMEM, "keep an answer");
}

int engine_own_answer(struct own_journal *o, const struct rv_response *response, rv_err **err)
{
    if (o->has_response)
        return RV_FAIL(err, RV_E_STATE, "run \"%s\" has an answer and is being opened", o->run);
    o->has_response = true;
    return engine_response_copy(response, &o->response, err);
}

static struct own_journal *own_of(struct write *w)
{
    return (struct own_journal *)((char *)w - offsetof(struct own_journal, write));
}

/* On the thread of the store. */
static int give_up(struct write *w, rv_store *store, rv_err **err)
{
    struct own_journal *o = own_of(w);

    (void)err;
    rv_journal_move(o->journal, store);
    rv_journal_free(o->journal);
    return 0;
}

static void link_own(struct own_journal *o)
{
    o->next = o->engine->given_up;
    o->engine->given_up = o;
}

void engine_own_unlink(struct own_journal *o)
{
    struct own_journal **at = &o->engine->given_up;

    while (*at != o)
        at = &(*at)->next;
    *at = o->next;
}

static void given_up(struct write *w)
{
    engine_own_unlink(own_of(w));
    own_free(own_of(w));
}

void engine_own_orphan(struct own_journal *o)
{
    o->x = NULL;
    o->is_orphan = true;
    link_own(o);
}

void engine_own_end(struct own_journal *o)
{
    rv_engine *e = o->engine;

    if (!o->journal || !e->writer) {
        rv_journal_free(o->journal);
        own_free(o);
        return;
    }
    o->x = NULL;
    link_own(o);
    o->write = (struct write){.write = give_up, .done = given_up, .is_alone = true};
    engine_writer_submit(e->writer, &o->write);
}

void engine_writer_stop(rv_engine *e)
{
    for (struct own_journal *o = e->given_up, *next; o; o = next) {
        next = o->next;
        if (!o->is_orphan)
            continue;
        engine_writer_wait_for(e->writer, &o->write);
        engine_own_unlink(o);
        engine_own_end(o);
    }
    engine_writer_free(e->writer);
    for (struct own_journal *o = e->given_up, *next; o; o = next) {
        next = o->next;
        own_free(o);
    }
}
