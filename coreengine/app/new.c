/* New pipelines and capabilities that work at once. Never overwrites a file. */
#include "coreengine/app/app.h"
#include "coreengine/app/template_internal.h"
#include "coreengine/app/testing.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILE_BYTES ((size_t)1 << 20) /* of one file of a template: ours have some KiB */

/* What stands for @WORDS@ in the templates. */
struct words {
    char name[RV_APP_MAX_NAME + 1];
    char ident[RV_APP_MAX_NAME + 1];
    const char *file;
    rv_buf sdk, reeve, reeve_dir;
};

static void words_fini(struct words *w)
{
    rv_buf_fini(&w->sdk);
    rv_buf_fini(&w->reeve);
    rv_buf_fini(&w->reeve_dir);
}

static void fill(const struct words *w, rv_str text, rv_buf *out)
{
    const struct {
        rv_str key;
        const char *value;
    } table[] = {
        {RV_STR_LIT("@NAME@"), w->name},
        {RV_STR_LIT("@IDENT@"), w->ident},
        {RV_STR_LIT("@FILE@"), w->file},
        {RV_STR_LIT("@SDK@"), rv_buf_cstr(&w->sdk)},
        {RV_STR_LIT("@REEVE@"), rv_buf_cstr(&w->reeve)},
        {RV_STR_LIT("@REEVE_DIR@"), rv_buf_cstr(&w->reeve_dir)},
    };

    while (text.len) {
        const char *at = memchr(text.ptr, '@', text.len);
        size_t before = at ? (size_t)(at - text.ptr) : text.len, used = 0;
        rv_buf_add(out, text.ptr, before);
        text = (rv_str){text.ptr + before, text.len - before};
        for (size_t i = 0; text.len && !used && i < RV_COUNT(table); i++)
            if (text.len >= table[i].key.len && memcmp(text.ptr, table[i].key.ptr, table[i].key.len) == 0) {
                rv_buf_puts(out, table[i].value);
                used = table[i].key.len;
            }
        if (text.len && !used) {
            rv_buf_putc(out, *text.ptr);
            used = 1;
        }
        text = (rv_str){text.ptr + used, text.len - used};
    }
}

static int write_template(const struct words *w, const char *name, const char *path, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_FILE_BYTES);
    const struct rv_app_template *t = app_templates;

    while (t->name && strcmp(t->name, name) != 0)
        t++;
    int rc = t->name ? 0 : RV_FAIL(err, RV_E_INTERNAL, "there is no template \"%s\"", name);
    if (rc == 0) {
        fill(w, (rv_str){t->text, t->len}, &text);
        rc = rv_buf_check(&text, path, err);
    }
    if (rc == 0)
        rc = rv_file_write_new(path, rv_buf_str(&text), err);
    rv_buf_fini(&text);
    return rc;
}

