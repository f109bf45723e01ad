/* The runner `reeve`: verbs, options, help, man pages and completion from one table.
 *
 * Results go to stdout, everything else to stderr. Colour and progress only on a terminal. Exit status: see rv_exit. */
#ifndef RV_CLI_H
#define RV_CLI_H

#include "coreengine/app/app.h"

enum rv_exit {
    RV_EXIT_COMPLETED = 0,
    RV_EXIT_FAILED = 1,
    RV_EXIT_USAGE = 2,       /* wrong command line or configuration */
    RV_EXIT_INTERRUPTED = 3, /* waits for an answer */
    RV_EXIT_TERMINATED = 4,  /* stopped by a bound, limit, policy or denial */
    RV_EXIT_SCARCE = 5,      /* the machine has no memory, disk, descriptors or threads left for it */
    RV_EXIT_CANCELLED = RV_EXIT_AT_ONCE,
};

/* What it points to is static. */
struct rv_cli_option {
    const char *name; /* without dashes */
    char letter;      /* 0: none */
    const char *arg;  /* what the value is called; NULL: a flag */
    const char *doc;
    const char *words; /* legal values, blank-separated; "FILE" or "DIR" complete paths; NULL: anything */
    bool many;         /* may be given more than once */
};

/* Options that several verbs have. What it points to is static. */
struct rv_cli_group {
    const char *title; /* one word */
    const struct rv_cli_option *options;
    size_t n;
};
extern const struct rv_cli_group cli_common, /* of all verbs */
    cli_of_stores,                           /* verbs that read rows of a store */
    cli_of_commits,                          /* and those that write them */
    cli_of_places,                           /* runs and chats: where stores and agents are */
    cli_of_runs,                             /* run, resume: what is shown and written */
    cli_of_work,                             /* verbs that drive runs */
    cli_of_agents,                           /* verbs that look for agents, with those of stores */
    cli_of_pipelines;                        /* verbs that load pipelines, but keep no runs */
/** All of them, ending with NULL. */
extern const struct rv_cli_group *const cli_groups[];

/* Words of a command line that are not files. What it points to is static. */
struct rv_cli_takes {
    const char *what;
    const char *fixed; /* words that are always there; may be empty */
    const char *list;  /* the command that prints the others, one a line */
};
extern const struct rv_cli_takes cli_takes_runs, cli_takes_sessions, cli_takes_any_session, cli_takes_agents,
    cli_takes_tasks, cli_takes_schedules, cli_takes_kinds, cli_takes_keys;

/* How a verb uses the store that its command line names. It is open while the verb runs. */
enum rv_cli_store_use { RV_CLI_OPENS_NONE, RV_CLI_READS, RV_CLI_READS_IF_ANY, RV_CLI_CHANGES, RV_CLI_MAKES };

/* --quotas of verbs that drive runs, and of others that count. */
#define RV_CLI_STORE_DOC      "store of runs (default REEVE_STORE, else ~/.local/state/reeve/reeve.db)"
#define RV_CLI_SCHEMA_DIR_DOC "folder of agent documents (default P8_SCHEMA_DIR; \"\": none)"
#define RV_CLI_QUOTAS_DOC     "plans and their limits (default REEVE_QUOTAS, else ~/.config/reeve/quotas.yaml)"
#define RV_CLI_LEASE_DOC                                                                                               \
    "lease duration: after this long without a sign of life another process may take over the run (default 15)"
