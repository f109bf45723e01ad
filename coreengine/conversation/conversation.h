/* Conversations: who asks, the state of routing between agents, and the memory of a session. messages.h: the rows of a
 * session, and what of them a model is told. */
#ifndef RV_CONVERSATION_CONVERSATION_H
#define RV_CONVERSATION_CONVERSATION_H

#include "coreengine/conversation/messages.h"

/* Memory of a session: what older turns come to, and how a model is told. Pure: no store, no clock.
 *
 * When enough tokens of a session are not covered yet, its messages become a chunk: a moment of type session_chunk,
 * made without a model from the answers. When a turn begins, the newest moments of the session are put before its
 * history as system messages, and, where it is wanted, older answers become hints at the chunk that covers them. What a
 * run was told is kept with the run as notes, so that a later change of a moment changes no replay. */

#define RV_MOMENT_MAX_HINT   120  /* code points of a summary in a hint: a line */
#define RV_MOMENT_MAX_KEYS   10   /* of metadata.resource_keys: they go into each request */
#define RV_MOMENT_MAX_COVERS 64   /* chunks to which one history refers: older ones are found by search */
#define RV_CHUNK_MAX_SUMMARY 2000 /* code points: it can go into each request */
#define RV_CHUNK_MAX_LATEST  200  /* code points in the session's metadata: each turn reads it */
#define RV_CHUNK_TYPE        "session_chunk"
#define RV_CHUNK_NAME_MAX    128       /* bytes: "session-", a hash, a date, "-chunk-" and a number */
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
void rv_chunk_write_summary(const struct rv_chunk *c, rv_buf *out);
/** "session-<6 hex>-<YYYYMMDD>-chunk-<index>". hex: how many digits; more where another session has that name. */
void rv_chunk_make_name(const char *session, int64_t first_us, int64_t index, int hex, char out[RV_CHUNK_NAME_MAX]);
/** The id that follows from the session's id and the index, the same for every owner. */
void rv_chunk_make_id(const char *session, int64_t index, char out[37]);
/* What it points to is borrowed for the call. */
struct rv_chunk_place {
    const char *session, *name;
    const char *previous;   /* name of the chunk before; NULL: none */
    const char *summariser; /* agent that is to write its summary; NULL: none */
    int64_t index, total_tokens;
};
/** The row of the moment, and what the session's metadata get; both are the caller's. */
RV_MUST_CHECK int rv_chunk_build_row(const struct rv_chunk *c, const struct rv_chunk_place *at, json_object **row,
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
void rv_moment_write(json_object *row, rv_buf *out);

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
int64_t rv_moment_write_hint(json_object *notes, int64_t seq, int64_t created_us, bool names_keys, rv_buf *out);
size_t rv_moments_n(json_object *notes); /* that are injected */

/* The agent context (which user asks, in which conversation, through which agent), the text that a model sees about it
 * (the second layer of a prompt), and the state of routing between agents. These are values, and the module is pure: it
 * uses no clock, no store and no globals. A child's context is made from its parent's and dies with the child, so there
 * is nothing to restore. */

/* --- The agent context --- */
#define RV_CONTEXT_MAX_TEXT 256  /* bytes of each text but the hint: ids, names and addresses are shorter */
#define RV_CONTEXT_MAX_HINT 2000 /* bytes: what is known of a user goes into each prompt */
/* Texts are borrowed. NULL: not known; an empty text counts as not known everywhere. */
struct rv_context {
    const char *user_id;   /* NULL: anonymous */
    const char *tenant_id; /* never NULL in a context that was made: "default" */
    const char *session_id;
    const char *default_model; /* "provider:model" */
    const char *agent_schema_uri;
    bool is_eval;
    const char *client_id; /* "web", "mobile", "cli", "api" */
    const char *user_profile_hint;
    const char *user_email, *user_name;
};
struct rv_context_header {
    rv_str name, value; /* names are matched without regard to case */
};
/* What it points to is borrowed for the call. */
struct rv_context_source {
    const struct rv_context_header *headers;
    size_t n_headers;
    const char *default_model; /* of the settings */
    /* The authenticated user; NULL or empty: none. Wins over headers, for the user and for the tenant. */
    const char *auth_user_id, *auth_tenant_id, *auth_email;
};
/** X-User-Id, X-Tenant-Id, X-Session-Id, X-Model-Name, X-Agent-Schema, X-Is-Eval, X-Client-Id, X-User-Email,
 *  X-User-Name. is_eval: exactly true, 1 or yes, in any case. Values are copied into room (which the caller keeps).
 *  RV_E_INVALID: a value that is not UTF-8, has control characters, is too long, or differs from an earlier one of the
 *  same header. A user who was authenticated by an e-mail address only gets the id that belongs to the address;
 *  X-User-Email counts only when no user was authenticated. */
RV_MUST_CHECK int rv_context_read_headers(const struct rv_context_source *from, rv_arena *room, struct rv_context *out,
                                          rv_err **err);
/** The child's: everything of the parent but the agent and the model, where they are given (not NULL, not empty). */
struct rv_context rv_context_child(const struct rv_context *parent, const char *agent, const char *model);
void rv_context_write_json(const struct rv_context *c, rv_jw *w);
/** Tells whether it could be read back: each text is UTF-8 in one line (the hint: in lines) and not too long. */
RV_MUST_CHECK int rv_context_check(const struct rv_context *c, rv_err **err);
/** Reads known members only; strict: unknown members and wrong types are RV_E_INVALID. Borrows from json. */
RV_MUST_CHECK int rv_context_read_json(json_object *json, struct rv_context *out, rv_err **err);
/** The user id that belongs to an e-mail address: UUIDv5 (DNS) of the trimmed address in lower case. */
void rv_user_id_make(rv_str email, char out[37]);

/* --- Ids that follow from names --- */
/** UUIDv5 of "TABLE:KEY:USER" in the namespace of p8.dev; user NULL: "". */
void rv_entity_make_id(const char *table, rv_str key, const char *user, char out[RV_UUID_MAX]);
/** The same of the key that parts[0..n) give one behind the other; no memory is needed for it. */
void rv_entity_make_id_joined(const char *table, const rv_str *parts, size_t n, const char *user,
                              char out[RV_UUID_MAX]);

/* --- Routing between agents --- */
#define RV_ROUTING_STATES(X)                                                                                           \
    X(IDLE, "idle", "the next message is classified")                                                                  \
    X(EXECUTING, "executing", "messages go to the active agent")                                                       \
    X(COMPLETE, "complete", "the active agent has said that it is done")                                               \
    X(REEVALUATE, "re-evaluate", "the active agent has had its turns: the next message is classified")                 \
    X(ESCALATED, "escalated", "the active agent has given up; the fallback serves until the escalation is resolved")
#define RV_ROUTING_CONST(n, t, m) RV_ROUTING_##n,
enum rv_routing_state { RV_ROUTING_STATES(RV_ROUTING_CONST) RV_N_ROUTING_STATES };
#define RV_ROUTING_MAX_NAME 129 /* bytes of an agent's name, with the NUL */
struct rv_routing {
    char active_agent[RV_ROUTING_MAX_NAME]; /* "": none */
    enum rv_routing_state state;
    char fallback[RV_ROUTING_MAX_NAME];
    int64_t turn_count, max_turns;
    char escalation[RV_ROUTING_MAX_NAME]; /* "": none */
};
#define RV_ROUTING_INIT ((struct rv_routing){.state = RV_ROUTING_IDLE, .fallback = "general", .max_turns = 20})
bool rv_routing_needs_classification(const struct rv_routing *r);
/** agent NULL or empty: the fallback; max_turns 0: as it is. Longer names are cut. */
void rv_routing_activate(struct rv_routing *r, const char *agent, int64_t max_turns);
void rv_routing_increment(struct rv_routing *r); /* escalated: counts only */
void rv_routing_complete(struct rv_routing *r);
/** The fallback becomes active; why NULL or empty: the name of the agent that gave up is kept instead. */
void rv_routing_escalate(struct rv_routing *r, const char *why);
void rv_routing_resolve(struct rv_routing *r); /* ends an escalation; nothing in any other state */
/** Members in the order active_agent, state, target, turn_count, max_turns, fallback, escalation, delegation,
 *  transitions. */
void rv_routing_write_json(const struct rv_routing *r, rv_jw *w);
RV_MUST_CHECK int rv_routing_build_value(const struct rv_routing *r, json_object **out,
                                         rv_err **err); /* the same as a value */
/** Lenient, since sessions keep it: what is missing or wrong is the default, an unknown state is idle. */
void rv_routing_read_json(json_object *json, struct rv_routing *out);

/* --- The conversation that a run belongs to --- */
#define RV_CONVERSATION_MAX_NAME      1000                /* bytes of a session's name: it is one line of a list */
#define RV_CONVERSATION_MAX_SECTIONS  16                  /* of one request: they are kept with the run */
#define RV_CONVERSATION_SECTION_BYTES ((size_t)64 * 1024) /* of all sections together */
#define RV_CONVERSATION_MAX_ZONE      (24 * 60 - 1)       /* minutes to either side, as RFC 3339 can write them */
/* With its bundle and the state it begins from, this is what a run needs to be the same again. Borrowed for the run. */
struct rv_conversation {
    struct rv_context context;
    const char *session_name;      /* NULL: none */
    json_object *session_metadata; /* only members that a model may see are shown or written; NULL: none */
    bool has_routing;
    struct rv_routing routing;
    const char **sections; /* added at the end of the instructions, for this run only */
    size_t n_sections;
    int zone_minutes; /* east of UTC: how times are told */
    bool keeps;       /* rows become part of the session */
    int64_t upto_seq; /* the newest row that belongs to history; 0: there is none */
    struct rv_history_opts history_opts;
    char history_hash[RV_HASH_MAX];    /* of the messages' JSON text; "": there are none */
    json_object *history;              /* the messages; not written; NULL: none */
    struct rv_moment_opts moment_opts; /* how `moments` are chosen; not written */
    json_object *moments;              /* notes of what is remembered, part of the history; NULL: none */
    int64_t moment_token_threshold;    /* a turn after which this much is not remembered makes a chunk; 0: none does */
    const char *moment_summariser;     /* agent that writes the summary of such a chunk; NULL: none does */
};
/** Tells whether the written form of the conversation could be read back; check this before making a run with it. */
RV_MUST_CHECK int rv_conversation_check(const struct rv_conversation *c, rv_err **err);
/** All but `history`, and of the metadata only what a model may be shown. */
void rv_conversation_write_json(const struct rv_conversation *c, rv_jw *w);
/** A conversation of its own, with copies of everything; history is NULL. RV_E_INVALID names the member. */
RV_MUST_CHECK int rv_conversation_read_json(json_object *json, struct rv_conversation **out, rv_err **err);
void rv_conversation_free(struct rv_conversation *c); /* of a read one; puts history */
/** Tells whether a model may see that member of a session's metadata, and people may change it: the others are the
 * engine's own. */
bool rv_metadata_is_shown(const char *key);

/* --- Layer 2: what a model is told for one request only; it is not stored --- */
/** [Context], date, time with zone, user, session, agent, session context, routing, sections: the lines of
 *  docs/explanation/three-layers.md. Metadata beyond RV_CONTEXT_MAX_METADATA bytes is left out member by member, and
 *  the text says so. agent NULL: that of the context. c NULL: no user and no session. can_look_up: the agent has a tool
 * that follows keys (RV_LOOKUP_TOOL), and the text mentions it when there are keys. No line feed at the end. */
#define RV_CONTEXT_MAX_METADATA 2000
void rv_instructions_write(const struct rv_conversation *c, const char *agent, bool can_look_up, int64_t now_us,
                           rv_buf *out);
/** JSON with ", " and ": " between, and every code point above ASCII escaped. */
void rv_json_write_spaced(json_object *v, rv_buf *out);

#endif
