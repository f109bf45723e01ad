/* Shell completion, from the table of verbs. */
#include "coreengine/cli/cli.h"

#include <stdio.h>
#include <string.h>

static bool is_path(const struct rv_cli_option *o)
{
    return o->words && (strcmp(o->words, "FILE") == 0 || strcmp(o->words, "DIR") == 0);
}

static void each_leaf(void (*each)(const struct rv_cli_verb *verb, rv_buf *b), rv_buf *b)
{
    for (size_t i = 0; cli_verbs[i]; i++) {
        const struct rv_cli_verb *v = cli_verbs[i];
        if (v->hidden)
            continue;
        for (size_t s = 0; v->subs && v->subs[s]; s++)
            each(v->subs[s], b);
        if (!v->subs)
            each(v, b);
    }
}

/* --- bash --- */

static void bash_options(const struct rv_cli_verb *v, rv_buf *b)
{
    const struct rv_cli_option *o;

    rv_buf_puts(b, "opts=\"");
    for (size_t i = 0; (o = cli_option_at(v, i)); i++)
        rv_buf_printf(b, "--%s ", o->name);
    if (v->takes)
        rv_buf_printf(b, "\"; fixed=\"%s\"; list=\"%s\" ;;\n", v->takes->fixed, v->takes->list);
    else
        rv_buf_puts(b, "\" ;;\n");
}

static void bash_verb(const struct rv_cli_verb *v, rv_buf *b)
{
    if (!v->subs) {
        rv_buf_printf(b, "    %s) ", v->name);
        bash_options(v, b);
        return;
    }
    rv_buf_printf(b, "    %s)\n      if [ \"$COMP_CWORD\" -eq 2 ] && [[ \"$cur\" != -* ]]; then\n", v->name);
    rv_buf_puts(b, "        COMPREPLY=($(compgen -W \"");
    for (size_t i = 0; v->subs[i]; i++)
        rv_buf_printf(b, "%s ", cli_short_name(v->subs[i]));
    rv_buf_puts(b, "\" -- \"$cur\"))\n        return\n      fi\n      case \"${COMP_WORDS[2]}\" in\n");
    for (size_t i = 1; v->subs[i]; i++) {
        rv_buf_printf(b, "    %s) ", cli_short_name(v->subs[i]));
        bash_options(v->subs[i], b);
    }
    rv_buf_puts(b, "    *) ");
    bash_options(v->subs[0], b);
    rv_buf_puts(b, "      esac ;;\n");
}

/* verb: its first word; "*": any. Options of two verbs may have the same name and other words. */
static void bash_value(const char *verb, const struct rv_cli_option *o, rv_buf *b)
{
    if (o->words && !is_path(o))
        rv_buf_printf(b, "    %.*s:--%s) COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")); return ;;\n",
                      (int)strcspn(verb, " "), verb, o->name, o->words);
}

static void bash_values(const struct rv_cli_verb *v, rv_buf *b)
{
    const struct rv_cli_option *o;

    for (size_t i = 0; (o = cli_option_at(v, i)) != cli_common.options; i++)
        bash_value(v->name, o, b);
}

static void bash_completion(rv_buf *b)
{
    rv_buf_puts(b, "# bash completion for reeve\n_reeve() {\n  local cur prev verb opts fixed= list=\n"
                   "  cur=\"${COMP_WORDS[COMP_CWORD]}\"\n"
                   "  prev=\"${COMP_WORDS[COMP_CWORD-1]}\"\n  verb=\"${COMP_WORDS[1]}\"\n"
                   "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    COMPREPLY=($(compgen -W \"");
    for (size_t i = 0; cli_verbs[i]; i++)
        if (!cli_verbs[i]->hidden)
            rv_buf_printf(b, "%s ", cli_verbs[i]->name);
    rv_buf_puts(b, "help --help --version\" -- \"$cur\"))\n    return\n  fi\n"
                   "  if [ \"$verb\" = help ]; then\n    COMPREPLY=($(compgen -W \"");
    for (size_t i = 0; cli_verbs[i]; i++)
        if (!cli_verbs[i]->hidden)
            rv_buf_printf(b, "%s ", cli_verbs[i]->name);
    rv_buf_puts(b, "\" -- \"$cur\"))\n    return\n  fi\n  case \"$verb:$prev\" in\n");
    for (size_t i = 0; i < cli_common.n; i++)
        bash_value("*", &cli_common.options[i], b);
    each_leaf(bash_values, b);
    rv_buf_puts(b, "  esac\n  case \"$verb\" in\n");
    for (size_t i = 0; cli_verbs[i]; i++)
        if (!cli_verbs[i]->hidden)
            bash_verb(cli_verbs[i], b);
    rv_buf_puts(
        b, "  esac\n  if [[ \"$cur\" == -* ]]; then\n    COMPREPLY=($(compgen -W \"$opts\" -- \"$cur\"))\n"
           "  elif [ -n \"$list\" ]; then\n    COMPREPLY=($(compgen -W \"$fixed $($list 2>/dev/null)\" -- \"$cur\"))\n"
           "  else\n    COMPREPLY=($(compgen -f -- \"$cur\"))\n  fi\n}\ncomplete -o filenames -F _reeve reeve\n");
}

