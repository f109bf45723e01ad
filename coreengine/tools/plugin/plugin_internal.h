/* Shared by the files of this folder: an opened capability, its entries, and the names of a set. */
#ifndef RV_PLUGIN_INTERNAL_H
#define RV_PLUGIN_INTERNAL_H

#include "capabilities/sdk/capability.h"
#include "config/agentdoc/agentdoc.h"
#include "coreengine/base/base.h"
#include "coreengine/tools/plugin/plugin.h"

#include <pthread.h>

#define RV_PLUGIN_MAX_LOADED     256                 /* capabilities of one pipeline: each is a library or a process */
#define RV_PLUGIN_MAX_NAME       64                  /* bytes of a name: providers refuse longer names of tools */
#define RV_PLUGIN_MAX_TEXT       ((size_t)4 << 10)   /* description, version, failure text: as an error's text */
#define RV_PLUGIN_MAX_SPEC       ((size_t)256 << 10) /* one specification: a model reads it with each request */
#define RV_PLUGIN_MAX_CONFIG     ((size_t)1 << 20)   /* configuration as JSON: as RV_YAML_MAX_BYTES, where it stands */
#define RV_PLUGIN_MAX_ENTRY_SIZE 1024 /* bytes of one row of a later plugin: far above ours; more is damage */
#define RV_PLUGIN_MAX_TIMEOUT_MS ((int64_t)86400000) /* a day: a longer one is a mistake */
#define RV_PLUGIN_MAX_DEPTH      128 /* levels of a reply: half of RV_JSON_MAX_DEPTH; it is put elsewhere */
#define RV_PLUGIN_LOG_LINES      100 /* of one capability in a second; more are counted */
#define RV_PLUGIN_LAST_KIND      RV_CAP_SUBSCRIBER /* of enum rv_cap_kind */

struct rv_plugin;   /* one opened capability */
struct rv_isolated; /* the processes of one that does not share ours */

struct rv_plugin_entry {
    enum rv_name_kind kind;
    rv_cap_fn fn;                  /* NULL for prompts; of an isolated capability it only says that there is one */
    const struct rv_plugin *owner; /* borrowed: it has the entry */
    char *name;                    /* as pipelines say it: tools and probes bare, the rest "capability.name"; owned */
    const char *bare;              /* borrowed from name */
    json_object *spec;             /* owned; texts and schemas below belong to it */
    const char *description;       /* borrowed from spec */
    struct rv_tool_info tool;      /* tools */
    rv_schema *input, *output;     /* owned */
    struct rv_entry_info info;     /* hooks, policies, mocks, routing functions, probes, providers */
    rv_template *prompt;           /* prompts; owned */
    const char *prompt_text;       /* borrowed from spec */
    bool never_blocks;             /* it says so: `blocking: false` */
    struct rv_str_list services;   /* that it may ask; borrowed from the specification */
};

/* An agent is a document: it has no function to call, and a stage cannot name it as it names an entry. */
struct rv_plugin_agent {
    char *text;              /* owned: the document as it was given */
    struct rv_agentdoc *doc; /* owned */
};

struct rv_plugin {
    void *handle;                    /* of dlopen; NULL when isolated, or part of the program; owned */
    struct rv_isolated *isolated;    /* owned; NULL: its code runs in this process */
    struct rv_cap_desc desc;         /* our copy; its pointers live in the shared object */
    struct rv_cap_host host;         /* handed to open, stays valid until close */
    char *name, *path;               /* owned */
    char identity[RV_HASH_MAX];      /* of the path, the folder and the configuration that it was opened with */
    char *version, *description;     /* owned */
    json_object *config_schema_json; /* NULL: takes no configuration; owned */
    rv_schema *config_schema;        /* owned */
    struct rv_plugin_entry *entries; /* owned; the array never moves once the capability is in a set */
    size_t n_entries;
    struct rv_plugin_agent *agents; /* owned */
    size_t n_agents;
    size_t n_rows; /* of desc.entries: both of them, as the capability lists them */
    bool is_open;
    void *self;                        /* the plugin's own state: owned by it; its close() ends it */
    rv_log *log;                       /* borrowed */
    struct rv_plugin_logging *logging; /* owned */
    struct rv_plugin_key *key;         /* owned, what a pool knows it by; NULL: it is its set's alone */
};

