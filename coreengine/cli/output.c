/* Writing to people and pipes: errors once, on stderr; results on stdout; a failed write is a failed command. */
#include "coreengine/cli/cli.h"
#include "coreengine/cli/outlet_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_WHY ((size_t)64 << 10) /* bytes of an error that is printed: a chain of errors has a few thousand */

static int write_errno; /* the first failure of stdout; set and read by the main thread only */

/* False: a write failed. One that is handed to the outlet has not, so far. What was printed comes before what is said
 * about it, also where both streams are one file; the outlet keeps that order by itself. */
static bool emit(int fd, const char *bytes, size_t n)
{
    if (cli_outlet_put(fd, (rv_str){bytes, n}))
        return true;
    if (fd == STDERR_FILENO && fflush(stdout) != 0 && !write_errno)
        write_errno = errno;
    return fwrite(bytes, 1, n, fd == STDOUT_FILENO ? stdout : stderr) == n;
}

/* C1 controls steer terminals as escape sequences do, and nothing here means to write one. Texts of others are made
 * safe where they are put in; this is for names and ids that no check of their source has seen. False: a write failed.
 */
static bool write_without_c1(rv_str text, int fd)
{
    size_t from = 0;
    bool ok = true;

    for (size_t i = 0; i < text.len; i++) {
        if (rv_utf8_control(text.ptr + i, text.len - i) != 2)
            continue;
        ok = emit(fd, text.ptr + from, i - from) && emit(fd, " ", 1) && ok;
        from = i + 2;
        i++;
    }
    return emit(fd, text.ptr + from, text.len - from) && ok;
}

static bool is_terminal(void)
{
    static int is = -1; /* not asked yet; main thread only */

    if (is < 0)
        is = isatty(STDOUT_FILENO);
    return is;
}

void cli_out(rv_str text)
{
    bool ok =
        !text.len || (is_terminal() ? write_without_c1(text, STDOUT_FILENO) : emit(STDOUT_FILENO, text.ptr, text.len));
    if (!ok && !write_errno)
        write_errno = errno ? errno : EIO;
}

bool cli_out_now(rv_str text)
{
    cli_out(text);
    int number = cli_outlet_failed(STDOUT_FILENO);
    if (number == 0 && fflush(stdout) != 0)
        number = errno;
    write_errno = write_errno ? write_errno : number;
    return !write_errno;
}

int cli_print(int rc, rv_buf *text, rv_err **err)
{
    if (rc == 0)
        rc = rv_buf_check(text, "output", err);
    if (rc == 0)
        cli_out(rv_buf_str(text));
    rv_buf_fini(text);
    return rc;
}

void cli_err(rv_str text)
{
    if (text.len)
        RV_IGNORE(!write_without_c1(text, STDERR_FILENO), "there is nowhere else to say it");
}

void cli_say_text(rv_buf *text)
{
    cli_err(rv_buf_str(text));
    rv_buf_fini(text);
}

void cli_say(const char *fmt, ...)
{
    rv_buf text = RV_BUF_INIT(1 << 20);
    va_list ap;

    va_start(ap, fmt);
    rv_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    cli_say_text(&text);
}

bool cli_out_rest(void)
{
    int number = cli_outlet_close();

    if (number == 0 && fflush(stdout) != 0)
        number = errno;
    write_errno = write_errno ? write_errno : number;
    return !write_errno;
}

int cli_flush(int status, bool outlives_reader)
{
    RV_IGNORE(!cli_out_rest(), "write_errno says it");
    if (!write_errno || (write_errno == EPIPE && outlives_reader))
        return status;
    if (write_errno != EPIPE) /* a reader that went away needs no message */
        fprintf(stderr, "reeve: write to standard output: %s\n",
                write_errno == ENOBUFS ? "its reader is more than 1 GiB behind, the rest is lost"
                                       : strerror(write_errno));
    if (status != RV_EXIT_COMPLETED)
        return status;
    return write_errno == ENOSPC || write_errno == EDQUOT ? RV_EXIT_SCARCE : RV_EXIT_FAILED;
}

