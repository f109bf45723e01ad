#include "tests/unit/graphs/notes.h"

#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"

/* Keep a text of an event: the branch of a call, the writer of a token, a branch that was cancelled. */
void notes_keep(struct notes *n, const char *key, const char *value)
{
    if (n->n == MAX_NOTES)
        return;
    n->keys[n->n] = rv_str_dup(rv_str_of(key));
    n->values[n->n++] = rv_str_dup(rv_str_of(value));
}

const char *notes_kept(const struct notes *n, const char *key)
{
    for (size_t i = 0; i < n->n; i++)
        if (strcmp(n->keys[i], key) == 0)
            return n->values[i];
    return NULL;
}

/* Those whose keys begin so. */
void notes_forget(struct notes *n, const char *prefix)
{
    size_t kept_n = 0;

    for (size_t i = 0; i < n->n; i++)
        if (strncmp(n->keys[i], prefix, strlen(prefix)) == 0) {
            free(n->keys[i]);
            free(n->values[i]);
        } else {
            n->keys[kept_n] = n->keys[i];
            n->values[kept_n++] = n->values[i];
        }
    n->n = kept_n;
}

int64_t *tally_at(struct tallies *t, const char *key)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->keys[i], key) == 0)
            return &t->counts[i];
    if (t->n == MAX_TALLIES)
        rv_kit_die("more than %d counts", MAX_TALLIES);
    t->keys[t->n] = rv_str_dup(rv_str_of(key));
    t->counts[t->n] = 0;
    return &t->counts[t->n++];
}

/* Forget those whose keys begin so. */
void tally_forget(struct tallies *t, const char *prefix)
{
    size_t kept_n = 0;

    for (size_t i = 0; i < t->n; i++)
        if (strncmp(t->keys[i], prefix, strlen(prefix)) == 0) {
            free(t->keys[i]);
        } else {
            t->keys[kept_n] = t->keys[i];
            t->counts[kept_n++] = t->counts[i];
        }
    t->n = kept_n;
}

bool path_is_inside(const char *path, const char *outer)
{
    size_t len = strlen(outer);

    return strncmp(path, outer, len) == 0 && (len == 0 || outer[len - 1] == '/' || outer[len - 1] == ']' ||
                                              path[len] == '\0' || path[len] == '/' || path[len] == '[');
}

/* The length of what names an inner run in a path, from its beginning: "s4/", "/s1#1:s2/s3/"; 0: the path has no inner
 * run after `from`. */
size_t path_run_after(const char *path, size_t from)
{
    for (size_t at = from, end; path[at]; at = end) {
        at += path[at] == '/';
        end = at + strcspn(path + at, "/[");
        if (path[at] == '[') /* an element */
            end = at + strcspn(path + at, "]") + 1;
        else if (path[end] == '/' && !memchr(path + at, '#', end - at))
            return end + 1;
    }
    return 0;
}

/* "PATH OF THE RUN|NAME" */
const char *path_key(const char *path, const char *name, rv_buf *b)
{
    size_t run = 0;

    for (size_t next = path_run_after(path, 0); next > 0; next = path_run_after(path, next))
        run = next;
    rv_buf_clear(b);
    rv_buf_printf(b, "%.*s|%s", (int)run, path, name);
    return rv_buf_cstr(b);
}

/* The pipeline of the run that is named by the first part of a path. */
const struct rv_pipeline *path_pipeline(const struct rv_pipeline *p, const char *path, size_t len)
{
    for (size_t next = path_run_after(path, 0); next > 0 && next <= len; next = path_run_after(path, next)) {
        size_t name = next - 1;
        while (name > 0 && path[name - 1] != '/' && path[name - 1] != ']')
            name--;
        p = p->agents[rv_pipeline_find_stage(p, (rv_str){path + name, next - 1 - name})].inner.pipeline;
    }
    return p;
}

/* Two paths part in one group: "/fork#visit:a..." and "/fork#visit:b...". */
bool path_are_siblings(const char *a, const char *b)
{
    size_t same = 0;

    while (a[same] && a[same] == b[same])
        same++;
    if (path_is_inside(a, b) || path_is_inside(b, a))
        return false;
    while (same > 0 && !strchr("/:", a[same - 1]))
        same--; /* to the beginning of the name or of the fork where they part */
    size_t one = strcspn(a + same, "/["), other = strcspn(b + same, "/[");
    return same > 0 && a[same - 1] == ':' && (one != other || strncmp(a + same, b + same, one) != 0);
}
