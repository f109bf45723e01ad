/* Roots, and which path belongs to which. A root's label is the last part of its path, so that answers name files the
 * way people know them: the root "../docs" gives "docs/guide.md". */
#include "capabilities/files/files_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The last part of a path that names something: "../docs/" gives "docs"; "." and ".." give "". */
static void label_of(const char *path, char *out, size_t size)
{
    size_t end = strlen(path), start;

    while (end > 1 && path[end - 1] == '/')
        end--;
    start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    snprintf(out, size, "%.*s", (int)(end - start), path + start);
    if (strcmp(out, ".") == 0 || strcmp(out, "..") == 0 || strcmp(out, "/") == 0)
        out[0] = '\0';
}

#define MAX_SHOWN  100 /* bytes of a path in an error: the reason behind it has to fit as well */
#define NUMBER_(n) #n
#define NUMBER(n)  NUMBER_(n) /* of a macro, in a text */

static bool fail_root(const char *path, const char *why, char *error, size_t error_size)
{
    size_t n = strnlen(path, MAX_SHOWN);

    while (n > 0 && ((unsigned char)path[n] & 0xc0) == 0x80) /* not within a character */
        n--;
    snprintf(error, error_size, "root \"%.*s%s\": %s", (int)n, path, path[n] ? "..." : "", why);
    return false;
}

/* Fill root from what is at `full`; the folder is kept open, so that the root stays the same folder even if another
 * process moves it. */
static bool open_root(struct root *root, const char *full, const char **why)
{
    struct stat st;

    *why = "out of memory";
    if (stat(full, &st) != 0) {
        *why = errno == ENOENT ? "there is no such file or folder" : "it cannot be examined";
        return false;
    }
    if (S_ISREG(st.st_mode)) {
        const char *slash = strrchr(full, '/');
        char folder[MAX_PATH_BYTES * 2];

        snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - full) + 1 : 1, slash ? full : ".");
        root->file = strdup(slash ? slash + 1 : full);
        if (!root->file)
            return false;
        root->fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    } else if (S_ISDIR(st.st_mode)) {
        root->fd = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    } else {
        *why = "it is neither a file nor a folder";
        return false;
    }
    if (root->fd < 0)
        *why = "it cannot be opened";
    return root->fd >= 0;
}

static void root_close(struct root *root)
{
    if (root->fd >= 0)
        close(root->fd);
    free(root->file);
    free(root->label);
}

bool root_add(struct files *f, const char *base_dir, const char *path, char *error, size_t error_size)
{
    char full[MAX_PATH_BYTES * 2], label[MAX_PATH_BYTES];
    struct root root = {NULL, -1, NULL};
    const char *why = NULL;

    if (!path || strlen(path) >= MAX_PATH_BYTES || strlen(base_dir) >= MAX_PATH_BYTES)
        return fail_root(path ? path : "", "the path has " NUMBER(MAX_PATH_BYTES) " bytes or more", error, error_size);
    if (f->n_roots >= MAX_ROOTS)
        return fail_root(path, "there are more than " NUMBER(MAX_ROOTS), error, error_size);
    snprintf(full, sizeof full, "%s%s%s", path[0] == '/' ? "" : base_dir, path[0] == '/' ? "" : "/", path);
    label_of(path, label, sizeof label);
    for (size_t i = 0; i < f->n_roots; i++)
        if (strcmp(f->roots[i].label, label) == 0)
            return fail_root(path, "another root has the same last part, so that paths would be ambiguous", error,
                             error_size);
    if (!open_root(&root, full, &why) || !(root.label = strdup(label))) {
        root_close(&root);
        return fail_root(path, why, error, error_size);
    }
    f->roots[f->n_roots++] = root;
    return true;
}

void roots_close(struct files *f)
{
    while (f->n_roots > 0)
        root_close(&f->roots[--f->n_roots]);
}

/* No way up and no way around: the kernel checks again when it opens, this gives the clear message. */
static const char *path_fault(const char *path)
{
    if (path[0] == '/')
        return "absolute paths are not allowed";
    for (const char *part = path; *part;) {
        size_t len = strcspn(part, "/");
        if (len == 2 && part[0] == '.' && part[1] == '.')
            return "\"..\" is not allowed";
        part += len + (part[len] == '/');
    }
    return NULL;
}

/* What follows the label; NULL when path is not below it. */
static const char *below(const struct root *root, const char *path)
{
    size_t len = strlen(root->label);

    if (len == 0)
        return *path ? path : ".";
    if (strncmp(path, root->label, len) != 0)
        return NULL;
    if (path[len] == '\0')
        return ".";
    if (path[len] != '/')
        return NULL;
    return path[len + 1] ? path + len + 1 : ".";
}

static bool fail_no_root(const struct files *f, struct rv_cap_call *call, const char *path)
{
    struct text labels = {0};

    if (!call)
        return false;
    for (size_t i = 0; i < f->n_roots; i++) {
        text_puts(&labels, i ? ", " : "");
        text_puts(&labels, f->roots[i].label);
    }
    rv_cap_failf(call, "NotFoundError", "no file \"%s\": paths here start with %s", path, labels.ptr ? labels.ptr : "");
    free(labels.ptr);
    return false;
}

bool place_of(const struct files *f, struct rv_cap_call *call, const char *path, struct place *out)
{
    const struct root *found = NULL;
    const char *rel = NULL, *fault;

    fault = !path || strlen(path) >= MAX_PATH_BYTES ? "it is missing or too long" : path_fault(path);
    if (fault && call)
        rv_cap_failf(call, "AccessDenied", "path \"%s\": %s", path ? path : "", fault);
    if (fault)
        return false;
    while (path[0] == '.' && path[1] == '/')
        path += 2;
    for (size_t i = 0; i < f->n_roots; i++) { /* a root with a label before the one without */
        const char *rest = below(&f->roots[i], path);
        if (rest && (!found || found->label[0] == '\0')) {
            found = &f->roots[i];
            rel = rest;
        }
    }
    if (!found || (found->file && strcmp(rel, ".") != 0))
        return fail_no_root(f, call, path);
    out->root = found;
    snprintf(out->rel, sizeof out->rel, "%s", found->file ? found->file : rel);
    return true;
}