int cli_exit_of(enum rv_run_status status)
{
    switch (status) {
    case RV_RUN_COMPLETED:
        return RV_EXIT_COMPLETED;
    case RV_RUN_INTERRUPTED:
        return RV_EXIT_INTERRUPTED;
    case RV_RUN_TERMINATED:
        return RV_EXIT_TERMINATED;
    case RV_RUN_CANCELLED:
        return RV_EXIT_CANCELLED;
    case RV_RUN_READY:
    case RV_RUN_RUNNING:
    case RV_RUN_FAILED:
    case RV_N_RUN:
        break;
    }
    return RV_EXIT_FAILED;
}

static int exit_of_error(const rv_err *err)
{
    switch ((enum rv_code)rv_err_code(err)) { /* without default: a new code is given its status here */
    case RV_E_INVALID:
    case RV_E_PARSE:
    case RV_E_NOT_FOUND:
    case RV_E_EXISTS:
    case RV_E_STATE:
    case RV_E_VERSION:
    case RV_E_DENIED:      /* such as a wrong password of the store */
    case RV_E_UNAVAILABLE: /* the store, which is opened first: nothing ran */
    case RV_E_LIMIT:       /* an input that is too large; a run that ends at a bound is not an error */
        return RV_EXIT_USAGE;
    case RV_E_QUOTA: /* as a run that a quota ends */
        return RV_EXIT_TERMINATED;
    case RV_E_CANCELLED:
        return RV_EXIT_CANCELLED;
    case RV_E_NOMEM:
    case RV_E_DISK:
    case RV_E_FILES:
    case RV_E_THREADS:
        return RV_EXIT_SCARCE;
    case RV_E_TIMEOUT:
    case RV_E_IO:
    case RV_E_PROVIDER:
    case RV_E_TOOL:
    case RV_E_PLUGIN:
    case RV_E_INTERNAL:
        break;
    }
    return RV_EXIT_FAILED;
}

/* What texts of coreengine/app name, and how the command line says it. */
static const struct {
    const char *named, *said;
} words[] = {
    {"name a store, or set REEVE_STORE", "name a store with --store FILE or in REEVE_STORE"},
    {"the store needs the name of a file", "--store needs the name of a file"},
    {"the first run creates it; REEVE_STORE names", "`reeve run` creates it; --store FILE or REEVE_STORE names"},
    {"or keep this run elsewhere", "or keep this run elsewhere with --store FILE"},
    {"name another place for the store",
     "name another file with --store or in REEVE_STORE; `reeve run` and `reeve chat` need none with --no-store"},
    {"its folder as schema_dir", "its folder with --schema-dir"},
    {"schema_dir: the folder", "--schema-dir: the folder"},
    {"keep the run in a store", "leave --no-store out, or name a file of quotas without these limits with --quotas"},
    {"no_store excludes changes", "--no-store excludes changes"},
    {"leave out the session's id for a new session", "leave --session out for a new session"},
    {"name the script to continue with", "name the script to continue with: --script FILE"},
    {"; a limit shows the newest", "; --limit shows the newest"},
    {"the list of functions has all", "`reeve fn --list` lists all"},
    {"the SDK folder \"", "--sdk \""},
};

void cli_write_said(rv_str text, rv_buf *b)
{
    while (text.len) {
        const char *first = NULL;
        size_t which = 0;
        for (size_t i = 0; i < RV_COUNT(words); i++) {
            const char *at = memmem(text.ptr, text.len, words[i].named, strlen(words[i].named));
            if (at && (!first || at < first)) {
                first = at;
                which = i;
            }
        }
        size_t before = first ? (size_t)(first - text.ptr) : text.len;
        rv_buf_add_str(b, (rv_str){text.ptr, before});
        if (first) {
            rv_buf_puts(b, words[which].said);
            before += strlen(words[which].named);
        }
        text = (rv_str){text.ptr + before, text.len - before};
    }
}