/* All names of a set. Each load builds a new table and swaps it in when nothing can fail any more. */
struct rv_plugin_names {
    struct rv_plugin_entry **entries; /* owned array, borrowed entries */
    size_t n_entries;
    rv_index index[RV_N_NAME_KINDS];     /* name -> position in entries */
    const char **lists[RV_N_NAME_KINDS]; /* sorted, owned arrays */
    size_t n_lists[RV_N_NAME_KINDS];
};

struct rv_plugins {
    char **dirs; /* owned copies */
    size_t n_dirs;
    char *base_dir;            /* owned */
    char *host_program;        /* NULL: not given; owned */
    rv_log *log;               /* borrowed */
    rv_plugin_pool *pool;      /* borrowed; NULL: none */
    struct rv_plugin **loaded; /* owned */
    size_t n_loaded;
    struct rv_plugin_names names;
};

/* path.c */
/** Where `name` is: a path (with a slash) as it is, else a name on the path. *out is the caller's. */
RV_MUST_CHECK int plugin_locate(const struct rv_plugins *p, const char *name, char **out, rv_err **err);
bool plugin_name_ok(rv_str name, bool dashes);

/* linked.c */
#define RV_LINKED_FOLDER "built-in/" /* what stands for the folder in the path of a capability of the program */
/** NULL: the program has none of that name. */
const struct rv_capability_linked *plugin_linked(const char *name);

/* check.c */
/** Look at a descriptor as the plugin gave it, in the order in which it may be believed, and copy it. */
RV_MUST_CHECK int plugin_check_desc(const struct rv_cap_desc *given, struct rv_plugin *pl, rv_err **err);
/** Read pl->desc.entries into pl->entries. */
RV_MUST_CHECK int plugin_check_entries(struct rv_plugin *pl, rv_err **err);

/* catalog.c */
/** Read the document of the agent that the capability calls `name`. */
RV_MUST_CHECK int plugin_read_agent(struct rv_plugin_agent *a, const char *name, const char *text, rv_err **err);
void plugin_agents_fini(struct rv_plugin *pl);
/** RV_E_EXISTS when an agent of pl is there already; RV_E_PLUGIN: twice in pl itself. */
RV_MUST_CHECK int plugin_check_agents(const struct rv_plugins *p, const struct rv_plugin *pl, rv_err **err);
/** Names of all of p and of `more` (may be NULL). RV_E_EXISTS says which two capabilities collide. */
RV_MUST_CHECK int plugin_names_build(const struct rv_plugins *p, struct rv_plugin *more, struct rv_plugin_names *out,
                                     rv_err **err);
void plugin_names_fini(struct rv_plugin_names *names);
struct rv_plugin_entry *plugin_find(const struct rv_plugins *p, enum rv_name_kind kind, rv_str name);

/* load.c */
/* Whose code runs on a thread, for the message of a crash; borrowed while it runs. */
struct rv_plugin_mark {
    const char *path;  /* of the capability; NULL: it is the engine's code */
    const char *entry; /* what is called; NULL: it is loaded */
};
/** Mark this thread; returns the mark before, which is set again when that code has returned: calls may be nested. */
struct rv_plugin_mark plugin_mark(const char *path, const char *entry);
/** dlopen() pl->path, unless it is part of the program, and ask for its descriptor. */
RV_MUST_CHECK int plugin_fetch(struct rv_plugin *pl, const struct rv_cap_desc **out, rv_err **err);
RV_MUST_CHECK int plugin_open(struct rv_plugin *pl, const char *base_dir, const char *config, rv_err **err);
void plugin_free(struct rv_plugin *pl); /* closes it, with all that it has */

/* pool.c */
/** One that is open already, with the caller as another user; NULL: there is none. *key: with which the caller may put
 * the one that it opens; NULL: it keeps that one for itself. */
RV_MUST_CHECK int plugin_pool_take(const struct rv_plugins *p, const struct rv_capability_config *which,
                                   const char *path, struct rv_plugin_key **key, struct rv_plugin **out, rv_err **err);
