/* The storage of an envelope; for the files of this folder only.
 *
 * Names (stages, output keys, goals) are interned once per envelope, so that maps compare pointers and history holds no
 * copies. Maps keep insertion order. A change is made in two steps: everything that can fail comes first (intern,
 * reserve, copy), then a commit that cannot fail, so a failed call leaves the envelope as it was.
 *
 * A fork has a parent and its own, at first empty, storage. Its maps are overlays (GONE hides a parent's entry), its
 * counting maps hold differences, its lists are NULL until it changes them. The parent may be a fork itself. */
#ifndef RV_ENVELOPE_INTERNAL_H
#define RV_ENVELOPE_INTERNAL_H

#include "envelope/branches.h"
#include "envelope/goals.h"

#define RV_MAX_COUNTER   INT64_C(9007199254740991)   /* 2^53 - 1: the largest that every JSON reader keeps exactly */
#define RV_MAX_NAMES     ((size_t)1 << 18)           /* of stages and keys of one envelope: they are in memory */
#define RV_TIME_LOWEST   INT64_C(-62135596800000000) /* 0001-01-01: what RFC 3339 can write */
#define RV_TIME_HIGHEST  INT64_C(253402300799999999) /* 9999-12-31T23:59:59.999999 */
#define RV_STATE_VERSION 1                           /* of the state dict */

/* --- names.c --- */
struct rv_name {
    uint64_t hash;
    size_t len;
    char text[]; /* NUL-terminated, holds no other NUL, valid UTF-8 */
};
struct rv_names {
    struct rv_name **slots; /* owned, open addressing */
    size_t n, cap;
    uint64_t seed; /* differs between processes: keys are untrusted */
};
/** The name of these bytes, made if need be. RV_E_INVALID (NUL, not UTF-8; message says `what`), RV_E_LIMIT, NOMEM. */
RV_MUST_CHECK int env_intern(rv_envelope *env, rv_str text, const char *what, const struct rv_name **out, rv_err **err);
/** The name if the envelope, or one that it is a fork of, has it; else NULL. */
const struct rv_name *env_name(const rv_envelope *env, rv_str text);
/** The same by a name that a fork of the envelope, its parent, or another fork of its parent has. */
const struct rv_name *env_name_like(const rv_envelope *env, const struct rv_name *name);
void env_names_fini(struct rv_names *names);

/* --- names.c: maps --- */
enum rv_entry_kind { RV_ENTRY_DEAD, RV_ENTRY_LIVE, RV_ENTRY_GONE };
/* Names are borrowed from the root's table of names. */
struct rv_entry {
    const struct rv_name *name;
    const struct rv_name *to; /* second half of the key, of edges; else NULL */
    json_object *value;       /* owned reference; NULL in sets and counts, or JSON null */
    int64_t count;
    enum rv_entry_kind kind;
};
struct rv_map {
    struct rv_entry *entries; /* owned; insertion order, dead ones between */
    uint32_t *index;          /* owned; 2 * cap slots of entry number + 1; NULL while cap is small */
    size_t n, n_live, n_dead, cap;
};
/** Make room for extra further entries: the next `extra` puts and hides cannot fail. */
RV_MUST_CHECK int map_reserve(struct rv_map *m, size_t extra, rv_err **err);
/** The live or gone entry, or NULL. */
struct rv_entry *env_map_find(const struct rv_map *m, const struct rv_name *name, const struct rv_name *to);
/** The live entry, made at the end if need be (room was reserved). */
struct rv_entry *map_put(struct rv_map *m, const struct rv_name *name, const struct rv_name *to);
/** Put, then store another reference of value. */
void map_put_ref(struct rv_map *m, const struct rv_name *name, json_object *value);
void map_drop(struct rv_map *m, struct rv_entry *e); /* e may be NULL */
/** Make it a hiding entry of an overlay (room was reserved). */
void map_hide(struct rv_map *m, const struct rv_name *name);
void map_clear(struct rv_map *m);
void env_map_fini(struct rv_map *m);

