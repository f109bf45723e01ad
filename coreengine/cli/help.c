/* Help texts, from the table of verbs: as wide as the terminal, 100 columns at most. */
#include "coreengine/cli/cli.h"
#include "coreengine/cli/show/width_internal.h"

#include <string.h>

#define OPTION_WIDTH 29 /* of the column of options; a longer one moves its text to the right */
#define SUB_WIDTH    30 /* at most, of the column of verbs below one */
#define MIN_SUB      19 /* at least, so that most of these lists look alike */

#define WIDEST    100 /* columns: longer lines are hard to read; also in a pipe */
#define NARROWEST 60  /* columns, so that the texts of options have room beside their column */

#define BOLD  "\033[1m"
#define PLAIN "\033[0m"

static void heading(rv_buf *b, bool color, const char *text)
{
    rv_buf_printf(b, "%s%s%s\n", color ? BOLD : "", text, color ? PLAIN : "");
}

static size_t width_of_help(bool is_terminal)
{
    size_t columns = WIDEST;

    if (is_terminal)
        cli_terminal_size(&columns, NULL);
    return columns > WIDEST ? WIDEST : columns < NARROWEST ? NARROWEST : columns;
}

/* Words of a text from column `at` on, in lines that begin at `indent`. An empty line ends a paragraph. */
static void flow(const char *text, size_t at, size_t indent, size_t width, rv_buf *b)
{
    for (const char *word = text; *word;) {
        size_t breaks = strspn(word, " \n"), n = strcspn(word + breaks, " \n");
        bool ends = breaks >= 2 && word[0] == '\n' && word[1] == '\n';
        size_t columns = cli_width((rv_str){word + breaks, n});

        if (ends)
            rv_buf_puts(b, "\n");
        if (ends || (word > text && at + 1 + columns > width)) {
            rv_buf_printf(b, "\n%*s", (int)indent, "");
            at = indent;
        } else if (word > text && n > 0) {
            rv_buf_putc(b, ' ');
            at++;
        }
        rv_buf_add(b, word + breaks, n);
        at += columns;
        word += breaks + n;
    }
    rv_buf_puts(b, "\n");
}

static void overview(bool color, size_t width, rv_buf *b)
{
    rv_buf_puts(b, "reeve runs LLM-agent pipelines that are declared in YAML.\n\n");
    heading(b, color, "Usage");
    rv_buf_puts(b, "  reeve VERB [OPTIONS] ...\n\n");
    for (size_t i = 0; cli_verbs[i] && !cli_verbs[i]->hidden; i++) {
        const char *job = cli_job_of(cli_verbs[i]);
        if (job && i > 0)
            rv_buf_puts(b, "\n");
        if (job)
            heading(b, color, job);
        rv_buf_printf(b, "  %-10s  %s\n", cli_verbs[i]->name, cli_verbs[i]->summary);
    }
    rv_buf_puts(b, "\n");
    heading(b, color, "Examples");
    rv_buf_puts(b, "  reeve new pipeline hello.yaml                    # a pipeline that runs at once\n"
                   "  reeve run hello.yaml --input \"hi\"                # run it\n"
                   "  reeve graph hello.yaml                           # see it\n"
                   "  reeve test hello.yaml                            # run its tests\n\n");
    flow("`reeve VERB --help` shows the help of a verb. Exit status: 0 completed, 1 failed, 2 usage or configuration, "
         "3 waits for an answer, 4 stopped by a bound or policy, 5 no disk, descriptors, threads or memory left, "
         "130 cancelled.",
         0, 0, width, b);
}

static bool is_path(const char *words)
{
    return strcmp(words, "FILE") == 0 || strcmp(words, "DIR") == 0;
}

