/* Drives a run in virtual time: a pipeline from YAML text, a made-up catalog, answers from a table or a function. Every
 * effect, observable line and event is kept as JSON; what holds for every run is checked on the way (see drive.c). */
#ifndef RV_TESTS_KIT_DRIVE_H
#define RV_TESTS_KIT_DRIVE_H

#include "coreengine/run/run.h"
#include "tests/kit/kit.h"

#define DRIVE_T0         1700000000000000 /* 2023-11-14T22:13:20Z */
#define DRIVE_LATENCY_US 1000             /* of an answer that names none */
#define DRIVE_MAX_CALLS  20000
#define DRIVE_MAX_TOOLS  16
#define DRIVE_MAX_TEXT   ((size_t)256 << 20)

/* One answer. `to` is "llm:stage", "tool:name", "hook:name", "policy:name", "mock:name" or "route:name". A reply is the
 * text itself; "!Type:text" is a failure, "?Type:text" one that a repeat may help,
 * "#" says that the outcome is unknown, "&JSON" asks a person. 'Single quotes' do where no double
 * ones are. Each entry serves once, in order, unless `stays`. What has no entry is answered with the default: {} or
 * nothing, policies allow. */
struct drive_answer {
    const char *to, *reply;
    bool stays;
    int64_t latency_us;
};
/* The same with what else a model says: `calls` are the tools it asks for, "id name arguments" with " | " between, and
 * `more` is what a record keeps of an answer ({'usage': ..., 'finish_reason': ...}). reply NULL: no text. */
struct drive_said {
    const char *to, *reply, *calls, *more;
    bool stays;
    int64_t latency_us;
};

struct drive_tool {
    const char *name;
    int risk;                   /* enum rv_risk */
    const char *input, *output; /* schemas as JSON; NULL: anything */
    int64_t timeout_ms;
};

struct drive_call {
    int64_t call_id, due_us, attempt, visit, deadline_us;
    enum rv_effect_kind kind;
    enum rv_name_kind entry;
    int stage;
    char *name, *request, *key;
    bool over; /* answered or cancelled */
};

struct drive {
    rv_findings *findings;
    struct rv_pipeline *p;
    struct rv_catalog catalog;
    struct rv_tool_info tools[DRIVE_MAX_TOOLS];
    rv_schema *schemas[2 * DRIVE_MAX_TOOLS];
    json_object *documents[2 * DRIVE_MAX_TOOLS];
    size_t n_tools, n_schemas;
    struct rv_entry_info entry;
    bool has_entry;
    struct rv_run_opts opts;
    rv_run *run;
    rv_envelope *env; /* before the run begins, or after it was taken out */
    int64_t now_us;
    struct rv_effects fx;
    struct drive_call *calls;
    size_t n_calls;
    struct drive_said *answers; /* owned; the texts are borrowed */
    size_t n_answers;
    bool *used; /* one per answer */
    /* What replaces the table; may return NULL for it. The text lives until the next call. */
    const char *(*answer)(struct drive *d, const struct drive_call *c, bool *handled);
    bool (*say)(struct drive *d, const struct drive_call *c, struct drive_said *out); /* where the table has nothing */
    void *answer_self;
    uint64_t jitter;               /* not 0: answers take between 1 us and 5 s, by this seed */
    bool keep;                     /* keep effects and events; off for long runs */
    rv_buf effects, events, lines; /* one JSON value a line */
    rv_buf artifacts;              /* the same: what is known about each */
    int64_t next_seq, last_call_id;
    size_t n_done, n_finish, n_saves, save_bytes, n_visits, n_llm;
    size_t n_cancelled;
    char *last_save;
    char *first; /* the state that the run began with */
    bool finished;
    bool keeps_numbers;   /* a run made from a saved state goes on with call ids and seq */
    bool overruns;        /* its models may take more than was set aside for them */
    json_object *blocked; /* borrowed: the tools that a breaker blocks from now on; NULL: none */
    const char *lost;     /* a tool that the catalog does not have any more, or NULL */
    bool has_changed;     /* the catalog, in the middle: the events lead elsewhere when they come again */
    bool *open;           /* per stage: a visit is under way */
    int completed;        /* the stage whose completion was the last line, or -1 */
    bool began;           /* the last line was pipeline_started */
};