/* As the SDK has it: [a-z][a-z0-9_-]*. */
static int check_name(const char *name, rv_err **err)
{
    static const char legal[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    size_t n = strlen(name);

    if (n > 0 && n <= RV_APP_MAX_NAME && name[0] >= 'a' && name[0] <= 'z' && strspn(name, legal) == n)
        return 0;
    int rc = RV_FAIL(err, RV_E_INVALID, "\"%s\" is not a valid name of a capability", name);
    rv_err_set_hint(
        err, "a name has lower-case letters, digits, _ and -, begins with a letter and has at most %d characters",
        RV_APP_MAX_NAME);
    return rc;
}

static void set_ident(struct words *w)
{
    size_t i = 0;

    for (; w->name[i]; i++)
        w->ident[i] = w->name[i] == '-' ? '_' : w->name[i];
    w->ident[i] = '\0';
}

/* --- pipeline --- */

/* Plain text that YAML reads as something else. */
static bool is_reserved(const char *name)
{
    return strcasecmp(name, "true") == 0 || strcasecmp(name, "false") == 0 || strcasecmp(name, "null") == 0;
}

void app_name_of_file(const char *path, char out[RV_APP_MAX_NAME + 1])
{
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    size_t n = strcspn(base, "."), len = 0;

    for (size_t i = 0; i < n && len < RV_APP_MAX_NAME; i++) {
        bool plain = rv_is_letter(base[i]) || base[i] == '_' || (len > 0 && (rv_is_digit(base[i]) || base[i] == '-'));
        if (plain)
            out[len++] = base[i];
        else if (len > 0)
            out[len++] = '-';
    }
    out[len] = '\0';
    if (len == 0 || is_reserved(out))
        memcpy(out, "pipeline", sizeof "pipeline");
}

static bool ends_with(rv_str text, const char *end)
{
    size_t n = strlen(end);

    return text.len >= n && memcmp(text.ptr + text.len - n, end, n) == 0;
}

int app_path_of_pipeline(const char *path, rv_buf *out, rv_err **err)
{
    rv_str text = rv_str_of(path);

    for (const char *p = path; *p; p++)
        if (rv_utf8_control(p, strlen(p)) > 0)
            return RV_FAIL(err, RV_E_INVALID, "the path of a new pipeline has no control characters");
    if (!rv_utf8_valid(text, NULL))
        return RV_FAIL(err, RV_E_INVALID, "the path of a new pipeline must be UTF-8");
    if (text.len == 0 || ends_with(text, "/")) {
        int rc = RV_FAIL(err, RV_E_INVALID, "\"%s\" is not the name of a file", path);
        rv_err_set_hint(err, "name the file to write, for example %spipeline.yaml", path);
        return rc;
    }
    rv_buf_printf(out, "%s%s", path, ends_with(text, ".yaml") || ends_with(text, ".yml") ? "" : ".yaml");
    return rv_buf_check(out, "a path", err);
}

void app_write_word(rv_str text, rv_buf *out)
{
    bool plain = true;

    for (size_t i = 0; i < text.len; i++)
        plain = plain && (rv_is_letter(text.ptr[i]) || rv_is_digit(text.ptr[i]) || strchr("_-./", text.ptr[i]));
    rv_buf_puts(out, plain ? "" : "'");
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\'')
            rv_buf_puts(out, "'\\''");
        else
            rv_buf_putc(out, text.ptr[i]);
    }
    rv_buf_puts(out, plain ? "" : "'");
}

int rv_app_new_pipeline(const char *path, rv_buf *written, rv_err **err)
{
    rv_buf file = RV_BUF_INIT(PATH_MAX), word = RV_BUF_INIT(5 * PATH_MAX);
    struct words w = {0};

    int rc = app_path_of_pipeline(path, &file, err);
    if (rc == 0) {
        app_write_word(rv_buf_str(&file), &word);
        rc = rv_buf_check(&word, "a path", err);
    }
    if (rc == 0) {
        w.file = rv_buf_cstr(&word);
        app_name_of_file(path, w.name);
        rc = rv_app_check_target(rv_buf_cstr(&file), false, err);
    }
    if (rc == 0)
        rc = write_template(&w, "pipeline.yaml", rv_buf_cstr(&file), err);
    if (rc == 0)
        rv_buf_add_str(written, rv_buf_str(&file));
    rv_buf_fini(&file);
    rv_buf_fini(&word);
    return rc;
}

/* --- capability --- */

/* Where this program is, and the header of the tree or prefix it stands in when pkg-config would not find that. */
static void find_self(struct words *w)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

    rv_buf_puts(&w->reeve, "reeve");
    if (n <= 0)
        return;
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return;
    *slash = '\0';
    rv_buf_puts(&w->reeve_dir, path);
    rv_buf_clear(&w->reeve);
    rv_buf_printf(&w->reeve, "%s/reeve", path);

    rv_buf include = RV_BUF_INIT(PATH_MAX), header = RV_BUF_INIT(PATH_MAX);
    char *parent = strrchr(path, '/');
    if (parent)
        *parent = '\0';
    rv_buf_printf(&include, "%s/include", path);
    rv_buf_printf(&header, "%s/reeve/capability.h", rv_buf_cstr(&include));
    bool usual = strcmp(path, "/usr") == 0 || strcmp(path, "/usr/local") == 0;
    if (!usual && access(rv_buf_cstr(&header), R_OK) == 0)
        rv_buf_add_buf(&w->sdk, &include);
    rv_buf_fini(&include);
    rv_buf_fini(&header);
    if (usual) { /* on everybody's path */
        rv_buf_clear(&w->reeve);
        rv_buf_puts(&w->reeve, "reeve");
    }
}

