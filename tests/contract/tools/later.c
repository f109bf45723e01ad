/* The source of calls that end later: a queue that the test turns. */
#include "tests/contract/tools/world.h"

static const struct rv_tool_info infos[] = {
    {.name = "fades", .category = RV_UNSET, .risk = RV_RISK_READ_ONLY, .effect = RV_UNSET},
    {.name = "fails", .category = RV_UNSET, .risk = RV_RISK_READ_ONLY, .effect = RV_UNSET},
    {.name = "good", .category = RV_UNSET, .risk = RV_RISK_READ_ONLY, .effect = RV_UNSET},
    {.name = "slow", .category = RV_UNSET, .risk = RV_RISK_WRITE, .effect = RV_UNSET},
};
static const char *const all[] = {"fades", "fails", "good", "slow"};

static const struct rv_tool_info *find(void *self, rv_str name)
{
    const struct later *l = self;

    for (size_t i = l->offers_fades ? 0 : 1; i < RV_COUNT(infos); i++)
        if (rv_str_is(name, infos[i].name))
            return &infos[i];
    return NULL;
}

static const char *const *names(void *self, size_t *n)
{
    const struct later *l = self;

    *n = RV_COUNT(all) - !l->offers_fades;
    return all + !l->offers_fades;
}

static int call(void *self, struct rv_tool_call *c, rv_err **err)
{
    struct later *l = self;

    if (!find(self, rv_str_of(c->tool)))
        return RV_FAIL(err, RV_E_NOT_FOUND, "the server has no tool \"%s\"", c->tool);
    if (l->n == RV_COUNT(l->queue))
        return RV_FAIL(err, RV_E_LIMIT, "%zu calls are under way", l->n);
    c->state = (void *)find(self, rv_str_of(c->tool)); /* the name is not the source's to keep */
    l->queue[l->n++] = c;
    return 0;
}

static void drop(struct later *l, size_t i)
{
    l->n--;
    memmove(&l->queue[i], &l->queue[i + 1], (l->n - i) * sizeof(l->queue[0]));
}

static void cancel(void *self, struct rv_tool_call *c)
{
    struct later *l = self;

    for (size_t i = 0; i < l->n; i++)
        if (l->queue[i] == c)
            drop(l, i);
}

static void close(void *self)
{
    struct later *l = self;

    ck_assert_uint_eq(l->n, 0); /* what was under way has been cancelled */
}

static const struct rv_tool_source_ops ops = {
    .name = "later", .find = find, .names = names, .call = call, .cancel = cancel, .close = close};

struct rv_tool_source *later_init(struct later *l)
{
    *l = (struct later){.source = {.ops = &ops, .self = l}, .offers_fades = true};
    return &l->source;
}

void later_turn(struct later *l)
{
    for (size_t i = 0; i < l->n; i++) {
        struct rv_tool_call *c = l->queue[i];
        const struct rv_tool_info *tool = c->state;
        struct rv_tool_reply reply = {.text = RV_BUF_INIT(100)};
        if (strcmp(tool->name, "slow") == 0)
            continue;
        reply.failed = strcmp(tool->name, "fails") == 0;
        reply.error_type = reply.failed ? "NotFoundError" : NULL;
        rv_buf_puts(&reply.text, reply.failed ? "no such thing" : "{\"ok\": true}");
        drop(l, i);
        rv_tool_call_finish(c, &reply);
        return;
    }
}
