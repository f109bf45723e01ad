/* Where agents come from: the store, capabilities, a folder of YAML files, in this order.
 *
 * A name is looked up for a user of a tenant. What was found in a capability or a file is registered in the store on
 * first use, a capability's for everybody and a file's for the user who asked, where it never replaces what a person
 * put there. Answers are kept for five minutes or until a schema changes, by whatever process. Used by one thread. */
#ifndef RV_AGENTS_H
#define RV_AGENTS_H

#include "config/agentdoc/agentdoc.h"
#include "coreengine/store/store.h"
#include "coreengine/tools/plugin/plugin.h"

typedef struct rv_agents rv_agents;

struct rv_agents_opts {
    rv_store *store;         /* borrowed; NULL: none */
    rv_plugins *plugins;     /* borrowed; NULL: none */
    const char *const *dirs; /* folders of *.yaml and *.yml; copied; an empty text counts as none */
    size_t n_dirs;
    bool registers;        /* false: the store is not written */
    bool obeys_env;        /* AGENT_MODEL and its like change what is found: for runs and chats, not for lists */
    bool is_unkept;        /* the store is not one that people know: it ends with the process */
    struct rv_clock clock; /* zeroed: the system's */
    rv_log *log;           /* borrowed; may be NULL */
};
/** opts and its folders are copied; store, plugins and log are borrowed and outlive it. RV_E_NOMEM. */
RV_MUST_CHECK int rv_agents_new(const struct rv_agents_opts *opts, rv_agents **out, rv_err **err);
void rv_agents_free(rv_agents *a);

/* What it points to is borrowed until the next call. */
struct rv_agents_found {
    const struct rv_agentdoc *doc; /* borrowed until the next call */
    rv_str text;                   /* the document as it was given; borrowed, too */
    const char *source;            /* "store", "built-in", "file"; static */
    const char *place;             /* path, capability or id */
};
/** RV_E_NOT_FOUND (says where was looked and names the nearest), RV_E_INVALID: it is there and is none (with place). */
RV_MUST_CHECK int rv_agents_find(rv_agents *a, const struct rv_store_scope *scope, const char *name,
                                 struct rv_agents_found *out, rv_err **err);
/** Until it ends, folders and store are looked at once for what has changed, at the first search, not at each. For the
 * length of a call: a caller that holds on does not see what people change. */
void rv_agents_hold(rv_agents *a, bool holds);
/** The path of a file that also has an agent of that name but is hidden by the one that was found; NULL: none. Borrowed
 * until the next call. An agent that a person put into the store hides others on purpose. */
const char *rv_agents_hidden(const rv_agents *a, const char *name, const struct rv_agents_found *found);
/** Every agent the scope sees, by name, each once (what find would give). A document with faults is listed with doc
 *  NULL and the fault. */
RV_MUST_CHECK int rv_agents_list(rv_agents *a, const struct rv_store_scope *scope,
                                 int (*each)(void *self, const char *name, const struct rv_agents_found *found,
                                             const rv_err *fault, rv_err **err),
                                 void *self, rv_err **err);
/** Tells whether a valid document is usable: the engine has to be able to check the output that it asks for. Findings
 * at its properties. RV_E_NOMEM. */
RV_MUST_CHECK int rv_agents_check(const struct rv_agentdoc *doc, rv_findings *findings, rv_err **err);
/* The document of an agent, as it is given. Texts are borrowed for the call. */
struct rv_agent_text {
    bool user_own; /* the scope's user's own; else everybody's */
    rv_str text;
    const char *file; /* how messages name it */
};
/** Put a document into the store: it is checked first. */
RV_MUST_CHECK int rv_agents_put(rv_agents *a, const struct rv_store_scope *scope, const struct rv_agent_text *given,
                                bool *changed, rv_err **err);
/** Delete what a person stored: the user's own (scope user "" or NULL: everybody's). RV_E_NOT_FOUND: nothing was, or
 * the agent is built in or in a file. For handles with a store. */
RV_MUST_CHECK int rv_agents_delete(rv_agents *a, const struct rv_store_scope *scope, const char *name, rv_err **err);
/** Make all agents of capabilities and folders rows of the store, as their first use does, so that LOOKUP and SQL find
 *  them before. What is there already is passed over. *n: how many were written; without `registers` how many would be.
 *  RV_E_NOMEM, what the store says. */
RV_MUST_CHECK int rv_agents_register(rv_agents *a, const struct rv_store_scope *scope, size_t *n, rv_err **err);
void rv_agents_forget(rv_agents *a); /* what is cached */

#endif
