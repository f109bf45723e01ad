/* What `reeve doctor` finds: lines for people and for programs, and the models that are at hand. */
#ifndef RV_CLI_DOCTOR_H
#define RV_CLI_DOCTOR_H

#include "coreengine/cli/cli.h"
#include "coreengine/provider/provider.h"

#define RV_DOCTOR_MAX_SERVERS 32
#define RV_DOCTOR_MAX_MODELS  200 /* of one server */

enum rv_check_level { RV_CHECK_OK, RV_CHECK_NOTE, RV_CHECK_BAD };
struct rv_checkup {
    rv_buf text, json;
    rv_jw checks; /* on json: an array of {level, what, text} */
    bool color;
    int n_bad;
};
void rv_checkup_line(struct rv_checkup *c, enum rv_check_level level, const char *what, const char *fmt, ...)
    RV_PRINTF(4, 5);

struct rv_doctor_server {
    const struct rv_provider_info *provider;
    struct rv_embed_target target;      /* its headers ask for the list of models, too */
    char *address, *url;                /* owned; of the base, of the list */
    char *models[RV_DOCTOR_MAX_MODELS]; /* owned */
    size_t n_models;
    bool answers;        /* something is there */
    const char *problem; /* static; answers, but without a list; NULL: with a list */
};
struct rv_doctor_models {
    struct rv_doctor_server servers[RV_DOCTOR_MAX_SERVERS];
    size_t n_servers;
    rv_buf http;     /* what HTTP is done with */
    rv_buf http_err; /* why it is not; empty: it is */
    rv_buf model;    /* the one that is at hand; empty: none */
    bool has_key;    /* some */
};

/* servers.c */
RV_MUST_CHECK int rv_doctor_find_servers(struct rv_doctor_models *m, rv_err **err);
/** Asks all servers at once. Also reports the HTTP library, or why there is none. */
RV_MUST_CHECK int rv_doctor_ask_servers(const struct rv_cli *cli, struct rv_doctor_models *m, rv_err **err);

/* models.c */
const char *rv_doctor_variable(const char *name); /* of the environment; NULL: not set, or empty */
/** Looks at the environment and asks the servers of models on this machine, for two seconds at most. RV_E_NOMEM. */
RV_MUST_CHECK int rv_doctor_models_find(const struct rv_cli *cli, struct rv_doctor_models **out, rv_err **err);
void rv_doctor_models_check(const struct rv_doctor_models *m, struct rv_checkup *c);
void rv_doctor_models_json(const struct rv_doctor_models *m, rv_jw *w); /* members */
/** "provider:model" to be asked without more ado: of a server on this machine, else by a key. NULL: there is none. */
const char *rv_doctor_model(const struct rv_doctor_models *m);
const char *rv_doctor_why_none(const struct rv_doctor_models *m);
extern const char rv_doctor_ways[]; /* how to get one, some lines */
void rv_doctor_models_free(struct rv_doctor_models *m);

#endif
