/* Shared by the files of this capability. */
#ifndef FILES_INTERNAL_H
#define FILES_INTERNAL_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stddef.h>

#include <reeve/capability.h>

#define MAX_ROOTS        32    /* folders and files that may be read: each is an open descriptor */
#define MAX_PATH_BYTES   1024  /* of a path in arguments and answers: a quarter of PATH_MAX, for the root adds to it */
#define MAX_FILES        20000 /* of one walk: their paths are in memory, at most 20 MB */
#define MAX_WALK_DEPTH   32    /* folders below each other: each is an open descriptor, and the walk calls itself */
#define MAX_SEARCH_BYTES (64u << 20) /* of all files that one search reads: about a second */
#define MAX_LISTED       1000        /* files in one answer of list_files: the answer goes to a model */
#define MAX_READ_LINES   2000        /* lines in one answer of read_file: the answer goes to a model */
#define MAX_TERMS        48          /* words of one query: a sentence or two; each is looked for in each passage */
#define MAX_WORD         64          /* bytes of a word that is compared: real words are shorter; longer ones are cut */
#define MAX_SNIPPET      700         /* bytes of a passage shown in a hit: a paragraph */
#define MAX_RESULTS      50          /* hits of one search: with MAX_SNIPPET each, 35 KB for a model */
#define ATTEMPTS         3           /* of the question's search: the plain one and two wider ones */

/* A folder or a file that may be read. */
struct root {
    char *label; /* first part of its paths; "" for the pipeline's own folder; owned */
    int fd;      /* the folder; for a single file the folder it is in */
    char *file;  /* NULL for a folder; owned */
};

struct files { /* the capability's state; constant after open */
    struct root roots[MAX_ROOTS];
    size_t n_roots;
    size_t max_file_bytes, max_results;
    bool no_openat2; /* the kernel does not have it: components are walked one by one */
};

/* --- root.c --- */
/** Add a root; false with a reason in error. */
bool root_add(struct files *f, const char *base_dir, const char *path, char *error, size_t error_size);
void roots_close(struct files *f);
struct place {
    const struct root *root;  /* borrowed */
    char rel[MAX_PATH_BYTES]; /* below the root's folder; "." for itself */
};
/** Which root, and where below it. On failure the call has been failed with the reason; call may be NULL. */
bool place_of(const struct files *f, struct rv_cap_call *call, const char *path, struct place *out);

/* --- open_beneath.c --- */
/** Open rel below dir without leaving it; -1 and errno (EXDEV, ELOOP: it would leave). */
int open_beneath(const struct files *f, int dir, const char *rel, int flags);
/** Open the folder of a place and give its last part, for changes by name. */
int open_parent(const struct files *f, const struct place *place, char *name, size_t name_size);
/** Read a regular text file; free() it. NULL: the reason is in *why (a static text) and *type (an error type). */
bool is_text(const char *s, size_t len); /* UTF-8 without NULs */
char *read_text(const struct files *f, const struct place *place, size_t *len, const char **type, const char **why);

/* --- glob.c --- */
/** `*` and `?` stay within one part, `**` crosses parts; a pattern without a slash is for the last part. */
bool glob_match(const char *pattern, const char *path);

/* --- walk.c --- */
struct walked {
    char **paths; /* sorted within each root, in the order of roots; owned */
    size_t n, cap;
    bool truncated, failed; /* more than MAX_FILES, too deep or too long a path; out of memory */
    int error;              /* an errno: the list ends early, because a folder could not be read to its end; 0: none */
    char unread[MAX_PATH_BYTES]; /* that folder */
};
void walk_all(const struct files *f, const struct rv_cap_call *call, const char *glob, struct walked *out);
int walk_failed(const struct walked *w, struct rv_cap_call *call); /* fails the call for w->error */
void walked_fini(struct walked *w);

/* --- words.c --- */
struct words {
    char item[MAX_TERMS][MAX_WORD]; /* folded, each once, in order */
    char seen[MAX_TERMS][MAX_WORD]; /* as written, lower case */
    size_t n;
};
/** The next word of text from *at; its folded form in word. False at the end. */
bool next_word(const char *text, size_t len, size_t *at, char word[MAX_WORD], char written[MAX_WORD]);
bool is_stop_word(const char *written);
/** All content words of a text. */
void words_of(const char *text, size_t len, struct words *out);
int words_find(const struct words *words, const char *word); /* -1: not there */
/** Words that mean nearly the same as the folded word, NULL-terminated and folded; NULL: none known. */
const char *const *synonyms_of(const char *word);

/* --- passages.c --- */
struct passage {
    const char *text; /* into the file's bytes; borrowed */
    size_t len;
    int line, end_line; /* from 1, both included */
    bool is_code;       /* in a fence of a Markdown file */
    char heading[256];  /* titles above it, outermost first */
};
struct passages {
    const char *text; /* borrowed */
    size_t len, at;
    int line;
    bool is_markdown, in_fence;
    char titles[6][80]; /* per level */
};
void passages_begin(struct passages *p, const char *path, const char *text, size_t len);
bool passages_next(struct passages *p, struct passage *out);

/* --- json.c: arguments in, answers out. `failed` is sticky, so that a builder checks once. --- */
json_object *json_of(const char *text);            /* what the host gave; NULL: no memory, or no JSON */
json_object *args_parse(struct rv_cap_call *call); /* NULL: the call has been failed */
const char *arg_path(json_object *args); /* "path"; NULL: absent, or cut short by a NUL: no other file is meant */
const char *arg_text(json_object *args, const char *key); /* NULL: absent or no string */
int64_t arg_int(json_object *args, const char *key, int64_t otherwise);
json_object *arg_in(json_object *args, const char *path); /* "envelope.outputs.plan"; NULL: absent */
void put(bool *failed, json_object *obj, const char *key, json_object *value);
void push(bool *failed, json_object *arr, json_object *value);
#define DECIMAL_MAX 64                                   /* bytes of a number with two decimals, with the NUL */
void write_decimal(double value, char out[DECIMAL_MAX]); /* with a point, whatever the locale */
json_object *new_decimal(double value);                  /* two digits */
json_object *new_text(const char *text, size_t len);
/** Answer with obj, which is taken; failed: out of memory. */
int reply_take(struct rv_cap_call *call, json_object *obj, bool failed);
/* A text that grows; failed is sticky. */
struct text {
    char *ptr; /* owned */
    size_t len, cap;
    bool failed;
};
void text_add(struct text *t, const char *bytes, size_t len);
void text_puts(struct text *t, const char *text);
void text_printf(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* --- entries --- */
int list_files(void *self, struct rv_cap_call *call);
int search_files(void *self, struct rv_cap_call *call);
int read_file(void *self, struct rv_cap_call *call);
int write_file(void *self, struct rv_cap_call *call);
int delete_file(void *self, struct rv_cap_call *call);
int plan_search(void *self, struct rv_cap_call *call);
int judge_coverage(void *self, struct rv_cap_call *call);
int write_answer(void *self, struct rv_cap_call *call);

#endif
