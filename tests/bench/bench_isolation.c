/* What a process of its own costs a call: bench_isolation REEVE CAPABILITY_DIR REPEAT
 * The same call of `hello` in the engine's process and in a child, medians. Prints one JSON object. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "coreengine/tools/plugin/plugin.h"

#define MAX_REPEAT 100000
#define LARGE      8192

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void die(const char *what, rv_err *err)
{
    fprintf(stderr, "bench_isolation: %s: %s\n", what, rv_err_text(err));
    exit(1);
}

/* Nanoseconds of the median call. */
static int64_t measure(const struct rv_plugins_opts *opts, int isolation, rv_str args, int repeat, int64_t *load_ns)
{
    static int64_t took[MAX_REPEAT];
    const struct rv_capability_config which = {.name = "hello", .isolation = isolation};
    const struct rv_plugin_call call = {.kind = RV_NAME_TOOL, .name = "greet", .args = args, .timeout_ms = 30000};
    rv_plugins *p = NULL;
    rv_err *err = NULL;
    int64_t begun = now_ns();

    if (rv_plugins_new(opts, &p, &err) < 0 || rv_plugins_load(p, &which, &err) < 0)
        die("load", err);
    *load_ns = now_ns() - begun;
    rv_buf out = RV_BUF_INIT((size_t)16 << 20);
    for (int i = 0; i < repeat; i++) {
        begun = now_ns();
        if (rv_plugins_call(p, &call, &out, &err) < 0)
            die("call", err);
        took[i] = now_ns() - begun;
        rv_buf_clear(&out);
    }
    rv_buf_fini(&out);
    rv_plugins_free(p);
    qsort(took, (size_t)repeat, sizeof *took, by_value);
    return took[repeat / 2];
}

int main(int argc, char **argv)
{
    static char large[LARGE + 64];
    int repeat = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 0;
    int64_t load_here, load_there;

    if (repeat < 1 || repeat > MAX_REPEAT) {
        fprintf(stderr, "usage: bench_isolation REEVE CAPABILITY_DIR REPEAT\n");
        return 2;
    }
    const char *dirs[] = {argv[2]};
    const struct rv_plugins_opts opts = {.dirs = dirs, .n_dirs = 1, .base_dir = ".", .host_program = argv[1]};
    rv_str small = RV_STR_LIT("{\"name\":\"x\"}");
    int n = snprintf(large, sizeof large, "{\"name\":\"x\"%*s}", LARGE, "");
    int64_t here = measure(&opts, RV_ISOLATION_NONE, small, repeat, &load_here);
    int64_t there = measure(&opts, RV_ISOLATION_PROCESS, small, repeat, &load_there);
    int64_t large_there = measure(&opts, RV_ISOLATION_PROCESS, (rv_str){large, (size_t)n}, repeat, &load_there);
    printf("{\"here_ns\":%lld,\"there_ns\":%lld,\"there_8k_ns\":%lld,\"load_here_us\":%lld,\"load_there_us\":%lld}\n",
           (long long)here, (long long)there, (long long)large_there, (long long)(load_here / 1000),
           (long long)(load_there / 1000));
    return 0;
}
