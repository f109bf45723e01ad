/* What the files of `reeve chat` share: one chat with its store, its observers and its user. */
#ifndef RV_CLI_CHAT_CHAT_INTERNAL_H
#define RV_CLI_CHAT_CHAT_INTERNAL_H

#include "coreengine/app/app.h"
#include "coreengine/cli/cli.h"

#define RV_CLI_MAX_MESSAGE ((size_t)8 << 20) /* bytes of one message: as any JSON text that is read */
#define RV_CLI_MAX_MODEL   256               /* bytes of "provider:model" that /model takes */

typedef struct rv_chat_show rv_chat_show;
typedef struct rv_chat_edit rv_chat_edit;

struct rv_cli_chat {
    struct rv_cli *cli; /* borrowed */
    struct rv_app_chat in;
    const char *sections[RV_CONVERSATION_MAX_SECTIONS]; /* --instruction; borrowed from argv, as wanted */
    const char *wanted[RV_CLI_MAX_ARGS];                /* --capability; borrowed from argv */
    rv_chat_show *show;                                 /* for people; NULL: no display; owned */
    rv_chat_edit *edit;                 /* at the prompt; NULL: lines as the terminal gives them; owned */
    rv_buf again;                       /* what /retry says */
    json_object *attached;              /* pictures and files of the next message; owned; NULL: none */
    rv_buf attached_text;               /* its text files, as they follow it */
    rv_buf attached_names;              /* a line for each of them */
    char model[RV_CLI_MAX_MODEL];       /* that /model chose; "": none */
    bool recalls;                       /* lines are kept for later chats */
    rv_recorder *recorder;              /* --record; NULL: not; owned */
    const struct rv_pipeline *recorded; /* the last one of this turn that the recorder knows; borrowed */
    const struct rv_pipeline *running;  /* of the turn's last model call; NULL: none yet; borrowed */
    bool debug;                         /* requests are printed */
    bool shows_remarks;                 /* a person sees warnings as they come */
    bool events, deltas;                /* lines of --events on stdout */
    bool has_end;                       /* the events of the turn under way end with `done` */
    bool reader_left;                   /* the reader of stdout is gone */
};

/* --- verbs/chat.c --- */
/** Another chat in place of the one there is: session NULL is a new one, agent as in struct rv_chat_opts. On failure
 *  nothing changed. */
RV_MUST_CHECK int cli_chat_enter(struct rv_cli_chat *c, const char *session, const char *agent, rv_err **err);
/** Owner of these sessions; without a user: sessions without an owner. */
static inline struct rv_store_scope cli_chat_scope(const struct rv_cli_chat *c)
{
    struct rv_store_scope scope = c->cli->app.scope;

    if (!scope.user)
        scope.user = "";
    return scope;
}

/** One turn, observed; SIGINT cancels it. response NULL: a message. */
RV_MUST_CHECK int cli_chat_turn(struct rv_cli_chat *c, rv_str message, const struct rv_response *response,
                                struct rv_chat_turn *out, rv_err **err);

/* --- show.c: a turn for people --- */
struct rv_chat_show_opts {
    bool tools;  /* a line for each call on stderr */
    bool labels; /* who speaks */
    bool plain;  /* words as they are: no Markdown */
};
rv_chat_show *cli_chat_show_new(const struct rv_cli *cli, const struct rv_chat_show_opts *opts); /* NULL: no memory */
void cli_chat_show_free(rv_chat_show *s);
void cli_chat_show_begin(rv_chat_show *s);
void cli_chat_show_effect(rv_chat_show *s, const struct rv_effect *e);
void cli_chat_show_event(rv_chat_show *s, const struct rv_effect *e, rv_str line);
/** False: the reader left. */
bool cli_chat_show_delta(rv_chat_show *s, const struct rv_delta_from *from, const struct rv_llm_delta *d);
/** What has not been shown yet, and the end of the line. */
void cli_chat_show_end(rv_chat_show *s, const struct rv_chat_turn *turn);
/** A line of its own on stderr. */
void cli_chat_show_note(rv_chat_show *s, rv_str text);

/* --- calls.c: lines of tools, agents and actions --- */
/** "search(query: "...")", on one line. arguments: JSON, maybe cut. */
void cli_chat_write_call(rv_str tool, rv_str arguments, rv_buf *b);
/** Overwrite what has the name of a secret, in place. RV_E_NOMEM: some secrets are still there. */
RV_MUST_CHECK int cli_chat_hide(json_object *tree);
/** The beginning of a text, as at most two further lines, each after a line end. */
void cli_chat_write_lines(rv_str text, size_t indent, size_t columns, rv_buf *b);
/** The same of what a tool answered, as `tool_result` has it; nothing of an empty answer. */
void cli_chat_write_result(json_object *event, size_t indent, size_t columns, rv_buf *b);
/** {action_type, payload}: what an agent says beside its answer. */
void cli_chat_write_action(json_object *event, const char *indent, rv_buf *b);
/** Text on one line, cut where it is long. */
void cli_chat_write_line(rv_str text, rv_buf *b);

/* --- input.c: Ctrl-C, and lines --- */
RV_MUST_CHECK int cli_chat_signals_watch(rv_engine *engine, rv_err **err);
void cli_chat_signals_unwatch(void);
void cli_chat_signals_turn(bool under_way);
int cli_chat_signals_seen(void); /* SIGINT or SIGTERM outside of a turn; 0: none */

