/* Man pages, shell completion and the reference page, all from the table of verbs. */
#include "coreengine/cli/cli.h"

#include <string.h>

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
    troff(b, o->doc);
    rv_buf_puts(b, "\n");
}

static void man_overview(rv_buf *b)
{
    rv_buf_puts(
        b, ".TH REEVE 1 \"\" \"reeve\" \"User commands\"\n.SH NAME\nreeve \\- run LLM\\-agent pipelines declared in "
           "YAML\n.SH SYNOPSIS\n\\fBreeve\\fR \\fIVERB\\fR [\\fIOPTIONS\\fR] ...\n.SH VERBS\n");
    for (size_t i = 0; rv_cli_verbs[i]; i++)
        if (!rv_cli_verbs[i]->hidden) {
            rv_buf_printf(b, ".TP\n\\fB%s\\fR\n", rv_cli_verbs[i]->name);
            troff(b, rv_cli_verbs[i]->summary);
            rv_buf_printf(b, "; see \\fBreeve\\-%s\\fR(1)\n", rv_cli_verbs[i]->name);
        }
}

static void man_verb(const struct rv_cli_verb *verb, rv_buf *b)
{
    rv_buf_printf(b, ".TH REEVE\\-%s 1 \"\" \"reeve\" \"User commands\"\n.SH NAME\nreeve\\-%s \\- ", verb->name,
                  verb->name);
    troff(b, verb->summary);
    rv_buf_printf(b, "\n.SH SYNOPSIS\n\\fBreeve %s\\fR ", verb->name);
    troff(b, verb->args);
    rv_buf_puts(b, " [\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n");
    troff(b, verb->text);
    rv_buf_puts(b, "\n.SH OPTIONS\n");
    for (size_t i = 0; i < verb->n_options; i++)
        man_option(&verb->options[i], b);
    for (size_t i = 0; i < rv_cli_n_common_options; i++)
        man_option(&rv_cli_common_options[i], b);
    rv_buf_puts(b, ".SH EXAMPLES\n.nf\n");
    troff(b, verb->examples);
    rv_buf_puts(b, "\n.fi\n");
}

void rv_cli_write_man(const struct rv_cli_verb *verb, rv_buf *b)
{
    if (verb)
        man_verb(verb, b);
    else
        man_overview(b);
    rv_buf_puts(b,
                ".SH EXIT STATUS\n0 completed, 1 failed, 2 usage or configuration error, 3 interrupted (waits for an "
                "answer),\n4 terminated by a bound, budget or policy, 130 cancelled\n"
                ".SH ENVIRONMENT\n.TP\n\\fBREEVE_CAPABILITY_PATH\\fR\nfolders that are searched for capabilities, "
                "colon\\-separated\n.TP\n\\fBNO_COLOR\\fR\nno colours\n.TP\n\\fBXDG_STATE_HOME\\fR\nwhere "
                "interrupted runs are kept (default ~/.local/state)\n");
}

/* --- completion --- */

static void bash_verb(const struct rv_cli_verb *v, rv_buf *b)
{
    rv_buf_printf(b, "    %s) opts=\"", v->name);
    for (size_t i = 0; i < v->n_options; i++)
        rv_buf_printf(b, "--%s ", v->options[i].name);
    for (size_t i = 0; i < rv_cli_n_common_options; i++)
        rv_buf_printf(b, "--%s ", rv_cli_common_options[i].name);
    rv_buf_puts(b, "\" ;;\n");
}

static void bash_values(const struct rv_cli_option *o, rv_buf *b)
{
    if (o->words && strcmp(o->words, "FILE") != 0 && strcmp(o->words, "DIR") != 0)
        rv_buf_printf(b, "    --%s) COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")); return ;;\n", o->name, o->words);
}

static void bash_completion(rv_buf *b)
{
    rv_buf_puts(
        b, "# bash completion for reeve\n_reeve() {\n  local cur prev verb opts\n  cur=\"${COMP_WORDS[COMP_CWORD]}\"\n"
           "  prev=\"${COMP_WORDS[COMP_CWORD-1]}\"\n  verb=\"${COMP_WORDS[1]}\"\n"
           "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    COMPREPLY=($(compgen -W \"");
    for (size_t i = 0; rv_cli_verbs[i]; i++)
        if (!rv_cli_verbs[i]->hidden)
            rv_buf_printf(b, "%s ", rv_cli_verbs[i]->name);
    rv_buf_puts(b, "help --help --version\" -- \"$cur\"))\n    return\n  fi\n  case \"$prev\" in\n");
    for (size_t i = 0; i < rv_cli_n_common_options; i++)
        bash_values(&rv_cli_common_options[i], b);
    for (size_t v = 0; rv_cli_verbs[v]; v++)
        for (size_t i = 0; i < rv_cli_verbs[v]->n_options; i++)
            bash_values(&rv_cli_verbs[v]->options[i], b);
    rv_buf_puts(b, "  esac\n  case \"$verb\" in\n");
    for (size_t i = 0; rv_cli_verbs[i]; i++)
        bash_verb(rv_cli_verbs[i], b);
    rv_buf_puts(b,
                "  esac\n  if [[ \"$cur\" == -* ]]; then\n    COMPREPLY=($(compgen -W \"$opts\" -- \"$cur\"))\n"
                "  else\n    COMPREPLY=($(compgen -f -- \"$cur\"))\n  fi\n}\ncomplete -o filenames -F _reeve reeve\n");
}

/* Single quotes end a zsh or fish word. */
static void quoted(rv_buf *b, const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '\'')
            rv_buf_puts(b, "'\\''");
        else if (*c == '[' || *c == ']' || *c == ':')
            rv_buf_printf(b, "\\%c", *c);
        else
            rv_buf_putc(b, *c);
    }
}

