/* Folders of documents. Which files are there is looked at for every answer, since people edit them while they try an
 * agent; they are read again only when one of them is another one than before. An agent is called what its document
 * says, whatever the file is called. */
#include "coreengine/app/agents/agents_internal.h"
#include "coreengine/base/base.h"
#include "coreengine/base/reads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void file_fini(struct rv_agents_file *file)
{
    free(file->path);
    free(file->name);
    free(file->text);
    rv_err_free(file->fault);
}

void agents_files_fini(struct rv_agents_files *f)
{
    for (size_t i = 0; i < f->n; i++)
        file_fini(&f->items[i]);
    free(f->items);
    *f = (struct rv_agents_files){.items = NULL};
}

/* --- what is there --- */

static const char *ending_of(const char *path)
{
    const char *dot = strrchr(path, '.');

    return dot && dot != path ? dot : "";
}

static bool is_document(const char *name)
{
    const char *ending = ending_of(name);

    return name[0] != '.' && (strcmp(ending, ".yaml") == 0 || strcmp(ending, ".yml") == 0);
}

static int add_file(struct rv_agents_files *f, const char *dir, const char *name, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf path = RV_BUF_INIT(RV_AGENTS_MAX_PATH);
    struct rv_agents_file file = {.path = NULL};
    struct stat st;

    rv_buf_printf(&path, "%s%s%s", dir, dir[strlen(dir) - 1] == '/' ? "" : "/", name);
    if (path.rc < 0)
        return rv_buf_check(&path, "path of an agent's document", err);
    if (stat(rv_buf_cstr(&path), &st) == 0) {
        if (S_ISDIR(st.st_mode))
            return 0;
        file.mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
        file.size = st.st_size;
        file.inode = (uint64_t)st.st_ino;
    }
    if (!rv_has_room(&f->items, &f->cap, f->n + 1, sizeof *f->items))
        return RV_FAIL(err, RV_E_NOMEM, "list the documents of agents");
    file.path = rv_buf_steal(&path, NULL);
    f->items[f->n++] = file;
    return 0;
}

static int by_ending_and_name(const void *a, const void *b)
{
    const struct rv_agents_file *one = a, *other = b;
    int by_ending = strcmp(ending_of(one->path), ending_of(other->path)); /* .yaml before .yml */

    return by_ending ? by_ending : strcmp(one->path, other->path);
}

static int scan_dir(rv_agents *a, const char *path, struct rv_agents_files *f, rv_err **err)
{
    rv_reads_note(path, true);
    DIR *dir = opendir(path);
    size_t first = f->n;
    const struct dirent *entry;
    int rc = 0;

    if (!dir && errno != ENOENT && errno != ENOTDIR && errno != EACCES && errno != ELOOP) /* it may have documents */
        return RV_FAIL_SYSTEM(err, errno, "open the folder \"%s\"", path);
    if (!dir && errno == ENOENT) {
        RV_LOG(a->log, DEBUG, "agents.no_folder", RV_F_TEXT("path", path));
        return 0;
    }
    if (!dir) {
        RV_LOG(a->log, WARN, "agents.unreadable_folder", RV_F_TEXT("path", path), RV_F_TEXT("reason", strerror(errno)));
        return 0;
    }
    while (rc == 0 && (rc = rv_folder_next(dir, path, &entry, err)) == 0 && entry) {
        if (!is_document(entry->d_name))
            continue;
        if (f->n - first == RV_AGENTS_MAX_FILES)
            rc = RV_FAIL(err, RV_E_LIMIT, "the folder \"%s\" has more than %d documents of agents", path,
                         RV_AGENTS_MAX_FILES);
        else
            rc = add_file(f, path, entry->d_name, err);
    }
    closedir(dir);
    if (rc == 0 && f->n > first)
        qsort(f->items + first, f->n - first, sizeof *f->items, by_ending_and_name);
    return rc;
}

static int scan(rv_agents *a, struct rv_agents_files *f, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < a->n_dirs && rc == 0; i++)
        rc = scan_dir(a, a->dirs[i], f, err);
    return rc;
}

static bool are_same(const struct rv_agents_files *one, const struct rv_agents_files *other)
{
    if (one->n != other->n)
        return false;
    for (size_t i = 0; i < one->n; i++) {
        const struct rv_agents_file *a = &one->items[i], *b = &other->items[i];
        if (strcmp(a->path, b->path) != 0 || a->mtime_ns != b->mtime_ns || a->size != b->size || a->inode != b->inode)
            return false;
    }
    return true;
}

/* --- what they say --- */

static const struct rv_node *name_node(const struct rv_node *root)
{
    const struct rv_node *name = rv_node_get(rv_node_get(root, "json_schema_extra"), "name");

    return name ? name : rv_node_get(root, "name"); /* the inner one wins */
}

/* The name of an invalid document, so that a user who asks for it is told why. NULL stays: such a document cannot be
 * asked for. */
