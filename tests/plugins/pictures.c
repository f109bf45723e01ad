/* Hooks before a model that see and change the attachments of its request, right and wrong. The tool asks for what only
 * a hook has. */
#include <reeve/capability.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int same(void *self, struct rv_cap_call *call)
{
    uint32_t n = 0;
    const struct rv_cap_attachment *list = call->attachments(call, &n);

    (void)self;
    return call->replace_attachments(call, list, n);
}

/* The last one first, and one of its own before it. */
static int turned(void *self, struct rv_cap_call *call)
{
    struct rv_cap_attachment out[RV_CAP_MAX_ATTACHMENTS];
    uint32_t n = 0, n_out = 0;
    const struct rv_cap_attachment *list = call->attachments(call, &n);

    (void)self;
    out[n_out++] = (struct rv_cap_attachment){.data = "AAAA", .media_type = "image/png", .name = "a \"b\".png"};
    while (n > 0)
        out[n_out++] = list[--n];
    return call->replace_attachments(call, out, n_out);
}

/* What it sees, as text. */
static int told(void *self, struct rv_cap_call *call)
{
    char text[4096];
    uint32_t n = 99;
    const struct rv_cap_attachment *list = call->attachments(call, &n);
    int len = snprintf(text, sizeof text, "{\"seen\": \"");

    (void)self;
    for (uint32_t i = 0; i < n && len < 2000; i++)
        len += snprintf(text + len, sizeof text - (size_t)len, "%s|%s|%.100s|%s|%s;", list[i].type, list[i].url,
                        list[i].data, list[i].media_type, list[i].name);
    snprintf(text + len, sizeof text - (size_t)len, "%s\"}", n == 0 && list ? " a list of none" : "");
    return call->reply(call, text);
}

static int too_many(void *self, struct rv_cap_call *call)
{
    static const struct rv_cap_attachment many[RV_CAP_MAX_ATTACHMENTS + 1];

    (void)self;
    return call->replace_attachments(call, many, RV_CAP_MAX_ATTACHMENTS + 1);
}

static int no_list(void *self, struct rv_cap_call *call)
{
    (void)self;
    return call->replace_attachments(call, NULL, 3);
}

static int a_huge_one(void *self, struct rv_cap_call *call)
{
    size_t n = (size_t)RV_CAP_MAX_REPLY + 1;
    char *text = malloc(n + 1);
    int rc;

    (void)self;
    if (!text)
        return call->fail(call, "ExecutionError", "no memory");
    memset(text, 'A', n);
    text[n] = '\0';
    rc = call->replace_attachments(call, &(struct rv_cap_attachment){.data = text, .media_type = "image/png"}, 1);
    free(text);
    return rc;
}

static int odd_bytes(void *self, struct rv_cap_call *call)
{
    (void)self;
    return call->replace_attachments(call, &(struct rv_cap_attachment){.url = "https://\377\376"}, 1);
}

static int twice(void *self, struct rv_cap_call *call)
{
    (void)self;
    (void)call->replace_attachments(call, NULL, 0);
    return call->reply(call, "{}");
}

static const struct rv_cap_entry entries[] = {
    {RV_CAP_HOOK, "same", "{}", same},
    {RV_CAP_HOOK, "turned", "{}", turned},
    {RV_CAP_HOOK, "told", "{}", told},
    {RV_CAP_HOOK, "too_many", "{}", too_many},
    {RV_CAP_HOOK, "no_list", "{}", no_list},
    {RV_CAP_HOOK, "a_huge_one", "{}", a_huge_one},
    {RV_CAP_HOOK, "odd_bytes", "{}", odd_bytes},
    {RV_CAP_HOOK, "twice", "{}", twice},
    {RV_CAP_TOOL, "told", "{\"description\":\"d\",\"risk\":\"read_only\"}", told},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "pictures", .entries = entries)