/* --- zsh --- */

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

/* "--name=" takes its value as the next word or behind the sign; a letter rules out its name and the other way round.
 */
static void zsh_option(const struct rv_cli_option *o, rv_buf *b)
{
    const char *sign = o->arg ? "=" : "";

    rv_buf_puts(b, "      ");
    if (o->letter && o->many)
        rv_buf_printf(b, "'*'{-%c,--%s%s}'[", o->letter, o->name, sign);
    else if (o->letter)
        rv_buf_printf(b, "'(-%c --%s)'{-%c,--%s%s}'[", o->letter, o->name, o->letter, o->name, sign);
    else
        rv_buf_printf(b, "'%s--%s%s[", o->many ? "*" : "", o->name, sign);
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

static void zsh_names(const struct rv_cli_verb *const *verbs, rv_buf *b)
{
    rv_buf_puts(b, "(\n");
    for (size_t i = 0; verbs[i]; i++)
        if (!verbs[i]->hidden) {
            rv_buf_printf(b, "    '%s:", cli_short_name(verbs[i]));
            quoted(b, verbs[i]->summary);
            rv_buf_puts(b, "'\n");
        }
    rv_buf_puts(b, "  )\n");
}

static void zsh_verb(const struct rv_cli_verb *v, const char *pattern, rv_buf *b)
{
    const struct rv_cli_option *o;

    rv_buf_printf(b, "    %s) _arguments \\\n", pattern);
    for (size_t i = 0; (o = cli_option_at(v, i)); i++)
        zsh_option(o, b);
    if (v->takes)
        rv_buf_printf(b, "      '*:%s:(%s $(%s 2>/dev/null))' ;;\n", v->takes->what, v->takes->fixed, v->takes->list);
    else
        rv_buf_puts(b, "      '*:file:_files' ;;\n");
}

static void zsh_below(const struct rv_cli_verb *v, rv_buf *b)
{
    rv_buf_printf(b, "    %s)\n  local -a below\n  below=", v->name);
    zsh_names(v->subs, b);
    rv_buf_puts(b,
                "  if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then\n    _describe 'verb' below\n    return\n  fi\n"
                "  local sub=$words[2]\n  if [[ $sub != -* ]]; then\n    shift words\n    (( CURRENT-- ))\n  fi\n"
                "  case $sub in\n");
    for (size_t i = 1; v->subs[i]; i++)
        zsh_verb(v->subs[i], cli_short_name(v->subs[i]), b);
    zsh_verb(v->subs[0], "*", b);
    rv_buf_puts(b, "  esac ;;\n");
}

static void zsh_completion(rv_buf *b)
{
    rv_buf_puts(b, "#compdef reeve\n_reeve() {\n  local -a verbs\n  verbs=");
    zsh_names(cli_verbs, b);
    rv_buf_puts(
        b, "  if (( CURRENT == 2 )) && [[ $PREFIX == -* ]]; then\n    compadd -- --help --version\n    return\n  fi\n"
           "  if (( CURRENT == 3 )) && [[ $words[2] == help ]]; then\n    _describe 'verb' verbs\n    return\n  fi\n"
           "  verbs+=('help:explain a verb')\n"
           "  if (( CURRENT == 2 )); then\n    _describe 'verb' verbs\n    return\n  fi\n"
           "  local verb=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $verb in\n");
    for (size_t v = 0; cli_verbs[v]; v++) {
        if (cli_verbs[v]->subs)
            zsh_below(cli_verbs[v], b);
        else
            zsh_verb(cli_verbs[v], cli_verbs[v]->name, b);
    }
    rv_buf_puts(b, "  esac\n}\n_reeve \"$@\"\n");
}

/* --- fish --- */

/* "runs list" is seen when both words are; the first below a verb also when none is. */
static void fish_condition(const struct rv_cli_verb *v, rv_buf *b)
{
    const char *sub = strchr(v->name, ' ');
    char first[32];

    rv_buf_printf(b, "complete -c reeve -n '__fish_seen_subcommand_from %.*s", (int)strcspn(v->name, " "), v->name);
    snprintf(first, sizeof first, "%.*s", (int)strcspn(v->name, " "), v->name);
    const struct rv_cli_verb *above = sub ? cli_find_verb(first, NULL) : NULL;
    if (above && above->subs[0] == v) {
        rv_buf_puts(b, "; and not __fish_seen_subcommand_from");
        for (size_t i = 1; above->subs[i]; i++)
            rv_buf_printf(b, " %s", cli_short_name(above->subs[i]));
    } else if (sub) {
        rv_buf_printf(b, "; and __fish_seen_subcommand_from%s", sub);
    }
    rv_buf_putc(b, '\'');
}

static void fish_text(const char *text, rv_buf *b)
{
    for (const char *c = text; *c; c++)
        rv_buf_puts(b, *c == '\'' ? "\\'" : (char[]){*c, '\0'});
}

static void fish_option(const struct rv_cli_verb *verb, const struct rv_cli_option *o, rv_buf *b)
{
    fish_condition(verb, b);
    rv_buf_printf(b, " -l %s", o->name);
    if (o->letter)
        rv_buf_printf(b, " -s %c", o->letter);
    if (o->arg && is_path(o))
        rv_buf_puts(b, " -r -F");
    else if (o->arg && o->words)
        rv_buf_printf(b, " -x -a '%s'", o->words);
    else if (o->arg)
        rv_buf_puts(b, " -x");
    rv_buf_puts(b, " -d '");
    fish_text(o->doc, b);
    rv_buf_puts(b, "'\n");
}

static void fish_verb(const struct rv_cli_verb *verb, rv_buf *b)
{
    const struct rv_cli_option *o;

    for (size_t i = 0; (o = cli_option_at(verb, i)); i++)
        fish_option(verb, o, b);
    if (verb->takes) {
        fish_condition(verb, b);
        rv_buf_printf(b, " -f -a '%s (%s 2>/dev/null)'\n", verb->takes->fixed, verb->takes->list);
    }
}

/* A verb, where none was named yet or where help asks for one. */
static void fish_name(const char *name, const char *summary, rv_buf *b)
{
    static const char *const places[] = {"__fish_use_subcommand", "__fish_seen_subcommand_from help"};

    for (size_t i = 0; i < RV_COUNT(places); i++) {
        rv_buf_printf(b, "complete -c reeve -n '%s' -f -a %s -d '", places[i], name);
        fish_text(summary, b);
        rv_buf_puts(b, "'\n");
    }
}

static void fish_below(const struct rv_cli_verb *verb, rv_buf *b)
{
    for (size_t i = 0; verb->subs[i]; i++) {
        rv_buf_printf(b, "complete -c reeve -n '__fish_seen_subcommand_from %s; and not __fish_seen_subcommand_from",
                      verb->name);
        for (size_t k = 0; verb->subs[k]; k++)
            rv_buf_printf(b, " %s", cli_short_name(verb->subs[k]));
        rv_buf_printf(b, "' -f -a %s -d '", cli_short_name(verb->subs[i]));
        fish_text(verb->subs[i]->summary, b);
        rv_buf_puts(b, "'\n");
    }
}

static void fish_completion(rv_buf *b)
{
    rv_buf_puts(b, "complete -c reeve -n __fish_use_subcommand -f -a help -d 'explain a verb'\n"
                   "complete -c reeve -n __fish_use_subcommand -l help -d 'show the verbs'\n"
                   "complete -c reeve -n __fish_use_subcommand -l version -d 'print the version'\n");
    for (size_t v = 0; cli_verbs[v]; v++) {
        if (cli_verbs[v]->hidden)
            continue;
        fish_name(cli_verbs[v]->name, cli_verbs[v]->summary, b);
        if (cli_verbs[v]->subs)
            fish_below(cli_verbs[v], b);
    }
    each_leaf(fish_verb, b);
}

int cli_write_completion(rv_str shell, rv_buf *b, rv_err **err)
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
