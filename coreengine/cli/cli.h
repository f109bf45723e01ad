/* The runner `reeve`: verbs, options, help, man pages and completion from one table.
 *
 * Results go to stdout, everything else to stderr. Colour and progress only on a terminal. Exit status: see rv_exit. */
#ifndef RV_CLI_H
#define RV_CLI_H

#include "coreengine/app/figures.h"
#include "coreengine/app/past.h"
#include "coreengine/app/record.h"

enum rv_exit {
    RV_EXIT_COMPLETED = 0,
    RV_EXIT_FAILED = 1,
    RV_EXIT_USAGE = 2,       /* wrong command line or configuration */
    RV_EXIT_INTERRUPTED = 3, /* waits for an answer */
    RV_EXIT_TERMINATED = 4,  /* stopped by a bound, limit, policy or denial */
    RV_EXIT_CANCELLED = 130,
};

/* What a process of the runner shares. */
struct rv_cli {
    const char *program; /* argv[0] */
    bool out_tty, err_tty, out_color, err_color, debug;
    struct rv_app app;    /* what the command line says of it */
    bool outlives_reader; /* of the verb, see struct rv_cli_verb */
};

struct rv_cli_option {
    const char *name; /* without dashes */
    char letter;      /* 0: none */
    const char *arg;  /* what the value is called; NULL: a flag */
    const char *doc;
    const char *words; /* legal values, blank-separated; "FILE" or "DIR" complete paths; NULL: anything */
    bool many;         /* may be given more than once */
};

#define RV_CLI_MAX_ARGS 256 /* words of one command line that are kept */
struct rv_cli_args {
    const struct rv_cli_verb *verb;
    const char *words[RV_CLI_MAX_ARGS]; /* positional */
    size_t n_words;
    struct {
        const struct rv_cli_option *option;
        const char *value; /* NULL for flags */
    } given[RV_CLI_MAX_ARGS];
    size_t n_given;
};

/* Words of a command line that are no files. */
struct rv_cli_takes {
    const char *what;
    const char *fixed; /* words that are always there; may be empty */
    const char *list;  /* the command that prints the others, one a line */
};
extern const struct rv_cli_takes rv_cli_takes_runs, rv_cli_takes_sessions, rv_cli_takes_agents;

struct rv_cli_verb {
    const char *name; /* of a verb below another one: both, "runs list" */
    const char *args, *summary;
    const char *text;     /* one or two paragraphs */
    const char *examples; /* lines, each "command   # what it does" */
    const struct rv_cli_option *options;
    size_t n_options;
    size_t min_words, max_words;
    const struct rv_cli_takes *takes; /* what its words are, for completion; NULL: files */
    int (*run)(struct rv_cli *cli, const struct rv_cli_args *args); /* gives the exit status */
    /* Verbs below this one, ending with NULL; the first is meant when none is named. Then only name, summary, text and
     * examples are its own. */
    const struct rv_cli_verb *const *subs;
    bool
        outlives_reader; /* it performs runs: when the reader of stdout leaves, the exit status stays that of the run */
    bool hidden;
};

extern const struct rv_cli_verb *const rv_cli_verbs[]; /* ends with NULL */
extern const struct rv_cli_option rv_cli_common_options[];
extern const size_t rv_cli_n_common_options;

/* options.c */
const char *rv_cli_short_name(const struct rv_cli_verb *verb); /* "list" of "runs list" */
/** The last value given, or NULL. */
const char *rv_cli_value(const struct rv_cli_args *args, const char *name);
bool rv_cli_flag(const struct rv_cli_args *args, const char *name);
/** The i-th value of an option that may be given often, or NULL. */
const char *rv_cli_nth(const struct rv_cli_args *args, const char *name, size_t i);
RV_MUST_CHECK int rv_cli_parse(const struct rv_cli_verb *verb, int argc, char **argv, struct rv_cli_args *out,
                               rv_err **err);
RV_MUST_CHECK int rv_cli_int(const struct rv_cli_args *args, const char *name, int64_t least, int64_t most,
                             int64_t *inout, rv_err **err); /* unchanged when not given */

/* verbs/verbs.c */
/** A verb by its name; sub (may be NULL) names one below it. NULL: there is none. */
const struct rv_cli_verb *rv_cli_find_verb(const char *name, const char *sub);

