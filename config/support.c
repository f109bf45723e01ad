/* Memory, lists, paths, files and hints for the sections of a pipeline. Nothing here knows a key's name. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "config/config_internal.h"

#define HINT_NAMES    16   /* more names in a hint are noise */
#define NEAREST_NAMES 4000 /* candidates for a likely typo; each costs an edit distance */

struct rv_loader *rv_loader_of(struct rv_key_reader *r)
{
    return r->user;
}

void *rv_loader_array(struct rv_loader *l, size_t n, size_t size)
{
    void *items = rv_arena_alloc(l->arena, (n > 0 ? n : 1) * size);

    if (!items)
        l->rc = RV_E_NOMEM;
    return items;
}

static size_t length(struct rv_key_reader *r, const struct rv_node *node, enum rv_node_kind kind, const char *key,
                     size_t max, bool *ok)
{
    *ok = false;
    if (node->kind != kind) {
        rv_keys_wrong_type(r, node, key, kind == RV_NODE_LIST ? "a list" : "a map");
        return 0;
    }
    if (node->n > max) {
        rv_keys_finding(r, RV_SEVERITY_ERROR, &node->src, NULL, "%s has %zu entries (the limit is %zu)", key, node->n,
                        max);
        return 0;
    }
    *ok = true;
    return node->n;
}

size_t rv_list_length(struct rv_key_reader *r, const struct rv_node *node, const char *key, size_t max, bool *ok)
{
    return length(r, node, RV_NODE_LIST, key, max, ok);
}

size_t rv_map_length(struct rv_key_reader *r, const struct rv_node *node, const char *key, size_t max, bool *ok)
{
    return length(r, node, RV_NODE_MAP, key, max, ok);
}

const char *rv_loader_path(struct rv_loader *l, rv_str path)
{
    rv_str dir = rv_str_of(l->p->dir);
    char *joined;

    if ((path.len > 0 && path.ptr[0] == '/') || rv_str_is(dir, "."))
        dir.len = 0;
    joined = rv_arena_alloc(l->arena, dir.len + 1 + path.len + 1);
    if (!joined) {
        l->rc = RV_E_NOMEM;
        return NULL;
    }
    memcpy(joined, dir.ptr, dir.len);
    if (dir.len > 0 && joined[dir.len - 1] != '/')
        joined[dir.len++] = '/';
    memcpy(joined + dir.len, path.ptr, path.len);
    return joined;
}

static bool is_text(struct rv_loader *l, const char *what, const char *path, const struct rv_src *src, rv_str text)
{
    if (rv_utf8_valid(text, NULL) && (text.len == 0 || !memchr(text.ptr, 0, text.len)))
        return true;
    rv_findings_add(l->findings, RV_SEVERITY_ERROR, src, "save it as UTF-8", "%s: \"%s\" is no UTF-8 text", what, path);
    return false;
}

bool rv_loader_file(struct rv_loader *l, const char *what, const char *path, const struct rv_src *src, size_t max_bytes,
                    rv_str *out)
{
    rv_buf text = RV_BUF_INIT(max_bytes);
    struct stat st;
    rv_err *err = NULL;
    int rc;

    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) { /* a pipe would block, a device never ends */
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, src, NULL, "%s: \"%s\" is no regular file", what, path);
        return false;
    }
    rc = rv_file_read(path, &text, &err);
    if (rc == RV_E_NOMEM) {
        l->rc = rc;
    } else if (rc < 0) {
        rc = RV_WRAP(&err, rc, "%s", what);
        rv_findings_add_err(l->findings, RV_SEVERITY_ERROR, src, err);
    } else if (!is_text(l, what, path, src, rv_buf_str(&text))) {
        rc = RV_E_INVALID;
    } else {
        out->len = text.len;
        out->ptr = rv_arena_dup(l->arena, rv_buf_str(&text));
        if (!out->ptr)
            rc = l->rc = RV_E_NOMEM;
    }
    rv_err_free(err);
    rv_buf_fini(&text);
    return rc == 0;
}

/* Content from the caller's file source: as untrusted as files of the disk. */
static bool given_file(struct rv_loader *l, const char *what, const char *path, const struct rv_src *src, rv_str *out)
{
    rv_str text = {NULL, 0};

    if (!l->opts->file(l->opts->self, path, &text)) {
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, src, NULL, "%s: there is no \"%s\"", what, path);
        return false;
    }
    if (text.len > RV_MAX_PROMPT_BYTES) {
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, src, NULL, "%s: \"%s\" has %zu bytes (the limit is %zu)", what,
                        path, text.len, RV_MAX_PROMPT_BYTES);
        return false;
    }
    if (!is_text(l, what, path, src, text))
        return false;
    out->len = text.len;
    out->ptr = rv_arena_dup(l->arena, text);
    if (!out->ptr)
        l->rc = RV_E_NOMEM;
    return out->ptr != NULL;
}

bool rv_loader_text_file(struct rv_loader *l, const char *what, const char *path, const struct rv_src *src, rv_str *out)
{
    struct rv_pipeline_private *private = l->p->private;
    int at = rv_index_get(&l->file_index, rv_str_of(path));

    if (at >= 0) {
        *out = private->files[at].text;
        return true;
    }
    if (l->opts->file ? !given_file(l, what, path, src, out)
                      : !rv_loader_file(l, what, path, src, RV_MAX_PROMPT_BYTES, out))
        return false;
    l->n_file_bytes += out->len;
    if (l->n_file_bytes > RV_MAX_FILE_TOTAL_BYTES) {
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, src, NULL, "%s: all text files together exceed %zu bytes", what,
                        RV_MAX_FILE_TOTAL_BYTES);
        return false;
    }
    if (rv_index_add(&l->file_index, rv_str_of(path), (int)private->n_files) < 0) {
        l->rc = RV_E_NOMEM;
        return false;
    }
    private->files[private->n_files++] = (struct rv_text_file){path, *out};
    return true;
}

void rv_name_hint(const rv_findings *f, rv_str name, const char *what, const char *const *names, size_t n,
                  char out[RV_HINT_MAX])
{
    const char *near;
    size_t len = 0;

    out[0] = 0;
    if (rv_findings_n(f) >= RV_FINDINGS_MAX)
        return;
    near = rv_nearest(name, names, n < NEAREST_NAMES ? n : NEAREST_NAMES);
    if (near)
        len = (size_t)snprintf(out, RV_HINT_MAX, "did you mean \"%s\"? ", near);
    if (n == 0 && len < RV_HINT_MAX)
        len += (size_t)snprintf(out + len, RV_HINT_MAX - len, "there are no %s", what);
    else if (len < RV_HINT_MAX)
        len += (size_t)snprintf(out + len, RV_HINT_MAX - len, "%s: ", what);
    for (size_t i = 0; i < n && i < HINT_NAMES && len < RV_HINT_MAX; i++)
        len += (size_t)snprintf(out + len, RV_HINT_MAX - len, "%s%s", i > 0 ? ", " : "", names[i]);
    if (n > HINT_NAMES && len < RV_HINT_MAX)
        snprintf(out + len, RV_HINT_MAX - len, ", ... (%zu in all)", n);
}