/** Share pl, which is open, has a key, and has the caller as its user. */
void plugin_pool_put(rv_plugin_pool *pool, struct rv_plugin *pl);
/** One user less. */
void plugin_pool_return(rv_plugin_pool *pool, struct rv_plugin *pl);
const char *plugin_key_base_dir(const struct rv_plugin_key *key);
void plugin_key_free(struct rv_plugin_key *key);

/* provider.c */
enum rv_piece_fault { RV_PIECE_GOOD, RV_PIECE_NULL, RV_PIECE_LARGE, RV_PIECE_LATE, RV_N_PIECE_FAULTS };
/* The pieces that a call of a provider has handed out so far, counted in the engine's process: a child is not
 * trusted. */
struct rv_plugin_pieces {
    const struct rv_plugin_call *call; /* borrowed */
    bool enough;                       /* the caller wants no more pieces */
    int rc;                            /* of the first piece that was none; 0: all were good */
    rv_err *err;                       /* owned */
};
void plugin_pieces_fini(struct rv_plugin_pieces *p);
/** Check the next piece and pass it on. Returns true when no more pieces are wanted. */
bool plugin_piece(struct rv_plugin_pieces *p, rv_str json);
/** 0, or RV_E_PLUGIN and what was wrong with a piece: as seen here, or where the function ran. */
RV_MUST_CHECK int plugin_pieces_check(struct rv_plugin_pieces *p, enum rv_piece_fault fault, rv_err **err);
RV_MUST_CHECK int plugin_pieces_fail(enum rv_piece_fault fault, rv_err **err);

/* work.c: answers that come after the function of the call has returned */
/** A ticket for the call; 0: it has to be answered at once, or too many tickets of the capability are open. */
uint64_t plugin_late_take(const struct rv_plugin_entry *e, struct rv_plugin_work *w);
void plugin_late_return(struct rv_plugin_work *w); /* the call was answered at once: the ticket ends none */
/** The capability was closed: its tickets end no call. True: it has some left, and perhaps threads. */
bool plugin_late_close(const struct rv_plugin *pl);
bool plugin_late_any(const struct rv_plugin *pl); /* has it tickets that it has not answered? */
void plugin_late_offer(struct rv_cap_host *host); /* the functions that end a call */

/* attachments.c */
/* What a hook is shown of a request's images and files; zeroed: not asked for yet. */
struct rv_plugin_attached {
    bool is_read, is_short; /* is_short: there was no memory to read them */
    json_object *args;      /* owned: the items borrow from it */
    uint32_t n;
    struct rv_cap_attachment items[RV_CAP_MAX_ATTACHMENTS];
};
#define RV_PLUGIN_MAX_SHOWN       (32 * RV_JSON_MAX_BYTES) /* bytes: as MAX_SHOWN of agent/call_hooks.c */
#define RV_PLUGIN_MAX_SHOWN_DEPTH (2 * RV_JSON_MAX_DEPTH)  /* levels: a schema within an entry, as it is printed */
const struct rv_cap_attachment *plugin_attached(struct rv_plugin_attached *a, const char *args, uint32_t *n);
/** The reply of a hook that gives this list. items[0..n) are the capability's: texts may be anything. out is bounded by
 * the caller. */
void plugin_write_attachments(const struct rv_plugin_attached *a, const struct rv_cap_attachment *items, uint32_t n,
                              rv_buf *out);
void plugin_attached_fini(struct rv_plugin_attached *a);

/* ask.c */
/* What a call has asked so far. Zeroed: nothing. */
struct rv_plugin_asks {
    int n;
    size_t n_bytes;                   /* of the answers */
    struct rv_plugin_answer *answers; /* owned */
    const char *failure;              /* the last one; one of the answers; borrowed */
};
struct rv_plugin_callbacks;
/** Ask as struct rv_cap_call says. Any texts, NULL too. *answer lives until plugin_asks_fini(). */
int plugin_ask(struct rv_plugin_asks *a, const struct rv_plugin_callbacks *callbacks, const char *service,
               const char *args, const char **answer);
