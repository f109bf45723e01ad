/* A pipeline of the gallery becomes the user's: its files are written under another name, and what they say of
 * themselves (their name, their script, the commands at their top) is changed with it. All or nothing. */
#include "coreengine/app/gallery_internal.h"
#include "coreengine/app/template_internal.h"
#include "coreengine/app/testing.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILE_BYTES ((size_t)1 << 20)          /* of one file of a template: ours have some KiB */
#define MAX_FILES      (2 + RV_GALLERY_MAX_FILES) /* of an example: the pipeline, its script, and further ones */

/* One file of the copy. */
struct part {
    rv_buf from, to;
    bool is_own;                   /* the pipeline or its script: under the new name, never there already */
    bool was_written, made_folder; /* what to undo */
};

struct copy {
    char name[RV_APP_MAX_NAME + 1]; /* of the new pipeline */
    rv_buf folder;                  /* of the new files, with its slash; "" is the working folder */
    rv_buf shown, shown_folder;     /* path and folder as words of a shell */
    const struct rv_gallery_item *item;
    struct part parts[MAX_FILES];
    size_t n;
};

static void copy_fini(struct copy *c)
{
    for (size_t i = 0; i < c->n; i++) {
        rv_buf_fini(&c->parts[i].from);
        rv_buf_fini(&c->parts[i].to);
    }
    rv_buf_fini(&c->folder);
    rv_buf_fini(&c->shown);
    rv_buf_fini(&c->shown_folder);
}

void rv_gallery_copy_fini(struct rv_gallery_copy *c)
{
    rv_buf_fini(&c->pipeline);
    rv_buf_fini(&c->script);
    rv_buf_fini(&c->others);
}

/* --- texts --- */

struct pair {
    rv_buf old, new;
};

/* What a file says of its own name and place, longest first: a part of one is not taken for another. */
static void make_pairs(const struct copy *c, struct pair pairs[5])
{
    const char *old = c->item->name;

    for (size_t i = 0; i < 5; i++)
        pairs[i] = (struct pair){RV_BUF_INIT(2 * PATH_MAX), RV_BUF_INIT(8 * PATH_MAX)};
    rv_buf_printf(&pairs[0].old, "pipelines/scripts/%s.yaml", old);
    rv_buf_printf(&pairs[0].new, "%sscripts/%s.yaml", rv_buf_cstr(&c->shown_folder), c->name);
    rv_buf_printf(&pairs[1].old, "pipelines/%s.yaml", old);
    rv_buf_add_str(&pairs[1].new, rv_buf_str(&c->shown));
    rv_buf_printf(&pairs[2].old, "scripts/%s.yaml", old);
    rv_buf_printf(&pairs[2].new, "scripts/%s.yaml", c->name);
    rv_buf_printf(&pairs[3].old, "\nname: %s\n", old);
    rv_buf_printf(&pairs[3].new, "\nname: %s\n", c->name);
    rv_buf_puts(&pairs[4].old, "pipelines/");
    rv_buf_add_str(&pairs[4].new, rv_buf_str(&c->shown_folder));
}

static bool begins(rv_str text, rv_str with)
{
    return text.len >= with.len && memcmp(text.ptr, with.ptr, with.len) == 0;
}

/* Lines that say which rule a file of this tree proves stay behind. */
static size_t proof_length(rv_str text)
{
    static const rv_str proof = {"\n# Proves ", 10};
    const char *end = begins(text, proof) ? memchr(text.ptr + 1, '\n', text.len - 1) : NULL;

    return end ? (size_t)(end - text.ptr) : 0;
}

