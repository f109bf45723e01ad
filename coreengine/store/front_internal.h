/* Shared by the files of the front: the handle, and how each call enters and leaves it. Implementations never see
 * this. */
#ifndef RV_STORE_FRONT_INTERNAL_H
#define RV_STORE_FRONT_INTERNAL_H

#include "coreengine/store/store_internal.h"

struct rv_store {
    const struct rv_store_ops *ops;
    void *self; /* the implementation's */
    char *url;
    struct rv_store_opts opts; /* as it was opened */
    bool read_only;
    bool in_group;
    bool is_walking; /* a callback of list or read runs */
    struct rv_store_faults faults;
};

/* Refuse what does not fit, then pass the fault point of the operation. */
RV_MUST_CHECK int rv_store_enter(rv_store *s, const char *op, rv_err **err);
RV_MUST_CHECK int rv_store_enter_write(rv_store *s, const char *op, rv_err **err);
/** Pass the point behind it, if it went well. */
RV_MUST_CHECK int rv_store_leave(rv_store *s, int rc, const char *done, rv_err **err);

#define RV_STORE_ENTER(kind, s, op, err)                                                                               \
    do {                                                                                                               \
        int entered_ = kind((s), (op), (err));                                                                         \
        if (entered_ != 0)                                                                                             \
            return entered_;                                                                                           \
    } while (0)

#endif
