/* The store's own thread (writer.c), and what it is given to write. */
#ifndef RV_ENGINE_WRITER_INTERNAL_H
#define RV_ENGINE_WRITER_INTERNAL_H

#include "coreengine/base/base.h"
#include "coreengine/store/store.h"

/* A write. It is embedded in the structure that it belongs to; the store thread owns it from submit to done. */
struct write {
    struct write *next; /* guarded by the writer's lock */
    /** In a transaction with others; called again alone when that fails. */
    int (*write)(struct write *w, rv_store *store, rv_err **err);
    void (*rest)(struct write *w, rv_store *store); /* once that is durable; may be NULL */
    void (*done)(struct write *w);                  /* on the loop */
    int64_t until_us;                               /* when its lease ends */
    bool is_alone;                                  /* it makes transactions of its own: written once, without others */
    bool is_written;                                /* guarded by the lock */
    int rc;                                         /* the result of the write, once it is done */
    rv_err *err;                                    /* why; owned by that structure */
};
struct writer;
/** RV_E_STATE: that store writes without waiting. wake is called on the thread when something is done. */
RV_MUST_CHECK int engine_writer_new(const rv_store *store, struct rv_clock clock, void (*wake)(void *self), void *self,
                                    struct writer **out, rv_err **err);
void engine_writer_free(struct writer *o); /* when all is written */
void engine_writer_submit(struct writer *o, struct write *w);
struct write *engine_writer_take_done(struct writer *o, size_t n); /* at most n, by `next`, first written first */
/** Blocks until that one is written, and takes it: done is not called. */
void engine_writer_wait_for(struct writer *o, struct write *w);

#endif
