/* The end of a turn that its process could not write, made from what the store has of the run. */
#include <string.h>

#include "coreengine/server/view_internal.h"

struct words {
    const char *run;
    rv_buf *text;
};

static int add_words(void *self, const struct rv_message *m, rv_err **err)
{
    struct words *w = self;

    if (!m->run_id || strcmp(m->run_id, w->run) != 0 || !m->type || strcmp(m->type, "assistant") != 0 ||
        m->content.len == 0)
        return 0;
    if (w->text->len > 0)
        rv_buf_puts(w->text, "\n\n");
    rv_buf_add_str(w->text, m->content);
    return rv_buf_check(w->text, "the words of an answer", err);
}

/* A run of no session has none. The end of a stream is kept for good, so that it waits for what cannot be read now. */
static int read_words(rv_store *store, const struct rv_store_scope *scope, const struct rv_run_row *run, rv_buf *text,
                      rv_err **err)
{
    const struct rv_message_filter filter = {.for_agents = true}; /* as the rest of the stream was told */
    struct words words = {run->id, text};
    rv_err *cause = NULL;

    if (!run->session || !run->session[0])
        return 0;
    int rc = rv_store_read_messages(store, scope, &(const struct rv_messages_of){run->session, &filter}, add_words,
                                    &words, &cause);
    if (rc != RV_E_NOT_FOUND)
        return rc < 0 ? rv_err_pass(err, cause) : 0;
    rv_err_free(cause);
    return 0;
}

int srv_lost_end_write(rv_store *store, const struct rv_store_scope *scope, const struct rv_run_row *run, rv_str event,
                       rv_buf *out, rv_err **err)
{
    struct rv_protocol_end end = {.status = run->status, .finish = RV_UNSET};
    rv_buf text = RV_BUF_INIT(RV_LLM_MAX_REPLY);
    json_object *done = NULL, *usage = NULL;
    rv_jw w = rv_jw_on(out);

    int rc = rv_app_read_event(event, &done, err);
    if (rc == 0)
        rc = read_words(store, scope, run, &text, err);
    if (rc == 0) {
        end.error = rv_json_text_or(done, "error", end.error);
        end.code = rv_json_text_or(done, "code", end.code);
        if (json_object_object_get_ex(done, "usage", &usage))
            RV_IGNORE(rv_usage_read_json(usage, &end.usage), "nothing was used");
        end.text = rv_buf_str(&text);
        rv_protocol_end_write(&end, &w);
        rc = rv_buf_check(out, "the end of a stream", err);
    }
    json_object_put(done);
    rv_buf_fini(&text);
    return rc;
}
