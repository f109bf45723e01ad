#include "coreengine/base/reads.h"

static _Thread_local struct {
    void (*told)(void *self, const char *path, bool is_folder); /* NULL: no caller listens on this thread */
    void *self;
} listener;

void rv_reads_tell(void (*told)(void *self, const char *path, bool is_folder), void *self)
{
    listener.told = told;
    listener.self = self;
}

void rv_reads_note(const char *path, bool is_folder)
{
    if (listener.told)
        listener.told(listener.self, path, is_folder);
}
