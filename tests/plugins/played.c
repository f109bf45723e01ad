/* A provider that plays what a file has for each request, and adds the request to another file, a line each. The file
 * is named by PEER_URL, the other one has ".requests" behind its name. Its lines: "+JSON" a piece, "=JSON" the reply,
 * which ends the answer to one request. */
#include <reeve/capability.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* Lines of the file up to the reply of request n. */
static int play(struct rv_cap_call *call, FILE *f, int n)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    int rc = -1;

    while (rc < 0 && (len = getline(&line, &cap, f)) > 0) {
        line[len - 1] = '\0';
        if (n == 0 && line[0] == '+')
            call->emit(call, line + 1);
        else if (line[0] == '=' && n-- == 0)
            rc = call->reply(call, line + 1);
    }
    free(line);
    return rc < 0 ? call->fail(call, "bad_request", "the conversation is over") : rc;
}

static int served(void *self, struct rv_cap_call *call)
{
    static int n; /* one run at a time */
    const char *path = getenv("PEER_URL");
    char other[1024];

    (void)self;
    snprintf(other, sizeof other, "%s.requests", path ? path : "");
    FILE *asked = fopen(other, "a"), *f = fopen(path ? path : "", "r");
    if (asked)
        fprintf(asked, "%s\n", call->args);
    int rc = asked && f ? play(call, f, n++) : call->fail(call, "bad_request", "there is nothing to play");
    if (asked)
        fclose(asked);
    if (f)
        fclose(f);
    return rc;
}

static const struct rv_cap_entry entries[] = {
    {RV_CAP_PROVIDER, "served", RV_CAP_JSON({"description" : "Plays a file."}), served},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "played", .version = "1", .description = "Plays what a file has.", .entries = entries)
