/* Shared by both sides of `isolation: process`: frames over a socket, and their content.
 *
 *   engine                                  child
 *   {load, base_dir, memory_mb, ...}   ->
 *                                      <-   {manifest: true} + the manifest, or {error: [...]}
 *   {open: true} + configuration       ->
 *                                      <-   {opened: true}, or {error: [...]}
 *   {call, name, run, ...} + arguments ->
 *   {cancel: true}, at most once       ->   (may come late; then the child ignores it)
 *                                      <-   {log, text}, any number
 *                                      <-   {emit: true} + a piece, any number, of providers
 *                                      <-   {ask: "service"} + arguments, any number, one at a time
 *   {answered: true} + the answer, or  ->   (not after cancel)
 *   {error: [...]}
 *                                      <-   {said: {...}} + the reply
 *
 * A frame is a head, a small JSON object, and a body, bytes that are passed on unchanged: a reply stays the same to the
 * byte and needs no escaping. One child has one call at a time. */
#ifndef RV_ISOLATED_INTERNAL_H
#define RV_ISOLATED_INTERNAL_H

#include <pthread.h>
#include <sys/types.h>

#include "coreengine/tools/plugin/plugin_internal.h"

#define RV_CHANNEL_MAX_HEAD     ((size_t)64 << 10) /* bytes of a frame's JSON: names and numbers */
#define RV_CHANNEL_MAX_ARGS     ((size_t)64 << 20) /* body from the engine: as RV_STATE_MAX_BYTES */
#define RV_CHANNEL_MAX_MANIFEST ((size_t)16 << 20) /* body from the child while it loads: 64 of RV_PLUGIN_MAX_SPEC */
#define RV_CHANNEL_SLICE_MS     10                 /* how late a cancellation is seen, at most */

/* The time until which a side waits. */
struct rv_wait {
    int64_t until_us;             /* of rv_clock_system(); RV_NEVER: no end */
    const atomic_bool *cancelled; /* borrowed; may be NULL */
};

struct rv_channel {
    int fd;
    rv_buf in;   /* what has come and is not used up */
    size_t used; /* bytes of `in` that were handed out */
    size_t max_body;
};
struct rv_frame {
    json_object *head; /* an object; the receiver's to put; owned */
    rv_str body;       /* of the channel, until the next receive */
};

/* channel.c */
void channel_init(struct rv_channel *c, int fd, size_t max_body);
void channel_fini(struct rv_channel *c); /* closes */
/** Send one frame. RV_E_IO (the other side is gone), RV_E_TIMEOUT, RV_E_CANCELLED, RV_E_LIMIT. After a failure the
 * channel is of no use: part of the frame may be on its way. */
RV_MUST_CHECK int channel_send(struct rv_channel *c, const rv_buf *head, rv_str body, const struct rv_wait *wait,
                               rv_err **err);
/** The next frame. RV_E_IO (the other side is gone), RV_E_TIMEOUT, RV_E_CANCELLED (both: ask again later), RV_E_PLUGIN
 * (no frame). */
RV_MUST_CHECK int channel_receive(struct rv_channel *c, struct rv_frame *out, const struct rv_wait *wait, rv_err **err);
/** Check whether there is time left, for a reader that takes messages as fast as they come. RV_E_TIMEOUT,
 * RV_E_CANCELLED. */
RV_MUST_CHECK int channel_may_wait(const struct rv_wait *wait, rv_err **err);
/** Tells whether bytes, or the end, can be read now. */
bool channel_is_ready(const struct rv_channel *c);
int64_t channel_now_us(void);
/** Write an error as the value of "error"; read it back as a chain below *err, with codes that can be believed. */
void channel_write_err(rv_jw *w, const rv_err *fault);
RV_MUST_CHECK int channel_read_err(json_object *list, rv_err **err);

/* isolated.c */
struct rv_process {
    pid_t pid; /* 0: none */
    struct rv_channel channel;
    struct rv_process *next; /* owned by the list that it is in */
};
/** It is gone or about to be: wait for it, by force if need be, and say how it ended. */
void plugin_process_bury(struct rv_process *c, rv_buf *how);
void plugin_process_kill(struct rv_process *c);

/* isolated.c */
#define RV_ISOLATED_MAX_CHILDREN 16 /* of one capability: calls beyond it wait */

struct rv_isolated {
    /* Constant once it is open. */
    const struct rv_plugin *owner; /* borrowed */
    char *program, *base_dir;      /* owned */
    char *config;                  /* NULL until it is open; owned */
    int64_t memory_mb, open_files;
    json_object *manifest;        /* what the descriptor's pointers point into; owned */
    struct rv_cap_entry *entries; /* rows of the descriptor; owned */
    struct rv_cap_desc desc;

    pthread_mutex_t lock; /* guards idle children, and the numbers of all; leaf: not held while one waits for a child */
    pthread_cond_t freed; /* a child is idle, or there is room for one */
    struct rv_process *idle; /* owned */
    size_t n_children;       /* idle, busy and about to start */
    int n_deaths;            /* since the last answer */
    int64_t not_before_us;
};
/** A child that has loaded the capability, and opened it when iso->config is there. *manifest is its first word. */
RV_MUST_CHECK int plugin_isolated_start(const struct rv_isolated *iso, const struct rv_wait *wait,
                                        struct rv_process **out, json_object **manifest, rv_err **err);

#endif
