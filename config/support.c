/* Memory, lists, paths, files, hints and indirections for the sections of a pipeline. Nothing here knows a key's name.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/config_internal.h"

#define HINT_NAMES    16   /* more names in a hint are noise */
#define NEAREST_NAMES 4000 /* candidates for a likely typo; each costs an edit distance */

struct rv_loader *config_loader_of(struct rv_key_reader *r)
{
    return r->user;
}

void *config_loader_array(struct rv_loader *l, size_t n, size_t size)
{
    void *items = rv_arena_alloc(l->arena, (n > 0 ? n : 1) * size);

    if (!items)
        l->rc = RV_E_NOMEM;
    return items;
}

void *config_loader_items(struct rv_key_reader *r, const struct rv_node *node, const char *key,
                          const struct rv_items *want, size_t *n)
{
    void *items = NULL;

    *n = 0;
    if (node->kind != want->kind)
        rv_keys_add_wrong_type(r, node, key, want->what);
    else if (node->n > want->max)
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, NULL, "%s has %zu entries (the limit is %zu)", key,
                            node->n, want->max);
    else if ((items = config_loader_array(config_loader_of(r), node->n, want->size)))
        *n = node->n;
    return items;
}

const char *config_loader_path(struct rv_loader *l, rv_str path)
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

static bool check_text(struct rv_loader *l, const char *what, const char *path, const struct rv_src *src, rv_str text)
{
    if (rv_utf8_valid(text, NULL) && (text.len == 0 || !memchr(text.ptr, 0, text.len)))
        return true;
    rv_findings_add(l->findings, RV_SEVERITY_ERROR, src, "save it as UTF-8", "%s: \"%s\" is not UTF-8 text", what,
                    path);
    return false;
}

/* Read a regular file, at most max_bytes, NUL-terminated in the arena. False: a finding at src says why (or NOMEM). */
static bool loader_file(struct rv_loader *l, const char *what, const char *path, const struct rv_src *src,
                        size_t max_bytes, rv_str *out)
{
    rv_buf text = RV_BUF_INIT(max_bytes);
    struct stat st;
    rv_err *err = NULL;
    int rc;

    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) { /* a pipe would block, a device never ends */
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, src, NULL, "%s: \"%s\" is not a regular file", what, path);
        return false;
    }
    rc = rv_file_read(path, &text, &err);
    if (rc == RV_E_NOMEM) {
        l->rc = rc;
    } else if (rc < 0) {
        if (rc == RV_E_NOT_FOUND)
            rv_err_set_hint(&err, "paths start at the folder of the pipeline");
        rc = RV_WRAP(&err, rc, "%s", what);
        rv_findings_add_err(l->findings, RV_SEVERITY_ERROR, src, err);
    } else if (!check_text(l, what, path, src, rv_buf_str(&text))) {
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

/* Line ends of Windows become those that YAML gives its texts: the tag of a section that is alone on its line takes the
 * whole line with it. False: out of memory. */
static bool unify_line_ends(struct rv_loader *l, rv_str *text)
{
    char *copy;
    size_t n = 0;

    if (text->len == 0 || !memchr(text->ptr, '\r', text->len))
        return true;
    copy = rv_arena_alloc(l->arena, text->len + 1);
    if (!copy) {
        l->rc = RV_E_NOMEM;
        return false;
    }
    for (size_t i = 0; i < text->len; i++)
        if (text->ptr[i] != '\r' || text->ptr[i + 1] != '\n') /* a NUL stands behind the text */
            copy[n++] = text->ptr[i];
    *text = (rv_str){copy, n};
    return true;
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
    if (!check_text(l, what, path, src, text))
        return false;
    out->len = text.len;
    out->ptr = rv_arena_dup(l->arena, text);
    if (!out->ptr)
        l->rc = RV_E_NOMEM;
    return out->ptr != NULL;
}

/* Files of inner pipelines were not counted. */
static bool room_for_file(struct rv_loader *l)
{
    struct rv_pipeline_internal *internal = l->p->internal;
    size_t cap = internal->cap_files * 2 + 8;

    if (internal->n_files < internal->cap_files)
        return true;
    struct rv_text_file *files = config_loader_array(l, cap, sizeof *files);
    if (!files)
        return false;
    for (size_t i = 0; i < internal->n_files; i++)
        files[i] = internal->files[i];
    internal->files = files;
    internal->cap_files = cap;
    return true;
}

bool config_loader_text_file(struct rv_loader *l, const char *what, const char *path, const struct rv_src *src,
                             rv_str *out)
{
    struct rv_pipeline_internal *internal = l->p->internal;
    int at = rv_index_get(&l->file_index, rv_str_of(path));

    if (at >= 0) {
        *out = internal->files[at].text;
        return true;
    }
    /* Of a run that goes on the texts are as it began with them. */
    if (l->opts->file ? !given_file(l, what, path, src, out)
                      : !loader_file(l, what, path, src, RV_MAX_PROMPT_BYTES, out) || !unify_line_ends(l, out))
        return false;
    l->n_file_bytes += out->len;
    if (l->n_file_bytes > RV_MAX_FILE_TOTAL_BYTES) {
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, src, NULL, "%s: all text files together exceed %zu bytes", what,
                        RV_MAX_FILE_TOTAL_BYTES);
        return false;
    }
    if (!room_for_file(l) || rv_index_add(&l->file_index, rv_str_of(path), (int)internal->n_files) < 0) {
        l->rc = RV_E_NOMEM;
        return false;
    }
    internal->files[internal->n_files++] = (struct rv_text_file){path, *out};
    return true;
}

