/* What the Tab key finds: commands, and the agents, sessions and files that some of them take. */
#include "coreengine/cli/chat/chat_internal.h"

#include <glob.h>
#include <limits.h>
#include <string.h>

#define MAX_SESSIONS 100 /* the ones touched last: people look for no older one with the Tab key */

struct search {
    rv_str begins; /* what the words begin with */
    void (*take)(void *self, rv_str word);
    void *self;
};

static void offer(const struct search *s, const char *word)
{
    rv_str text = rv_str_of(word);

    if (text.len >= s->begins.len && memcmp(text.ptr, s->begins.ptr, s->begins.len) == 0 && text.len > 0 &&
        !memchr(text.ptr, '\n', text.len))
        s->take(s->self, text);
}

static int offer_agent(void *self, const char *name, const struct rv_agents_found *found, const rv_err *fault,
                       rv_err **err)
{
    (void)found;
    (void)fault;
    (void)err;
    offer(self, name);
    return 0;
}

static int offer_session(void *self, const struct rv_session_row *row, rv_err **err)
{
    (void)err;
    offer(self, row->id);
    return 0;
}

/* Paths that begin like that; a folder ends with "/". Names with blanks and the like are not offered: they are typed
 * in quotes. */
static void offer_files(const struct search *s)
{
    rv_buf pattern = RV_BUF_INIT(2 * PATH_MAX);
    glob_t found = {0};

    for (size_t i = 0; i < s->begins.len; i++) {
        if (s->begins.ptr[i] && strchr("*?[\\", s->begins.ptr[i]))
            rv_buf_putc(&pattern, '\\');
        rv_buf_putc(&pattern, s->begins.ptr[i]);
    }
    rv_buf_putc(&pattern, '*');
    if (rv_buf_check(&pattern, "a path", RV_CODE_ONLY("a word too long for a path completes to nothing")) == 0 &&
        glob(rv_buf_cstr(&pattern), GLOB_MARK, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            if (!strpbrk(found.gl_pathv[i], " \t\\\"'") && rv_utf8_valid(rv_str_of(found.gl_pathv[i]), NULL))
                offer(s, found.gl_pathv[i]);
    globfree(&found);
    rv_buf_fini(&pattern);
}

size_t cli_chat_complete(struct rv_cli_chat *c, rv_str text, void (*take)(void *self, rv_str word), void *self)
{
    const struct rv_store_scope scope = cli_chat_scope(c);
    const struct rv_session_filter newest = {.limit = MAX_SESSIONS};
    const char *blank = memchr(text.ptr, ' ', text.len);
    size_t head = blank ? (size_t)(blank - text.ptr) : text.len;
    struct search s = {.take = take, .self = self, .begins = text};

    if (text.len == 0 || text.ptr[0] != '/' || memchr(text.ptr, '\n', text.len))
        return 0;
    if (!blank) {
        for (size_t i = 0; cli_chat_command_name(i); i++)
            offer(&s, cli_chat_command_name(i));
        return s.begins.len;
    }
    while (head < text.len && text.ptr[head] == ' ')
        head++;
    s.begins = (rv_str){text.ptr + head, text.len - head};
    switch (cli_chat_command_takes((rv_str){text.ptr, (size_t)(blank - text.ptr)})) {
    case RV_CHAT_TAKES_AGENT:
        RV_IGNORE(rv_agents_list(c->in.agents, &scope, offer_agent, &s, NULL), "then there is nothing to offer");
        break;
    case RV_CHAT_TAKES_SESSION:
        RV_IGNORE(rv_store_list_sessions(c->in.store, &scope, &newest, offer_session, &s, NULL),
                  "then there is nothing to offer");
        break;
    case RV_CHAT_TAKES_SWITCH:
        offer(&s, "on");
        offer(&s, "off");
        break;
    case RV_CHAT_TAKES_FILE:
        offer_files(&s);
        break;
    case RV_CHAT_TAKES_NOTHING:
        break;
    }
    return s.begins.len;
}
