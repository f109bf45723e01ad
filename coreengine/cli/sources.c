/* What people are told of where an agent was found. */
#include "coreengine/cli/sources.h"

#include <string.h>

#include "coreengine/cli/runs/runs.h"

void rv_cli_write_source(const struct rv_agents_found *found, rv_buf *b)
{
    static const struct {
        const char *source, *text;
    } texts[] = {{"store", "in the store"}, {"built-in", "built in, by"}, {"file", "in the file"}};
    const char *text = found->source;

    for (size_t i = 0; i < RV_COUNT(texts); i++)
        if (strcmp(found->source, texts[i].source) == 0)
            text = texts[i].text;
    rv_buf_puts(b, text);
    if (found->place && found->place[0] && strcmp(found->source, "store") != 0) {
        rv_buf_putc(b, ' ');
        rv_cli_write_word(found->place, b);
    }
}

void rv_cli_write_hidden(const char *name, const struct rv_agents_found *found, const char *hidden, rv_buf *b)
{
    rv_buf_puts(b, "warning: agent ");
    rv_cli_write_word(name, b);
    rv_buf_puts(b, " is the one ");
    rv_cli_write_source(found, b);
    rv_buf_puts(b, "; it hides the one in the file ");
    rv_cli_write_word(hidden, b);
    rv_buf_puts(b, "\n  hint: give that one another name, or put it into the store with `reeve agents put`\n");
}

void rv_cli_warn_hidden(const rv_agents *agents, const char *name, const struct rv_agents_found *found)
{
    const char *hidden = rv_agents_hidden(agents, name, found);
    rv_buf text = RV_BUF_INIT(16384);

    if (hidden)
        rv_cli_write_hidden(name, found, hidden, &text);
    rv_cli_err(rv_buf_str(&text));
    rv_buf_fini(&text);
}