void plugin_asks_fini(struct rv_plugin_asks *a);
/* What a call of a plugin asks of the engine. Borrowed for the call. */
struct rv_plugin_request {
    const char *service;
    rv_str args; /* JSON text of an object */
    int64_t until_us;
};
/** In the engine's process: have the caller's engine answer. until_us: of the system's clock; RV_NEVER: no limit. */
RV_MUST_CHECK int plugin_pass_on(const struct rv_plugin_entry *e, const struct rv_plugin_call *call,
                                 const struct rv_plugin_request *request, rv_buf *answer, rv_err **err);

/* call.c */
/* The actions of a capability in one call, besides the bytes of its reply. Judged after the call, by the engine's
 * process. */
struct rv_plugin_said {
    int n_replies, n_failures, returned;
    bool no_text, too_large;
    enum rv_piece_fault piece_fault; /* the first one */
    char type[RV_PLUGIN_MAX_NAME + 1];
    char message[RV_PLUGIN_MAX_TEXT + 1];
};
/* Whom a running call can turn to. */
struct rv_plugin_callbacks {
    bool (*cancelled)(void *self);
    void (*log)(void *self, enum rv_log_level level, const char *text); /* the text is clean */
    bool (*emit)(void *self, rv_str json); /* any bytes within the limit; returns true when no more pieces are wanted */
    void (*progress)(void *self, const struct rv_tool_progress *p); /* finite numbers, and a clean text */
    /** Ask a service; blocks. The name and the size of the arguments are good. */
    int (*ask)(void *self, const char *service, rv_str args, rv_buf *answer, rv_err **err);
    void *self; /* borrowed for the call */
};
/** Run the entry's function in this process; args ends with NUL. The reply is appended to out. */
void plugin_run(const struct rv_plugin_entry *e, const struct rv_plugin_call *call, const char *args,
                const struct rv_plugin_callbacks *callbacks, rv_buf *out, struct rv_plugin_said *said);
/** Note a reply and append it to out; any text, NULL too. Returns true when it is refused. */
bool plugin_said_reply(struct rv_plugin_said *said, rv_buf *out, const char *json);
/** What the capability did in a call whose reply begins at `start` of out. A reply is one strict JSON object within the
 * limits, and of a probe one of its three answers. RV_E_TOOL, RV_E_PLUGIN say why not. */
RV_MUST_CHECK int plugin_judge(enum rv_name_kind kind, const struct rv_plugin_said *said, const rv_buf *out,
                               size_t start, rv_err **err);
/** Note a failure; texts may be anything. */
void plugin_said_failure(struct rv_plugin_said *said, const char *type, const char *message);
/** Copy for people: UTF-8, without control characters. Cuts at size. */
void plugin_clean(char *out, size_t size, const char *text);
/** RV_E_NOT_FOUND: no entry of that kind and name; the hint has the nearest one. */
RV_MUST_CHECK int plugin_fail_unknown(const rv_plugins *p, enum rv_name_kind kind, const char *name, rv_err **err);

struct rv_plugin_logging *plugin_logging_new(void); /* NULL: no memory */
/** Tells what was left out since it was told last. */
void plugin_logging_fini(struct rv_plugin *pl);
/** A log line of an entry, unless its capability has had too many just now; the text may be anything. */
void plugin_log(const struct rv_plugin_entry *e, const struct rv_plugin_call *call, enum rv_log_level level,
                const char *text);

/* isolated.c */
/** Start the process that loads pl->path; the descriptor is what that process says. */
RV_MUST_CHECK int plugin_isolated_fetch(const struct rv_plugins *p, const struct rv_capability_config *which,
                                        struct rv_plugin *pl, const struct rv_cap_desc **out, rv_err **err);
/** Open it there. The bytes of config are taken. */
RV_MUST_CHECK int plugin_isolated_open(struct rv_isolated *iso, rv_buf *config, rv_err **err);
void plugin_isolated_free(struct rv_isolated *iso);

/* isolated_call.c */
/** One call in a process of its own. *said is filled when this gives 0. */
RV_MUST_CHECK int plugin_isolated_call(const struct rv_plugin_entry *e, struct rv_plugin_pieces *pieces, rv_buf *out,
                                       struct rv_plugin_said *said, rv_err **err);

#endif