#define RV_CLI_MAX_GROUPS 4 /* of options that a verb shares with others: none has more */
struct rv_cli;
/* What it points to is static. */
struct rv_cli_verb {
    const char *name; /* of a verb below another one: both, "runs list" */
    const char *args, *summary;
    const char *text;     /* one or two paragraphs */
    const char *examples; /* lines, each "command   # what it does" */
    const struct rv_cli_option *options;
    size_t n_options;
    const struct rv_cli_group *groups[RV_CLI_MAX_GROUPS]; /* NULL: no more */
    const char *excludes; /* options that exclude each other, "json ids; all steps"; NULL: none */
    const char *needs;    /* pairs of an option and the one it needs, "deltas events"; NULL: none */
    size_t min_words, max_words;
    const struct rv_cli_takes *takes; /* what its words are, for completion; NULL: files */
    enum rv_cli_store_use store;
    /** Gives the exit status, or a negative code with *err, which is reported. */
    int (*run)(struct rv_cli *cli, rv_err **err);
    /* Verbs below this one, ending with NULL; the first is meant when none is named. Then only name, summary, text and
     * examples are its own. */
    const struct rv_cli_verb *const *subs;
    bool
        outlives_reader; /* it performs runs: when the reader of stdout leaves, the exit status stays that of the run */
    bool hidden;
};
#define RV_CLI_OPTIONS(list) .options = (list), .n_options = RV_COUNT(list)
#define RV_CLI_ONE_WORD      .min_words = 1, .max_words = 1 /* of verbs that take exactly one */

#define RV_CLI_MAX_ARGS 256 /* words of one command line: a list of more files belongs into a file */
/* A process of the runner, and its command line. */
struct rv_cli {
    bool out_tty, err_tty, out_color, err_color, debug;
    struct rv_app app;                      /* with the settings of the command line */
    const struct rv_cli_verb *verb;         /* static */
    const struct rv_cli_verb *const *verbs; /* of the program, static; ends with NULL */
    const char *words[RV_CLI_MAX_ARGS];     /* positional; borrowed from argv */
    size_t n_words;
    struct {
        const struct rv_cli_option *option; /* static */
        const char *value;                  /* NULL for flags; borrowed from argv */
    } given[RV_CLI_MAX_ARGS];
    size_t n_given;
    rv_store *store; /* see enum rv_cli_store_use; NULL: none; owned */
};

extern const struct rv_cli_verb *const cli_verbs[]; /* ends with NULL */
/** What the verbs from this one on are for, a title; NULL: the same as the verb before it. */
const char *cli_job_of(const struct rv_cli_verb *verb);

/* unknown_option.c */
/** Fails: word, whose name is given, is not an option of cli's verb. The hint says what may be meant. */
RV_MUST_CHECK int cli_unknown_option(const struct rv_cli *cli, const char *word, rv_str name, rv_err **err);

/* apart.c: RV_E_INVALID: a file that the command line has it write is one that it has it read. what: in words. */
RV_MUST_CHECK int cli_check_apart(const struct rv_cli *cli, rv_err **err);
RV_MUST_CHECK int cli_check_reads(const struct rv_cli *cli, const char *what, const char *path, rv_err **err);

/* options.c */
const char *cli_short_name(const struct rv_cli_verb *verb); /* "list" of "runs list" */
/** The i-th option of a verb, those of its groups behind its own, and the common ones last. NULL: no more. */
const struct rv_cli_option *cli_option_at(const struct rv_cli_verb *verb, size_t i);
/** The last value given, or NULL. */
const char *cli_value(const struct rv_cli *cli, const char *name);
bool cli_flag(const struct rv_cli *cli, const char *name);
/** The i-th value of an option that may be given often, or NULL. */
const char *cli_nth(const struct rv_cli *cli, const char *name, size_t i);
/** All values of such an option, and how many. RV_E_INVALID: there are more than max. */
RV_MUST_CHECK int cli_values(const struct rv_cli *cli, const char *name, const char **out, size_t max, size_t *n,
                             rv_err **err);
/** A command line for that verb, into cli. */
RV_MUST_CHECK int cli_parse(const struct rv_cli_verb *verb, int argc, char **argv, struct rv_cli *cli, rv_err **err);
/** Check it by the rules of the table: how many words, which options exclude or need each other. */
RV_MUST_CHECK int cli_check(const struct rv_cli *cli, rv_err **err);
RV_MUST_CHECK int cli_int(const struct rv_cli *cli, const char *name, int64_t least, int64_t most, int64_t *inout,
                          rv_err **err); /* unchanged when not given */