/* --- The envelope --- */
enum rv_map_id {
    RV_MAP_OUTPUTS,
    RV_MAP_METADATA,
    RV_MAP_STATE,
    RV_MAP_SUSPENDED,
    RV_MAP_CAUGHT, /* not merged: it is of the branch that caught it */
    RV_MAP_ACTIVE,
    RV_MAP_COMPLETED,
    RV_MAP_FAILED,
    RV_MAP_GOALS,
    RV_MAP_VISITS,
    RV_MAP_EDGES,
    RV_MAP_REPLANS,
    RV_MAP_REJECTIONS,
    RV_N_MAPS
};
enum rv_list_id {
    RV_LIST_STAGE_ORDER,
    RV_LIST_COMPLETED_STAGES,
    RV_LIST_ALL_GOALS,
    RV_LIST_REMAINING_GOALS,
    RV_LIST_PRIOR_PLANS,
    RV_LIST_FEEDBACK,
    RV_LIST_ERRORS, /* of a fork: the new ones only */
    RV_N_LISTS
};
enum rv_text_id {
    RV_TEXT_ENVELOPE_ID,
    RV_TEXT_REQUEST_ID,
    RV_TEXT_USER_ID,
    RV_TEXT_SESSION_ID,
    RV_TEXT_RAW_INPUT,
    RV_TEXT_TERMINATION,
    RV_N_TEXTS
};
struct rv_text {
    char *ptr; /* NULL: none; owned */
    size_t len;
    bool borrowed; /* a fork's view of its parent's text */
};
struct rv_record {
    const struct rv_name *agent; /* borrowed from the table of names */
    int64_t stage_order, started_at_us, duration_ms, llm_calls;
    int64_t completed_at_us; /* 0: running */
    enum rv_history_status status;
    struct rv_text error;
};
struct rv_stored_interrupt {
    bool exists;
    enum rv_interrupt_kind kind;
    struct rv_text id, question, message, stage, path; /* path: of the branch that asks; none: the main branch */
    json_object *data, *response;                      /* owned references */
    int64_t created_at_us, expires_at_us;
};
/* One change of a fork to `state`, replayed by the merge so that two appends do not overwrite each other. */
struct rv_state_op {
    const struct rv_name *name; /* borrowed from the table of names */
    enum rv_merge_mode how;
    json_object *value; /* owned reference */
};
struct rv_envelope {
    struct rv_envelope_fields f; /* its pointers mirror `text` and `stage` */
    struct rv_text text[RV_N_TEXTS];
    const struct rv_name *stage; /* current_stage; borrowed from the table of names */
    struct rv_map map[RV_N_MAPS];
    json_object *list[RV_N_LISTS]; /* owned arrays; never NULL in a root */
    struct rv_record *records;     /* owned */
    size_t n_records, cap_records;
    struct rv_stored_interrupt interrupt;
    struct rv_names names;
    /* Of a root that shows the questions of its branches: what it had in their place. */
    json_object *branches;  /* of a run that paused inside of a group; owned; NULL: none */
    json_object *withdrawn; /* of a root: ids of questions that no answer is wanted to any more; owned; NULL: none */
    bool shows;
    struct rv_stored_interrupt hidden;
    json_object *hidden_queue; /* owned reference */
    bool had_queue;
    /* The rest is of forks. */
    const rv_envelope *parent;         /* borrowed; NULL: a root */
    bool is_branch;                    /* writes are noted even where they change nothing; merged by join.c */
    bool own_interrupt;                /* else the parent's counts */
    int64_t base_llm_calls, base_hops; /* at the fork, as are the next */
    int64_t base_iteration;
    size_t base_feedback, base_plans;
    struct rv_state_op *ops; /* owned */
    size_t n_ops, cap_ops;
};