void cli_write_option_doc(const struct rv_cli_option *o, rv_buf *b)
{
    const char *words = o->words && !is_path(o->words) ? o->words : "";
    rv_buf listed = RV_BUF_INIT(4096);
    bool says_all = true;

    for (const char *w = words; *w;) {
        size_t n = strcspn(w, " ");
        rv_buf_printf(&listed, "%s%.*s", listed.len > 0 ? ", " : "", (int)n, w);
        says_all = says_all && memmem(o->doc, strlen(o->doc), w, n);
        w += n + (w[n] == ' ');
    }
    rv_buf_puts(b, o->doc);
    if (!says_all)
        rv_buf_printf(b, " (one of: %s)", rv_buf_cstr(&listed));
    if (o->many)
        rv_buf_puts(b, " (may be repeated)");
    rv_buf_fini(&listed);
}

static void option_line(const struct rv_cli_option *o, size_t width, rv_buf *b)
{
    rv_buf left = RV_BUF_INIT(4096);

    if (o->letter)
        rv_buf_printf(&left, "-%c, ", o->letter);
    else
        rv_buf_puts(&left, "    ");
    rv_buf_printf(&left, "--%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
    size_t taken = rv_buf_str(&left).len > OPTION_WIDTH ? rv_buf_str(&left).len : OPTION_WIDTH;
    rv_buf_printf(b, "  %-*s  ", OPTION_WIDTH, rv_buf_cstr(&left));
    rv_buf_clear(&left);
    cli_write_option_doc(o, &left);
    flow(rv_buf_cstr(&left), taken + 4, OPTION_WIDTH + 4, width, b);
    rv_buf_fini(&left);
}

static void list_subs(const struct rv_cli_verb *verb, bool color, rv_buf *b)
{
    size_t width = MIN_SUB;

    for (size_t i = 0; verb->subs[i]; i++) {
        size_t n = strlen(cli_short_name(verb->subs[i])) + 1 + strlen(verb->subs[i]->args);
        width = n > width && n <= SUB_WIDTH ? n : width;
    }
    rv_buf_puts(b, "\n");
    heading(b, color, "Verbs");
    for (size_t i = 0; verb->subs[i]; i++) {
        rv_buf left = RV_BUF_INIT(256);
        rv_buf_printf(&left, "%s %s", cli_short_name(verb->subs[i]), verb->subs[i]->args);
        rv_buf_printf(b, "  %-*s  %s\n", (int)width, rv_buf_cstr(&left), verb->subs[i]->summary);
        rv_buf_fini(&left);
    }
    rv_buf_printf(b, "\n`reeve %s VERB --help` explains one; without a verb it is `%s`.\n", verb->name,
                  cli_short_name(verb->subs[0]));
}

void cli_write_help(const struct rv_cli_verb *verb, const struct rv_cli *cli, rv_buf *b)
{
    size_t width = width_of_help(cli->out_tty);
    bool color = cli->out_color;

    if (!verb) {
        overview(color, width, b);
        return;
    }
    rv_buf_printf(b, "reeve %s: %s\n\n", verb->name, verb->summary);
    heading(b, color, "Usage");
    if (verb->subs)
        rv_buf_printf(b, "  reeve %s VERB [OPTIONS] ...\n\n", verb->name);
    else
        rv_buf_printf(b, "  reeve %s%s%s [OPTIONS]\n\n", verb->name, verb->args[0] ? " " : "", verb->args);
    flow(verb->text, 0, 0, width, b);
    if (verb->subs)
        list_subs(verb, color, b);
    const struct rv_cli_option *o;
    size_t i = 0;
    if (!verb->subs && cli_option_at(verb, 0) != cli_common.options) {
        rv_buf_puts(b, "\n");
        heading(b, color, "Options");
        for (; (o = cli_option_at(verb, i)) != cli_common.options; i++)
            option_line(o, width, b);
    }
    if (!verb->subs) {
        rv_buf_puts(b, "\n");
        heading(b, color, "Common options");
        for (; (o = cli_option_at(verb, i)); i++)
            option_line(o, width, b);
    }
    rv_buf_puts(b, "\n");
    heading(b, color, "Examples");
    for (const char *line = verb->examples; *line;) {
        size_t n = strcspn(line, "\n");
        rv_buf_printf(b, "  %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
}
