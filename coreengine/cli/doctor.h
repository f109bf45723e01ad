/* What `reeve doctor` finds: lines for people and for programs, and the models that are at hand. */
#ifndef RV_CLI_DOCTOR_H
#define RV_CLI_DOCTOR_H

#include "coreengine/cli/cli.h"

enum rv_check_level { RV_CHECK_OK, RV_CHECK_NOTE, RV_CHECK_BAD };
struct rv_checkup {
    rv_buf text, json;
    rv_jw checks; /* on json: an array of {level, what, text} */
    bool color;
    int n_bad;
};
void rv_checkup_line(struct rv_checkup *c, enum rv_check_level level, const char *what, const char *fmt, ...)
    RV_PRINTF(4, 5);

/* doctor_models.c */
struct rv_doctor_models;
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
