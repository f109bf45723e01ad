/* protocols_play PROTOCOL [ids] < SCRIPT: the bytes that a client is sent, on standard output.
 * protocols_play random FOLDER FROM N: the same of N random turns in each protocol, as FOLDER/SEED-PROTOCOL; how each
 * ended is a line of FOLDER/ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/protocols/gen.h"
#include "tests/unit/protocols/play.h"

#define MAX_BYTES ((size_t)256 << 20)

static int play_one(const char *folder, uint64_t seed, const struct gen *g, const char *protocol, rv_err **err)
{
    rv_buf out = RV_BUF_INIT(MAX_BYTES);
    char path[4096];

    snprintf(path, sizeof path, "%s/%llu-%s", folder, (unsigned long long)seed, protocol);
    int rc = play(rv_buf_str(&g->script), protocol, seed % 2 == 0, &out, err);
    if (rc == 0)
        rc = rv_file_write(path, rv_buf_str(&out), err);
    rv_buf_fini(&out);
    return rc;
}

static int play_random(const char *folder, uint64_t from, uint64_t n, rv_err **err)
{
    static const char *const whole[] = {"openai+whole", "openai-responses+whole", "remlight+whole"};
    rv_buf ends = RV_BUF_INIT(MAX_BYTES);
    char path[4096];
    int rc = 0;

    for (uint64_t seed = from; seed < from + n && rc == 0; seed++) {
        struct gen g;
        gen_make(seed, &g);
        for (int i = 0; i < RV_N_PROTOCOLS && rc == 0; i++)
            rc = play_one(folder, seed, &g, rv_protocol_text((enum rv_protocol_kind)i), err);
        for (size_t i = 0; i < RV_COUNT(whole) && rc == 0; i++)
            rc = play_one(folder, seed, &g, whole[i], err);
        rv_buf_printf(&ends, "%llu %s\n", (unsigned long long)seed, g.status);
        gen_fini(&g);
    }
    snprintf(path, sizeof path, "%s/ends", folder);
    if (rc == 0)
        rc = rv_file_write(path, rv_buf_str(&ends), err);
    rv_buf_fini(&ends);
    return rc;
}

static int play_script(const char *protocol, bool with_ids, rv_err **err)
{
    rv_buf script = RV_BUF_INIT(MAX_BYTES), out = RV_BUF_INIT(MAX_BYTES);

    int rc = rv_file_read("-", &script, err);
    if (rc == 0)
        rc = play(rv_buf_str(&script), protocol, with_ids, &out, err);
    fwrite(rv_buf_cstr(&out), 1, out.len, stdout);
    rv_buf_fini(&script);
    rv_buf_fini(&out);
    return rc;
}

int main(int argc, char **argv)
{
    rv_buf text = RV_BUF_INIT(65536);
    rv_err *err = NULL;
    int rc;

    if (argc > 4 && strcmp(argv[1], "random") == 0)
        rc = play_random(argv[2], strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10), &err);
    else
        rc = play_script(argc > 1 ? argv[1] : NULL, argc > 2, &err);
    if (rc < 0)
        rv_err_write_text(err, true, &text);
    fputs(rv_buf_cstr(&text), stderr);
    rv_err_free(err);
    rv_buf_fini(&text);
    return rc < 0;
}
