/* Turns: which thread uses the client of a session. It asks the store meanwhile, so no lock is held. */
#include "coreengine/server/mcp_internal.h"

#define MAX_MISSED 20 /* looks: a second; then a caller queues for the client, for others take it first */

void srv_mcp_session_enter(struct srv_mcp_session *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->is_taken)
        pthread_cond_wait(&s->is_free, &s->lock);
    s->is_taken = true;
    s->n_turns++;
    pthread_mutex_unlock(&s->lock);
}

bool srv_mcp_session_try(struct srv_mcp_session *s)
{
    pthread_mutex_lock(&s->lock);
    s->n_missed += s->is_taken && s->n_turns != s->seen_turns; /* it is handed on and on, and not kept for long */
    s->seen_turns = s->n_turns;
    while (s->is_taken && s->n_missed > MAX_MISSED)
        pthread_cond_wait(&s->is_free, &s->lock);
    bool is_mine = !s->is_taken;
    if (is_mine)
        s->n_missed = 0;
    s->is_taken = true;
    pthread_mutex_unlock(&s->lock);
    return is_mine;
}

void srv_mcp_session_leave(struct srv_mcp_session *s)
{
    pthread_mutex_lock(&s->lock);
    s->is_taken = false;
    pthread_cond_signal(&s->is_free);
    pthread_mutex_unlock(&s->lock);
}

void srv_mcp_cut_left(struct srv_mcp_session *s)
{
    const struct srv_server *server = s->all->reader.server;

    if (!atomic_load(&server->is_draining))
        return;
    for (struct srv_mcp_stream *st = s->streams; st; st = st->next)
        if (!st->is_over && (atomic_load(&server->is_over) || rv_app_mcp_is_left(s->client, st->call, server->owner)))
            st->is_over = st->is_cut = true;
}
