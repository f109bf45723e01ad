/* reeve embed: texts as vectors, asked of a provider without any pipeline; without texts, the rows of the store that
 * have no vectors yet. */
#include "coreengine/app/app.h"
#include "coreengine/base/base.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_LINE   ((size_t)1 << 20) /* bytes of one text; models take a tenth at most */
#define BATCH      64                /* texts of one request: what every provider takes */
#define MAX_NUMBER 32                /* bytes of a float as text: 9 digits, sign, point, exponent and a NUL fit */
#define WATCH_S    2                 /* between two looks at the queue */

struct job {
    struct rv_cli *cli;
    struct rv_embed_target target;
    int64_t dimensions;
    char *texts[BATCH]; /* owned */
    size_t n;
    bool as_json;
    rv_buf rows; /* --json: those so far, an array that is not closed */
    struct rv_usage usage;
    bool lacks_usage; /* an answer told none: the sum is not known */
    size_t n_rows, dims;
};

/* "provider:model"; the model may have a colon, too. */
static int find_target(struct job *job, rv_err **err)
{
    const char *model = cli_value(job->cli, "model"), *base = cli_value(job->cli, "base-url");
    const char *colon = model ? strchr(model, ':') : NULL;

    if (!model || !colon || colon == model || !colon[1]) {
        int rc = model ? RV_FAIL(err, RV_E_INVALID, "--model needs provider:model, not \"%s\"", model)
                       : RV_FAIL(err, RV_E_INVALID, "--model is missing");
        rv_err_set_hint(err, "for example --model openai:text-embedding-3-small or --model ollama:nomic-embed-text; "
                             "`reeve inspect --providers` lists providers");
        return rc;
    }
    return rv_app_find_embed_target((rv_str){model, (size_t)(colon - model)}, colon + 1, base, &job->target, err);
}

/* --- what comes back --- */

static void write_row(const float *values, size_t n, rv_buf *b)
{
    char text[MAX_NUMBER];

    rv_buf_putc(b, '[');
    for (size_t i = 0; i < n; i++) {
        rv_format(text, sizeof text, "%.9g", (double)values[i]); /* reads as the same float again */
        rv_buf_printf(b, "%s%s", i ? "," : "", text);
    }
    rv_buf_putc(b, ']');
}

static int take_rows(struct job *job, const struct rv_embeddings *rows, rv_err **err)
{
    rv_buf lines = RV_BUF_INIT(RV_APP_MAX_FETCH);

    for (size_t i = 0; i < rows->n; i++) {
        rv_buf *out = job->as_json ? &job->rows : &lines;
        if (job->as_json)
            rv_buf_putc(out, job->n_rows + i > 0 ? ',' : '[');
        write_row(rows->values + i * rows->dims, rows->dims, out);
        if (!job->as_json)
            rv_buf_putc(out, '\n');
    }
    job->n_rows += rows->n;
    job->dims = rows->dims;
    rv_usage_add(&job->usage, &rows->usage);
    job->lacks_usage |= !rows->has_usage;
    int rc = rv_buf_check(job->as_json ? &job->rows : &lines, "embeddings", err);
    if (rc == 0 && !job->as_json && !cli_out_now(rv_buf_str(&lines)))
        rc = RV_FAIL(err, RV_E_IO, "the reader of the embeddings is gone");
    rv_buf_fini(&lines);
    return rc;
}

static int ask(struct job *job, rv_err **err)
{
    struct rv_embeddings rows = {0};
    rv_str texts[BATCH];

    for (size_t i = 0; i < job->n; i++)
        texts[i] = rv_str_of(job->texts[i]);
    int rc = rv_app_embed(&job->cli->app, &job->target,
                          &(const struct rv_embed_texts){.texts = texts, .n = job->n, .dimensions = job->dimensions},
                          &rows, err);
    if (rc == 0)
        rc = take_rows(job, &rows, err);
    rv_embeddings_fini(&rows);
    for (size_t i = 0; i < job->n; i++)
        free(job->texts[i]);
    job->n = 0;
    return rc;
}

static int add_text(struct job *job, rv_str text, rv_err **err)
{
    if (!rv_utf8_valid(text, NULL))
        return RV_FAIL(err, RV_E_INVALID, "a text to embed is not valid UTF-8");
    if (memchr(text.ptr, '\0', text.len))
        return RV_FAIL(err, RV_E_INVALID, "a text to embed has a zero byte in it");
    job->texts[job->n] = rv_str_dup(text);
    if (!job->texts[job->n])
        return RV_FAIL(err, RV_E_NOMEM, "keep a text to embed");
    job->n++;
    return job->n == BATCH ? ask(job, err) : 0;
}

