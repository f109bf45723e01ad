/* Temporary folders, small files and golden texts. */
#include "tests/kit/kit.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_FILE         ((size_t)64 << 20)
#define MAX_OPEN_FOLDERS 16

char *rv_kit_path(const char *dir, const char *name)
{
    rv_buf b = RV_BUF_INIT(MAX_FILE);
    char *path;

    rv_buf_printf(&b, "%s/%s", dir, name);
    path = rv_buf_steal(&b, NULL);
    if (!path)
        rv_kit_die("no memory for a path");
    return path;
}

char *rv_kit_tmpdir(void)
{
    const char *base = getenv("TMPDIR");
    char *dir = rv_kit_path(base && *base ? base : "/tmp", "rv-test-XXXXXX");

    if (!mkdtemp(dir))
        rv_kit_die("mkdtemp(%s): %s", dir, strerror(errno));
    return dir;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *place)
{
    (void)st;
    (void)type;
    (void)place;
    return remove(path);
}

void rv_kit_tmpdir_remove(char *dir)
{
    if (!dir)
        return;
    if (nftw(dir, remove_one, MAX_OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS) != 0)
        rv_kit_die("cannot remove %s: %s", dir, strerror(errno));
    free(dir);
}

void rv_kit_write(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");

    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        rv_kit_die("cannot write %s: %s", path, strerror(errno));
}

void rv_kit_copy(const char *from, const char *to)
{
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    char piece[1 << 16];
    size_t n;

    if (!in || !out)
        rv_kit_die("cannot copy %s to %s: %s", from, to, strerror(errno));
    while ((n = fread(piece, 1, sizeof piece, in)) > 0)
        if (fwrite(piece, 1, n, out) != n)
            rv_kit_die("cannot write %s: %s", to, strerror(errno));
    if (ferror(in) || fclose(out) != 0)
        rv_kit_die("cannot copy %s to %s: %s", from, to, strerror(errno));
    fclose(in);
}

/* NULL if there is none. */
static char *read_if_there(const char *path)
{
    rv_buf b = RV_BUF_INIT(MAX_FILE);
    rv_err *err = NULL;
    char *text;
    int rc = rv_file_read(path, &b, &err);

    if (rc < 0 && rc != RV_E_NOT_FOUND)
        rv_kit_die("%s", rv_err_text(err));
    rv_err_free(err);
    text = rc < 0 ? NULL : rv_buf_steal(&b, NULL);
    rv_buf_fini(&b);
    return text;
}

char *rv_kit_read(const char *path)
{
    char *text = read_if_there(path);

    if (!text)
        rv_kit_die("%s does not exist", path);
    return text;
}

static void make_folders_of(const char *path)
{
    char *copy = rv_str_dup(rv_str_of(path)), *slash;

    if (!copy)
        rv_kit_die("no memory for a path");
    for (slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0777) < 0 && errno != EEXIST)
            rv_kit_die("mkdir(%s): %s", copy, strerror(errno));
        *slash = '/';
    }
    free(copy);
}

static void print_difference(const char *path, const char *want, const char *got)
{
    size_t line = 1, want_len, got_len;

    while (*want && *got) {
        want_len = strcspn(want, "\n");
        got_len = strcspn(got, "\n");
        if (want_len != got_len || memcmp(want, got, want_len) != 0)
            break;
        want += want_len + (want[want_len] == '\n');
        got += got_len + (got[got_len] == '\n');
        line++;
    }
    (void)fprintf(stderr,
                  "%s:%zu differs\n  want: %.*s\n  got:  %.*s\n  (if right: ./dev golden, and review the diff)\n", path,
                  line, (int)strcspn(want, "\n"), want, (int)strcspn(got, "\n"), got);
}

bool rv_kit_golden(const char *name, const char *text)
{
    const char *mode = getenv("REEVE_GOLDEN");
    char *path = rv_kit_path(RV_SOURCE_DIR "/tests/golden", name);
    char *want = read_if_there(path);
    bool same = want && strcmp(want, text) == 0;

    if (!same && mode && strcmp(mode, "update") == 0) {
        make_folders_of(path);
        rv_kit_write(path, text);
        same = true;
    } else if (!want) {
        (void)fprintf(stderr, "%s does not exist (make it with: ./dev golden)\n", path);
    } else if (!same) {
        print_difference(path, want, text);
    }
    free(want);
    free(path);
    return same;
}
