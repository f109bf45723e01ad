/* The pure core in a conversation: turns of declared agents, journaled step by step in a store in memory, with answers
 * from a table. A room can die after any step and go on as another process would. */
#ifndef RV_TESTS_TURNS_ROOM_H
#define RV_TESTS_TURNS_ROOM_H

#include <check.h>

#include "coreengine/store/journal/journal.h"
#include "tests/kit/kit.h"

#define ROOM_T0       INT64_C(1700000000000000)
#define ROOM_MAX_TEXT ((size_t)64 << 20)
#define ROOM_TICK_US  1000 /* an answer takes */

/* One answer; each serves once, in the order of the table, for calls of that name. `to`: an agent's name (its model),
 * or the tool's. */
struct line {
    const char *to, *text; /* the reply, or what had come before it failed */
    const char *calls;     /* "id name arguments", with " | " between */
    const char *fails;     /* "Type:message"; "?Type:message": a repeat may help */
    int64_t in, out;       /* tokens */
    int64_t takes_us;      /* 0: a tick */
    bool is_cut;           /* of a model: it reached its longest */
};
#define ROOM_LINES 24
struct scene {
    const char *name;
    enum rv_rules rules;    /* that the run begins with; 0: the newest */
    const char *keys;       /* of the pipeline, as YAML lines; NULL: none */
    const char *stage;      /* keys of the stage behind `agent: parent`: ", key: value" */
    const char *parent;     /* its document, from `tools` on */
    const char *agents[10]; /* name, document, ... */
    const char *user;       /* what is said; NULL: "ask" */
    bool forgets;           /* the conversation keeps nothing */
    bool routes;            /* there is a state of routing */
    bool last_first;        /* of the calls under way the newest is answered first */
    struct line lines[ROOM_LINES];
    /* What is expected of it; NULL or -1: nothing is. */
    const char *rows, *rows_have; /* of the session: all, or a part */
    const char *status, *reason;  /* of the run, and of its end */
    const char *says;             /* a part of the rows, the errors or the state */
    const char *words;            /* kept beside an output; "": none */
    int64_t n_requests, n_errors; /* of models; results that are errors */
    json_object *cancelled;       /* [{after, partial, rows}]: a cancel after so many answers */
};

struct room_call {
    int64_t id, at_us, deadline_us;
    enum rv_effect_kind kind;
    int effect_class;
    char *name, *who, *request, *key;
    int line; /* of the table, that answers it; -1: none */
};
struct room {
    const struct scene *scene;
    rv_store *store;
    bool own_store;
    rv_findings *findings;
    struct rv_pipeline *p;
    struct rv_conversation conversation;
    rv_run *run;
    struct rv_replayed replayed; /* of a later life: what the run borrows from */
    rv_journal *j;
    int64_t now_us, gap_us; /* gap: between a death and the next life */
    struct rv_effects fx;
    struct room_call *calls; /* under way */
    size_t n_calls;
    int memo[256]; /* by call id: 1 + the line that answered it */
    bool used[ROOM_LINES];
    rv_buf events, states; /* a line each: events; the state after each step */
    int64_t seqs[256];     /* the last record of each step */
    size_t state_at[257];
    size_t n_steps, n_keeps;
    char *performed[64]; /* keys of calls of non-idempotent tools that ran */
    size_t n_performed;
    char run_id[40];
    bool finished;
    char wanted[400]; /* of the last look */
};
extern const struct rv_catalog room_catalog;
int room_count_scenes(void);
const struct scene *room_scene_at(int i);
const struct scene *room_scene(const char *name);

/** store NULL: one of its own. The run is journaled and not begun. */
struct room *room_new(const struct scene *scene, rv_store *store);
void room_free(struct room *r);
int room_step(struct room *r, const struct rv_event *ev, rv_err **err);
void room_start(struct room *r);
bool room_answer(struct room *r);                             /* one; false: nothing is under way */
void room_go(struct room *r);                                 /* to its end */
void room_perform(struct room *r, const struct room_call *c); /* a call that must not happen twice */
/** The process dies, and another one goes on; whether the calls of non-idempotent tools happened nobody knows. */
void room_die(struct room *r);
/** Whoever is asked says yes; the run goes on up to its next call. */
void room_approve(struct room *r);
/** Partial texts for all model calls under way; "" : none. */
void room_cancel(struct room *r, const char *partial);
/** Replays all of it and each part, and compares. */
void room_check_replay(struct room *r);

/* What came of it; free() them. */
char *room_rows(struct room *r);    /* all of it, a line each: "type<parent[agent](status) content|calls" */
char *room_columns(struct room *r); /* every column */
char *room_state(const struct room *r);
const char *room_output(struct room *r, const char *path); /* JSON text of a place in the state; until the next look */
size_t room_count(const char *text, const char *part);

Suite *rows_suite(void);
Suite *replay_suite(void);
Suite *cancel_suite(void);
Suite *limits_suite(void);
Suite *pauses_suite(void);
Suite *columns_suite(void);
Suite *asked_suite(void);
Suite *objects_suite(void);

#endif
