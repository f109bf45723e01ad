/* Runs of a store as the verbs read them: replayed from their journals, performing nothing. */
#ifndef RV_CLI_RUNS_H
#define RV_CLI_RUNS_H

#include "coreengine/cli/cli.h"
#include "coreengine/journal/bundle.h"

#define RV_CLI_MAX_TEXT ((size_t)256 << 20) /* what one command prints */

/* --- past.c: one run with what it was started with --- */
struct rv_cli_past {
    struct rv_store_scope scope; /* it was found in; borrowed */
    struct rv_run_row row;
    rv_bundle *bundle; /* opened offline: no capability is loaded */
    struct rv_catalog catalog;
};
/** word as rv_app_find_run() takes it. */
RV_MUST_CHECK int rv_cli_past_open(rv_store *store, const struct rv_store_scope *scope, const char *word,
                                   struct rv_cli_past *out, rv_err **err);
void rv_cli_past_fini(struct rv_cli_past *p);
const struct rv_pipeline *rv_cli_past_pipeline(const struct rv_cli_past *p);

typedef int (*rv_cli_on_step)(void *self, const struct rv_record *record, const struct rv_event *ev,
                              const struct rv_effects *effects, const rv_run *run, rv_err **err);
/** All of its journal, or up to a record; on_step may be NULL. */
RV_MUST_CHECK int rv_cli_past_replay(rv_store *store, const struct rv_cli_past *p, int64_t upto, rv_cli_on_step on_step,
                                     void *self, struct rv_replayed *out, rv_err **err);

/* How far the run's script has been handed out, while its journal is replayed. */
struct rv_cli_script {
    rv_script *script; /* of the past's bundle; borrowed; NULL: the run has none */
    const struct rv_pipeline *pipeline;
    struct rv_journal_begin begin; /* of the run */
};
/** Where it stood when the run began. */
RV_MUST_CHECK int rv_cli_script_open(rv_store *store, const struct rv_cli_past *p, struct rv_cli_script *out,
                                     rv_err **err);
void rv_cli_script_told(struct rv_cli_script *s, const struct rv_event *ev);
RV_MUST_CHECK int rv_cli_script_asked(struct rv_cli_script *s, const struct rv_effect *e, rv_err **err);
/** As struct rv_journal_begin has it; yours. */
RV_MUST_CHECK int rv_cli_script_at(const struct rv_cli_script *s, json_object **out, rv_err **err);
void rv_cli_script_fini(struct rv_cli_script *s);

/* Who runs it. */
enum rv_cli_owner {
    RV_CLI_OWNER_NONE,  /* nobody */
    RV_CLI_OWNER_LIVES, /* as far as its lease tells */
    RV_CLI_OWNER_LATE,  /* its lease has ended */
    RV_CLI_OWNER_DEAD,  /* a process of this machine that is gone */
};
enum rv_cli_owner rv_cli_owner_of(const struct rv_run_row *row, int64_t now_us);
int64_t rv_cli_now_us(void);

/* --- crashed.c: runs that end the process that recovers them --- */
#define RV_CLI_CRASHES 3 /* in a row, from which on a run is recovered in a process of its own */
/** How many processes that took the run over ended without a step of it. 0 while its owner lives. */
RV_MUST_CHECK int rv_cli_crashes(rv_store *store, const struct rv_store_scope *scope, const struct rv_run_row *row,
                                 int64_t now_us, int64_t *out, rv_err **err);
/** When `runs recover` may try such a run again. */
int64_t rv_cli_next_try_us(int64_t crashes, int64_t last_us);
/** Recover it in a child, with the options of this command. *status: how the child exited; *number: the signal that
 * ended it, or 0. */
RV_MUST_CHECK int rv_cli_recover_apart(const struct rv_cli_args *args, const char *run, int *status, int *number,
                                       rv_err **err);

/** The command that answers that interrupt, as a line. is_only: the run waits for nothing else. */
void rv_cli_write_resume(const struct rv_cli_args *args, const struct rv_pending *pending, bool is_only, rv_buf *b);
/** A word of a command that can be pasted into a shell, quoted where it has to be. */
void rv_cli_write_word(const char *word, rv_buf *b);
/** " --store FILE --user ID --tenant ID", as far as the command line says so. */
void rv_cli_write_store(const struct rv_cli_args *args, rv_buf *b);
/** Text of a model or a tool for a terminal: nothing that moves the cursor or turns the text around; lines and tabs
 * stay. */
