/* reeve ingest: reads files and folders into the store. */
#include "coreengine/app/app.h"
#include "coreengine/base/base.h"
#include "coreengine/cli/verbs/verbs_internal.h"
#include "coreengine/match/match.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#define MAX_LINE      ((size_t)1 << 16) /* bytes of what is told of one file: a path and an error */
#define PROGRESS_SECS 0.1               /* between two drawings: as often as an eye follows */

struct telling {
    const struct rv_cli *cli;
    bool is_json, is_live;
    struct timespec last;
    int64_t n;
};

static void write_json(const struct rv_ingested *file, rv_buf *out)
{
    rv_jw w = rv_jw_on(out);

    rv_jw_obj(&w);
    rv_jw_kv_path(&w, "path", file->path);
    rv_jw_kv_text(&w, "status", rv_ingest_outcome_text(file->outcome));
    if (file->name)
        rv_jw_kv_text(&w, "name", file->name);
    if (file->outcome == RV_INGEST_ADDED || file->outcome == RV_INGEST_CHANGED)
        rv_jw_kv_int(&w, "chunks", (int64_t)file->n_chunks);
    if (file->why) {
        rv_jw_key(&w, "error");
        rv_err_write_json(file->why, &w);
    }
    rv_jw_obj_end(&w);
    rv_buf_putc(out, '\n');
}

static void show_progress(struct telling *t, const char *path)
{
    struct timespec now;
    rv_buf line = RV_BUF_INIT(MAX_LINE);

    clock_gettime(CLOCK_MONOTONIC, &now);
    if ((double)(now.tv_sec - t->last.tv_sec) + (double)(now.tv_nsec - t->last.tv_nsec) / 1e9 < PROGRESS_SECS)
        return;
    t->last = now;
    rv_buf_puts(&line, "\r\033[K");
    rv_app_write_count(&line, t->n);
    rv_buf_puts(&line, " files, ");
    cli_write_preview(rv_str_of(path), 60, &line);
    cli_err(rv_buf_str(&line));
    rv_buf_fini(&line);
}

static int tell(void *self, const struct rv_ingested *file, rv_err **err)
{
    struct telling *t = self;
    rv_buf text = RV_BUF_INIT(MAX_LINE);
    int rc = 0;

    t->n++;
    if (t->is_json) {
        write_json(file, &text);
        rc = rv_buf_check(&text, "line", err);
        if (rc == 0)
            cli_out(rv_buf_str(&text));
    } else if (file->why) {
        cli_err(t->is_live ? RV_STR_LIT("\r\033[K") : RV_STR_LIT(""));
        rv_buf_puts(&text, "reeve: ");
        rv_err_write_text(file->why, t->cli->debug, &text);
        if (rv_err_is(file->why, RV_E_NOT_FOUND) && !rv_err_hint_text(file->why))
            rv_buf_puts(&text, "  hint: name a file or a folder that exists; a relative path starts at the current "
                               "folder\n");
        cli_err(rv_buf_str(&text));
    }
    rv_buf_fini(&text);
    if (t->is_live)
        show_progress(t, file->path);
    return rc;
}

static void write_counts(const struct rv_ingest_counts *c, rv_buf *out)
{
    for (enum rv_ingest_outcome w = RV_INGEST_ADDED; w <= RV_INGEST_FAILED; w++)
        rv_buf_printf(out, "%lld %s, ", (long long)c->files[w], rv_ingest_outcome_text(w));
    rv_app_write_count(out, c->n_chunks);
    rv_buf_puts(out, c->n_chunks == 1 ? " chunk of " : " chunks of ");
    cli_write_bytes(out, c->n_bytes);
    if (c->n_passed_over > 0)
        rv_buf_printf(out, "; %lld passed over: not a text by its name", (long long)c->n_passed_over);
    if (c->files[RV_INGEST_MISSING] > 0)
        rv_buf_printf(out, "; %lld deleted from the folder and still in the store (--prune deletes the rows)",
                      (long long)c->files[RV_INGEST_MISSING]);
    if (c->files[RV_INGEST_PRUNED] > 0)
        rv_buf_printf(out, "; %lld pruned: deleted from the folder, and now from the store",
                      (long long)c->files[RV_INGEST_PRUNED]);
    rv_buf_putc(out, '\n');
}

