/* Writing to people and pipes: errors once, on stderr; results on stdout; a failed write is a failed command. */
#include "coreengine/cli/runs/runs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int write_errno; /* the first failure of stdout; set and read by the main thread only */

/* C1 controls steer terminals as escape sequences do, and nothing here means to write one. Texts of others are made
 * safe where they are put in; this is for names and ids that no check of their source has seen. False: a write failed.
 */
static bool write_without_c1(rv_str text, FILE *to)
{
    size_t from = 0;
    bool ok = true;

    for (size_t i = 0; i < text.len; i++) {
        if (rv_utf8_control(text.ptr + i, text.len - i) != 2)
            continue;
        ok = fwrite(text.ptr + from, 1, i - from, to) == i - from && putc(' ', to) != EOF && ok;
        from = i + 2;
        i++;
    }
    return fwrite(text.ptr + from, 1, text.len - from, to) == text.len - from && ok;
}

static bool is_terminal(void)
{
    static int is = -1; /* not asked yet; main thread only */

    if (is < 0)
        is = isatty(STDOUT_FILENO);
    return is;
}

void rv_cli_out(rv_str text)
{
    bool ok = !text.len ||
              (is_terminal() ? write_without_c1(text, stdout) : fwrite(text.ptr, 1, text.len, stdout) == text.len);
    if (!ok && !write_errno)
        write_errno = errno ? errno : EIO;
}

bool rv_cli_out_now(rv_str text)
{
    rv_cli_out(text);
    if (fflush(stdout) != 0 && !write_errno)
        write_errno = errno;
    return !write_errno;
}

int rv_cli_print(const struct rv_cli *cli, rv_buf *text)
{
    rv_err *err = NULL;
    int status = RV_EXIT_COMPLETED;

    if (rv_buf_check(text, "output", &err) < 0)
        status = rv_cli_report(cli, err);
    else
        rv_cli_out(rv_buf_str(text));
    rv_buf_fini(text);
    return status;
}

void rv_cli_err(rv_str text)
{
    if (text.len)
        RV_IGNORE(!write_without_c1(text, stderr), "there is nowhere else to say it");
}

int rv_cli_flush(int status, bool outlives_reader)
{
    if (fflush(stdout) != 0 && !write_errno)
        write_errno = errno;
    if (!write_errno || (write_errno == EPIPE && outlives_reader))
        return status;
    if (write_errno != EPIPE) /* a reader that went away needs no message */
        fprintf(stderr, "reeve: write to standard output: %s\n", strerror(write_errno));
    return status == RV_EXIT_COMPLETED ? RV_EXIT_FAILED : status;
}

int rv_cli_exit_of(enum rv_run_status status)
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
    switch (rv_err_code(err)) {
    case RV_E_INVALID:
    case RV_E_PARSE:
    case RV_E_NOT_FOUND:
    case RV_E_EXISTS:
    case RV_E_STATE:
    case RV_E_VERSION:
    case RV_E_LIMIT: /* an input that is too large; a run that ends at a bound is not an error */
        return RV_EXIT_USAGE;
    case RV_E_CANCELLED:
        return RV_EXIT_CANCELLED;
    default:
        return RV_EXIT_FAILED;
    }
}

int rv_cli_report(const struct rv_cli *cli, rv_err *err)
{
    rv_buf text = RV_BUF_INIT(1 << 20), said = RV_BUF_INIT(1 << 20);
    int status = exit_of_error(err);

    rv_err_write_text(err, cli->debug, &said);
    rv_buf_puts(&text, cli->err_color ? "\033[1;31mreeve:\033[0m " : "reeve: ");
    rv_cli_write_safe(rv_buf_str(&said), &text); /* it may quote what models and tools said */
    rv_buf_fini(&said);
    rv_cli_err(rv_buf_str(&text));
    rv_buf_fini(&text);
    rv_err_free(err);
    return status;
}

int rv_cli_usage(const struct rv_cli *cli, const struct rv_cli_args *args, const char *fmt, ...)
{
    rv_buf text = RV_BUF_INIT(4096);
    rv_err *err = NULL;
    va_list ap;

    va_start(ap, fmt);
    rv_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    RV_IGNORE(RV_FAIL(&err, RV_E_INVALID, "%s", rv_buf_cstr(&text)), "it is reported at once");
    rv_err_hint(&err, "usage: reeve %s%s%s; `reeve %s --help` has examples", args->verb->name,
                args->verb->args[0] ? " " : "", args->verb->args, args->verb->name);
    rv_buf_fini(&text);
    return rv_cli_report(cli, err);
}
