/* reeve fn: every pure rule as a JSON filter. */
#include "coreengine/app/app.h"
#include "coreengine/base/base.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MAX_LIST_BYTES ((size_t)1 << 20) /* of the list of functions: those in the source fill a tenth */

static int list(struct rv_cli *cli, bool as_json, rv_err **err)
{
    const struct rv_fn *filters[RV_FN_MAX];
    size_t n = rv_fn_collect(filters);
    rv_buf text = RV_BUF_INIT(MAX_LIST_BYTES);
    rv_jw w = rv_jw_on(&text);

    if (as_json)
        rv_jw_arr(&w);
    for (size_t i = 0; i < n; i++) {
        const struct rv_fn *f = filters[i];
        if (as_json) {
            rv_jw_obj(&w);
            rv_jw_kv_text(&w, "name", f->name);
            rv_jw_kv_text(&w, "doc", f->doc);
            rv_jw_kv_text(&w, "takes", f->takes);
            rv_jw_kv_text(&w, "gives", f->gives);
            rv_jw_obj_end(&w);
        } else {
            rv_buf_printf(&text, "%s%-24s%s %s\n  %s -> %s\n", cli->out_color ? "\033[1m" : "", f->name,
                          cli->out_color ? "\033[0m" : "", f->doc, f->takes, f->gives);
        }
    }
    if (as_json) {
        rv_jw_arr_end(&w);
        rv_buf_putc(&text, '\n');
    }
    return cli_print(0, &text, err);
}

/* One input to one line of output. err: a failure to read the input; taken. *open (may be NULL): the reader of the
 * output is still there.
 */
static bool answer(const struct rv_fn *f, rv_str text, rv_err *err, bool *open)
{
    rv_buf body = RV_BUF_INIT(RV_FN_MAX_REPLY), line = RV_BUF_INIT(RV_FN_MAX_REPLY + 64);
    bool ok = !err && rv_fn_call(f, text, &body, &err) == 0;

    rv_buf_printf(&line, "{\"ok\":%s,\"%s\":", ok ? "true" : "false", ok ? "result" : "error");
    if (ok) {
        rv_buf_add_str(&line, rv_buf_str(&body));
    } else {
        rv_jw w = rv_jw_on(&line);
        rv_err_write_json(err, &w);
    }
    rv_buf_puts(&line, "}\n");
    static const char no_memory[] =
        "{\"ok\":false,\"error\":{\"code\":\"no_memory\",\"message\":\"out of memory\",\"causes\":[]}}\n";
    bool written = cli_out_now(line.rc == 0 ? rv_buf_str(&line) : RV_STR_LIT(no_memory));
    if (open)
        *open = written;
    ok = ok && line.rc == 0;
    rv_err_free(err);
    rv_buf_fini(&body);
    rv_buf_fini(&line);
    return ok;
}

/* The next line of stdin, without its end; the rest of one that is too long is passed over. False: no more input. */
static bool next_line(rv_buf *line, rv_err **err)
{
    int c;

    rv_buf_clear(line);
    while ((c = rv_stream_getc(stdin)) != EOF && c != '\n')
        rv_buf_putc(line, (char)c);
    if (ferror(stdin)) {
        RV_IGNORE(RV_FAIL(err, RV_E_IO, "read standard input: %s", strerror(errno)), "it is reported by the caller");
        return false;
    }
    RV_IGNORE(rv_buf_check(line, "line of input", err), "it becomes the answer to this line");
    return c != EOF || line->len > 0 || *err;
}

static int filter_lines(const struct rv_fn *f, rv_err **err)
{
    rv_buf line = RV_BUF_INIT(RV_FN_MAX_BYTES);
    bool open = true;

    while (open && next_line(&line, err)) {
        rv_err *fault = rv_err_steal(err);
        if (fault || rv_str_trim(rv_buf_str(&line)).len > 0)
            answer(f, rv_buf_str(&line), fault, &open);
    }
    rv_buf_fini(&line);
    return rv_err_code(*err);
}

static int fn(struct rv_cli *cli, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_FN_MAX_BYTES);
    const struct rv_fn *f;

    if (cli_flag(cli, "list"))
        return list(cli, cli_flag(cli, "json"), err);
    if (cli->n_words == 0)
        return cli_usage(cli, err, "`reeve fn` needs the name of a function");
    int rc = rv_fn_find(cli->words[0], &f, err);
    if (rc < 0)
        return rc;
    if (cli_flag(cli, "ndjson"))
        return filter_lines(f, err);
    rv_err *unread = NULL;
    RV_IGNORE(rv_file_read("-", &text, &unread), "it becomes the answer");
    bool ok = answer(f, rv_buf_str(&text), unread, NULL);
    rv_buf_fini(&text);
    return ok ? RV_EXIT_COMPLETED : RV_EXIT_FAILED;
}

static const struct rv_cli_option fn_options[] = {
    {"list", 'l', NULL, "list the functions with their inputs and results", NULL, false},
    {"json", 'j', NULL, "print the list as JSON", NULL, false},
    {"ndjson", 'n', NULL, "one input per line, one result per line; an invalid line gives an error", NULL, false},
};

const struct rv_cli_verb verb_fn = {
    .name = "fn",
    .args = "[NAME]",
    .summary = "apply a rule of the engine to JSON from standard input",
    .text =
        "Reads one JSON value from standard input and prints {\"ok\":true,\"result\":...} or\n"
        "{\"ok\":false,\"error\":{code,message,...}}. Exit status 0 if ok, 1 if not; with --ndjson always 0, and each\n"
        "line carries its own result. Blank lines are skipped.",
    .examples = "reeve fn --list\n"
                "echo '{\"text\": \"sure: {\\\"a\\\": 1}\"}' | reeve fn extract_json\n"
                "reeve run pipelines/hooks.yaml --state | reeve fn can_continue",
    RV_CLI_OPTIONS(fn_options),
    .max_words = 1,
    .run = fn,
};