/** A command line that is wrong. RV_E_INVALID. */
RV_MUST_CHECK int cli_usage(const struct rv_cli *cli, rv_err **err, const char *fmt, ...) RV_PRINTF(3, 4);
/** A span of time, such as --grace; left as it is where the option is not given. none: what 0 stands for. */
RV_MUST_CHECK int cli_span(const struct rv_cli *cli, const char *name, int64_t none, int64_t *inout_us, rv_err **err);

/* verbs/verbs.c */
/** A verb by its name; sub (may be NULL) names one below it. NULL: there is none. */
const struct rv_cli_verb *cli_find_verb(const char *name, const char *sub);

/* help.c */
/** As wide as the terminal, 100 columns at most. verb NULL: the overview. */
void cli_write_help(const struct rv_cli_verb *verb, const struct rv_cli *cli, rv_buf *b);
/** What it says, and the words that it takes unless that names all of them. */
void cli_write_option_doc(const struct rv_cli_option *o, rv_buf *b);

/* pages.c */
void cli_write_man(const struct rv_cli_verb *verb, rv_buf *b); /* NULL: reeve(1) */
void cli_write_reference(rv_buf *b);                           /* docs/reference/cli.md */
/* completion.c */
RV_MUST_CHECK int cli_write_completion(rv_str shell, rv_buf *b, rv_err **err); /* bash, zsh, fish */

/* output.c */
/** Print to stdout. Failure (full disk, closed pipe) is remembered for cli_flush. */
void cli_out(rv_str text);
/** The same, at once: for readers that wait for each line. False: the reader is gone, or the disk is full. */
bool cli_out_now(rv_str text);
/** With rc 0 print a whole buffer; a buffer that failed is an error. Frees it, and gives rc or that error. */
RV_MUST_CHECK int cli_print(int rc, rv_buf *text, rv_err **err);
void cli_err(rv_str text);
void cli_say(const char *fmt, ...) RV_PRINTF(1, 2); /* on stderr */
void cli_say_text(rv_buf *text);                    /* the same, a buffer, which is freed */
/** The exit status: RV_EXIT_FAILED if stdout could not be written, else status. With outlives_reader a closed pipe does
 * not count. */
int cli_flush(int status, bool outlives_reader);
/** A text of coreengine/app, in words of the command line where it names what an option says. */
void cli_write_said(rv_str text, rv_buf *b);
/** Report an error on stderr, free it, and give the exit status that fits it. */
int cli_report(const struct rv_cli *cli, rv_err *err);
int cli_exit_of(enum rv_run_status status);
/** Print findings to stderr; those of a pipeline also say whether it may be run (warnings only if asked). */
void cli_say_findings(const struct rv_cli *cli, const rv_findings *findings);
bool cli_sound(const struct rv_cli *cli, const struct rv_app_loaded *l, bool warnings);
/** A piece as a line of --events, with its end. It is not kept with the run, so it has no number. pipeline NULL: none
 *  is known. False: nothing more can be written. */
bool cli_out_delta(const struct rv_pipeline *pipeline, const struct rv_delta_from *from, const struct rv_llm_delta *d);
/** Print the `error` and `done` of a stream of events whose run goes no further and told neither. env NULL: it has no
 *  state yet. False: nothing more can be written. */
bool cli_tell_end(const rv_envelope *env, const rv_err *err);

