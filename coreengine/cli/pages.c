/* Man pages and the reference page, from the table of verbs. */
#include "coreengine/cli/cli.h"

#include <string.h>

/* --- man pages --- */

/* Text for troff: backslashes, hyphens in options and leading dots must not be taken as requests. */
static void troff(rv_buf *b, const char *text)
{
    bool line_start = true;

    for (const char *c = text; *c; c++) {
        if (line_start && (*c == '.' || *c == '\''))
            rv_buf_puts(b, "\\&");
        if (*c == '\\')
            rv_buf_puts(b, "\\e");
        else if (*c == '-')
            rv_buf_puts(b, "\\-");
        else
            rv_buf_putc(b, *c);
        line_start = *c == '\n';
    }
}

static void man_option(const struct rv_cli_option *o, rv_buf *b)
{
    rv_buf_puts(b, ".TP\n\\fB");
    if (o->letter)
        rv_buf_printf(b, "\\-%c\\fR, \\fB", o->letter);
    rv_buf_puts(b, "\\-\\-");
    troff(b, o->name);
    rv_buf_puts(b, "\\fR");
    if (o->arg)
        rv_buf_printf(b, " \\fI%s\\fR", o->arg);
    rv_buf_puts(b, "\n");
    rv_buf doc = RV_BUF_INIT(4096);
    cli_write_option_doc(o, &doc);
    troff(b, rv_buf_cstr(&doc));
    rv_buf_fini(&doc);
    rv_buf_puts(b, "\n");
}

static void man_overview(rv_buf *b)
{
    rv_buf_puts(
        b, ".TH REEVE 1 \"\" \"reeve\" \"User commands\"\n.SH NAME\nreeve \\- run LLM\\-agent pipelines declared in "
           "YAML\n.SH SYNOPSIS\n\\fBreeve\\fR \\fIVERB\\fR [\\fIOPTIONS\\fR] ...\n.SH VERBS\n");
    for (size_t i = 0; cli_verbs[i]; i++)
        if (!cli_verbs[i]->hidden) {
            const char *job = cli_job_of(cli_verbs[i]);
            if (job)
                rv_buf_printf(b, ".SS %s\n", job);
            rv_buf_printf(b, ".TP\n\\fB%s\\fR\n", cli_verbs[i]->name);
            troff(b, cli_verbs[i]->summary);
            rv_buf_printf(b, "; see \\fBreeve\\-%s\\fR(1)\n", cli_verbs[i]->name);
        }
}

static void man_synopsis(const struct rv_cli_verb *verb, rv_buf *b)
{
    rv_buf_printf(b, "\\fBreeve %s\\fR%s", verb->name, verb->args[0] ? " " : "");
    troff(b, verb->args);
    rv_buf_puts(b, " [\\fIOPTIONS\\fR]\n");
}

/* A verb below another one is a section of its page. */
static void man_sub(const struct rv_cli_verb *verb, rv_buf *b)
{
    rv_buf_puts(b, ".SS ");
    man_synopsis(verb, b);
    troff(b, verb->text);
    rv_buf_puts(b, "\n");
    const struct rv_cli_option *o;
    for (size_t i = 0; (o = cli_option_at(verb, i)) != cli_common.options; i++)
        man_option(o, b);
    rv_buf_puts(b, ".PP\n.nf\n");
    troff(b, verb->examples);
    rv_buf_puts(b, "\n.fi\n");
}

static void man_verb(const struct rv_cli_verb *verb, rv_buf *b)
{
    rv_buf_printf(b, ".TH REEVE\\-%s 1 \"\" \"reeve\" \"User commands\"\n.SH NAME\nreeve\\-%s \\- ", verb->name,
                  verb->name);
    troff(b, verb->summary);
    rv_buf_puts(b, "\n.SH SYNOPSIS\n");
    if (verb->subs)
        for (size_t i = 0; verb->subs[i]; i++) {
            rv_buf_puts(b, i ? ".br\n" : "");
            man_synopsis(verb->subs[i], b);
        }
    else
        man_synopsis(verb, b);
    rv_buf_puts(b, ".SH DESCRIPTION\n");
    troff(b, verb->text);
    rv_buf_puts(b, "\n");
    if (verb->subs) {
        rv_buf_puts(b, ".SH VERBS\n");
        for (size_t i = 0; verb->subs[i]; i++)
            man_sub(verb->subs[i], b);
    }
    rv_buf_puts(b, ".SH OPTIONS\n");
    const struct rv_cli_option *o;
    for (size_t i = 0; (o = cli_option_at(verb, i)); i++)
        man_option(o, b);
    rv_buf_puts(b, ".SH EXAMPLES\n.nf\n");
    troff(b, verb->examples);
    rv_buf_puts(b, "\n.fi\n");
}