/* Of names that are all wrong the command line is at fault, as in other verbs. */
static bool is_any_there(const struct rv_cli *cli)
{
    for (size_t i = 0; i < cli->n_words; i++)
        if (access(cli->words[i], F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR))
            return true;
    return false;
}

static int ingest(struct rv_cli *cli, rv_err **err)
{
    struct telling t = {.cli = cli, .is_json = cli_flag(cli, "json"), .is_live = cli->err_tty};
    int64_t chars = RV_CHUNK_CHARS, overlap = RV_CHUNK_OVERLAP;
    struct rv_ingest_counts counts;
    rv_buf text = RV_BUF_INIT(MAX_LINE);
    int rc = cli_int(cli, "chunk-chars", 100, 100000, &chars, err);

    if (rc < 0)
        return rc;
    int64_t most = (int64_t)rv_chunk_max_overlap((size_t)chars);
    if (!cli_value(cli, "overlap") && overlap > most)
        overlap = most;
    rc = cli_int(cli, "overlap", 0, most, &overlap, err);
    if (rc < 0)
        return rc;
    const struct rv_app_ingest opts = {.store = cli->store,
                                       .scope = cli->app.scope,
                                       .paths = cli->words,
                                       .n_paths = cli->n_words,
                                       .chunk_chars = (size_t)chars,
                                       .overlap = (size_t)overlap,
                                       .session = cli_value(cli, "session"),
                                       .again = cli_flag(cli, "again"),
                                       .prune = cli_flag(cli, "prune"),
                                       .on_file = tell,
                                       .self = &t};
    rc = rv_app_ingest(&opts, &counts, err);
    if (t.is_live)
        cli_err(RV_STR_LIT("\r\033[K"));
    if (rc < 0)
        return rc;
    write_counts(&counts, &text);
    if (t.is_json)
        cli_say_text(&text);
    else
        rc = cli_print(0, &text, err);
    if (rc < 0 || counts.files[RV_INGEST_FAILED] == 0)
        return rc < 0 ? rc : RV_EXIT_COMPLETED;
    return is_any_there(cli) ? RV_EXIT_FAILED : RV_EXIT_USAGE;
}

static const struct rv_cli_option options[] = {
    {"chunk-chars", 0, "N", "characters of a chunk, 100 to 100000 (default 1500)", NULL, false},
    {"overlap", 0, "N", "characters that neighbouring chunks share, less than half a chunk (default 200)", NULL, false},
    {"session", 0, "ID", "session that the files belong to (default: each gets one of its own)", NULL, false},
    {"again", 0, NULL, "write files that have not changed, too", NULL, false},
    {"prune", 0, NULL, "delete the rows of files that are not in the folders any more", NULL, false},
    {"json", 'j', NULL, "print one JSON object for each file; the totals go to stderr", NULL, false},
};

const struct rv_cli_verb verb_ingest = {
    .name = "ingest",
    .args = "PATH...",
    .summary = "read files and folders into the store, for search and lookup",
    .text =
        "Reads texts (.md, .txt, .rst, .csv, .json, .yaml and their kin) in folders, and every file that is named, "
        "cuts\n"
        "each into chunks, and writes a row of `files`, one of `resources` for each chunk, an edge for each link "
        "between\n"
        "Markdown pages, and a moment. A file that did not change is passed over, so the command can be stopped and\n"
        "run again. A file that cannot be read is reported, the others are read, and the exit status is 1.\n"
        "A file that was deleted from a folder stays in the store, and is counted, until --prune deletes its rows.\n"
        "With --user the rows belong to that user; otherwise every user finds them.",
    .examples = "reeve ingest docs                     # all texts below a folder\n"
                "reeve ingest notes.md plan.txt --user ada\n"
                "reeve ingest docs --json | jq -r 'select(.status == \"failed\").path'",
    RV_CLI_OPTIONS(options),
    .groups = {&cli_of_stores, &cli_of_commits},
    .min_words = 1,
    .max_words = RV_CLI_MAX_ARGS,
    .store = RV_CLI_MAKES,
    .run = ingest,
};