static void zsh_option(const struct rv_cli_option *o, rv_buf *b)
{
    rv_buf_printf(b, "      '%s--%s[", o->many ? "*" : "", o->name);
    quoted(b, o->doc);
    rv_buf_puts(b, "]");
    if (o->arg && o->words && strcmp(o->words, "FILE") == 0)
        rv_buf_printf(b, ":%s:_files", o->arg);
    else if (o->arg && o->words && strcmp(o->words, "DIR") == 0)
        rv_buf_printf(b, ":%s:_files -/", o->arg);
    else if (o->arg && o->words)
        rv_buf_printf(b, ":%s:(%s)", o->arg, o->words);
    else if (o->arg)
        rv_buf_printf(b, ":%s: ", o->arg);
    rv_buf_puts(b, "' \\\n");
}

static void zsh_completion(rv_buf *b)
{
    rv_buf_puts(b, "#compdef reeve\n_reeve() {\n  local -a verbs\n  verbs=(\n");
    for (size_t i = 0; rv_cli_verbs[i]; i++)
        if (!rv_cli_verbs[i]->hidden) {
            rv_buf_printf(b, "    '%s:", rv_cli_verbs[i]->name);
            quoted(b, rv_cli_verbs[i]->summary);
            rv_buf_puts(b, "'\n");
        }
    rv_buf_puts(b, "  )\n  if (( CURRENT == 2 )); then\n    _describe 'verb' verbs\n    return\n  fi\n"
                   "  local verb=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $verb in\n");
    for (size_t v = 0; rv_cli_verbs[v]; v++) {
        rv_buf_printf(b, "    %s) _arguments \\\n", rv_cli_verbs[v]->name);
        for (size_t i = 0; i < rv_cli_verbs[v]->n_options; i++)
            zsh_option(&rv_cli_verbs[v]->options[i], b);
        for (size_t i = 0; i < rv_cli_n_common_options; i++)
            zsh_option(&rv_cli_common_options[i], b);
        rv_buf_puts(b, "      '*:file:_files' ;;\n");
    }
    rv_buf_puts(b, "  esac\n}\n_reeve \"$@\"\n");
}

static void fish_option(const char *verb, const struct rv_cli_option *o, rv_buf *b)
{
    rv_buf_printf(b, "complete -c reeve -n '__fish_seen_subcommand_from %s' -l %s", verb, o->name);
    if (o->letter)
        rv_buf_printf(b, " -s %c", o->letter);
    if (o->arg && o->words && (strcmp(o->words, "FILE") == 0 || strcmp(o->words, "DIR") == 0))
        rv_buf_puts(b, " -r -F");
    else if (o->arg && o->words)
        rv_buf_printf(b, " -x -a '%s'", o->words);
    else if (o->arg)
        rv_buf_puts(b, " -x");
    rv_buf_puts(b, " -d '");
    for (const char *c = o->doc; *c; c++)
        rv_buf_puts(b, *c == '\'' ? "\\'" : (char[]){*c, '\0'});
    rv_buf_puts(b, "'\n");
}

static void fish_completion(rv_buf *b)
{
    for (size_t v = 0; rv_cli_verbs[v]; v++) {
        const struct rv_cli_verb *verb = rv_cli_verbs[v];
        if (verb->hidden)
            continue;
        rv_buf_printf(b, "complete -c reeve -n __fish_use_subcommand -f -a %s -d '%s'\n", verb->name, verb->summary);
        for (size_t i = 0; i < verb->n_options; i++)
            fish_option(verb->name, &verb->options[i], b);
        for (size_t i = 0; i < rv_cli_n_common_options; i++)
            fish_option(verb->name, &rv_cli_common_options[i], b);
    }
}

int rv_cli_write_completion(rv_str shell, rv_buf *b, rv_err **err)
{
    if (rv_str_is(shell, "bash"))
        bash_completion(b);
    else if (rv_str_is(shell, "zsh"))
        zsh_completion(b);
    else if (rv_str_is(shell, "fish"))
        fish_completion(b);
    else
        return RV_FAIL(err, RV_E_INVALID, "no completion for shell \"%.*s\": bash, zsh and fish are known",
                       RV_STR_ARG(shell));
    return 0;
}

static void reference_options(const struct rv_cli_option *o, size_t n, rv_buf *b)
{
    if (!n)
        return;
    rv_buf_puts(b, "\n| option | value | meaning |\n| --- | --- | --- |\n");
    for (size_t i = 0; i < n; i++) {
        rv_buf_printf(b, "| `--%s`", o[i].name);
        if (o[i].letter)
            rv_buf_printf(b, ", `-%c`", o[i].letter);
        bool listed = o[i].words && strcmp(o[i].words, "FILE") != 0 && strcmp(o[i].words, "DIR") != 0;
        rv_buf_printf(b, " | %s | %s%s |\n",
                      listed     ? o[i].words
                      : o[i].arg ? o[i].arg
                                 : "",
                      o[i].doc, o[i].many ? "; may be repeated" : "");
    }
}

void rv_cli_write_reference(rv_buf *b)
{
    rv_buf_puts(b, "# Command line\n\nGenerated by `reeve docs reference cli`; do not edit.\n\n## Common options\n");
    reference_options(rv_cli_common_options, rv_cli_n_common_options, b);
    for (size_t i = 0; rv_cli_verbs[i]; i++) {
        const struct rv_cli_verb *v = rv_cli_verbs[i];
        if (v->hidden)
            continue;
        rv_buf_printf(b, "\n## reeve %s\n\n`reeve %s %s`\n\n%s: %s\n", v->name, v->name, v->args, v->summary, v->text);
        reference_options(v->options, v->n_options, b);
        rv_buf_printf(b, "\n```sh\n%s\n```\n", v->examples);
    }
}