static void man_environment(rv_buf *b)
{
    static const struct {
        const char *name, *doc;
    } variables[] = {
        {"REEVE_CAPABILITY_PATH", "folders that are searched for capabilities, colon\\-separated"},
        {"REEVE_STORE", "where runs are kept, when \\-\\-store does not say"},
        {"REEVE_ENCRYPTION_KEY_FILE",
         "file with the master keys of encryption, the first of which is used for new ones"},
        {"REEVE_ENCRYPTION_KEY", "the master keys themselves, instead of a file"},
        {"REEVE_PRIVATE_KEY_FILE", "file with private keys of tenants, to read what is sealed"},
        {"REEVE_SYNC", "durability of a commit, when \\-\\-sync does not say"},
        {"REEVE_USER",
         "the user whose runs, sessions and agents are visible, when \\-\\-user does not say; empty: all users"},
        {"REEVE_TENANT", "the tenant, when \\-\\-tenant does not say"},
        {"P8_SCHEMA_DIR", "a folder of agent documents, when \\-\\-schema\\-dir does not say"},
        {"NO_COLOR", "no colours"},
        {"XDG_STATE_HOME", "the folder above reeve/reeve.db, where runs are kept (default ~/.local/state)"},
    };

    rv_buf_puts(b, ".SH ENVIRONMENT\n");
    for (size_t i = 0; i < RV_COUNT(variables); i++)
        rv_buf_printf(b, ".TP\n\\fB%s\\fR\n%s\n", variables[i].name, variables[i].doc);
}

void cli_write_man(const struct rv_cli_verb *verb, rv_buf *b)
{
    if (verb)
        man_verb(verb, b);
    else
        man_overview(b);
    rv_buf_puts(b,
                ".SH EXIT STATUS\n0 completed, 1 failed, 2 usage or configuration error, 3 interrupted (waits for an "
                "answer),\n4 terminated by a bound, budget or policy, 5 no room on the disk, no descriptors, threads "
                "or\nmemory left, 130 cancelled\n");
    man_environment(b);
}

/* --- the reference page --- */

/* A bar would end the cell of a table. */
static void cell(rv_buf *b, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            rv_buf_putc(b, '\\');
        rv_buf_putc(b, *text);
    }
}

static void reference_option(const struct rv_cli_option *o, rv_buf *b)
{
    bool listed = o->words && strcmp(o->words, "FILE") != 0 && strcmp(o->words, "DIR") != 0;

    rv_buf_printf(b, "| `--%s`", o->name);
    if (o->letter)
        rv_buf_printf(b, ", `-%c`", o->letter);
    rv_buf_puts(b, " | ");
    cell(b, listed ? o->words : o->arg ? o->arg : "");
    rv_buf_puts(b, " | ");
    cell(b, o->doc);
    rv_buf_puts(b, o->many ? "; may be repeated |\n" : " |\n");
}

/* Options, and links to those that other verbs have, too, in the last row. groups NULL: none. */
static void reference_options(const struct rv_cli_option *o, size_t n, const struct rv_cli_group *const *groups,
                              rv_buf *b)
{
    bool shares = groups && groups[0];

    if (n)
        rv_buf_puts(b, "\n| option | value | meaning |\n| --- | --- | --- |\n");
    for (size_t i = 0; i < n; i++)
        reference_option(&o[i], b);
    for (size_t i = 0; shares && i < RV_CLI_MAX_GROUPS && groups[i]; i++)
        rv_buf_printf(b, "%s[%s](#%s)", i ? ", " : n ? "| also " : "\nAlso ", groups[i]->title, groups[i]->title);
    rv_buf_puts(b, !shares ? "" : n ? " | | |\n" : ".\n");
}

static void reference_verb(const struct rv_cli_verb *v, rv_buf *b)
{
    const char *args = v->subs ? "" : v->args;

    rv_buf_printf(b, "\n%s %s%s%s\n", strchr(v->name, ' ') ? "###" : "##", v->name, args[0] ? " " : "", args);
    rv_buf_printf(b, "\n%s: %s\n", v->summary, v->text);
    reference_options(v->options, v->n_options, v->groups, b);
    for (size_t i = 0; v->subs && v->subs[i]; i++)
        reference_verb(v->subs[i], b);
}

void cli_write_reference(rv_buf *b)
{
    rv_buf_puts(
        b, "# Command line\n\nGenerated by `reeve docs reference cli`; do not edit. `reeve VERB --help` and the man "
           "pages have examples.\n\n## Options of several verbs\n\nAll verbs have *common*; the others belong to "
           "the verbs that refer to them.\n");
    for (size_t i = 0; cli_groups[i]; i++) {
        rv_buf_printf(b, "\n### %s\n", cli_groups[i]->title);
        reference_options(cli_groups[i]->options, cli_groups[i]->n, NULL, b);
    }
    for (size_t i = 0; cli_verbs[i]; i++)
        if (!cli_verbs[i]->hidden)
            reference_verb(cli_verbs[i], b);
}
