/* list_files: what there is. */
#include "capabilities/files/files_internal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* -1: gone since it was listed, or a path that place_of() refuses. */
static int64_t size_of(const struct files *f, const char *path)
{
    struct place place;
    struct stat st;
    int64_t size = -1;
    int fd;

    if (!place_of(f, NULL, path, &place) || (fd = open_beneath(f, place.root->fd, place.rel, O_PATH | O_NOFOLLOW)) < 0)
        return -1;
    if (fstat(fd, &st) == 0)
        size = st.st_size;
    close(fd);
    return size;
}

int list_files(void *self, struct rv_cap_call *call)
{
    const struct files *f = self;
    json_object *args = args_parse(call), *reply, *list;
    struct walked found = {0};
    bool failed = false;

    if (!args)
        return 1;
    walk_all(f, call, arg_text(args, "glob"), &found);
    json_object_put(args);
    if (found.error) {
        int rc = walk_failed(&found, call);
        walked_fini(&found);
        return rc;
    }
    failed = found.failed;
    reply = json_object_new_object();
    list = json_object_new_array();
    for (size_t i = 0; i < found.n && i < MAX_LISTED && !failed; i++) {
        int64_t size = size_of(f, found.paths[i]);
        json_object *item;

        if (size < 0)
            continue;
        item = json_object_new_object();
        put(&failed, item, "path", json_object_new_string(found.paths[i]));
        put(&failed, item, "bytes", json_object_new_int64(size));
        push(&failed, list, item);
    }
    put(&failed, reply, "files", list);
    put(&failed, reply, "total", json_object_new_int64((int64_t)found.n));
    put(&failed, reply, "truncated", json_object_new_boolean(found.truncated || found.n > MAX_LISTED));
    walked_fini(&found);
    return reply_take(call, reply, failed);
}