void rv_cli_write_safe(rv_str text, rv_buf *b);
/** The same, later lines indented. */
void rv_cli_write_lines(rv_str text, rv_buf *b);
/** One line of text, cut after max bytes. */
void rv_cli_write_preview(rv_str text, size_t max, rv_buf *b);
const char *rv_cli_status_color(enum rv_run_status status); /* how a terminal shows it */
/** The verb's store, opened. False: it was reported, and *status is what to exit with. */
bool rv_cli_runs_open(struct rv_cli *cli, enum rv_app_store_use use, rv_store **store, int *status);

/* --- steps.c: the visits of a run, and their calls --- */
enum rv_cli_call_end {
    RV_CLI_CALL_STARTED,
    RV_CLI_CALL_FINISHED,
    RV_CLI_CALL_FAILED,
    RV_CLI_CALL_UNKNOWN,
    RV_CLI_CALL_CANCELLED
};
const char *rv_cli_call_end_text(enum rv_cli_call_end end);

#define RV_CLI_NO_CALL SIZE_MAX
struct rv_cli_call {
    int64_t id, attempt;
    enum rv_effect_kind kind; /* CALL_LLM, CALL_TOOL, CALL_HOOK */
    enum rv_name_kind entry;  /* CALL_HOOK */
    char *name;               /* owned */
    int effect_class;         /* CALL_TOOL */
    enum rv_cli_call_end end;
    size_t next; /* index of the next call of its visit; RV_CLI_NO_CALL: none */
    int64_t begun_us, ended_us;
    char *step_id;             /* CALL_TOOL, as the model named it; owned; NULL: not told */
    char *asked;               /* the agent that works on it; owned; NULL: it is no call of ask_agent, or none began */
    char *agent;               /* that made it, if one was asked; owned; NULL: the stage */
    size_t asker;              /* index of the call by which that agent was asked; RV_CLI_NO_CALL: none */
    char *muted;               /* CALL_LLM: words that people were not shown; owned; NULL: none */
    bool has_spent;            /* CALL_LLM: it came back */
    struct rv_cli_spent spent; /* likewise */
};
struct rv_cli_step {
    int64_t number; /* what `fork --at` takes; 0: it has not ended */
    int stage;
    int64_t visit, seq; /* seq: of the record that ended it */
    int64_t begun_us, ended_us;
    size_t first_call, last_call; /* RV_CLI_NO_CALL: none */
    bool asks;                    /* the run stays there until a person has answered */
    bool can_fork;                /* a state was saved right behind it */
    char *line;                   /* its stage_completed event, not read yet; owned */
    json_object *end;             /* the same, read; NULL: under way, or left out */
    bool is_left_out;             /* the window is elsewhere */
};
/* Which steps are wanted, by their numbers; those under way are always. */
struct rv_cli_window {
    bool all;
    int64_t first, last; /* so many from the beginning and the end */
    int64_t from, to;    /* and these */
};
struct rv_cli_steps {
    struct rv_cli_step *items;
    size_t n, cap;
    struct rv_cli_call *calls; /* in order of asking */
    size_t n_calls, cap_calls;
    int64_t n_ended;
    struct rv_cli_window window;
    size_t dropped_to; /* index: what ended before it and is not wanted has been left out */
    int64_t n_left_out;
    size_t batch_left; /* stages of the batch under way that have not ended */
};
/** Read a run's steps; of those outside the window little is kept. Gives what the replay gave, too. */
RV_MUST_CHECK int rv_cli_steps_read(rv_store *store, const struct rv_cli_past *p, const struct rv_cli_window *window,
                                    struct rv_cli_steps *out, struct rv_replayed *replayed, rv_err **err);
void rv_cli_steps_fini(struct rv_cli_steps *s);

/* --- saved.c: the state behind a step --- */
struct rv_cli_saved {
    rv_buf state;           /* the state dict's text */
    int64_t seq;            /* of the record that ended the step */
    json_object *script_at; /* how far its script was handed out by then; NULL: not at all, or it has none */
    /* of the search */
    int64_t step, n_steps, next_boundary;
};
/** step as `fork --at` takes it. RV_E_NOT_FOUND: there is none; RV_E_STATE: its batch went on. */
RV_MUST_CHECK int rv_cli_saved_read(rv_store *store, const struct rv_cli_past *p, int64_t step,
                                    struct rv_cli_saved *out, rv_err **err);
void rv_cli_saved_fini(struct rv_cli_saved *s);

#endif