/* texts.c */
void env_text_fini(struct rv_text *t);
/** Copy; ptr NULL gives none. RV_E_INVALID (not UTF-8; says `what`), RV_E_NOMEM. */
RV_MUST_CHECK int env_text_of(rv_str s, const char *what, struct rv_text *out, rv_err **err);
void env_text_move(struct rv_text *to, struct rv_text *from); /* frees the old one */
rv_str env_text_str(const struct rv_text *t);
int64_t env_counter_add(int64_t a, int64_t b); /* stays in 0..RV_MAX_COUNTER */
int64_t env_clamp_time(int64_t us);
/** Grow *array to hold at least need items of size each. */
RV_MUST_CHECK int env_grow(void *array, size_t *cap, size_t need, size_t size, rv_err **err);
void env_text_write(const struct rv_text *t, rv_jw *w); /* none is null */
void env_time_write(int64_t us, rv_jw *w);

/* used.c: branches that the envelope keeps while its run pauses, from 1 on; the first one is the main branch */
size_t env_n_kept(const rv_envelope *env);
json_object *env_kept_at(const rv_envelope *env, size_t i); /* what it has of its own; borrowed; NULL: nothing */

/* envelope.c */
/** An envelope with every default but the ids. */
RV_MUST_CHECK int env_blank(int64_t now_us, rv_envelope **out, rv_err **err);
void env_mirror(rv_envelope *env); /* env->f from env->text and env->stage */

/* values.c: maps seen through a fork, and lists */
const struct rv_entry *env_find(const rv_envelope *env, enum rv_map_id id, const struct rv_name *name);
/** Hide or drop; infallible after one place was reserved in env->map[id]. */
void env_hide(rv_envelope *env, enum rv_map_id id, const struct rv_name *name);
/** Hide all that a fork sees of its parent; infallible after room for that was reserved. */
void env_hide_below(rv_envelope *env, enum rv_map_id id);
size_t env_size(const rv_envelope *env, enum rv_map_id id);
int64_t env_count(const rv_envelope *env, enum rv_map_id id, const struct rv_name *name, const struct rv_name *to);
/* Every visible entry in order: the root's, then those of the forks down to env. Counts are env_count()'s business.
 */
struct rv_cursor {
    const rv_envelope *env, *level; /* borrowed */
    enum rv_map_id id;
    size_t i;
};
struct rv_cursor env_cursor_on(const rv_envelope *env, enum rv_map_id id);
const struct rv_entry *env_cursor_next(struct rv_cursor *c); /* NULL: the end */
json_object *env_list(const rv_envelope *env, enum rv_list_id id);
/** The list to change: a fork gets its own copy (of errors: an empty one). */
RV_MUST_CHECK int env_own_list(rv_envelope *env, enum rv_list_id id, json_object **out, rv_err **err);
RV_MUST_CHECK int env_list_copy(json_object *list, json_object **out, rv_err **err); /* shallow */
/** Rule of `state`: what `old` becomes when value is merged into it; *out is the caller's reference. */
RV_MUST_CHECK int env_merged_value(json_object *old, bool has_old, enum rv_merge_mode mode, json_object *value,
                                   json_object **out, rv_err **err);

/* fork.c: the parts of a merge, each one made in the two steps. `env` is the parent of `fork`, or a fork itself. */
/** Names and room in env for all that the fork's map holds, and for `extra` entries more. */
RV_MUST_CHECK int fork_prepare_map(rv_envelope *env, const rv_envelope *fork, enum rv_map_id id, size_t extra,
                                   rv_err **err);
const struct rv_name *fork_known(const rv_envelope *env, const struct rv_name *name); /* env's name for it */
void fork_commit_counts(rv_envelope *env, const rv_envelope *fork, enum rv_map_id id);
/** What the fork's operations make of env's state, as a map with env's names; room in env for it. */
RV_MUST_CHECK int fork_prepare_state(rv_envelope *env, const rv_envelope *fork, struct rv_map *merged, rv_err **err);
void fork_commit_state(rv_envelope *env, const rv_envelope *fork, const struct rv_map *merged);
RV_MUST_CHECK int fork_prepare_records(rv_envelope *env, const rv_envelope *fork, rv_err **err);
void fork_commit_records(rv_envelope *env, rv_envelope *fork);
void fork_commit_counters(rv_envelope *env, const rv_envelope *fork);
void fork_commit_termination(rv_envelope *env, rv_envelope *fork);
/** Append what the fork's list has from `first` on; all or nothing. */
RV_MUST_CHECK int fork_append_list(rv_envelope *env, const rv_envelope *fork, enum rv_list_id id, size_t first,
                                   rv_err **err);