/* help.c, pages.c */
void rv_cli_write_help(const struct rv_cli_verb *verb, bool color, rv_buf *b); /* NULL: the overview */
void rv_cli_write_man(const struct rv_cli_verb *verb, rv_buf *b);              /* NULL: reeve(1) */
void rv_cli_write_reference(rv_buf *b);                                        /* docs/reference/cli.md */
/* completion.c */
RV_MUST_CHECK int rv_cli_write_completion(rv_str shell, rv_buf *b, rv_err **err); /* bash, zsh, fish */

/* output.c */
/** Print to stdout. Failure (full disk, closed pipe) is remembered for rv_cli_flush. */
void rv_cli_out(rv_str text);
/** The same, at once: for readers that wait for each line. False: the reader is gone, or the disk is full. */
bool rv_cli_out_now(rv_str text);
/** Print a whole buffer and free it; a buffer that failed is reported. Gives the exit status. */
int rv_cli_print(const struct rv_cli *cli, rv_buf *text);
void rv_cli_err(rv_str text);
/** The exit status: RV_EXIT_FAILED if stdout could not be written, else status. With outlives_reader a closed pipe does
 * not count. */
int rv_cli_flush(int status, bool outlives_reader);
/** Report an error on stderr, free it, and give the exit status that fits it. */
int rv_cli_report(const struct rv_cli *cli, rv_err *err);
int rv_cli_usage(const struct rv_cli *cli, const struct rv_cli_args *args, const char *fmt, ...) RV_PRINTF(3, 4);
int rv_cli_exit_of(enum rv_run_status status);

/* show/delta.c */
/** A piece as a line of --events, with its end. It is not kept with the run, so it has no number. pipeline NULL: none
 *  is known. */
void rv_cli_write_delta(const struct rv_pipeline *pipeline, const struct rv_delta_from *from,
                        const struct rv_llm_delta *d, rv_buf *line);
/** Print the `error` and `done` of a stream of events whose run goes no further and told neither. env NULL: it has no
 *  state yet. False: nothing more can be written. */
bool rv_cli_tell_end(const rv_envelope *env, const rv_err *err);

/* show/times.c */
void rv_cli_write_duration(rv_buf *b, int64_t us); /* "340 ms" */
void rv_cli_write_age(rv_buf *b, int64_t us);      /* "5 min": how long ago */
void rv_cli_write_moment(rv_buf *b, int64_t us);   /* "2026-11-21 21:05:00", UTC */
/** "90s", "15min", "12h", "30d", "4w". */
RV_MUST_CHECK int rv_cli_parse_duration(const char *text, int64_t *out_us, rv_err **err);

int rv_cli_zone_minutes(void); /* of this machine, now: east of UTC */

/* show/tally.c: what model calls took */
void rv_cli_spent_write(const struct rv_app_spent *s, rv_buf *b); /* ", 120 in, 40 out, $0.0012" */
typedef struct rv_cli_tally rv_cli_tally;
rv_cli_tally *rv_cli_tally_new(const struct rv_pipeline *p); /* borrowed; NULL: no memory */
void rv_cli_tally_add(rv_cli_tally *t, int stage, const struct rv_app_spent *s);
/** A table, a line for each stage that asked a model; nothing when no usage was told. total: of the run, where it is
 * known better than by adding up; else NULL. */
void rv_cli_tally_write(const rv_cli_tally *t, const struct rv_usage *total, bool color, rv_buf *b);
void rv_cli_tally_free(rv_cli_tally *t);

/* findings.c */
/** Print the findings (warnings only if asked) to stderr; true if the pipeline may be run. */
bool rv_cli_sound(const struct rv_cli *cli, const struct rv_app_loaded *l, bool warnings);
/** Say on stderr which capabilities a scripted run goes without. */
void rv_cli_warn_missing(const struct rv_cli *cli, const struct rv_app_loaded *l);

/* input.c: the envelope a run starts from */
RV_MUST_CHECK int rv_cli_envelope(const struct rv_cli_args *args, rv_envelope **out, rv_err **err);
RV_MUST_CHECK int rv_cli_set(json_object *root, const char *assignment, rv_err **err); /* "a.b=value" */
RV_MUST_CHECK int rv_cli_check_state_key(const char *assignment, rv_err **err);        /* of a state: is a known key */

