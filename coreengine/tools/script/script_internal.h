/* Shared by the files of script only: a script as it stands in memory. */
#ifndef RV_SCRIPT_INTERNAL_H
#define RV_SCRIPT_INTERNAL_H

#include "coreengine/tools/script/script.h"

#define RV_SCRIPT_MAX_ARENA ((size_t)64 << 20) /* bytes: far above what a file of RV_YAML_MAX_BYTES can need */

/* One entry, ready to be handed out. Texts live in the arena. */
struct script_entry {
    const char *stage, *tool, *contains, *branch; /* matchers; NULL: any. tool: or hook */
    const char *request;                          /* matcher of a MODEL: rv_script_request_make_key(); NULL: any */
    int64_t visit;                                /* matcher; 0: any */
    int64_t index;                                /* matcher; -1: any */
    bool used;
    bool failed, retryable;
    const char *error_type, *error; /* of one that failed */
    rv_str body;
    struct rv_script_delta *deltas; /* in the arena */
    size_t n_deltas;
    int64_t delay_ms;
    struct rv_llm_answer answer; /* its views live in the arena */
    struct rv_src src;
};

/* The entries for one name, or all of a flat section. */
struct script_list {
    const char *name;           /* NULL: flat; borrowed from the document */
    struct script_entry *items; /* in the arena */
    size_t n, first_unused;     /* all before it are used */
    struct rv_src src;
};

struct script_section {
    struct script_list *lists; /* in the arena */
    size_t n;
    bool is_flat; /* one list, entries say what they are for */
    rv_index by_name;
};

/* A tool that the script knows, declared or not. */
struct script_tool {
    struct rv_tool_info info;
    rv_schema *input; /* owned; NULL: anything */
    struct rv_src src;
};

struct script_answer {
    struct rv_response response; /* data and arguments are owned */
    int64_t delay_ms;
    const char *stage; /* matcher; NULL: any; borrowed from the document */
    bool used;
};
/* A question that waits. */
struct script_question {
    char *id, *stage; /* owned */
};

struct rv_script {
    rv_arena *arena;            /* owned: entries and texts */
    rv_yaml *doc;               /* owned; NULL: the script was made from a node of the caller's document */
    const struct rv_node *root; /* of doc, or of the caller's document, which outlives the script */
    rv_str text;                /* that doc was read from, in the arena */
    struct script_section sections[RV_N_SCRIPT_KINDS];
    struct script_tool *tools; /* in the arena; their schemas are owned */
    const char **tool_names;   /* sorted; in the arena */
    size_t n_tools;
    rv_index tool_index;
    struct script_answer *answers;     /* in the arena */
    size_t n_answers, next_answer;     /* all before next_answer are used */
    struct script_question *questions; /* owned */
    size_t n_questions;
    bool repeat;
    bool leaves_models;  /* rv_script_leave_models() */
    bool knows_requests; /* an entry has the matcher `request` */
    bool reads_stages;   /* an entry of a stage has the matcher `contains` */
    size_t n_holes;
    struct rv_tool_source as_source, *sources[1]; /* of the catalog that was asked for last */
    struct rv_tool_set catalog;
};

/* While reading. */
struct script_reader {
    rv_script *s; /* borrowed */
    struct rv_key_reader keys;
    struct rv_src at; /* of the entry that is being made */
};

/* An entry as the tables read it, before it is made ready. Texts live in the arena of the script. */
struct script_raw_error {
    const char *message, *type;
    int kind; /* MODEL: enum rv_llm_error */
    bool recoverable, retryable, has_retryable, billed;
    int64_t status, retry_after_ms;
};
/* Texts live in the arena of the script; JSON is owned until the entry takes it. */
struct script_raw_entry {
    const char *stage, *tool, *contains, *branch, *request;
    int64_t visit, index, delay_ms;
    bool has_index;
    struct rv_src src;
    bool has_error;
    struct script_raw_error error;
    /* model */
    json_object *json; /* owned, as the other values here */
    bool has_json, has_text, has_chunks, has_usage;
    rv_str text, opaque, tool_calls; /* the last two as JSON */
    int finish;                      /* enum rv_finish_reason or RV_UNSET */
    bool has_finish;
    struct script_raw_chunk *chunks; /* in the arena */
    size_t n_chunks;
    struct rv_usage usage;
    const char *answered_by;
    int64_t attempts;
    /* stage */
    json_object *output, *raise_data;
    int outcome, raise_kind;
    const char *raise_question, *raise_message;
    bool has_raise;
    /* tool */
    json_object *result;
    bool has_result;
};
struct script_raw_chunk {
    rv_str text;
    bool has_text, has_thinking, has_delay;
    int64_t delay_ms;
};

