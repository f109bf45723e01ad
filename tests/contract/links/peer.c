/* The peer of a link over stdio: this program as a child process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/contract/links/world.h"

#define BLOCK 65536 /* bytes that are written at once of the message without an end */

static void write_without_end(void)
{
    static char block[BLOCK];

    memset(block, 'x', sizeof block);
    fputs("{\"jsonrpc\":\"2.0\",\"id\":\"", stdout);
    while (fwrite(block, 1, sizeof block, stdout) == sizeof block) {
    }
}

static bool is_named(const char *line, const char *name)
{
    char want[40];

    snprintf(want, sizeof want, "\"name\":\"%s\"", name);
    return strstr(line, want) != NULL;
}

int peer_run(void)
{
    size_t room = 0;
    char *line = NULL;

    while (getline(&line, &room, stdin) > 0) {
        const char *id = strstr(line, "\"id\":");
        if (is_named(line, "end"))
            break;
        if (is_named(line, "large"))
            write_without_end();
        if (is_named(line, "three"))
            fputs("{\"jsonrpc\":\"2.0\",\"method\":\"one\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"two\"}\n", stdout);
        if (id && (is_named(line, "answer") || is_named(line, "three")))
            printf("{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{}}\n", (int)strtoll(id + 5, NULL, 10));
        fflush(stdout);
    }
    free(line);
    return 0;
}
