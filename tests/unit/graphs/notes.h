/* What a play keeps of the events it sees, by key, and what it reads out of the paths of branches. */
#ifndef RV_TEST_GRAPHS_NOTES_H
#define RV_TEST_GRAPHS_NOTES_H

#include "config/config.h"

/* How often something happened, by some key. */
#define MAX_TALLIES 1000
struct tallies {
    char *keys[MAX_TALLIES]; /* owned */
    int64_t counts[MAX_TALLIES];
    size_t n;
};
/* What events said, by some key. */
#define MAX_NOTES 4000
struct notes {
    char *keys[MAX_NOTES], *values[MAX_NOTES]; /* owned */
    size_t n;
};

void notes_keep(struct notes *n, const char *key, const char *value);
const char *notes_kept(const struct notes *n, const char *key); /* NULL: nothing */
void notes_forget(struct notes *n, const char *prefix);         /* those whose keys begin so; "": all */
int64_t *tally_at(struct tallies *t, const char *key);
void tally_forget(struct tallies *t, const char *prefix);

bool path_is_inside(const char *path, const char *outer);
/** The length of what names an inner run in a path, from its beginning: "s4/", "/s1#1:s2/s3/"; 0: the path has no inner
 * run after `from`. */
size_t path_run_after(const char *path, size_t from);
/** "PATH OF THE RUN|NAME" */
const char *path_key(const char *path, const char *name, rv_buf *b);
/** The pipeline of the run that is named by the first part of a path. */
const struct rv_pipeline *path_pipeline(const struct rv_pipeline *p, const char *path, size_t len);
/** Two paths part in one group: "/fork#visit:a..." and "/fork#visit:b...". */
bool path_are_siblings(const char *a, const char *b);

#endif
