/* Models that are at hand: keys in the environment, servers on this machine; and texts as vectors, asked of a provider
 * outside any run. */
#ifndef RV_APP_MODELS_H
#define RV_APP_MODELS_H

#include "coreengine/app/workspace.h"
#include "coreengine/knowledge/knowledge.h"
#include "coreengine/model/provider/provider.h"

#define RV_APP_MAX_FETCH   ((size_t)64 << 20) /* bytes of one answer: thousands of vectors, as JSON */
#define RV_APP_MAX_SERVERS 32                 /* local ones and those of the environment: all are asked at once */
#define RV_APP_MAX_MODELS  200                /* of one server: a list for a person */

struct rv_app_server {
    const struct rv_provider_info *provider; /* static */
    struct rv_embed_target target;           /* its headers ask for the list of models, too */
    char *address, *url;                     /* owned; of the base, of the list */
    char *models[RV_APP_MAX_MODELS];         /* owned */
    size_t n_models;
    bool answers;        /* something is there */
    const char *problem; /* static; answers, but without a list; NULL: with a list */
};
struct rv_app_models {
    struct rv_app_server servers[RV_APP_MAX_SERVERS];
    size_t n_servers;
    rv_buf http;     /* what HTTP is done with */
    rv_buf http_err; /* why it is not; empty: it is */
    rv_buf model;    /* the one that is at hand; empty: none */
    bool has_key;    /* some */
};

const char *rv_app_variable(const char *name); /* of the environment; NULL: not set, or empty */
/** Looks at the environment and asks the servers of models on this machine, for two seconds at most. RV_E_NOMEM. */
RV_MUST_CHECK int rv_app_models_find(const struct rv_app *app, struct rv_app_models **out, rv_err **err);
/** "provider:model" to be asked without more ado: of a server on this machine, else by a key. NULL: there is none. */
const char *rv_app_models_best(const struct rv_app_models *m);
const char *rv_app_models_why_none(const struct rv_app_models *m);
void rv_app_models_write(const struct rv_app_models *m, rv_jw *w); /* members of an object */
void rv_app_models_free(struct rv_app_models *m);

/* --- embed.c: texts as vectors --- */
/** Where to ask. base_url NULL: the provider's own address. */
RV_MUST_CHECK int rv_app_find_embed_target(rv_str provider, const char *model, const char *base_url,
                                           struct rv_embed_target *out, rv_err **err);
/* Texts that become vectors; borrowed for the call. */
struct rv_embed_texts {
    const rv_str *texts;
    size_t n;
    int64_t dimensions; /* 0: as many as the model has */
};
/** Ask for the vectors of all texts at once. RV_E_PROVIDER, RV_E_TIMEOUT. */
RV_MUST_CHECK int rv_app_embed(const struct rv_app *app, const struct rv_embed_target *target,
                               const struct rv_embed_texts *what, struct rv_embeddings *out, rv_err **err);

/* --- embedder.c: what makes the vectors of rows and queries --- */
/** What makes vectors for searches and for the queue: providers are "openai:text-embedding-3-small",
 * "openai:text-embedding-3-large@256" (dimensions), "ollama:nomic-embed-text", "openai" (its usual model). Keys and
 * addresses come from the environment. app is borrowed. */
struct rv_knowledge_embedder rv_app_make_embedder(const struct rv_app *app);
/* What a query is asked with. */
struct rv_app_query {
    struct rv_knowledge_embedder embedder;
    struct rv_knowledge_opts opts;
};
/** The embedder, and what the environment says: P8_REM_NATURAL_LANGUAGE (reject, search, sql). opts points into out.
 *  RV_E_INVALID */
RV_MUST_CHECK int rv_app_query_init(const struct rv_app *app, struct rv_app_query *out, rv_err **err);
/** Whether that provider can be asked: RV_E_INVALID says what is missing. */
RV_MUST_CHECK int rv_app_check_embedder(const char *provider, rv_err **err);

#endif
