/* A folder of its own for each test, and the capability `p8` opened in it. */
#ifndef RV_TEST_P8_ROOM_H
#define RV_TEST_P8_ROOM_H

#include <check.h>

#include "coreengine/tools/plugin/plugin.h"
#include "tests/kit/kit.h"

TCase *action_case(void);
TCase *record_case(void);
TCase *agents_case(void);
TCase *data_case(void);
TCase *owners_case(void);
TCase *tools_case(void);
TCase *limits_case(void);
TCase *at_once_case(void);

struct room {
    char *dir;
    rv_plugins *plugins;
    rv_buf reply; /* of the last call */
    rv_err *err;  /* of the last call, or of loading */
    int loaded;   /* what loading gave */
};
/** config is JSON text or NULL. */
void room_begin(struct room *r, const char *config);
void room_begin_isolated(struct room *r, const char *config);
void room_end(struct room *r);
int room_call(struct room *r, const char *tool, const char *args, const char *key);

#endif