void env_list_cut(json_object *list, size_t n); /* to n elements at most */

/* stages.c */
const struct rv_record *env_record(const rv_envelope *env, size_t i); /* through a fork */

/* interrupt.c */
const struct rv_stored_interrupt *env_interrupt(const rv_envelope *env); /* through a fork */
void env_interrupt_fini(struct rv_stored_interrupt *it);
/** stage: for one that has none of its own; ptr NULL: none. */
void env_interrupt_write(const struct rv_stored_interrupt *it, rv_str stage, rv_jw *w);
/** All open questions as a list, the pending one first. */
void env_interrupts_write(const rv_envelope *env, rv_jw *w);
/** The same as a value; the caller's. */
RV_MUST_CHECK int env_interrupt_json(const struct rv_stored_interrupt *it, json_object **out, rv_err **err);
#define RV_QUEUED_INTERRUPTS "queued_interrupts" /* metadata: those that wait behind the pending one */
RV_MUST_CHECK int env_interrupt_copy(const struct rv_stored_interrupt *from, bool deep, struct rv_stored_interrupt *to,
                                     rv_err **err);

/* state_write.c: the rows of the state dict, for writing, loading and patching */
enum rv_row_kind {
    RV_ROW_TEXT,      /* at: rv_text_id */
    RV_ROW_TEXT_NULL, /* the same, may be null */
    RV_ROW_COUNT,     /* at: offset of an int64_t in the fields */
    RV_ROW_TIME,
    RV_ROW_TIME_NULL, /* 0 is null */
    RV_ROW_BOOL,
    RV_ROW_REASON,
    RV_ROW_STATUS,
    RV_ROW_STAGE,
    RV_ROW_OUTPUTS,  /* at: rv_map_id; values are objects or null */
    RV_ROW_VALUES,   /* any value */
    RV_ROW_WORK,     /* any value but null */
    RV_ROW_SET,      /* true */
    RV_ROW_TEXT_MAP, /* strings */
    RV_ROW_COUNTS,   /* counters */
    RV_ROW_EDGES,    /* list of {from, to, count} */
    RV_ROW_TEXTS,    /* at: rv_list_id; strings */
    RV_ROW_OBJECTS,  /* objects or null */
    RV_ROW_ERRORS,
    RV_ROW_RECORDS,
    RV_ROW_INTERRUPT,
    RV_ROW_USAGE,      /* left out while nothing was used */
    RV_ROW_BRANCHES,   /* left out where there are none */
    RV_ROW_INTERRUPTS, /* all open questions, from other rows: written while branches wait, never read */
    RV_ROW_WITHDRAWN,  /* strings; left out where there are none */
};
enum rv_row_patch { RV_PATCH_SET, RV_PATCH_MERGE, RV_PATCH_SAME };
struct rv_row {
    const char *key; /* static */
    enum rv_row_kind kind;
    size_t at;
    enum rv_row_patch patch;
};
const struct rv_row *env_state_rows(size_t *n);

/* state_load.c */
/** Read the rows that are present into a blank envelope; bit i of *present says that row i was. */
RV_MUST_CHECK int env_state_read(json_object *state, int64_t now_us, rv_envelope *env, uint64_t *present, rv_err **err);

/** An interrupt of a state dict; *it is zeroed before, and what was read is its owner's after a failure too. */
RV_MUST_CHECK int env_read_interrupt(json_object *v, struct rv_stored_interrupt *it, rv_err **err);

#endif