static bool is_repeated(const char *const *names, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(names[k], names[i]) == 0)
            return true;
    return false;
}

void config_name_hint(const rv_findings *f, rv_str name, const char *what, const char *const *names, size_t n,
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
        if (!is_repeated(names, i))
            len += (size_t)snprintf(out + len, RV_HINT_MAX - len, "%s%s", i > 0 ? ", " : "", names[i]);
    if (n > HINT_NAMES && len < RV_HINT_MAX)
        snprintf(out + len, RV_HINT_MAX - len, ", ... (%zu in all)", n);
}

/* --- Indirections --- */

/* ${env:NAME} and ${file:path}: the only ways in which a file refers to something outside the file. Their values are
 * inserted once, not expanded again, and never printed. */

static const char *find(rv_str text, size_t from, const char *what)
{
    return text.len > from ? memmem(text.ptr + from, text.len - from, what, strlen(what)) : NULL;
}

/* The next "${env:" or "${file:" at or after from. */
static const char *next_indirection(rv_str text, size_t from)
{
    const char *env = find(text, from, "${env:");
    const char *file = find(text, from, "${file:");

    if (!env || !file)
        return env ? env : file;
    return env < file ? env : file;
}

bool rv_has_indirection(rv_str text)
{
    return next_indirection(text, 0) != NULL;
}

/* "${word:" or "${word}" of another kind: surely meant as one of the two. */
static void check_others(struct rv_loader *l, rv_str text, const struct rv_src *src, struct rv_indirection *how)
{
    char hint[RV_HINT_MAX];

    for (const char *at = find(text, 0, "${"); at; at = find(text, (size_t)(at - text.ptr) + 2, "${")) {
        size_t left = text.len - (size_t)(at - text.ptr), n = 2;
        while (n < left && (isalnum((unsigned char)at[n]) || at[n] == '_'))
            n++;
        bool is_word = n > 2 && n < left && (at[n] == ':' || at[n] == '}');
        bool known = strncmp(at, "${env:", 6) == 0 || strncmp(at, "${file:", 7) == 0;
        if (!is_word || known)
            continue;
        how->is_wrong = true;
        snprintf(hint, sizeof hint, at[n] == '}' ? "write ${env:%.*s}" : "write ${env:NAME} or ${file:path}",
                 (int)(n - 2 < 100 ? n - 2 : 100), at + 2);
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, src, hint, "\"%.*s\" is not a known indirection", (int)(n + 1),
                        at);
    }
}

static bool is_variable_name(rv_str s)
{
    if (s.len == 0 || (s.ptr[0] >= '0' && s.ptr[0] <= '9'))
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!isalnum((unsigned char)s.ptr[i]) && s.ptr[i] != '_')
            return false;
    return true;
}

static void add_variable(struct rv_loader *l, rv_str name, const struct rv_src *src, struct rv_indirection *how,
                         rv_buf *out)
{
    char key[256];
    const char *value;

    if (!is_variable_name(name) || name.len >= sizeof key) {
        how->is_wrong = true;
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, src, "write ${env:NAME}",
                        "\"%.*s\" is not the name of an environment variable", RV_STR_ARG(rv_utf8_cut(name, 100)));
        return;
    }
    memcpy(key, name.ptr, name.len);
    key[name.len] = 0;
    value = getenv(key);
    if (!value || !value[0]) {
        how->is_missing = true;
        if (!how->missing && !(how->missing = rv_arena_dup(l->arena, name)))
            l->rc = RV_E_NOMEM;
        if (!how->missing_ok && !l->opts->offline)
            rv_findings_add(l->findings, RV_SEVERITY_ERROR, src,
                            l->opts->models ? "set it again: it was set when this was begun"
                                            : "set it; a model with \"optional: true\" is left out while it is not set",
                            "the environment variable \"%s\" is %s", key, value ? "empty" : "not set");
        return;
    }
    if (!rv_utf8_valid(rv_str_of(value), NULL) || strlen(value) > RV_MAX_SECRET_BYTES) {
        if (l->opts->offline) {
            how->is_missing = true;
            return;
        }
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, src, NULL,
                        "the environment variable \"%s\" is too long or no UTF-8 text", key);
        return;
    }
    rv_buf_puts(out, value);
}

