/* A request that tells a receiver of a webhook something: made by hook.c, sent by hook_send.c. */
#ifndef RV_WORK_HOOK_INTERNAL_H
#define RV_WORK_HOOK_INTERNAL_H

#include "coreengine/app/worker/worker_internal.h"
#include "coreengine/store/store.h"

#define WORK_HOOK_HEADERS 4 /* that each request has: see hook.c */
struct work_hook {
    rv_buf url, body, headers[WORK_HOOK_HEADERS];
    /* the loop's */
    struct work_hooks *hooks;  /* borrowed from the worker */
    struct rv_http_call *call; /* NULL: none is under way; borrowed: it ends with on_end, or when it is cancelled */
    const char *lines[WORK_HOOK_HEADERS]; /* borrowed from headers */
    int status;                           /* 0: no answer */
    void (*on_end)(struct work_job *j);
};
void app_work_hook_free(struct work_hook *h);

/* --- hook.c, on the dispatcher's thread: an own handler (own.c) --- */
RV_MUST_CHECK int app_work_hook_make(struct work_taker *t, struct work_job *j, rv_err **err);

/* --- hook_send.c, on the loop --- */
struct uv_loop_s;
/** Send the request of a job; hooks: made when the first is sent, NULL before. on_end comes on the loop, with j->end,
 *  result and error set. RV_E_STATE: REEVE_ALLOW_NET cannot be read. */
RV_MUST_CHECK int app_work_hook_begin(struct work_job *j, struct uv_loop_s *loop, struct work_hooks **hooks,
                                      void (*on_end)(struct work_job *j), rv_err **err);
void app_work_hook_cancel(struct work_job *j);      /* no on_end comes; a job without one is fine */
void app_work_hooks_free(struct work_hooks *hooks); /* the loop runs on; NULL is fine */

#endif