static int rename_in(const struct copy *c, rv_str text, rv_buf *out, rv_err **err)
{
    struct pair pairs[5];
    int rc = 0;

    make_pairs(c, pairs);
    for (size_t i = 0; rc == 0 && i < RV_COUNT(pairs); i++) {
        rc = rv_buf_check(&pairs[i].old, "a name", err);
        if (rc == 0)
            rc = rv_buf_check(&pairs[i].new, "a path", err);
    }
    while (rc == 0 && text.len > 0) {
        size_t used = proof_length(text);
        for (size_t i = 0; !used && i < RV_COUNT(pairs); i++)
            if (begins(text, rv_buf_str(&pairs[i].old))) {
                rv_buf_add_str(out, rv_buf_str(&pairs[i].new));
                used = pairs[i].old.len;
            }
        if (!used) {
            rv_buf_putc(out, *text.ptr);
            used = 1;
        }
        text = (rv_str){text.ptr + used, text.len - used};
    }
    for (size_t i = 0; i < RV_COUNT(pairs); i++) {
        rv_buf_fini(&pairs[i].old);
        rv_buf_fini(&pairs[i].new);
    }
    return rc;
}

/* --- files --- */

static void add_part(struct copy *c, const char *folder, const char *from, const char *to, bool is_own)
{
    struct part *p = &c->parts[c->n++];

    *p = (struct part){.from = RV_BUF_INIT(PATH_MAX), .to = RV_BUF_INIT(PATH_MAX), .is_own = is_own};
    rv_buf_printf(&p->from, "%s/%s", folder, from);
    rv_buf_printf(&p->to, "%s%s", rv_buf_cstr(&c->folder), to);
}

static int name_parts(struct copy *c, const rv_gallery *g, const char *path, rv_err **err)
{
    rv_buf whole = RV_BUF_INIT(PATH_MAX), from = RV_BUF_INIT(PATH_MAX), to = RV_BUF_INIT(PATH_MAX);
    int rc = app_path_of_pipeline(path, &whole, err);

    if (rc < 0) {
        rv_buf_fini(&whole);
        return rc;
    }
    const char *slash = strrchr(rv_buf_cstr(&whole), '/'), *file = slash ? slash + 1 : rv_buf_cstr(&whole);
    app_name_of_file(path, c->name);
    rv_buf_add(&c->folder, whole.ptr, (size_t)(file - whole.ptr));
    app_write_word(rv_buf_str(&c->folder), &c->shown_folder);
    rv_buf_printf(&from, "%s.yaml", c->item->name);
    add_part(c, app_gallery_folder(g), rv_buf_cstr(&from), file, true);
    app_write_word(rv_buf_str(&c->parts[0].to), &c->shown);
    rc = rv_buf_check(&from, "a path", err);
    rv_buf_clear(&from);
    rv_buf_printf(&from, "scripts/%s.yaml", c->item->name);
    rv_buf_printf(&to, "scripts/%s.yaml", c->name);
    add_part(c, app_gallery_folder(g), rv_buf_cstr(&from), rv_buf_cstr(&to), true);
    for (size_t i = 0; i < c->item->n_files; i++)
        add_part(c, app_gallery_folder(g), c->item->files[i], c->item->files[i], false);
    if (rc == 0)
        rc = rv_buf_check(&to, "a path", err);
    const rv_buf *all[] = {&from, &c->folder, &c->shown, &c->shown_folder};
    for (size_t i = 0; rc == 0 && i < RV_COUNT(all); i++)
        rc = rv_buf_check(all[i], "a path", err);
    for (size_t i = 0; rc == 0 && i < c->n; i++) {
        rc = rv_buf_check(&c->parts[i].from, "a path", err);
        if (rc == 0)
            rc = rv_buf_check(&c->parts[i].to, "a path", err);
    }
    rv_buf_fini(&whole);
    rv_buf_fini(&from);
    rv_buf_fini(&to);
    return rc;
}

/* scripts/ and agents/ beside the pipeline; the folder of the pipeline itself has to be there. */
static int make_folder(const struct copy *c, struct part *p, rv_err **err)
{
    const char *path = rv_buf_cstr(&p->to), *slash = strrchr(path, '/');
    rv_buf folder = RV_BUF_INIT(PATH_MAX);
    int rc = 0;

    if (!slash || (size_t)(slash - path) < c->folder.len)
        return 0;
    rv_buf_add(&folder, path, (size_t)(slash - path));
    rc = rv_buf_check(&folder, "a path", err);
    if (rc == 0) {
        p->made_folder = mkdir(rv_buf_cstr(&folder), 0777) == 0;
        if (!p->made_folder && errno != EEXIST)
            rc = RV_FAIL_SYSTEM(err, errno, "make folder \"%s\"", rv_buf_cstr(&folder));
    }
    rv_buf_fini(&folder);
    return rc;
}