/* A line each; blank ones are passed over. */
static int add_lines(struct job *job, rv_err **err)
{
    rv_buf line = RV_BUF_INIT(MAX_LINE);
    int c = 0, rc = 0;

    while (rc == 0 && c != EOF) {
        c = rv_stream_getc(stdin);
        if (c != '\n' && c != EOF) {
            rv_buf_putc(&line, (char)c);
            continue;
        }
        rc = rv_buf_check(&line, "a line of input", err);
        if (rc == 0 && rv_str_trim(rv_buf_str(&line)).len > 0)
            rc = add_text(job, rv_buf_str(&line), err);
        rv_buf_clear(&line);
    }
    if (rc == 0 && ferror(stdin))
        rc = RV_FAIL(err, RV_E_IO, "read standard input: %s", strerror(errno));
    rv_buf_fini(&line);
    return rc;
}

static int embed_all(struct job *job, rv_err **err)
{
    int rc = cli_int(job->cli, "dimensions", 1, 65536, &job->dimensions, err);

    if (rc == 0)
        rc = find_target(job, err);
    for (size_t i = 0; rc == 0 && i < job->cli->n_words; i++) {
        const char *word = job->cli->words[i];
        if (strcmp(word, "-") == 0)
            rc = add_lines(job, err);
        else if (word[0])
            rc = add_text(job, rv_str_of(word), err);
        else
            rc = RV_FAIL(err, RV_E_INVALID, "text %zu of those to embed is empty", i + 1);
    }
    if (rc == 0 && job->n > 0)
        rc = ask(job, err);
    return rc;
}

static void write_json(struct job *job, rv_buf *b)
{
    rv_jw w = rv_jw_on(b);

    rv_buf_puts(&job->rows, job->n_rows ? "]" : "[]");
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "provider", job->target.wire.provider);
    rv_jw_kv_text(&w, "model", job->target.wire.model);
    rv_jw_kv_int(&w, "dimensions", (int64_t)job->dims);
    rv_jw_key(&w, "usage");
    if (job->lacks_usage)
        rv_jw_null(&w);
    else
        rv_usage_write_json(&job->usage, &w);
    rv_jw_key(&w, "embeddings");
    rv_jw_raw(&w, rv_buf_str(&job->rows));
    rv_jw_obj_end(&w);
    rv_buf_putc(b, '\n');
}

static int embed_texts(struct rv_cli *cli, rv_err **err)
{
    struct job job = {.cli = cli, .as_json = cli_flag(cli, "json"), .rows = RV_BUF_INIT(RV_APP_MAX_FETCH)};
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_FETCH + 4096);

    int rc = embed_all(&job, err);
    if (rc == 0 && job.as_json)
        write_json(&job, &text);
    rc = cli_print(rc, &text, err);
    for (size_t i = 0; i < job.n; i++)
        free(job.texts[i]);
    rv_embed_target_fini(&job.target);
    rv_buf_fini(&job.rows);
    return rc;
}

/* --- rows of the store --- */

static int work_once(struct rv_cli *cli, const struct rv_knowledge_embed *how, struct rv_knowledge_embedded *sum,
                     bool prints, rv_err **err)
{
    struct rv_knowledge_embedded done = {0};
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT), problem = RV_BUF_INIT(RV_APP_MAX_TEXT);
    rv_err *why = NULL;
    int rc = rv_knowledge_embed(cli->store, how, &done, &why, err);

    if (why) {
        rv_buf_puts(&problem, "reeve: ");
        rv_err_write_text(why, cli->debug, &problem);
        cli_say_text(&problem);
    }
    rv_err_free(why);
    sum->failed += done.failed;
    if (rc == 0 && (prints || done.processed + done.skipped + done.failed > 0))
        rv_buf_printf(&text, "{\"processed\":%lld,\"skipped\":%lld,\"failed\":%lld}\n", (long long)done.processed,
                      (long long)done.skipped, (long long)done.failed);
    if (rc == 0 && !cli_out_now(rv_buf_str(&text)))
        rc = RV_FAIL(err, RV_E_IO, "the reader of the output is gone");
    rv_buf_fini(&text);
    return rc;
}

static void pause_watching(void)
{
    const struct timespec t = {.tv_sec = WATCH_S};

    nanosleep(&t, NULL); /* a signal ends the process or the pause: both are fine */
}

