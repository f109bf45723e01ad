/* Which run a word means: an id, or the beginning of one; and what was probably meant when it is neither. */
#include "coreengine/app/app_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NAMED   8   /* runs that are listed when a word fits several: a screen holds them with the message */
#define MAX_NEAREST 500 /* newest runs that a mistyped id is compared with: people type ids that they just saw */

struct candidates {
    char ids[MAX_NEAREST][RV_STORE_MAX_ID + 1];
    size_t n, max;
};

static int collect(void *self, const struct rv_run_row *row, rv_err **err)
{
    struct candidates *c = self;
    size_t len = strlen(row->id);

    (void)err;
    if (c->n < c->max && len <= RV_STORE_MAX_ID)
        memcpy(c->ids[c->n++], row->id, len + 1);
    return 0;
}

static int list_candidates(rv_store *store, const struct rv_store_scope *scope, const char *prefix, size_t max,
                           struct candidates **out, rv_err **err)
{
    struct rv_run_filter filter = {.id_prefix = prefix, .limit = (int64_t)max};
    struct candidates *c = calloc(1, sizeof *c);

    if (!c)
        return RV_FAIL(err, RV_E_NOMEM, "look for a run");
    c->max = max;
    int rc = rv_store_list_runs(store, scope, &filter, collect, c, err);
    if (rc < 0)
        free(c);
    else
        *out = c;
    return rc;
}

static int unknown_run(rv_store *store, const struct rv_store_scope *scope, const char *word, rv_err **err)
{
    struct candidates *c = NULL;
    const char *ids[MAX_NEAREST], *near;

    int rc = list_candidates(store, scope, NULL, MAX_NEAREST, &c, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < c->n; i++)
        ids[i] = c->ids[i];
    near = rv_nearest(rv_str_of(word), ids, c->n);
    rc = RV_FAIL(err, RV_E_NOT_FOUND, "unknown run \"%s\"", word);
    if (c->n == 0 && scope->user)
        rv_err_set_hint(err, "the store \"%s\" has no runs of user \"%s\"", rv_store_url(store), scope->user);
    else if (c->n == 0)
        rv_err_set_hint(err, "the store \"%s\" has no runs", rv_store_url(store));
    else if (near)
        rv_err_set_hint(err, "did you mean %s? `reeve runs` lists all", near);
    else
        rv_err_set_hint(err, "`reeve runs` lists all; \"last\" is the newest one");
    free(c);
    return rc;
}

static int ambiguous(const char *word, const struct candidates *c, rv_err **err)
{
    rv_buf names = RV_BUF_INIT((MAX_NAMED + 1) * (RV_STORE_MAX_ID + 2));
    size_t shown = c->n > MAX_NAMED ? MAX_NAMED : c->n;

    for (size_t i = 0; i < shown; i++)
        rv_buf_printf(&names, "%s%s", i ? ", " : "", c->ids[i]);
    int rc = RV_FAIL(err, RV_E_INVALID, "more than one run begins with \"%s\"", word);
    rv_err_set_hint(err, "newest first: %s%s", rv_buf_cstr(&names), c->n > shown ? ", ..." : "");
    rv_buf_fini(&names);
    return rc;
}

int rv_app_find_run(rv_store *store, const struct rv_store_scope *scope, const char *word, struct rv_run_row *out,
                    rv_err **err)
{
    struct candidates *c = NULL;
    rv_err *cause = NULL;
    bool newest = strcmp(word, "last") == 0;

    if (!newest) {
        int rc = rv_store_get_run(store, scope, word, out, &cause);
        if (rc != RV_E_NOT_FOUND) {
            if (rc < 0)
                rv_err_pass(err, cause);
            return rc;
        }
        rv_err_free(cause);
    }
    int rc = list_candidates(store, scope, newest ? NULL : word, newest ? 1 : MAX_NAMED + 1, &c, err);
    if (rc < 0)
        return rc;
    if (c->n == 0 || !word[0])
        rc = unknown_run(store, scope, word, err);
    else if (c->n > 1)
        rc = ambiguous(word, c, err);
    else
        rc = rv_store_get_run(store, scope, c->ids[0], out, err);
    free(c);
    return rc;
}
