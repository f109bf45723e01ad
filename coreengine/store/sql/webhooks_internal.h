/* The statements about webhooks (webhooks.c). */
#ifndef RV_STORE_SQL_WEBHOOKS_INTERNAL_H
#define RV_STORE_SQL_WEBHOOKS_INTERNAL_H

#define RV_SQL_WEBHOOK_STATEMENTS(X)                                                                                   \
    X(ADD_WEBHOOK, "INSERT INTO webhooks (run, n, url, secret, events) VALUES (?1, ?2, ?3, ?4, ?5)")                   \
    X(GET_WEBHOOK, "SELECT url, secret, events FROM webhooks WHERE run = ?1 AND n = ?2")                               \
    X(WEBHOOKS_OF_RUN, "SELECT w.n, w.events, r.\"user\" FROM webhooks w JOIN runs r ON r.key = w.run"                 \
                       " WHERE w.run = ?1 ORDER BY w.n")

#endif