/** A driver for the pipeline; ends the test when it has errors. tools may be NULL. */
struct drive *drive_new(const char *yaml, const struct drive_tool *tools, size_t n_tools);
/** The same with files that the pipeline names: a map from path to text, borrowed for the call; NULL: those of the
 * disk.
 */
struct drive *drive_new_of(const char *yaml, json_object *files, const struct drive_tool *tools, size_t n_tools);
void drive_free(struct drive *d);
/** From now on the catalog says that the tool destroys. */
void drive_tool_destroys(struct drive *d, const char *name);
/** The envelope that the next run starts with, from a partial state (NULL: fresh). */
void drive_envelope(struct drive *d, const char *state);
void drive_answers(struct drive *d, const struct drive_answer *answers, size_t n);
#define DRIVE_ANSWERS(d, ...)                                                                                          \
    do {                                                                                                               \
        static const struct drive_answer drive_table[] = {__VA_ARGS__};                                                \
        drive_answers((d), drive_table, RV_COUNT(drive_table));                                                        \
    } while (0)

void drive_talk(struct drive *d, const struct drive_said *answers, size_t n);
#define DRIVE_TALK(d, ...)                                                                                             \
    do {                                                                                                               \
        static const struct drive_said drive_table[] = {__VA_ARGS__};                                                  \
        drive_talk((d), drive_table, RV_COUNT(drive_table));                                                           \
    } while (0)

/** One event; the effects are taken in. The code of rv_run_step(). */
int drive_step(struct drive *d, const struct rv_event *ev, rv_err **err);
void drive_must_step(struct drive *d, const struct rv_event *ev); /* that has to be accepted */
void drive_forget_calls(struct drive *d);
/** Begin the run without answering anything. */
void drive_start(struct drive *d);
/** Answer what is due until the run ends or nothing is asked. */
void drive_pump(struct drive *d);
void drive_pump_one(struct drive *d); /* one answer */
/** Start and pump; the status. */
enum rv_run_status drive_run(struct drive *d);
/** Save and load the envelope and make a new run of it, which begins with the next event. */
void drive_reload(struct drive *d);
/** Save and load the envelope, make a new run of it, answer its interrupt and pump. A code < 0: the answer was refused.
 */
int drive_resume(struct drive *d, const struct rv_response *response, rv_err **err);
/** Answer the same run after its pause, and pump. A code < 0: the answer was refused, and state and numbers are checked
 * to be what they were. */
int drive_go_on(struct drive *d, const struct rv_response *response, rv_err **err);
/** The run goes on in another process after that time. */
void drive_recover(struct drive *d, int64_t gap_us);
enum rv_run_status drive_approve(struct drive *d, bool approved);
void drive_cancel(struct drive *d);

/** JSON text of a place in the state dict ("outputs.a.x"), "absent" when it is not there; valid until the next look. */
const char *drive_state(struct drive *d, const char *path);
/** Observable lines as words: "pipeline_started stage_started:a ... done:completed". */
const char *drive_story(struct drive *d);
/** The n-th (from 0) observable line of that type, parsed; borrowed until the next look. NULL: none. */
json_object *drive_line(struct drive *d, const char *type, size_t n);
/** JSON text of a place in what is known about the n-th artifact; valid until the next look. */
const char *drive_artifact(struct drive *d, size_t n, const char *path);
/** The n-th call asked for of that kind, or NULL. */
const struct drive_call *drive_call_at(const struct drive *d, enum rv_effect_kind kind, size_t n);
size_t drive_n_calls(const struct drive *d, enum rv_effect_kind kind);
/** JSON text of a member of a call's request; valid until the next look. */
const char *drive_request(const struct drive_call *c, const char *path);
/** Feed the recorded events to a new run of the same envelope; true if effects and state are byte-identical. */
bool drive_replays(struct drive *d, const char *first_state);
/** The state dict's text; free() it. */
char *drive_dump(const rv_envelope *env);

#endif
