/* Shared by the files of this folder. */
#ifndef RV_AGENTS_INTERNAL_H
#define RV_AGENTS_INTERNAL_H

#include "coreengine/app/agents/agents.h"

#define RV_AGENTS_KIND "agent" /* of rows of the store */
/* five minutes: after that a document that was changed by another process is read again */
#define RV_AGENTS_TTL_US    (5 * RV_US_PER_MIN)
#define RV_AGENTS_MAX_CACHE 256  /* answers that are kept: they are in memory; the oldest goes */
#define RV_AGENTS_MAX_FILES 1000 /* documents of one folder: each is looked at for every answer */
#define RV_AGENTS_MAX_PATH  4096 /* bytes, as Linux has it */

/* One cached agent, as one user sees it. */
struct rv_agents_entry {
    char *text; /* owned */
    size_t len;
    struct rv_agentdoc *doc; /* owned */
    const char *source;      /* static */
    char *place;             /* owned */
};
void agents_entry_fini(struct rv_agents_entry *agent);

/* A document of a store that was read a short time ago. Its texts are owned. */
struct rv_agents_kept {
    char *name, *tenant, *user; /* user NULL: all of the tenant */
    int64_t until_us;
    struct rv_agents_entry agent;
};
struct rv_agents_cache {
    struct rv_agents_kept *items[RV_AGENTS_MAX_CACHE]; /* the oldest first; owned */
    size_t n;
};
/* files.c */
/* A file of a folder of agents. Its texts are owned. */
struct rv_agents_file {
    char *path;
    int64_t mtime_ns, size;
    uint64_t inode;
    char *name; /* of the agent; NULL: it could not be read */
    char *text; /* NULL: it could not be read */
    size_t len;
    rv_err *fault; /* NULL: it is a document; owned */
};
struct rv_agents_files {
    struct rv_agents_file *items; /* folder by folder, *.yaml before *.yml, by name; owned */
    size_t n, cap;
    bool was_read;
    int64_t read_us;
};
void agents_files_fini(struct rv_agents_files *f);
/** Read the folders again if something in them has changed, or it is long ago. *changed: they were read. */
RV_MUST_CHECK int agents_refresh_files(rv_agents *a, int64_t now_us, bool *changed, rv_err **err);
const struct rv_agents_file *agents_find_file(const rv_agents *a, const char *name); /* NULL: none */

/* agents.c */
/** As rv_agents_find(), without the cache. registers: a source's text goes into the store. On RV_E_INVALID everything
 * but the document is in *out all the same, which the caller ends in any case. */
RV_MUST_CHECK int agents_look_up(rv_agents *a, const struct rv_store_scope *scope, const char *name, bool registers,
                                 struct rv_agents_entry *out, rv_err **err);
/** Forget answers that have changed since, and read the folders if necessary. */
RV_MUST_CHECK int agents_catch_up(rv_agents *a, rv_err **err);

/* list.c */
/** RV_E_NOT_FOUND with what helps. */
RV_MUST_CHECK int agents_fail_unknown(rv_agents *a, const struct rv_store_scope *scope, const char *name, rv_err **err);

struct rv_agents {
    rv_store *store;     /* borrowed; NULL: none */
    rv_plugins *plugins; /* borrowed; NULL: none */
    char **dirs;         /* owned copies */
    size_t n_dirs;
    bool registers, is_unkept, obeys_env;
    struct rv_clock clock;
    rv_log *log; /* borrowed */
    int64_t schemas_version;
    bool is_held, is_fresh; /* see rv_agents_hold(); is_fresh: it was looked since */
    struct rv_agents_files files;
    struct rv_agents_cache cache;
};

#endif
