/* How often a run was taken over without getting any further: it ends the process that recovers it, or that process is
 * ended each time. Read backwards from the end of the journal. */
#include <string.h>

#include "coreengine/store/journal/journal_internal.h"

#define PAGE 32 /* records that are read at once */

struct tail {
    int64_t n; /* changes of owner since the last progress */
    bool has_progress;
};

/* A take-over writes its owner, the event "recover", and the calls that this event asks for. */
static int is_progress(const struct rv_record *r, bool *out, rv_err **err)
{
    json_object *body = NULL;
    const char *event = "";
    int rc = 0;

    *out = r->kind == RV_RECORD_BEGIN;
    if (r->kind == RV_RECORD_EVENT) {
        rc = rv_record_get_body(r, &body, err);
        *out = rc == 0 && !(rv_json_get_text(body, "event", &event) && strcmp(event, "recover") == 0);
        json_object_put(body);
    }
    return rc;
}

static int look(void *self, const struct rv_record *r, rv_err **err)
{
    struct tail *tail = self;
    bool progress = false;

    int rc = is_progress(r, &progress, err);
    if (rc < 0)
        return RV_WRAP(err, rc, "journal record %lld", (long long)r->seq);
    tail->has_progress = tail->has_progress || progress;
    tail->n = progress ? 0 : tail->n + (r->kind == RV_RECORD_OWNER);
    return 0;
}

int rv_journal_takeovers(rv_store *store, const struct rv_store_scope *scope, const struct rv_run_row *row,
                         int64_t *out, rv_err **err)
{
    int64_t n = 0;

    for (int64_t upto = row->n_records; upto > 0; upto -= PAGE) {
        struct tail tail = {0, false};
        int rc = rv_store_read(store, scope, row->id, upto > PAGE ? upto - PAGE + 1 : 1, upto, look, &tail, err);
        if (rc < 0)
            return rc;
        n += tail.n;
        if (tail.has_progress)
            break;
    }
    *out = n;
    return 0;
}