int cli_report(const struct rv_cli *cli, rv_err *err)
{
    rv_buf text = RV_BUF_INIT(1 << 20), raw = RV_BUF_INIT(1 << 20), said = RV_BUF_INIT(1 << 20);
    int status = exit_of_error(err);

    rv_err_write_text(err, cli->debug, &raw);
    cli_write_said(rv_buf_str(&raw), &said);
    rv_buf_puts(&text, cli->err_color ? "\033[1;31mreeve:\033[0m " : "reeve: ");
    cli_write_safe(rv_buf_str(&said), &text); /* it may quote what models and tools said */
    rv_buf_fini(&raw);
    rv_buf_fini(&said);
    cli_say_text(&text);
    rv_err_free(err);
    return status;
}

/* --- findings --- */

void cli_say_findings(const struct rv_cli *cli, const rv_findings *findings)
{
    rv_buf raw = RV_BUF_INIT(64 << 20), text = RV_BUF_INIT(64 << 20);

    if (findings && rv_findings_n(findings))
        rv_findings_write_text(findings, cli->err_color, &raw);
    cli_write_said(rv_buf_str(&raw), &text);
    rv_buf_fini(&raw);
    cli_say_text(&text);
}

bool cli_sound(const struct rv_cli *cli, const struct rv_app_loaded *l, bool warnings)
{
    bool sound = l->pipeline && rv_findings_n_errors(l->findings) == 0;

    if (!sound || warnings)
        cli_say_findings(cli, l->findings);
    return sound;
}

/* --- lines of --events that the engine does not write --- */

bool cli_out_delta(const struct rv_pipeline *pipeline, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    rv_buf line = RV_BUF_INIT(2 * RV_LLM_MAX_REPLY);
    rv_jw w = rv_jw_on(&line);

    rv_llm_delta_write(d, &w);
    if (pipeline)
        rv_jw_kv_text(&w, "stage", pipeline->agents[from->stage].name);
    if (from->origin) {
        rv_jw_kv_text(&w, "agent", from->origin->agent);
        rv_jw_kv_int(&w, "depth", from->origin->depth);
        rv_jw_kv_text(&w, "parent_tool_call_id", from->origin->parent_tool_call_id);
    }
    rv_jw_kv_int(&w, "call_id", from->call_id);
    if (from->is_muted && d->kind != RV_LLM_DELTA_USAGE && d->kind != RV_LLM_DELTA_FINISH)
        rv_jw_kv_bool(&w, "muted", true);
    rv_jw_obj_end(&w);
    rv_buf_putc(&line, '\n');
    bool ok = cli_out_now(rv_buf_str(&line));
    rv_buf_fini(&line);
    return ok;
}

bool cli_tell_end(const rv_envelope *env, const rv_err *err)
{
    static const enum rv_emit_kind kinds[] = {RV_EMIT_ERROR, RV_EMIT_DONE};
    const struct rv_envelope_used used = env ? rv_envelope_used(env) : (struct rv_envelope_used){0};
    rv_buf raw = RV_BUF_INIT(MAX_WHY), why = RV_BUF_INIT(2 * MAX_WHY), line = RV_BUF_INIT(8 * MAX_WHY);

    rv_err_write_chain(err, &raw);
    cli_write_said(rv_buf_str(&raw), &why);
    rv_err *told = NULL;
    RV_IGNORE(RV_FAIL(&told, rv_err_code(err), "%s", rv_buf_cstr(&why)), "it only carries the text");
    for (size_t i = 0; i < RV_COUNT(kinds); i++) {
        rv_engine_write_unkept_end(kinds[i], env, &used, rv_app_now_us(), told, &line);
        rv_buf_putc(&line, '\n');
    }
    bool ok = cli_out_now(rv_buf_str(&line));
    rv_err_free(told);
    rv_buf_fini(&raw);
    rv_buf_fini(&line);
    rv_buf_fini(&why);
    return ok;
}
