/* The lines of earlier chats, for the Up key: a file of their user alone, a line each, in which "\n" and "\\" stand for
 * a line end and a backslash. It is a convenience: what cannot be read or written is passed over, and a file that
 * another program has damaged gives the lines that are whole. */
#include "coreengine/app/app.h"
#include "coreengine/cli/chat/chat_internal.h"
#include "coreengine/store/store.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define MAX_FILE ((size_t)4 << 20) /* bytes of the history of lines; of a longer file nothing is read */
#define MAX_LINE ((size_t)4 << 10) /* bytes of a line that is kept: in one write, which others do not part */

static int path_of(rv_buf *out)
{
    int rc =
        rv_app_find_state_folder(out, RV_CODE_ONLY("without a folder for it no line is kept, and the chat goes on"));

    rv_buf_puts(out, "/chat-lines");
    return rc < 0
               ? rc
               : rv_buf_check(out, "path", RV_CODE_ONLY("a path that is too long keeps no line, and the chat goes on"));
}

static int note_mode(void *self, const struct rv_tenant_key *key, rv_err **err)
{
    bool *encrypted = self;

    (void)err;
    *encrypted = *encrypted || (strcmp(key->status, "current") == 0 && key->mode != RV_ENCRYPTION_DISABLED);
    return 0;
}

/* What is said in such a chat must not lie in a file. */
bool cli_chat_recall_keeps(const struct rv_cli_chat *c)
{
    bool encrypted = false;

    if (cli_flag(c->cli, "no-store"))
        return false;
    return rv_store_list_tenant_keys(
               c->in.store, NULL, note_mode, &encrypted,
               RV_CODE_ONLY("where it is not known that nothing is encrypted, no line is kept")) == 0 &&
           !encrypted;
}

/* --- reading --- */

static bool is_plain(rv_str line)
{
    if (!rv_utf8_valid(line, NULL))
        return false;
    for (size_t i = 0; i < line.len; i++)
        if (rv_utf8_control(line.ptr + i, line.len - i) > 0 && line.ptr[i] != '\t')
            return false;
    return true;
}

static void unescape(rv_str line, rv_buf *out)
{
    for (size_t i = 0; i < line.len; i++) {
        bool escaped = line.ptr[i] == '\\' && i + 1 < line.len;
        i += escaped;
        rv_buf_putc(out, escaped && line.ptr[i] == 'n' ? '\n' : line.ptr[i]);
    }
}

/* Where the newest RV_CHAT_MAX_PAST lines begin. */
static size_t beginning(rv_str text)
{
    size_t n = 0;

    for (size_t i = text.len; i > 0; i--)
        if (text.ptr[i - 1] == '\n' && n++ == RV_CHAT_MAX_PAST)
            return i;
    return 0;
}

static void give(rv_chat_edit *e, rv_str text)
{
    rv_buf line = RV_BUF_INIT(2 * MAX_LINE);

    while (text.len > 0) {
        const char *end = memchr(text.ptr, '\n', text.len);
        rv_str one = {text.ptr, end ? (size_t)(end - text.ptr) : text.len};
        rv_buf_clear(&line);
        if (one.len > 0 && one.len <= 2 * MAX_LINE && is_plain(one)) {
            unescape(one, &line);
            if (line.rc == 0)
                cli_chat_edit_remember(e, rv_buf_str(&line));
        }
        size_t used = one.len + (end ? 1 : 0);
        text = (rv_str){text.ptr + used, text.len - used};
    }
    rv_buf_fini(&line);
}

void cli_chat_recall_load(rv_chat_edit *e)
{
    rv_buf path = RV_BUF_INIT(PATH_MAX), text = RV_BUF_INIT(MAX_FILE);

    if (path_of(&path) == 0 && access(rv_buf_cstr(&path), R_OK) == 0 &&
        rv_file_read(rv_buf_cstr(&path), &text, RV_CODE_ONLY("without it the arrow keys offer fewer lines")) == 0) {
        rv_str all = rv_buf_str(&text);
        size_t from = beginning(all);
        rv_str newest = {all.ptr + from, all.len - from};
        give(e, newest);
        if (from > newest.len) /* more old lines than new ones */
            RV_IGNORE(rv_file_write(rv_buf_cstr(&path), newest, NULL), "it is only longer than it has to be");
    }
    rv_buf_fini(&path);
    rv_buf_fini(&text);
}

/* --- writing --- */

void cli_chat_recall_add(rv_str line)
{
    rv_buf path = RV_BUF_INIT(PATH_MAX), text = RV_BUF_INIT(2 * MAX_LINE + 1);

    if (line.len > MAX_LINE || path_of(&path) < 0 ||
        rv_file_make_folders(rv_buf_cstr(&path), RV_CODE_ONLY("this line is not offered again")) < 0)
        goto done;
    for (size_t i = 0; i < line.len; i++) {
        if (line.ptr[i] == '\n' || line.ptr[i] == '\\')
            rv_buf_puts(&text, line.ptr[i] == '\n' ? "\\n" : "\\\\");
        else
            rv_buf_putc(&text, line.ptr[i]);
    }
    rv_buf_putc(&text, '\n');
    int fd = open(rv_buf_cstr(&path), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) {
        RV_IGNORE(write(fd, text.ptr, text.len) < 0, "the line is not found again");
        close(fd);
    }
done:
    rv_buf_fini(&path);
    rv_buf_fini(&text);
}
