/* Memory of a session: what older turns come to, and how a model is told. Pure: no store, no clock.
 *
 * When enough tokens of a session are not covered yet, its messages become a chunk: a moment of type session_chunk,
 * made without a model from the answers. When a turn begins, the newest moments of the session are put before its
 * history as system messages, and, where it is wanted, older answers become hints at the chunk that covers them. What a
 * run was told is kept with the run as notes, so that a later change of a moment changes no replay. */
#ifndef RV_MOMENTS_H
#define RV_MOMENTS_H

#include "coreengine/conversation/messages.h"

#define RV_MOMENT_MAX_HINT   120                /* code points of a summary in a hint */
#define RV_MOMENT_MAX_KEYS   10                 /* of metadata.resource_keys */
#define RV_MOMENT_MAX_INJECT 50                 /* moments in one history */
#define RV_MOMENT_MAX_TOKENS (INT64_C(1) << 20) /* of all moments that a turn is told */
#define RV_MOMENT_MAX_COVERS 64                 /* chunks to which one history refers */
#define RV_CHUNK_MAX_SUMMARY 2000               /* code points */
#define RV_CHUNK_MAX_LATEST  200                /* code points in the session's metadata */
#define RV_CHUNK_TYPE        "session_chunk"
#define RV_CHUNK_NAME_MAX    128       /* bytes */
#define RV_MEMORY_MEMBER     "_memory" /* of a session's metadata: how far its chunks go */

/* --- Chunks --- */
/* How far the chunks of a session go: the watermark. */
struct rv_memory {
    int64_t chunks;      /* how many were made */
    int64_t through_seq; /* number of the last message that they cover */
    int64_t tokens;      /* of the session when the last one was made */
};
/** Lenient: what is missing or wrong is 0. */
void rv_memory_read(json_object *metadata, struct rv_memory *out);
/** Tells whether messages of at least `threshold` tokens are not covered; threshold 0: whether there are new ones. */
bool rv_memory_is_due(const struct rv_memory *m, int64_t total_tokens, int64_t n_messages, int64_t threshold);

struct rv_chunk {
    int64_t n_messages, tokens, from_seq, through_seq, first_us, last_us;
    size_t points; /* of all answers, joined */
    rv_buf head, tail;
};
void rv_chunk_init(struct rv_chunk *c);
void rv_chunk_fini(struct rv_chunk *c);
/** Add the next newer message; copies what it needs. */
void rv_chunk_add(struct rv_chunk *c, const struct rv_message *m);
/** Append the summary: the answers, joined by line feeds; of a longer text the head and the tail. May be empty. */
void rv_chunk_summary(const struct rv_chunk *c, rv_buf *out);
/** "session-<6 hex>-<YYYYMMDD>-chunk-<index>". hex: how many digits; more where another session has that name. */
void rv_chunk_name(const char *session, int64_t first_us, int64_t index, int hex, char out[RV_CHUNK_NAME_MAX]);
/** The id that follows from the session's id and the index, the same for every owner. */
void rv_chunk_id(const char *session, int64_t index, char out[37]);
/* What it points to is borrowed for the call. */
struct rv_chunk_place {
    const char *session, *name;
    const char *previous;   /* name of the chunk before; NULL: none */
    const char *summariser; /* agent that is to write its summary; NULL: none */
    int64_t index, total_tokens;
};
/** The row of the moment, and what the session's metadata get; both are the caller's. */
RV_MUST_CHECK int rv_chunk_row(const struct rv_chunk *c, const struct rv_chunk_place *at, json_object **row,
                               json_object **metadata, rv_err **err);

/* --- What a model is told --- */
struct rv_moment_opts {
    int64_t max_inject; /* moments; 0: none */
    int64_t max_tokens; /* of their text; the oldest are left out first */
};
/* three moments of together two pages of text */
#define RV_MOMENT_OPTS_INIT ((struct rv_moment_opts){.max_inject = 3, .max_tokens = 1500})
/** RV_E_INVALID: a number out of its range, with its key. */
RV_MUST_CHECK int rv_moment_opts_check(const struct rv_moment_opts *o, rv_err **err);
/** Append the text of one moment (a row): [Session context], the summary, its resources, file and topics. */
void rv_moment_text(json_object *row, rv_buf *out);

/* Notes: what a history needs of moments, as a list of objects, oldest first: {name, text?, hint?, from_seq?,
 * through_seq?, starts_us?, ends_us?}. text: injected. The ranges: of a chunk. */
/** Notes of the session's moments, which come newest first. covers: also of chunks that are not injected, for hints.
 *  *out is the caller's; NULL: there is nothing to note. */
RV_MUST_CHECK int rv_moments_note(json_object *const *rows, size_t n, const struct rv_moment_opts *opts, bool covers,
                                  json_object **out, rv_err **err);
/** Tells whether that is a list of notes. */
RV_MUST_CHECK int rv_moments_check(json_object *notes, rv_err **err);
/** Append what stands in the place of an older answer: a hint at the chunk that covers it, else at the newest injected
 *  moment, and at none where no moment is injected. seq 0: not known, the time decides. names_keys false: without the
 *  name for LOOKUP. Returns the tokens that it counts as. */
int64_t rv_moment_hint(json_object *notes, int64_t seq, int64_t created_us, bool names_keys, rv_buf *out);
size_t rv_moments_count(json_object *notes); /* that are injected */

#endif
