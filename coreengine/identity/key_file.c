/* The file of public keys: its set now, and a look at it once in a while. Any thread. The lock is held for a pointer
 * and numbers only: files are read, and signatures checked, without it. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "coreengine/identity/identity_internal.h"

#define LOOK_US RV_US_PER_MIN /* between two looks */

struct stamp { /* what changes when the file does */
    int64_t mtime_us, size, node;
};
struct rv_key_file {
    char *path;           /* owned */
    pthread_mutex_t lock; /* guards `keys`, `read` and looked_us; leaf */
    rv_jwks *keys;        /* a reference; NULL: not read yet */
    struct stamp read;
    int64_t looked_us;
};

static int read_set(struct rv_key_file *f, int64_t now_us, const struct stamp *stamp, rv_err **err)
{
    rv_jwks *fresh = NULL;
    int rc = identity_jwks_read(f->path, &fresh, err);

    if (rc < 0)
        return rc;
    pthread_mutex_lock(&f->lock);
    if (f->looked_us == now_us) { /* else another thread has looked since */
        rv_jwks *old = f->keys;
        f->keys = fresh;
        f->read = *stamp;
        fresh = old;
    }
    pthread_mutex_unlock(&f->lock);
    identity_jwks_unref(fresh);
    return 0;
}

static bool stamp_of(const char *path, struct stamp *out)
{
    struct stat st;

    *out = (struct stamp){.size = 0};
    if (stat(path, &st) != 0)
        return false;
    *out = (struct stamp){.mtime_us = (int64_t)st.st_mtim.tv_sec * RV_US_PER_S + st.st_mtim.tv_nsec / 1000,
                          .size = st.st_size,
                          .node = (int64_t)st.st_ino};
    return true;
}

int identity_key_file_new(const char *path, int64_t now_us, struct rv_key_file **out, rv_err **err)
{
    struct rv_key_file *f = calloc(1, sizeof *f);
    struct stamp stamp;

    if (!f || !(f->path = rv_str_dup(rv_str_of(path)))) {
        free(f);
        return RV_FAIL(err, RV_E_NOMEM, "keep the settings of identities");
    }
    pthread_mutex_init(&f->lock, NULL);
    f->looked_us = now_us;
    RV_IGNORE((stamp_of(path, &stamp), 0), "reading it says why it cannot be read");
    int rc = read_set(f, now_us, &stamp, err);
    if (rc < 0)
        identity_key_file_free(f);
    else
        *out = f;
    return rc;
}

void identity_key_file_free(struct rv_key_file *f)
{
    if (!f)
        return;
    identity_jwks_unref(f->keys);
    pthread_mutex_destroy(&f->lock);
    free(f->path);
    free(f);
}

int identity_key_file_look(struct rv_key_file *f, int64_t now_us, rv_err **err)
{
    struct stamp stamp, read;

    pthread_mutex_lock(&f->lock);
    bool is_mine = now_us >= f->looked_us + LOOK_US; /* of all that ask one looks; the others go on with the old set */
    if (is_mine)
        f->looked_us = now_us;
    read = f->read;
    pthread_mutex_unlock(&f->lock);
    if (!is_mine)
        return 0;
    bool is_there = stamp_of(f->path, &stamp);
    if (is_there && stamp.mtime_us == read.mtime_us && stamp.size == read.size && stamp.node == read.node)
        return 0;
    return read_set(f, now_us, &stamp, err);
}

rv_jwks *identity_key_file_keys(struct rv_key_file *f)
{
    pthread_mutex_lock(&f->lock);
    rv_jwks *keys = identity_jwks_ref(f->keys);
    pthread_mutex_unlock(&f->lock);
    return keys;
}