static int embed_rows(struct rv_cli *cli, rv_err **err)
{
    const struct rv_knowledge_embedder embedder = rv_app_make_embedder(&cli->app);
    struct rv_knowledge_embed how = {
        .provider = cli_value(cli, "provider"), .embedder = &embedder, .clock = rv_clock_system()};
    struct rv_knowledge_embedded sum = {0};
    bool watches = cli_flag(cli, "watch");
    int64_t limit = 0;
    int rc = cli_int(cli, "limit", 1, 1000000000, &limit, err);

    how.limit = (size_t)limit;
    if (rc == 0 && how.provider)
        rc = rv_app_check_embedder(how.provider, err);
    if (rc == 0)
        rc = rv_app_store_open(&cli->app, RV_APP_STORE_CHANGE, &cli->store, err);
    if (rc == 0)
        rc = work_once(cli, &how, &sum, true, err);
    while (rc == 0 && watches) {
        pause_watching();
        how.provider = NULL; /* that of the store, should another command have set it meanwhile */
        how.is_again = true;
        rc = work_once(cli, &how, &sum, false, err);
    }
    return rc < 0 ? rc : sum.failed > 0 ? RV_EXIT_FAILED : RV_EXIT_COMPLETED;
}

static int embed(struct rv_cli *cli, rv_err **err)
{
    static const char *const of_texts[] = {"model", "base-url", "dimensions", "json"};
    static const char *const of_rows[] = {"provider", "limit", "watch"};
    bool has_texts = cli->n_words > 0;

    for (size_t i = 0; !has_texts && i < RV_COUNT(of_texts); i++)
        if (cli_value(cli, of_texts[i]) || cli_flag(cli, of_texts[i]))
            return cli_usage(cli, err, "--%s needs TEXT; rows of the store take --provider", of_texts[i]);
    for (size_t i = 0; has_texts && i < RV_COUNT(of_rows); i++)
        if (cli_value(cli, of_rows[i]) || cli_flag(cli, of_rows[i]))
            return cli_usage(cli, err, "--%s is for the rows of the store; leave out TEXT", of_rows[i]);
    return has_texts ? embed_texts(cli, err) : embed_rows(cli, err);
}

static const struct rv_cli_option embed_options[] = {
    {"model", 'm', "PROVIDER:MODEL", "model to use for TEXT; required there", NULL, false},
    {"base-url", 0, "URL", "address of the server, in place of the provider's own", NULL, false},
    {"dimensions", 0, "N", "length of each vector, if the model supports a choice", NULL, false},
    {"json", 'j', NULL, "print one JSON object with model, usage and all vectors", NULL, false},
    {"provider", 'p', "PROVIDER",
     "what makes the vectors of rows from now on: hash-ngram or PROVIDER:MODEL[@DIMENSIONS]", NULL, false},
    {"limit", 'n', "N", "embed at most N rows", NULL, false},
    {"watch", 'w', NULL, "look for rows every two seconds until interrupted", NULL, false},
};

const struct rv_cli_verb verb_embed = {
    .name = "embed",
    .args = "[TEXT...]",
    .summary = "turn texts, or rows of the store, into vectors",
    .text =
        "Without TEXT the rows of the store are embedded whose text is new, and {processed, skipped, failed} is\n"
        "printed. The store remembers --provider; another one embeds all rows again, and searches use it as soon as\n"
        "it was set. hash-ngram, which a store begins with, makes vectors when rows are written and needs no "
        "command.\n\n"
        "With TEXT prints one JSON array of numbers a line, in the order of the texts. - reads the texts from standard "
        "input,\n"
        "one a line; blank lines are skipped. Keys and addresses come from the environment, as for `reeve run`:\n"
        "`reeve inspect --providers` lists the variables.",
    .examples = "reeve embed --provider openai:text-embedding-3-small\n"
                "reeve embed --watch\n"
                "reeve embed --model openai:text-embedding-3-small \"a rope\" \"a knot\"\n"
                "cut -f2 notes.tsv | reeve embed --model ollama:nomic-embed-text - > vectors.ndjson\n"
                "reeve embed --model openai:any --base-url http://127.0.0.1:8080/v1 --json \"a rope\" | jq .dimensions",
    RV_CLI_OPTIONS(embed_options),
    .groups = {&cli_of_stores, &cli_of_commits},
    .max_words = RV_CLI_MAX_ARGS,
    .run = embed,
};
