/* What is kept, and how long: the rules of `reeve gc`. */
#ifndef RV_APP_RETENTION_H
#define RV_APP_RETENTION_H

#include "coreengine/app/app.h"

struct rv_retention_rule {
    const char *pipeline; /* "": any */
    unsigned statuses;    /* bits 1u << enum rv_run_status */
    int64_t max_age_us;   /* since the run was last touched; < 0: any */
    int64_t max_count;    /* of those that the rule fits, the newest; < 0: any number */
    int line;             /* in the file; 0: of the command line */
    int64_t n_fit;        /* runs seen so far, newest first */
};
typedef struct rv_retention rv_retention;

#define RV_STATUSES_OVER                                                                                               \
    (1u << RV_RUN_COMPLETED | 1u << RV_RUN_TERMINATED | 1u << RV_RUN_FAILED | 1u << RV_RUN_CANCELLED)

/** Faults become findings; *out may be NULL then. */
RV_MUST_CHECK int rv_retention_read(const char *path, rv_findings *findings, rv_retention **out, rv_err **err);
/** One rule for every run that is over. NULL on out of memory. */
rv_retention *rv_retention_of_age(int64_t max_age_us);
void rv_retention_free(rv_retention *r);
/** Is this run to be deleted? Asked once for each run, newest first. The rule that says so; NULL: it stays. */
const struct rv_retention_rule *rv_retention_drops(rv_retention *r, const struct rv_run_row *row, int64_t now_us);
void rv_retention_write_schema(rv_jw *w);
void rv_retention_write_reference(rv_buf *b); /* docs/reference/retention.md */

#endif