/* The options of a verb that uses a store; the second only where it is written. */
#define RV_CLI_STORE_OPTION                                                                                            \
    {                                                                                                                  \
        "store", 0, "URL", "store of runs (default REEVE_STORE, else ~/.local/state/reeve/reeve.db)", "FILE", false    \
    }
#define RV_CLI_SYNC_OPTION                                                                                             \
    {                                                                                                                  \
        "sync", 0, "WORD",                                                                                             \
            "durability of a commit: full (survives power loss; default), normal (survives a crash of the process), "  \
            "off",                                                                                                     \
            "full normal off", false                                                                                   \
    }
#define RV_CLI_USER_OPTION                                                                                             \
    {                                                                                                                  \
        "user", 'u', "ID",                                                                                             \
            "only data of this user; \"\": only data without an owner (default REEVE_USER, else all data)", NULL,      \
            false                                                                                                      \
    }
#define RV_CLI_TENANT_OPTION                                                                                           \
    {                                                                                                                  \
        "tenant", 0, "ID", "tenant whose data is used (default REEVE_TENANT, else default)", NULL, false               \
    }
/* scope.c */
/** Borrows from args and the environment. Without a user it is all of the tenant: an operator's. */
struct rv_store_scope rv_cli_scope(const struct rv_cli_args *args);

/* session.c: a run for people and pipes */
/** What the options of a verb that runs say of it. */
RV_MUST_CHECK int rv_cli_run_opts(struct rv_cli *cli, const struct rv_cli_args *args, struct rv_app_loaded *loaded,
                                  struct rv_app_run *out, rv_err **err);
/** Drive it and print what was asked for. env is taken (NULL when it goes on). Gives the exit status. */
int rv_cli_session_run(struct rv_cli *cli, const struct rv_cli_args *args, struct rv_app_run *run, rv_envelope *env,
                       const struct rv_response *response);
/** Go on with a run of the store. response: the answer, with RV_APP_ANSWER. Gives the exit status. */
int rv_cli_continue(struct rv_cli *cli, const struct rv_cli_args *args, rv_store *store, const char *run,
                    enum rv_app_go go, const struct rv_response *response);

/* runs/keep.c: runs and their store */
#define RV_CLI_LEASE_OPTION                                                                                            \
    {                                                                                                                  \
        "lease", 0, "SECONDS",                                                                                         \
            "lease duration: after this long without a sign of life another process may take over the run (default "   \
            "15)",                                                                                                     \
            NULL, false                                                                                                \
    }
/** The options of `resume` for an answer; empty: none is needed. data: the interrupt's, may be NULL. */
/** False: the answer lacks what its kind of question needs; out says which options were given and which fit. */
bool rv_cli_answer_fits(enum rv_interrupt_kind kind, json_object *data, const struct rv_response *r, rv_buf *out);
const char *rv_cli_how_to_answer(enum rv_interrupt_kind kind, json_object *data);
/** On a terminal: say that runs of dead processes wait to be recovered. */
void rv_cli_note_left_behind(const struct rv_cli *cli, const struct rv_store_scope *scope, rv_store *store);
/** Say what a run waits for and how to answer it. word: names it on a command line. */
void rv_cli_say_pending(const struct rv_cli_args *args, const struct rv_app_run *run, const char *word);

/* runs/answer.c */
/** May response answer a question of that run? Fills in which one it means; id is its memory. */
RV_MUST_CHECK int rv_cli_check_answer(rv_store *store, const struct rv_run_row *row, const struct rv_cli_args *args,
                                      struct rv_response *response, char id[RV_STORE_MAX_ID + 1], rv_err **err);
/* progress.c: what people see on a terminal while a run goes on, and the timeline at its end */
typedef struct rv_progress rv_progress;
rv_progress *rv_progress_new(const struct rv_cli *cli, const struct rv_pipeline *p, bool live, bool timeline);
void rv_progress_event(rv_progress *p, const struct rv_effect *e, rv_str line);
void rv_progress_delta(rv_progress *p, int stage, rv_str text);
void rv_progress_stop(rv_progress *p); /* ends the live display */
void rv_progress_write_timeline(const rv_progress *p, rv_buf *b);
void rv_progress_free(rv_progress *p);

#endif
