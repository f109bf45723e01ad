/* Help texts from the table of verbs. */
#include "coreengine/cli/cli.h"

#include <string.h>

#define BOLD  "\033[1m"
#define PLAIN "\033[0m"

static void heading(rv_buf *b, bool color, const char *text)
{
    rv_buf_printf(b, "%s%s%s\n", color ? BOLD : "", text, color ? PLAIN : "");
}

static void overview(bool color, rv_buf *b)
{
    rv_buf_puts(b, "reeve runs LLM-agent pipelines that are declared in YAML.\n\n");
    heading(b, color, "Usage");
    rv_buf_puts(b, "  reeve VERB [OPTIONS] ...\n\n");
    heading(b, color, "Verbs");
    for (size_t i = 0; rv_cli_verbs[i]; i++)
        if (!rv_cli_verbs[i]->hidden)
            rv_buf_printf(b, "  %-10s %s\n", rv_cli_verbs[i]->name, rv_cli_verbs[i]->summary);
    rv_buf_puts(b, "\n");
    heading(b, color, "Examples");
    rv_buf_puts(
        b,
        "  reeve new pipeline hello.yaml                    # a pipeline that runs at once\n"
        "  reeve run hello.yaml --input \"hi\"                # run it\n"
        "  reeve graph hello.yaml                           # see it\n"
        "  reeve test hello.yaml                            # run the tests it carries\n\n"
        "`reeve VERB --help` shows the help of a verb. Exit status: 0 completed, 1 failed, 2 usage or configuration,\n"
        "3 waits for an answer, 4 stopped by a bound or policy, 130 cancelled.\n");
}

static void option_line(const struct rv_cli_option *o, rv_buf *b)
{
    rv_buf left = RV_BUF_INIT(256);

    if (o->letter)
        rv_buf_printf(&left, "-%c, ", o->letter);
    else
        rv_buf_puts(&left, "    ");
    rv_buf_printf(&left, "--%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
    rv_buf_printf(b, "  %-30s %s%s\n", rv_buf_cstr(&left), o->doc, o->many ? " (may be repeated)" : "");
    rv_buf_fini(&left);
}

static void list_subs(const struct rv_cli_verb *verb, bool color, rv_buf *b)
{
    rv_buf_puts(b, "\n");
    heading(b, color, "Verbs");
    for (size_t i = 0; verb->subs[i]; i++) {
        rv_buf left = RV_BUF_INIT(256);
        rv_buf_printf(&left, "%s %s", rv_cli_short_name(verb->subs[i]), verb->subs[i]->args);
        rv_buf_printf(b, "  %-20s %s\n", rv_buf_cstr(&left), verb->subs[i]->summary);
        rv_buf_fini(&left);
    }
    rv_buf_printf(b, "\n`reeve %s VERB --help` explains one; without a verb it is `%s`.\n", verb->name,
                  rv_cli_short_name(verb->subs[0]));
}

void rv_cli_write_help(const struct rv_cli_verb *verb, bool color, rv_buf *b)
{
    if (!verb) {
        overview(color, b);
        return;
    }
    rv_buf_printf(b, "reeve %s: %s\n\n", verb->name, verb->summary);
    heading(b, color, "Usage");
    if (verb->subs)
        rv_buf_printf(b, "  reeve %s VERB [OPTIONS] ...\n\n%s\n", verb->name, verb->text);
    else
        rv_buf_printf(b, "  reeve %s %s [OPTIONS]\n\n%s\n", verb->name, verb->args, verb->text);
    if (verb->subs)
        list_subs(verb, color, b);
    if (verb->n_options) {
        rv_buf_puts(b, "\n");
        heading(b, color, "Options");
        for (size_t i = 0; i < verb->n_options; i++)
            option_line(&verb->options[i], b);
    }
    if (!verb->subs) {
        rv_buf_puts(b, "\n");
        heading(b, color, "Common options");
        for (size_t i = 0; i < rv_cli_n_common_options; i++)
            option_line(&rv_cli_common_options[i], b);
    }
    rv_buf_puts(b, "\n");
    heading(b, color, "Examples");
    for (const char *line = verb->examples; *line;) {
        size_t n = strcspn(line, "\n");
        rv_buf_printf(b, "  %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
}