/* show/text.c: texts as a terminal or a shell may have them, spans of time and moments */
void cli_write_duration(rv_buf *b, int64_t us); /* "340 ms" */
const char *cli_plural(int64_t n);              /* "s", or "" for 1 */
void cli_write_age(rv_buf *b, int64_t us);      /* "5 min": how long ago */
void cli_write_bytes(rv_buf *b, int64_t bytes); /* "4.2 MB" */
void cli_write_moment(rv_buf *b, int64_t us);   /* "2026-11-21 21:05:00", UTC */
#define RV_CLI_LABEL 12                         /* characters before what a line of `show` says */
/** A line of `show`; nothing where text is NULL or empty, or us is not after 0. */
void cli_put_line(rv_buf *b, const char *label, const char *text);
void cli_put_moment(rv_buf *b, const char *label, int64_t us);
/** "90s", "15min", "12h", "30d", "4w". */
RV_MUST_CHECK int cli_parse_duration(const char *text, int64_t *out_us, rv_err **err);
int cli_zone_minutes(void); /* of this machine, now: east of UTC */
/** A word of a command that can be pasted into a shell, quoted where it has to be. */
void cli_write_word(const char *word, rv_buf *b);
/** Text of a model or a tool for a terminal: nothing that moves the cursor or turns the text around; lines and tabs
 * stay. */
void cli_write_safe(rv_str text, rv_buf *b);
/** The same, later lines indented. */
void cli_write_lines(rv_str text, rv_buf *b);
/** "  [CODE]" and the line's end, then what to do about it where the code is one of enum rv_failure. NULL: only the
 * end. */
void cli_write_code(const char *code, rv_buf *b);
/** One line of text, cut after max bytes. */
void cli_write_preview(rv_str text, size_t max, rv_buf *b);

/* show/tally.c: what model calls took */
void cli_spent_write(const struct rv_app_spent *s, rv_buf *b); /* ", 120 in, 40 out, $0.0012" */
typedef struct rv_cli_tally rv_cli_tally;
rv_cli_tally *cli_tally_new(const struct rv_pipeline *p); /* borrowed; NULL: no memory */
void cli_tally_add(rv_cli_tally *t, int stage, const struct rv_app_spent *s);
/** A table, a line for each stage that asked a model; nothing when no usage was told. total: of the run, where it is
 * known better than by adding up; else NULL. */
void cli_tally_write(const rv_cli_tally *t, const struct rv_usage *total, bool color, rv_buf *b);
void cli_tally_free(rv_cli_tally *t);

/* input.c: the envelope a run starts from */
RV_MUST_CHECK int cli_envelope(const struct rv_cli *cli, rv_envelope **out, rv_err **err);
/** The same in two parts: the state dict that the command line says, which may be partial, and the envelope of one. The
 * caller puts the one and frees the other. */
RV_MUST_CHECK int cli_state(const struct rv_cli *cli, json_object **out, rv_err **err);
RV_MUST_CHECK int cli_load_state(const struct rv_cli *cli, json_object *state, rv_envelope **out, rv_err **err);
/** The assignments of --set ("a.b=value") to known keys of a state. */
RV_MUST_CHECK int cli_set_all(const struct rv_cli *cli, bool begins, json_object *state, rv_err **err);
/** The text of a message or an input: of a file without its last line end; "-" is standard input. */
RV_MUST_CHECK int cli_read_text(const char *text, const char *file, rv_buf *out, rv_err **err);

/* session.c: a run for people and pipes */
#define RV_CLI_RECORDED "recorded with --record; a script for --script"
/** The settings of a run from the options of its verb. */
RV_MUST_CHECK int cli_run_opts(struct rv_cli *cli, struct rv_app_loaded *loaded, struct rv_app_run *out, rv_err **err);
/** Drive it and print what was asked for. env is taken (NULL when it goes on). Gives the exit status, or an error that
 * is not reported yet. */
RV_MUST_CHECK int cli_session_run(struct rv_cli *cli, struct rv_app_run *run, rv_envelope *env,
                                  const struct rv_response *response, rv_err **err);
/** Print what a run that is over, or waits, came to, as --json, --state and --events want it, and say why it did not
 * complete. failure: what a stage failed by; may be NULL. */
RV_MUST_CHECK int cli_print_result(const struct rv_cli *cli, const struct rv_pipeline *p, enum rv_run_status status,
                                   const rv_envelope *env, rv_err **err);