static bool is_there(const char *path, rv_str bytes)
{
    rv_buf now = RV_BUF_INIT(MAX_FILE_BYTES);
    int rc = access(path, F_OK) == 0
                 ? rv_file_read(path, &now, RV_CODE_ONLY("one that cannot be read is written, which says why"))
                 : RV_E_NOT_FOUND;
    bool same = rc == 0 && rv_str_eq(rv_buf_str(&now), bytes);

    rv_buf_fini(&now);
    return same;
}

static int write_part(const struct copy *c, struct part *p, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_FILE_BYTES), renamed = RV_BUF_INIT(MAX_FILE_BYTES);
    int rc = rv_file_read(rv_buf_cstr(&p->from), &text, err);

    if (rc == 0)
        rc = p->is_own ? rename_in(c, rv_buf_str(&text), &renamed, err) : 0;
    if (rc == 0)
        rc = rv_buf_check(&renamed, rv_buf_cstr(&p->to), err);
    rv_str bytes = p->is_own ? rv_buf_str(&renamed) : rv_buf_str(&text);
    if (rc == 0 && !(!p->is_own && is_there(rv_buf_cstr(&p->to), bytes))) {
        rc = make_folder(c, p, err);
        if (rc == 0)
            rc = rv_file_write_new(rv_buf_cstr(&p->to), bytes, err);
        p->was_written = rc == 0;
    }
    rv_buf_fini(&text);
    rv_buf_fini(&renamed);
    return rc;
}

static void undo(struct copy *c)
{
    for (size_t i = c->n; i-- > 0;) {
        char *path = c->parts[i].to.ptr, *slash = path ? strrchr(path, '/') : NULL;
        if (c->parts[i].was_written)
            unlink(path);
        if (c->parts[i].made_folder && slash) {
            *slash = '\0';
            rmdir(path);
        }
    }
}

static int tell(const struct copy *c, struct rv_gallery_copy *out, rv_err **err)
{
    rv_buf_add_str(&out->pipeline, rv_buf_str(&c->parts[0].to));
    rv_buf_add_str(&out->script, rv_buf_str(&c->parts[1].to));
    for (size_t i = 2; i < c->n; i++)
        if (c->parts[i].was_written)
            rv_buf_printf(&out->others, "%s\n", rv_buf_cstr(&c->parts[i].to));
    int rc = rv_buf_check(&out->pipeline, "a path", err);
    if (rc == 0)
        rc = rv_buf_check(&out->script, "a path", err);
    return rc == 0 ? rv_buf_check(&out->others, "paths", err) : rc;
}

int rv_gallery_copy(const rv_gallery *g, const struct rv_gallery_item *item, const char *path,
                    struct rv_gallery_copy *out, rv_err **err)
{
    struct copy c = {.item = item,
                     .folder = RV_BUF_INIT(PATH_MAX),
                     .shown = RV_BUF_INIT(4 * PATH_MAX),
                     .shown_folder = RV_BUF_INIT(4 * PATH_MAX)};

    out->pipeline = out->script = RV_BUF_INIT(PATH_MAX);
    out->others = RV_BUF_INIT(RV_GALLERY_MAX_FILES * (PATH_MAX + 1));
    int rc = name_parts(&c, g, path, err);
    if (rc == 0)
        rc = rv_app_check_target(rv_buf_cstr(&c.parts[0].to), false, err);
    for (size_t i = 0; rc == 0 && i < c.n; i++)
        rc = write_part(&c, &c.parts[i], err);
    if (rc == 0)
        rc = tell(&c, out, err);
    if (rc < 0)
        undo(&c);
    copy_fini(&c);
    return rc < 0 ? RV_WRAP(err, rc, "copy pipeline \"%s\"", item->name) : 0;
}
