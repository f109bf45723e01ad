/* Shared by the files of this folder: the texts of a context as rows, and the rules for a text. */
#ifndef RV_CONTEXT_INTERNAL_H
#define RV_CONTEXT_INTERNAL_H

#include "coreengine/conversation/conversation.h"

/* One text of a context: how JSON and HTTP call it, where it is, what fits. What it points to is static. */
struct rv_context_member {
    const char *name;
    const char *header; /* NULL: no header sets it */
    size_t at;          /* offset of the pointer in struct rv_context */
    size_t max;         /* bytes */
    bool has_lines;     /* the value may contain line feeds and tabs */
};
#define RV_N_CONTEXT_MEMBERS 9 /* rows of the table */
extern const struct rv_context_member conversation_context_members[RV_N_CONTEXT_MEMBERS];
#define RV_DEFAULT_TENANT "default"

const char **conversation_context_slot(struct rv_context *c, const struct rv_context_member *m);

static inline bool conversation_has_text(const char *text)
{
    return text && text[0] != '\0';
}

/** The string of a JSON member as C text, NULL for null and for none; RV_E_INVALID: another type, or a NUL inside. */
RV_MUST_CHECK int conversation_text_of_json(json_object *v, const char *what, const char **out, rv_err **err);
/** Append in one line: what would break it becomes a blank. */
void conversation_text_line(rv_buf *out, rv_str text);

/** Tells whether a model may see any of a session's metadata. NULL: no. */
bool conversation_metadata_has_shown(json_object *metadata);
/** The part of a session's name that is shown and kept. */
rv_str conversation_session_name_of(const struct rv_conversation *c);

#endif
