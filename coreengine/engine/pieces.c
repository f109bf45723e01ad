/* Partial results of calls on workers, passed to the loop: pieces of the answers of providers, all of them and in
 * order, and reports of progress of tools, of which only the latest one is kept until it is passed on. */
#include <pthread.h>
#include <stdlib.h>

#include "coreengine/engine/services_internal.h"

struct piece {
    struct piece *next;
    struct rv_tool_work *work; /* borrowed: it drops its pieces before it goes */
    enum { PIECE_TEXT, PIECE_THINKING, PIECE_PROGRESS } kind;
    double progress, total;
    char *text; /* owned */
    size_t len;
};

struct pieces {
    pthread_mutex_t lock; /* guards the list of pieces, and is_stopped; leaf: the wake takes none */
    struct piece *list, **end;
    bool is_stopped;
    void (*wake)(void *self); /* NULL: the loop looks by itself */
    void *wake_self;
};

struct pieces *engine_pieces_new(void (*wake)(void *self), void *self)
{
    struct pieces *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->end = &p->list;
    p->wake = wake;
    p->wake_self = self;
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

static void free_list(struct piece *piece)
{
    while (piece) {
        struct piece *next = piece->next;
        free(piece->text);
        free(piece);
        piece = next;
    }
}

void engine_pieces_free(struct pieces *p)
{
    if (!p)
        return;
    free_list(p->list);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static void tell(const struct piece *p)
{
    const struct rv_tool_progress progress = {p->progress, p->total, {p->text, p->len}};

    if (p->kind == PIECE_PROGRESS)
        p->work->on_progress(p->work, &progress);
    else
        engine_delta_piece(((const struct rv_plugin_work *)p->work)->self, p->kind == PIECE_THINKING, progress.text);
}

/* A report of progress of the same work that was not passed on yet: it gets the values of the new one. The lock is
 * held. */
static bool replaces(const struct pieces *p, struct piece *piece)
{
    struct piece *last = p->list;

    while (last && (last->work != piece->work || last->kind != PIECE_PROGRESS))
        last = last->next;
    if (!last || piece->kind != PIECE_PROGRESS)
        return false;
    char *text = last->text;
    last->progress = piece->progress;
    last->total = piece->total;
    last->text = piece->text;
    last->len = piece->len;
    piece->text = text;
    return true;
}

/* Takes the piece. -1: the work was given up, and its pieces are not wanted. */
static int put(struct pieces *p, struct piece *piece)
{
    if (piece->work->never_blocks) { /* the call is made on the loop */
        tell(piece);
        free_list(piece);
        return 0;
    }
    pthread_mutex_lock(&p->lock);
    bool is_wanted = !p->is_stopped && !atomic_load(&piece->work->cancelled);
    if (is_wanted && !replaces(p, piece)) {
        *p->end = piece;
        p->end = &piece->next;
        piece = NULL;
        if (p->wake)
            p->wake(p->wake_self);
    }
    pthread_mutex_unlock(&p->lock);
    free_list(piece);
    return is_wanted ? 0 : -1;
}

int engine_pieces_put(struct pieces *p, struct rv_tool_work *w, rv_str json)
{
    struct piece *piece = calloc(1, sizeof *piece);
    json_object *said = NULL, *text = NULL;

    if (piece &&
        rv_json_parse(json, NULL, &said,
                      RV_CODE_ONLY("-1 is all that a provider hears: it stops, as when it is cancelled")) == 0) {
        piece->kind = json_object_object_get_ex(said, "thinking", &text) ? PIECE_THINKING : PIECE_TEXT;
        if (piece->kind == PIECE_TEXT)
            json_object_object_get_ex(said, "text", &text);
        piece->work = w;
        piece->text = rv_str_dup(rv_json_str(text));
        piece->len = rv_json_str(text).len;
        json_object_put(said);
    }
    if (piece && piece->text)
        return put(p, piece);
    free(piece);
    return -1;
}

void engine_pieces_put_progress(struct pieces *p, struct rv_tool_work *w, const struct rv_tool_progress *progress)
{
    struct piece *piece = calloc(1, sizeof *piece);
    char *text = piece ? rv_str_dup(progress->text) : NULL;

    if (!text) {
        free(piece);
        return;
    }
    *piece = (struct piece){.work = w,
                            .kind = PIECE_PROGRESS,
                            .progress = progress->progress,
                            .total = progress->total,
                            .text = text,
                            .len = progress->text.len};
    RV_IGNORE(put(p, piece), "its work is told otherwise");
}

void engine_pieces_drop(struct pieces *p, const struct rv_tool_work *w)
{
    pthread_mutex_lock(&p->lock);
    struct piece **at = &p->list;
    while (*at) {
        struct piece *piece = *at;
        if (w && piece->work != w) {
            at = &piece->next;
            continue;
        }
        *at = piece->next;
        piece->next = NULL;
        free_list(piece);
    }
    p->end = at;
    p->is_stopped = p->is_stopped || !w;
    pthread_mutex_unlock(&p->lock);
}

void engine_pieces_tell(struct pieces *p)
{
    pthread_mutex_lock(&p->lock);
    struct piece *list = p->list;
    p->list = NULL;
    p->end = &p->list;
    pthread_mutex_unlock(&p->lock);
    for (const struct piece *piece = list; piece; piece = piece->next)
        tell(piece);
    free_list(list);
}
