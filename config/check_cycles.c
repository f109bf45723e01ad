/* requires and after must have no cycle: its stages would wait for each other forever. One cycle is reported, with the
 * place of every step. Depth-first with an explicit stack, because a chain may be as long as the list of stages. */
#include <stdio.h>
#include <string.h>

#include "config/config_internal.h"

#define MAX_SHOWN 12 /* steps in the message */

enum color { WHITE, ON_STACK, DONE };

struct frame {
    int stage;
    size_t next; /* dependency to look at: requires first, then after */
};

static size_t n_dependencies(const struct rv_agent *a)
{
    return a->order.requires.n + a->order.after.n;
}

static int dependency(const struct rv_agent *a, size_t i, bool *is_after, struct rv_src *src)
{
    *is_after = i >= a->order.requires.n;
    if (*is_after)
    i -= a->order.requires.n;
    *src = *is_after ? a->order.after.srcs[i] : a->order.requires.srcs[i];
    return *is_after ? a->order.after_index[i] : a->order.requires_index[i];
}

/* frames[from..depth) is a cycle: each frame's last looked-at dependency leads to the next one, the last to the first.
 */
static void report(struct rv_loader *l, const struct frame *frames, size_t from, size_t depth)
{
    const struct rv_pipeline *p = l->p;
    char text[1536];
    size_t len = 0;
    struct rv_src first = {NULL, 0, 0};

    for (size_t i = from; i < depth && len < sizeof text; i++) {
        const struct rv_agent *a = &p->agents[frames[i].stage];
        struct rv_src src;
        bool is_after;
        int to = dependency(a, frames[i].next - 1, &is_after, &src);

        if (i == from)
            first = src;
        if (i - from == MAX_SHOWN) {
            snprintf(text + len, sizeof text - len, ", ... (%zu stages in all)", depth - from);
            break;
        }
        len += (size_t)snprintf(text + len, sizeof text - len, "%s\"%.80s\" %s \"%.80s\" (%d:%d)", i > from ? ", " : "",
                                a->name, is_after ? "is after" : "requires", p->agents[to].name, src.line, src.col);
    }
    rv_findings_add(l->findings, RV_SEVERITY_ERROR, &first,
                    "take one of them out: none of these stages could ever start", "dependency cycle: %s", text);
}

static bool walk_from(struct rv_loader *l, int start, enum color *colors, struct frame *frames)
{
    const struct rv_pipeline *p = l->p;
    size_t depth = 1;

    frames[0] = (struct frame){start, 0};
    colors[start] = ON_STACK;
    while (depth > 0) {
        struct frame *top = &frames[depth - 1];
        const struct rv_agent *a = &p->agents[top->stage];
        struct rv_src src;
        bool is_after;
        int to;

        if (top->next == n_dependencies(a)) {
            colors[top->stage] = DONE;
            depth--;
            continue;
        }
        to = dependency(a, top->next++, &is_after, &src);
        if (to < 0 || to == top->stage) /* unknown, or itself: a finding already */
            continue;
        if (colors[to] == ON_STACK) {
            size_t from = depth - 1;
            while (frames[from].stage != to)
                from--;
            report(l, frames, from, depth);
            return true;
        }
        if (colors[to] == WHITE) {
            colors[to] = ON_STACK;
            frames[depth++] = (struct frame){to, 0};
        }
    }
    return false;
}

void rv_check_cycles(struct rv_loader *l)
{
    size_t n = l->p->n_agents;
    enum color *colors = rv_loader_array(l, n, sizeof *colors);
    struct frame *frames = rv_loader_array(l, n, sizeof *frames);

    if (!colors || !frames)
        return;
    for (size_t i = 0; i < n; i++)
        if (colors[i] == WHITE && walk_from(l, (int)i, colors, frames))
            return;
}
