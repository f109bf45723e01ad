/* Upkeep of whole stores: copied, backed up, checked, brought forward. All rows are concerned, of every tenant. */
#ifndef RV_APP_UPKEEP_H
#define RV_APP_UPKEEP_H

#include "coreengine/app/app.h"
#include "coreengine/store/upkeep.h"

/* What it points to is borrowed for the call. */
struct rv_app_copy_watch {
    void *self;
    /* Progress, as in struct rv_store_copy_opts. NULL: not called. */
    int (*on_progress)(void *self, const struct rv_store_copy_progress *p, rv_err **err);
};
struct rv_app_copied {
    struct rv_store_copied rows;
    char *from, *to; /* as they may be shown; owned */
};
/** Copy the store of one URL into that of another, which is made if it does not exist; see rv_store_copy(). A run that
 *  goes on meanwhile would go on in both stores, with its effects: so no run or task of `from` may have an owner that
 *  lives, and no worker may be at work in either store.
 *  @return RV_E_STATE: one of them does, with what to do; and what opening and rv_store_copy() say */
RV_MUST_CHECK int rv_app_copy_store(const struct rv_app *app, const char *from, const char *to,
                                    const struct rv_app_copy_watch *watch, struct rv_app_copied *out, rv_err **err);
void rv_app_copied_fini(struct rv_app_copied *c);

struct rv_app_migrated {
    char *url; /* as it may be shown; owned */
    struct rv_store_version was;
};
/** Bring the tables of app->store forward. is_dry: only look. RV_E_NOT_FOUND: there is no store; RV_E_VERSION: it is
 *  newer than this program. */
RV_MUST_CHECK int rv_app_migrate_store(const struct rv_app *app, bool is_dry, struct rv_app_migrated *out,
                                       rv_err **err);
void rv_app_migrated_fini(struct rv_app_migrated *m);

#endif
