/* Sessions by words of their messages. Messages may be encrypted, so they are read as their owner reads them, newest
 * session first; nothing is read behind the last session that is wanted. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coreengine/app/memory.h"

struct grep {
    rv_store *store;
    const struct rv_store_scope *scope;
    const char *text;
    char **ids;  /* owned, and each of them; of those whose name has the text the first byte of `named` is set */
    bool *named; /* owned */
    size_t n, cap, cap_named;
    bool is_found;
};

/* ASCII letters in any case. */
static bool contains(const char *bytes, size_t len, const char *part)
{
    size_t n = strlen(part);

    for (size_t i = 0; i + n <= len; i++)
        if (strncasecmp(bytes + i, part, n) == 0)
            return true;
    return false;
}

static int note(void *self, const struct rv_session_row *row, rv_err **err)
{
    struct grep *g = self;

    if (!rv_has_room(&g->ids, &g->cap, g->n + 1, sizeof *g->ids) ||
        !rv_has_room(&g->named, &g->cap_named, g->n + 1, sizeof *g->named) ||
        !(g->ids[g->n] = rv_str_dup(rv_str_of(row->id))))
        return RV_FAIL(err, RV_E_NOMEM, "search sessions");
    g->named[g->n++] = row->name && contains(row->name, strlen(row->name), g->text);
    return 0;
}

static int look(void *self, const struct rv_message *m, rv_err **err)
{
    struct grep *g = self;

    (void)err;
    g->is_found = m->content.len > 0 && !m->is_hidden && contains(m->content.ptr, m->content.len, g->text);
    return g->is_found ? RV_STORE_ENOUGH : 0;
}

/* Is the i-th one of them? One that was deleted meanwhile is not. */
static int fits(struct grep *g, size_t i, bool *out, rv_err **err)
{
    const struct rv_message_filter all = {.newest_first = true};
    rv_err *why = NULL;

    g->is_found = g->named[i];
    *out = g->is_found;
    if (g->is_found)
        return 0;
    int rc = rv_store_read_messages(g->store, g->scope, &(const struct rv_messages_of){g->ids[i], &all}, look, g, &why);
    if (rc < 0 && rc != RV_E_NOT_FOUND) {
        rv_err_pass(err, why);
        return rc;
    }
    rv_err_free(why);
    *out = g->is_found;
    return 0;
}

static int give(const struct grep *g, size_t i, int (*each)(void *self, const struct rv_session_row *row, rv_err **err),
                void *self, rv_err **err)
{
    struct rv_session_row row;
    rv_err *why = NULL;
    int rc = rv_store_get_session(g->store, g->scope, g->ids[i], &row, &why);

    if (rc == RV_E_NOT_FOUND) { /* deleted meanwhile */
        rv_err_free(why);
        return 0;
    }
    if (rc < 0) {
        rv_err_pass(err, why);
        return rc;
    }
    rc = each(self, &row, err);
    rv_session_row_fini(&row);
    return rc;
}

int rv_app_grep_sessions(rv_store *store, const struct rv_store_scope *scope, const struct rv_session_grep *grep,
                         int (*each)(void *self, const struct rv_session_row *row, rv_err **err), void *self,
                         rv_err **err)
{
    struct grep g = {.store = store, .scope = scope, .text = grep->text};
    struct rv_session_filter all = *grep->filter;
    int64_t n_found = 0, n_given = 0;

    all.offset = 0;
    all.limit = RV_APP_MAX_GREP;
    int rc = rv_store_list_sessions(store, scope, &all, note, &g, err);
    for (size_t i = 0; i < g.n && rc == 0 && (grep->filter->limit == 0 || n_given < grep->filter->limit); i++) {
        bool is_one = false;
        rc = fits(&g, i, &is_one, err);
        if (rc == 0 && is_one && n_found++ >= grep->filter->offset) {
            rc = give(&g, i, each, self, err);
            n_given++;
        }
    }
    for (size_t i = 0; i < g.n; i++)
        free(g.ids[i]);
    free(g.ids);
    free(g.named);
    return rc;
}