static int use_sdk(struct words *w, const char *dir, rv_err **err)
{
    char full[PATH_MAX];
    rv_buf header = RV_BUF_INIT(PATH_MAX);

    rv_buf_printf(&header, "%s/reeve/capability.h", dir);
    bool found = access(rv_buf_cstr(&header), R_OK) == 0 && realpath(dir, full);
    rv_buf_fini(&header);
    if (!found) {
        int rc = RV_FAIL(err, RV_E_NOT_FOUND, "the SDK folder \"%s\" has no reeve/capability.h", dir);
        rv_err_set_hint(err, "name the folder that contains reeve/capability.h, for example build/dev/include");
        return rc;
    }
    rv_buf_clear(&w->sdk);
    rv_buf_puts(&w->sdk, full);
    return 0;
}

static const struct {
    const char *name, *suffix; /* suffix: behind the capability's name; NULL: name is the file */
    const char *file;
} capability_files[] = {
    {"capability/capability.c", ".c", NULL},
    {"capability/test.c", "_test.c", NULL},
    {"capability/pipeline.yaml", ".yaml", NULL},
    {"capability/Makefile", NULL, "Makefile"},
    {"capability/CMakeLists.txt", NULL, "CMakeLists.txt"},
    {"capability/README.md", NULL, "README.md"},
    {"capability/gitignore", NULL, ".gitignore"},
};

static void path_of(const struct words *w, const char *dir, size_t i, rv_buf *path)
{
    rv_buf_clear(path);
    rv_buf_printf(path, "%s/%s", dir, capability_files[i].suffix ? w->name : capability_files[i].file);
    if (capability_files[i].suffix)
        rv_buf_puts(path, capability_files[i].suffix);
}

/* All or nothing: what exists already is found before anything is written, and what was written goes if the rest fails.
 */
static int write_capability(const struct words *w, const char *dir, rv_err **err)
{
    rv_buf path = RV_BUF_INIT(PATH_MAX);
    size_t n = 0;
    int rc = 0;

    bool made = mkdir(dir, 0777) == 0;
    int number = made ? EEXIST : errno;
    if (number == ENOENT)
        rc = rv_app_check_target(dir, false, err); /* it says which folder is missing */
    if (rc == 0 && number != EEXIST)
        rc = RV_FAIL_SYSTEM(err, number, "make folder \"%s\"", dir);
    for (; rc == 0 && n < RV_COUNT(capability_files); n++) {
        path_of(w, dir, n, &path);
        rc = rv_buf_check(&path, "path", err);
        if (rc == 0)
            rc = write_template(w, capability_files[n].name, rv_buf_cstr(&path), err);
        if (rc < 0)
            break;
    }
    while (rc < 0 && n-- > 0) {
        path_of(w, dir, n, &path);
        unlink(rv_buf_cstr(&path));
    }
    if (rc < 0 && made)
        rmdir(dir);
    rv_buf_fini(&path);
    return rc;
}

int rv_app_new_capability(const char *name, const char *dir, const char *sdk, rv_err **err)
{
    struct words w = {.sdk = RV_BUF_INIT(PATH_MAX), .reeve = RV_BUF_INIT(PATH_MAX), .reeve_dir = RV_BUF_INIT(PATH_MAX)};

    int rc = check_name(name, err);
    if (rc == 0) {
        memcpy(w.name, name, strlen(name) + 1);
        set_ident(&w);
        w.file = w.name;
        find_self(&w);
        rc = sdk ? use_sdk(&w, sdk, err) : 0;
    }
    if (rc == 0)
        rc = write_capability(&w, dir ? dir : name, err);
    words_fini(&w);
    return rc;
}