void cli_explain_end(const struct rv_cli *cli, const struct rv_pipeline *p, enum rv_run_status status,
                     const rv_envelope *env, const rv_err *failure);
/** Go on with a run of the store. response: the answer, with RV_APP_ANSWER. Gives the same. */
RV_MUST_CHECK int cli_continue(struct rv_cli *cli, const char *run, enum rv_app_go go,
                               const struct rv_response *response, rv_err **err);

/* waiting.c: what people are told of runs that wait, and which question an answer means */
/** How to answer that kind of question: the options of `resume`; empty: no answer is needed. data: the interrupt's, may
 * be NULL. */
void cli_write_how_to_answer(enum rv_interrupt_kind kind, json_object *data, rv_buf *out);
/** False: the answer lacks what its kind of question needs; out says which options were given and which fit. */
bool cli_answer_fits(enum rv_interrupt_kind kind, json_object *data, const struct rv_response *r, rv_buf *out);
/** Say what a run waits for and how to answer it. store: that keeps it; NULL: none. word: names it on a command line.
 */
void cli_say_pending(const struct rv_cli *cli, const rv_envelope *env, const rv_store *store, const char *word);
/** May response answer a question of that run? Fills in which one it means; id is its memory. *is_due: no one answered
 * that question in time, and the run goes on by that: RV_E_TIMEOUT then. */
RV_MUST_CHECK int cli_check_answer(const struct rv_cli *cli, const struct rv_run_row *row, struct rv_response *response,
                                   char id[RV_STORE_MAX_ID + 1], bool *is_due, rv_err **err);
/** The command that answers that interrupt, as a line. is_only: the run waits for nothing else. */
void cli_write_resume(const struct rv_cli *cli, const struct rv_pending *pending, bool is_only, rv_buf *b);
/** " --store FILE --user ID --tenant ID", as far as the command line says so. */
void cli_write_store(const struct rv_cli *cli, rv_buf *b);

/* verbs/store.c: what `reeve gc` does, too, with the store that is open */
RV_MUST_CHECK int cli_check_store(struct rv_cli *cli, rv_err **err);
RV_MUST_CHECK int cli_back_up(struct rv_cli *cli, const char *path, rv_err **err);

/* verbs/runs.c */
const char *cli_status_color(enum rv_run_status status); /* how a terminal shows it */

/* verbs/runs_events.c */
enum rv_cli_until { RV_CLI_UNTIL_OVER, RV_CLI_UNTIL_WAITS };
/** Follow a run in whatever process it goes on, until it is over or (UNTIL_WAITS) waits for an answer: p->row is as it
 * is then. prints: its events go to stdout, those before included. It ends, too, when its reader is gone. */
RV_MUST_CHECK int cli_follow(rv_store *store, struct rv_app_past *p, enum rv_cli_until until, bool prints,
                             rv_err **err);

/* verbs/agents.c: what people are told of where an agent was found */
/** "in the store, ID", "built in, by NAME", "in the file PATH". */
void cli_write_source(const struct rv_agents_found *found, rv_buf *b);
/** Say on stderr that it hides a file's agent of that name, if it does. */
void cli_warn_hidden(const rv_agents *agents, const char *name, const struct rv_agents_found *found);

/* progress.c: what people see on a terminal while a run goes on, and the timeline at its end */
typedef struct rv_progress rv_progress;
enum rv_progress_part { RV_PROGRESS_LIVE = 1, RV_PROGRESS_TIMELINE = 2 };
rv_progress *cli_progress_new(const struct rv_cli *cli, const struct rv_pipeline *p, unsigned parts);
void cli_progress_event(rv_progress *p, const struct rv_effect *e, rv_str line);
void cli_progress_delta(rv_progress *p, rv_str text);
/** End the live display, write the timeline on stderr, and free it. p may be NULL. */
void cli_progress_end(rv_progress *p);

#endif