/* The tables of an entry, by kind. What it points to is static. */
struct script_table {
    const char *what; /* "model reply" */
    const struct rv_key *keys;
    size_t n_keys;
};
const struct script_table *script_table_of(enum rv_script_kind kind);
extern const struct script_table script_model_table, script_chunk_table, script_call_table, script_answer_table,
    script_tool_table;

/* A declared tool or an answer as it is read. Texts live in the arena of the script; JSON is owned until the tool is
 * made. */
struct script_raw_tool {
    const char *description;
    int risk, effect;
    json_object *input_schema, *confirm;
    const struct rv_node *calls;
};
/* Texts live in the arena of the script; JSON is owned until the answer takes it. */
struct script_raw_answer {
    const char *text;
    int64_t delay_ms;
    int decision;
    bool has_text, approved, has_approved, expires, cancels;
    json_object *data, *arguments;
    const char *choice, *stage;
};
const char *script_decision_text(int decision);

/* The rows that entries of every kind have. */
#define SCRIPT_AT(member) offsetof(struct script_raw_entry, member)
#define SCRIPT_MATCHERS                                                                                                \
    {.name = "stage", .type = RV_KEY_STR, .offset = SCRIPT_AT(stage), .doc = "Matcher: only calls of that stage."},    \
        {.name = "visit",                                                                                              \
         .type = RV_KEY_INT,                                                                                           \
         .offset = SCRIPT_AT(visit),                                                                                   \
         .min = 1,                                                                                                     \
         .max = 1e9,                                                                                                   \
         .doc = "Matcher: only in that visit of the stage, counted from 1."},                                          \
        {.name = "index",                                                                                              \
         .type = RV_KEY_INT,                                                                                           \
         .offset = SCRIPT_AT(index),                                                                                   \
         .is_set_offset = SCRIPT_AT(has_index),                                                                        \
         .min = 0,                                                                                                     \
         .max = 1e9,                                                                                                   \
         .doc = "Matcher: only for that element of the stage's list (for_each), counted from 0."},                     \
        {.name = "branch",                                                                                             \
         .type = RV_KEY_STR,                                                                                           \
         .offset = SCRIPT_AT(branch),                                                                                  \
         .doc = "Matcher: only in the branch of a group that begins with that stage."},                                \
        {.name = "contains",                                                                                           \
         .type = RV_KEY_STR,                                                                                           \
         .offset = SCRIPT_AT(contains),                                                                                \
         .doc = "Matcher: only when the prompt, its attachments, what followed it in the stage, or the arguments "     \
                "contain that "                                                                                        \
                "text."},                                                                                              \
    {                                                                                                                  \
        .name = "delay_ms", .type = RV_KEY_INT, .offset = SCRIPT_AT(delay_ms), .min = 0,                               \
        .max = RV_SCRIPT_MAX_DELAY_MS,                                                                                 \
        .doc = "Time until the answer; with chunks, before each that says none of its own."                            \
    }
#define SCRIPT_ERROR_SCHEMA(members)                                                                                   \
    "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{" members   \
    "}}]}"
/** Reads a map that is the value of a key; path: "error." and the like. */
void script_read_within(struct rv_key_reader *r, const struct rv_node *node, const char *path,
                        const struct rv_key *keys, size_t n, void *target);

/** Make an entry ready from what was read; frees the raw one's values. Faults become findings. */
void script_entry_make(struct script_reader *r, enum rv_script_kind kind, struct script_raw_entry *raw,
                       struct script_entry *out);
void script_raw_fini(struct script_raw_entry *raw); /* its values */
/** The text of a buffer in the arena, and the buffer is freed; false: a finding was made, or memory is short. */
bool script_keep(struct script_reader *r, rv_buf *b, rv_str *out);
/** The rows of the whole file. */
const struct rv_key *script_all_keys(size_t *n);
void script_questions_fini(rv_script *s);
/** Memory for n items in the arena; NULL is recorded in the reader. */
void *script_array(struct script_reader *r, size_t n, size_t size);

#endif
