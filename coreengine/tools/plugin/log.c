/* Log lines of capabilities. They are what a capability chooses to say, perhaps in a loop: each capability has so many
 * lines in a second, and what is left out is counted. The time is that of the log, so that a test can give it. */
#include "coreengine/tools/plugin/plugin_internal.h"

#include <stdlib.h>

#define WINDOW_US INT64_C(1000000)

struct rv_plugin_logging {
    pthread_mutex_t lock; /* guards the rest; calls come from many threads. Rank: above that of the log's sink */
    int64_t since_us;     /* when the second under way began; INT64_MIN: there was no line yet */
    int64_t n;            /* lines of that second, including those that were left out */
    int64_t left_out;     /* not told yet */
};

struct rv_plugin_logging *rv_plugin_logging_new(void)
{
    struct rv_plugin_logging *l = calloc(1, sizeof *l);

    if (l && pthread_mutex_init(&l->lock, NULL) != 0) {
        free(l);
        return NULL;
    }
    if (l)
        l->since_us = INT64_MIN;
    return l;
}

static void tell_left_out(const struct rv_plugin *pl, int64_t n)
{
    if (n > 0)
        RV_LOG(pl->log, WARN, "capability.log_left_out", RV_F_TEXT("capability", pl->name), RV_F_I64("lines", n));
}

void rv_plugin_logging_free(struct rv_plugin *pl)
{
    if (!pl->logging)
        return;
    tell_left_out(pl, pl->logging->left_out);
    pthread_mutex_destroy(&pl->logging->lock);
    free(pl->logging);
    pl->logging = NULL;
}

/* May another line be written? *left_out: lines of earlier seconds that are to be told of first. */
static bool take_turn(struct rv_plugin_logging *l, int64_t now_us, int64_t *left_out)
{
    *left_out = 0;
    pthread_mutex_lock(&l->lock);
    if (l->since_us == INT64_MIN || now_us >= l->since_us + WINDOW_US || now_us < l->since_us) {
        *left_out = l->left_out;
        l->left_out = 0;
        l->since_us = now_us;
        l->n = 0;
    }
    bool may = l->n++ < RV_PLUGIN_LOG_LINES;
    l->left_out += !may;
    pthread_mutex_unlock(&l->lock);
    return may;
}

void rv_plugin_log(const struct rv_plugin_entry *e, enum rv_log_level level, const char *message)
{
    rv_log *log = e->owner->log;
    char text[RV_PLUGIN_MAX_TEXT + 1];
    int64_t left_out;

    if (!rv_log_on(log, level))
        return;
    bool may = take_turn(e->owner->logging, rv_log_now_us(log), &left_out);
    tell_left_out(e->owner, left_out);
    if (!may)
        return;
    rv_plugin_clean(text, sizeof text, message);
    const struct rv_field fields[] = {RV_F_TEXT("capability", e->owner->name), RV_F_TEXT("entry", e->name),
                                      RV_F_TEXT("text", text)};
    rv_log_write(log, level, "capability.log", fields, RV_COUNT(fields));
}
