/* Shared by the files of yaml only. */
#ifndef RV_YAML_INTERNAL_H
#define RV_YAML_INTERNAL_H

#include <yaml.h>

#include "coreengine/lang/yaml.h"

struct rv_yaml {
    rv_arena *arena;            /* dies with the document: nodes, texts, the name; owned */
    const char *name;           /* in the arena, as root */
    const struct rv_node *root; /* in the arena */
};

struct rv_anchor {
    rv_str name;          /* arena */
    struct rv_node *node; /* in the arena; NULL while its own content is being read */
    size_t n_nodes;       /* the node and its descendants, aliases expanded */
    int height;           /* levels */
};
struct rv_anchors {
    struct rv_anchor *items; /* owned; RV_YAML_MAX_ALIASES of them once one is needed */
    size_t n;
};

/** Read the text's only document into doc. *is_whole false: a finding says what ended the reading. RV_E_NOMEM. */
int lang_yaml_read_nodes(struct rv_yaml *doc, rv_str text, rv_findings *findings, bool *is_whole);

/** Decide the kind of an unquoted scalar and fill in kind, i64 and f64 (YAML 1.2 core rules). */
void lang_scalar_resolve(struct rv_node *node);

/** Byte offset of the first character of a line (from 1) at or after *offset, which stands on line *line; both advance.
 */
void lang_yaml_seek_line(rv_str text, int target_line, int *line, size_t *offset);
/* The innermost list or map in brackets that is open. */
struct rv_yaml_flow {
    bool is_open, is_map;
    struct rv_src src; /* of its bracket */
};
/** The error at which libyaml stopped, as a finding that a person can act on. */
void lang_yaml_add_syntax(const yaml_parser_t *parser, rv_str text, const struct rv_yaml_flow *flow, const char *name,
                          rv_findings *findings);

/** "a map", "an integer", ...: the kind with its article. */
const char *lang_node_kind_phrase(enum rv_node_kind kind);
/** The word list of a TERM key. */
const struct rv_term_list *lang_key_terms(const struct rv_key *key);

#define LANG_MAX_FINDING 2048 /* bytes of its text or hint: half a screen of a terminal; longer ones are cut */
#define RV_KEYS_MAX_HINT 1200 /* bytes of a hint: MAX_LISTED keys of 40 bytes and the words around them */

/* --- keys_hint.c --- */
/** What to write in the place of a value of another kind than `what`. inner: a key that the wanted map may have, or
 *  NULL. False: nothing can be said. Tells nothing of a hidden value but its kind. */
bool lang_keys_type_hint(const struct rv_key_reader *r, const struct rv_node *node, const char *what, const char *inner,
                         char out[RV_KEYS_MAX_HINT]);
/** A finding for a key that the table does not have, with the one that was probably meant. */
void lang_keys_unknown(struct rv_key_reader *r, const struct rv_node *key, const struct rv_key *keys, size_t n_keys);
/** "keys here: a, b"; of a long table the keys that are most like the word, and the page that has all. */
void lang_keys_list(const struct rv_key_reader *r, rv_str word, const struct rv_key *keys, size_t n_keys,
                    char hint[RV_KEYS_MAX_HINT]);
void lang_keys_append_name(char hint[RV_KEYS_MAX_HINT], size_t *len, bool first, const char *name);

#endif
