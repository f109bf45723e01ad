/* Runs a fuzz target over files, so that a corpus is a plain test, too: fuzz_corpus TARGET DIR_OR_FILE... */
#include "tests/kit/fuzz.h"

#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct rv_fuzz_target *targets;
static int (*run)(const uint8_t *data, size_t size);
static size_t n_inputs;

void rv_fuzz_add(struct rv_fuzz_target *target)
{
    target->next = targets;
    targets = target;
}

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    long size = -1;
    int rc = 1;

    if (f && fseek(f, 0, SEEK_END) == 0)
        size = ftell(f);
    if (size >= 0 && fseek(f, 0, SEEK_SET) == 0)
        data = malloc((size_t)size ? (size_t)size : 1);
    if (data && fread(data, 1, (size_t)size, f) == (size_t)size) { /* exact block: reading past the end shows */
        run(data, (size_t)size);
        n_inputs++;
        rc = 0;
    } else {
        perror(path);
    }
    free(data);
    if (f)
        (void)fclose(f);
    return rc;
}

static int run_folder(const char *path)
{
    char file[PATH_MAX];
    struct dirent **entries = NULL;
    int i, rc = 0, n = scandir(path, &entries, NULL, alphasort);

    if (n < 0) {
        perror(path);
        return 1;
    }
    for (i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.' &&
            snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name) < (int)sizeof file)
            rc |= run_file(file);
        free(entries[i]);
    }
    free(entries);
    return rc;
}

int main(int argc, char **argv)
{
    struct stat st;
    int i, rc = 0;

    for (const struct rv_fuzz_target *t = targets; t && argc > 2; t = t->next)
        if (strcmp(t->name, argv[1]) == 0)
            run = t->run;
    if (!run) {
        (void)fprintf(stderr, "usage: %s TARGET DIR_OR_FILE...\ntargets:", argv[0]);
        for (const struct rv_fuzz_target *t = targets; t; t = t->next)
            (void)fprintf(stderr, " %s", t->name);
        (void)fputc('\n', stderr);
        return 1;
    }
    for (i = 2; i < argc; i++) {
        if (stat(argv[i], &st) < 0) {
            perror(argv[i]);
            rc = 1;
        } else {
            rc |= S_ISDIR(st.st_mode) ? run_folder(argv[i]) : run_file(argv[i]);
        }
    }
    (void)printf("%zu inputs\n", n_inputs);
    return rc;
}
