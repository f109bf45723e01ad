/* The list of the gallery: where it is, and its items. gallery_copy.c copies one of them. */
#include "coreengine/app/gallery_internal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coreengine/lang/lang.h"

#define MAX_ITEMS 200 /* people read the list: it stays a few screens long */

struct rv_gallery {
    char folder[PATH_MAX];
    rv_yaml *list;                 /* the texts of the items are in it; owned */
    struct rv_gallery_item *items; /* owned */
    size_t n;
};

/* <prefix>/bin/reeve -> <prefix>/share/reeve/pipelines: a build tree has a link there. */
static int find_folder(rv_gallery *g, rv_err **err)
{
    char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);

    for (int up = 0; len > 0 && up < 2; up++) {
        path[len] = '\0';
        const char *slash = strrchr(path, '/');
        len = slash ? slash - path : -1;
    }
    if (len < 0)
        return RV_FAIL(err, RV_E_NOT_FOUND, "the folder of this program is not known: the gallery is found beside it");
    path[len] = '\0';
    int n = snprintf(g->folder, sizeof g->folder, "%s/share/reeve/pipelines", path);
    return n > 0 && (size_t)n < sizeof g->folder ? 0 : RV_FAIL(err, RV_E_LIMIT, "the path of the gallery is too long");
}

static int read_text(const struct rv_node *item, const char *key, const char **out, rv_err **err)
{
    const struct rv_node *node = rv_node_get(item, key);

    if (!node || node->kind != RV_NODE_STR || node->text.len == 0)
        return RV_FAIL_AT(err, &item->src, RV_E_INVALID, "an item of the gallery has no text \"%s\"", key);
    *out = node->text.ptr;
    return 0;
}

static int read_files(const struct rv_node *list, struct rv_gallery_item *out, rv_err **err)
{
    for (size_t i = 0; list && i < list->n; i++) {
        const struct rv_node *file = list->items[i];
        bool inside = file->kind == RV_NODE_STR && file->text.ptr[0] != '/' && !strstr(file->text.ptr, "..");
        if (!inside || out->n_files == RV_GALLERY_MAX_FILES)
            return RV_FAIL_AT(err, &file->src, RV_E_INVALID, "an item names at most %d files of the gallery",
                              RV_GALLERY_MAX_FILES);
        out->files[out->n_files++] = file->text.ptr;
    }
    return 0;
}

static int read_item(const struct rv_node *node, struct rv_gallery_item *out, rv_err **err)
{
    int rc = read_text(node, "name", &out->name, err);

    if (rc == 0)
        rc = read_text(node, "summary", &out->summary, err);
    if (rc == 0)
        rc = read_text(node, "does", &out->does, err);
    if (rc == 0)
        rc = read_text(node, "change", &out->change, err);
    if (rc == 0)
        rc = read_text(node, "input", &out->input, err);
    out->options = "";
    if (rc == 0 && rv_node_get(node, "options"))
        rc = read_text(node, "options", &out->options, err);
    return rc == 0 ? read_files(rv_node_get(node, "files"), out, err) : rc;
}

static int read_list(rv_gallery *g, const struct rv_node *root, rv_err **err)
{
    int rc = 0;

    if (!root || root->kind != RV_NODE_LIST || root->n > MAX_ITEMS)
        return RV_FAIL(err, RV_E_INVALID, "the gallery is a list of at most %d pipelines", MAX_ITEMS);
    g->items = calloc(root->n + 1, sizeof *g->items);
    if (!g->items)
        return RV_FAIL(err, RV_E_NOMEM, "read the gallery");
    for (; rc == 0 && g->n < root->n; g->n++)
        rc = read_item(root->items[g->n], &g->items[g->n], err);
    return rc;
}

int rv_gallery_open(rv_gallery **out, rv_err **err)
{
    rv_gallery *g = calloc(1, sizeof *g);
    rv_findings *findings = rv_findings_new();
    rv_buf path = RV_BUF_INIT(PATH_MAX);
    int rc = g && findings ? find_folder(g, err) : RV_FAIL(err, RV_E_NOMEM, "open the gallery");

    if (rc == 0) {
        rv_buf_printf(&path, "%s/gallery/gallery.yaml", g->folder);
        rc = rv_buf_check(&path, "the path of the gallery", err);
    }
    if (rc == 0)
        rc = rv_yaml_read(rv_buf_cstr(&path), findings, &g->list, err);
    if (rc == 0)
        rc = rv_findings_raise_first_error(findings, err);
    if (rc == 0)
        rc = read_list(g, rv_yaml_root(g->list), err);
    if (rc == 0) {
        *out = g;
        g = NULL;
    }
    rv_gallery_free(g);
    rv_findings_free(findings);
    rv_buf_fini(&path);
    return rc < 0 ? RV_WRAP(err, rc, "open the gallery") : 0;
}

void rv_gallery_free(rv_gallery *g)
{
    if (!g)
        return;
    free(g->items);
    rv_yaml_free(g->list);
    free(g);
}

size_t rv_gallery_n(const rv_gallery *g)
{
    return g->n;
}

const struct rv_gallery_item *rv_gallery_at(const rv_gallery *g, size_t i)
{
    return &g->items[i];
}

const char *app_gallery_folder(const rv_gallery *g)
{
    return g->folder;
}

int rv_gallery_find(const rv_gallery *g, const char *name, const struct rv_gallery_item **out, rv_err **err)
{
    const char *names[MAX_ITEMS];

    for (size_t i = 0; i < g->n; i++) {
        names[i] = g->items[i].name;
        if (strcmp(names[i], name) == 0) {
            *out = &g->items[i];
            return 0;
        }
    }
    const char *near = rv_nearest(rv_str_of(name), names, g->n);
    int rc = RV_FAIL(err, RV_E_NOT_FOUND, "the gallery has no pipeline \"%s\"", name);
    if (near)
        rv_err_set_hint(err, "did you mean \"%s\"? `reeve new pipeline --list` lists all", near);
    else
        rv_err_set_hint(err, "`reeve new pipeline --list` lists all");
    return rc;
}