/* lines of standard input */
struct rv_chat_lines {
    rv_buf buf;
    int fd;       /* standard input, or the same terminal opened once more */
    size_t at;    /* where what has not been handed out begins */
    bool is_over; /* the end was read */
};
void cli_chat_lines_init(struct rv_chat_lines *l);
void cli_chat_lines_fini(struct rv_chat_lines *l);
/** The next line without its end; borrowed until the next call. 1: a line, 0: the end, RV_E_CANCELLED: a signal came
 *  first, RV_E_LIMIT: longer than a message can be (it is passed over), RV_E_IO. */
RV_MUST_CHECK int cli_chat_lines_next(struct rv_chat_lines *l, rv_str *out, rv_err **err);
/** The next byte. As above; RV_CHAT_AGAIN: a signal that ends nothing came first. */
#define RV_CHAT_AGAIN 2
RV_MUST_CHECK int cli_chat_lines_byte(struct rv_chat_lines *l, char *out, rv_err **err);

/* --- edit.c: a line that is edited where it is typed --- */
#define RV_CHAT_MAX_PAST 1000 /* earlier lines that the Up key finds: they are read at each start */
bool cli_chat_edit_fits(const struct rv_cli *cli); /* the terminal can move its cursor */
rv_chat_edit *
cli_chat_edit_new(struct rv_cli_chat *chat); /* NULL: no memory, no UTF-8 on this system, or an unknown terminal */
void cli_chat_edit_free(rv_chat_edit *e);    /* NULL is fine */
void cli_chat_edit_remember(rv_chat_edit *e, rv_str line);
/** Prompt for a line, which may have line ends in it; as cli_chat_lines_next(). text: arguments of a call that are
 * there to be changed, empty for a message. */
RV_MUST_CHECK int cli_chat_edit_line(rv_chat_edit *e, struct rv_chat_lines *lines, rv_str text, rv_str *out,
                                     rv_err **err);

/* --- recall.c: lines of earlier chats --- */
bool cli_chat_recall_keeps(const struct rv_cli_chat *c); /* false: without a store, or with one that is encrypted */
void cli_chat_recall_load(rv_chat_edit *e);
void cli_chat_recall_add(rv_str line);

/* --- complete.c --- */
/** What the end of text may become, whole words; gives the bytes of the word that are there. */
size_t cli_chat_complete(struct rv_cli_chat *c, rv_str text, void (*take)(void *self, rv_str word), void *self);

/* --- attach.c: files of a message --- */
/** A file for the next message, by its path; "again": the pictures and PDFs of the last message that had some; "-":
 *  none; "": only tell. told gets lines about it. RV_E_NOT_FOUND, RV_E_INVALID (not a regular file, empty, or of a type
 *  that models do not take), RV_E_LIMIT, RV_E_STATE (no message had some), RV_E_IO: nothing changed. */
RV_MUST_CHECK int cli_chat_attach(struct rv_cli_chat *c, const char *what, rv_buf *told, rv_err **err);
/** The attachments of a kept message, as in llm.h; owned; NULL: none. */
RV_MUST_CHECK int cli_chat_attached_of(const struct rv_message *m, json_object **out, rv_err **err);
/** A line for each: head, name, type and size. NULL is none. */
void cli_chat_write_attached(json_object *attachments, const char *head, rv_buf *b);

/* --- turns.c --- */
/** Take the last turn back: its rows are not seen any more. said gets its message, *attached (owned) what belonged to
 *  it. RV_E_STATE: there is none. */
RV_MUST_CHECK int cli_chat_take_back(struct rv_cli_chat *c, rv_buf *said, json_object **attached, rv_err **err);
RV_MUST_CHECK int cli_chat_write_usage(struct rv_cli_chat *c, rv_buf *out, rv_err **err); /* a row for each model */
RV_MUST_CHECK int cli_chat_write_cost(struct rv_cli_chat *c, rv_buf *out, rv_err **err);  /* one line */
/** The conversation in a new file: Markdown, or rows as JSON if its name ends with .json. */
RV_MUST_CHECK int cli_chat_export(struct rv_cli_chat *c, const char *path, rv_err **err);

/* --- answer.c --- */
/** Answer the turn from the next lines until it waits no more. prompts: the lines come from a person, who is asked on
 * standard error, and asked again after an answer that does not fit. RV_E_CANCELLED: the lines ended before an answer,
 * or a signal came; RV_E_INVALID: a line of a pipe does not answer the question, and the turn still waits. */
RV_MUST_CHECK int cli_chat_answer(struct rv_cli_chat *c, struct rv_chat_lines *lines, bool prompts,
                                  struct rv_chat_turn *turn, rv_err **err);

/* --- commands.c --- */
/* NONE: it is a message; AGAIN: the message is in `again` of the chat */
enum rv_chat_word { RV_CHAT_WORD_NONE, RV_CHAT_WORD_DONE, RV_CHAT_WORD_EXIT, RV_CHAT_WORD_AGAIN };
enum rv_chat_word cli_chat_command(struct rv_cli_chat *c, rv_str line);
enum rv_chat_takes {
    RV_CHAT_TAKES_NOTHING,
    RV_CHAT_TAKES_AGENT,
    RV_CHAT_TAKES_SESSION,
    RV_CHAT_TAKES_SWITCH,
    RV_CHAT_TAKES_FILE
};
const char *cli_chat_command_name(size_t i); /* NULL behind the last */
enum rv_chat_takes cli_chat_command_takes(rv_str name);
/** The newest n messages of the session, oldest first, on stdout. */
RV_MUST_CHECK int cli_chat_history(struct rv_cli_chat *c, int64_t n, rv_err **err);

/* --- talk.c: who talks; each gives the exit status --- */
void cli_chat_header(const struct rv_cli_chat *c);
int cli_chat_repl(struct rv_cli_chat *c);
int cli_chat_once(struct rv_cli_chat *c, rv_str message);
int cli_chat_lines(struct rv_cli_chat *c);

#endif