static int guess_name(struct rv_agents_file *file, rv_err **err)
{
    rv_findings *findings = rv_findings_new();
    const struct rv_node *name;
    rv_yaml *yaml = NULL;
    int rc;

    if (!findings)
        return RV_FAIL(err, RV_E_NOMEM, "read the name of an agent");
    rc = rv_yaml_parse((rv_str){file->text, file->len}, file->path, findings, &yaml, err);
    if (rc == 0)
        rc = rv_findings_check(findings, err);
    name = rc == 0 && yaml && rv_yaml_root(yaml) ? name_node(rv_yaml_root(yaml)) : NULL;
    if (name && name->kind == RV_NODE_STR && rv_agentdoc_is_name(name->text)) {
        file->name = rv_str_dup(name->text);
        if (!file->name)
            rc = RV_FAIL(err, RV_E_NOMEM, "read the name of an agent");
    }
    rv_yaml_free(yaml);
    rv_findings_free(findings);
    return rc;
}

static int read_document(struct rv_agents_file *file, rv_err **err)
{
    struct rv_agentdoc *doc = NULL;
    int rc = rv_agentdoc_read((rv_str){file->text, file->len}, file->path, &doc, &file->fault);

    if (rc == 0) {
        file->name = rv_str_dup(rv_str_of(doc->name));
        rv_agentdoc_free(doc);
        return file->name ? 0 : RV_FAIL(err, RV_E_NOMEM, "read \"%s\"", file->path);
    }
    if (rc == RV_E_NOMEM || rv_err_is(file->fault, RV_E_NOMEM)) /* then the fault is not what is wrong with the file */
        return RV_FAIL(err, RV_E_NOMEM, "read \"%s\"", file->path);
    return guess_name(file, err);
}

static int read_file(struct rv_agents_file *file, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(RV_AGENTDOC_MAX_BYTES);
    struct stat st;
    int rc;

    if (stat(file->path, &st) == 0 && !S_ISREG(st.st_mode)) /* opening a pipe would wait for a writer */
        rc = RV_FAIL(&file->fault, RV_E_INVALID, "\"%s\" is not a file", file->path);
    else
        rc = rv_file_read(file->path, &text, &file->fault);

    if (rc == RV_E_NOMEM || rv_err_is(file->fault, RV_E_NOMEM))
        return RV_FAIL(err, RV_E_NOMEM, "read \"%s\"", file->path);
    if (rc < 0)
        return 0;
    file->len = text.len;
    file->text = text.len ? rv_buf_steal(&text, NULL) : rv_str_dup((rv_str){"", 0});
    if (!file->text)
        return RV_FAIL(err, RV_E_NOMEM, "read \"%s\"", file->path);
    return read_document(file, err);
}

static void note_shadow(rv_agents *a, struct rv_agents_files *f, size_t at)
{
    const struct rv_agents_file *file = &f->items[at];

    for (size_t i = 0; i < at; i++) {
        if (!f->items[i].name || strcmp(f->items[i].name, file->name) != 0)
            continue;
        RV_LOG(a->log, WARN, "agents.file_shadowed", RV_F_TEXT("agent", file->name), RV_F_TEXT("path", file->path),
               RV_F_TEXT("by", f->items[i].path));
        return;
    }
}

static int read_all(rv_agents *a, struct rv_agents_files *f, rv_err **err)
{
    for (size_t i = 0; i < f->n; i++) {
        struct rv_agents_file *file = &f->items[i];
        int rc = read_file(file, err);

        if (rc < 0)
            return rc;
        if (file->fault)
            RV_LOG(a->log, WARN, "agents.bad_file", RV_F_TEXT("path", file->path), RV_F_ERR("error", file->fault));
        if (file->name)
            note_shadow(a, f, i);
    }
    return 0;
}

int agents_refresh_files(rv_agents *a, int64_t now_us, bool *changed, rv_err **err)
{
    struct rv_agents_files now = {.items = NULL};
    int rc;

    *changed = false;
    if (a->n_dirs == 0)
        return 0;
    rc = scan(a, &now, err);
    if (rc == 0 && a->files.was_read && now_us - a->files.read_us < RV_AGENTS_TTL_US && are_same(&now, &a->files)) {
        agents_files_fini(&now);
        return 0;
    }
    if (rc == 0)
        rc = read_all(a, &now, err);
    if (rc < 0) {
        agents_files_fini(&now);
        return rc;
    }
    agents_files_fini(&a->files);
    a->files = now;
    a->files.was_read = true;
    a->files.read_us = now_us;
    *changed = true;
    return 0;
}

const struct rv_agents_file *agents_find_file(const rv_agents *a, const char *name)
{
    for (size_t i = 0; i < a->files.n; i++)
        if (a->files.items[i].name && strcmp(a->files.items[i].name, name) == 0)
            return &a->files.items[i];
    return NULL;
}
