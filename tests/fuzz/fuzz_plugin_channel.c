/* What the child of an isolated capability may send: whatever bytes come, each message is an object with a body within
 * the ceiling or an error, and an error that it reports becomes a chain of our own with a code that exists. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coreengine/tools/plugin/isolated_internal.h"
#include "tests/kit/fuzz.h"

#define MAX_MESSAGES 65536 /* fits into the buffer of a socket */
#define MAX_BODY     4096

static void look_at(const struct rv_frame *frame)
{
    json_object *fault = NULL;
    rv_err *err = NULL;

    if (!json_object_is_type(frame->head, json_type_object) || frame->body.len > MAX_BODY)
        abort();
    if (json_object_object_get_ex(frame->head, "error", &fault)) {
        int rc = channel_read_err(fault, &err);
        if (rc >= 0 || rc < -RV_N_CODES || rc == RV_E_NOMEM || rv_err_code(err) != rc)
            abort();
    }
    rv_err_free(err);
}

RV_FUZZ_TARGET(plugin_channel)
{
    struct rv_channel channel;
    struct rv_frame frame;
    int ends[2], rc;

    if (size > MAX_MESSAGES || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return 0;
    if (size > 0 && send(ends[1], data, size, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)size)
        size = 0;
    close(ends[1]);
    channel_init(&channel, ends[0], MAX_BODY);
    while ((rc = channel_receive(&channel, &frame, NULL, NULL)) == 0) {
        look_at(&frame);
        json_object_put(frame.head);
    }
    if (rc != RV_E_IO && rc != RV_E_PLUGIN)
        abort();
    channel_fini(&channel);
    return 0;
}