static void add_file(struct rv_loader *l, rv_str name, const struct rv_src *src, struct rv_indirection *how,
                     rv_buf *out)
{
    const char *path;
    rv_str text = {NULL, 0};

    if (l->opts->offline) {
        how->is_missing = true;
        return;
    }
    path = config_loader_path(l, name);
    if (!path || !loader_file(l, "${file:}", path, src, RV_MAX_SECRET_BYTES, &text)) {
        how->is_wrong = true;
        return;
    }
    while (text.len > 0 && (text.ptr[text.len - 1] == '\n' || text.ptr[text.len - 1] == '\r'))
        text.len--; /* editors end files with a line break that does not belong to a key */
    rv_buf_add_str(out, text);
}

static json_object *resolve_text(struct rv_loader *l, const struct rv_node *node, struct rv_indirection *how)
{
    struct rv_src src = node->src;
    rv_buf out = RV_BUF_INIT(RV_YAML_MAX_BYTES);
    json_object *value = NULL;
    size_t at = 0;

    check_others(l, node->text, &src, how);
    for (;;) {
        const char *start = next_indirection(node->text, at);
        const char *end = start ? find(node->text, (size_t)(start - node->text.ptr), "}") : NULL;
        rv_str inside;

        if (!start || !end) {
            if (start)
                rv_findings_add(l->findings, RV_SEVERITY_ERROR, &src, NULL, "\"${\" without \"}\"");
            break;
        }
        rv_buf_add(&out, node->text.ptr + at, (size_t)(start - node->text.ptr) - at);
        how->replaced = true;
        inside = (rv_str){strchr(start, ':') + 1, 0};
        inside.len = (size_t)(end - inside.ptr);
        if (start[2] == 'e')
            add_variable(l, inside, &src, how, &out);
        else
            add_file(l, inside, &src, how, &out);
        at = (size_t)(end - node->text.ptr) + 1;
    }
    rv_buf_add(&out, node->text.ptr + at, node->text.len - at);
    if (out.rc == RV_E_LIMIT)
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, &src, NULL, "the value grows beyond %zu bytes",
                        RV_YAML_MAX_BYTES);
    else if (out.rc == 0)
        value = json_object_new_string_len(rv_buf_cstr(&out), (int)out.len);
    if (!value && out.rc != RV_E_LIMIT)
        l->rc = RV_E_NOMEM;
    rv_buf_fini(&out);
    return value;
}

json_object *config_resolve_indirections(struct rv_loader *l, const struct rv_node *node, struct rv_indirection *how)
{
    json_object *value = NULL;
    rv_err *err = NULL;
    int rc = 0;

    switch (node->kind) {
    case RV_NODE_STR:
        return resolve_text(l, node, how);
    case RV_NODE_LIST:
        value = json_object_new_array();
        for (size_t i = 0; value && rc == 0 && i < node->n; i++) {
            json_object *item = config_resolve_indirections(l, node->items[i], how);
            rc = rv_json_push_ref(
                value, item,
                RV_CODE_ONLY("adding an item fails without memory only, and rc is judged behind the loop"));
            json_object_put(item);
        }
        break;
    case RV_NODE_MAP:
        value = json_object_new_object();
        for (size_t i = 0; value && rc == 0 && i < node->n; i++) {
            json_object *item = config_resolve_indirections(l, node->items[i], how);
            rc = rv_json_set_ref(
                value, node->keys[i]->text.ptr, item,
                RV_CODE_ONLY("setting a member fails without memory only, and rc is judged behind the loop"));
            json_object_put(item);
        }
        break;
    case RV_NODE_NULL:
        return NULL;
    case RV_NODE_BOOL:
    case RV_NODE_INT:
    case RV_NODE_FLOAT:
        rc = rv_node_build_json(node, &value, &err);
        if (rc < 0 && rc != RV_E_NOMEM)
            rv_findings_add_err(l->findings, RV_SEVERITY_ERROR, &node->src, err);
        if (rc == RV_E_NOMEM)
            l->rc = rc;
        rv_err_free(err);
        return value;
    case RV_N_NODE_KINDS:
        break;
    }
    if (!value || rc < 0) {
        l->rc = RV_E_NOMEM;
        json_object_put(value);
        return NULL;
    }
    return value;
}
