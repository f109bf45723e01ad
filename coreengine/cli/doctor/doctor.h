/* What `reeve doctor` finds: lines for people and for programs, and the models that are at hand. */
#ifndef RV_CLI_DOCTOR_H
#define RV_CLI_DOCTOR_H

#include "coreengine/app/models.h"
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

/* models.c */
void rv_doctor_models_check(const struct rv_app_models *m, struct rv_checkup *c);
extern const char rv_doctor_ways[]; /* how to get one, some lines */

#endif
