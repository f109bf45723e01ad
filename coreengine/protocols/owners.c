/* Whose events and pieces are: visits of stages, agents that were asked, and the names under which clients know them.
 */
#include <stdlib.h>
#include <string.h>

#include "coreengine/protocols/protocols_internal.h"

#define MAX_KEY    4096  /* bytes of the ids that name one call: a stage, a path of stages and two numbers */
#define MAX_OWNERS 16384 /* agents that speak in one stream: they are in memory; four times RV_PROTOCOL_MAX_CALLS */
#define MAX_NAME   1000  /* bytes of the id of a call, or of a stage, in a name: clients get it in each event */

void proto_fail(rv_protocol *p, int rc)
{
    if (p->rc == 0)
        p->rc = rc;
}

/* --- names --- */

const char *proto_name(rv_protocol *p, const char *base)
{
    rv_str beginning = rv_utf8_cut(rv_str_of(base), MAX_NAME);
    rv_buf name = RV_BUF_INIT(2 * MAX_NAME);
    char *out = NULL;

    rv_buf_add_str(&name, beginning);
    for (int64_t i = 2; name.rc == 0 && rv_index_get(&p->names, rv_buf_str(&name)) >= 0; i++) {
        rv_buf_truncate(&name, beginning.len);
        rv_buf_printf(&name, "~%lld", (long long)i);
    }
    proto_keep(p, &name);
    if (p->rc == 0)
        out = rv_arena_dup(p->room, rv_buf_str(&name));
    if (!out || rv_index_add(&p->names, rv_str_of(out), 1) < 0)
        proto_fail(p, RV_E_NOMEM);
    rv_buf_fini(&name);
    return p->rc == 0 ? out : NULL;
}

bool proto_was_said(const rv_protocol *p, rv_str text)
{
    rv_str words = rv_str_trim(text);

    return words.len == 0 || p->said.rc < 0 ||
           (p->said.len >= words.len && memmem(p->said.ptr, p->said.len, words.ptr, words.len));
}

void proto_said(rv_protocol *p, rv_str text, bool begins_part)
{
    if (begins_part && p->said.len > 0)
        rv_buf_puts(&p->said, "\n\n");
    rv_buf_add_str(&p->said, text);
    if (p->said.rc == RV_E_NOMEM)
        proto_fail(p, RV_E_NOMEM);
}

/* --- owners --- */

/* What tells a visit from all others; NULL: no memory, or too long. */
static char *write_visit(rv_protocol *p, const char *stage, int64_t visit, const char *path, int64_t index)
{
    rv_buf key = RV_BUF_INIT(MAX_KEY);

    rv_buf_printf(&key, "%s\n%s\n%lld\n%lld", stage ? stage : "", path ? path : "", (long long)index, (long long)visit);
    proto_keep(p, &key);
    char *out = key.rc == 0 ? rv_buf_steal(&key, NULL) : NULL;
    rv_buf_fini(&key);
    return out;
}

static char *visit_of(rv_protocol *p, json_object *event)
{
    int64_t visit = 0, index = -1;

    if (!rv_json_get_int(event, "visit", &visit))
        visit = 0;
    if (!rv_json_get_int(event, "index", &index))
        index = -1;
    return write_visit(p, proto_member(event, "stage"), visit, proto_member(event, "path"), index);
}

/* Takes visit. who NULL: the stage's own agent. */
static struct proto_owner *add_owner(rv_protocol *p, char *visit, const char *agent, const char *asked_by, int depth)
{
    struct proto_owner *o = p->n_owners < MAX_OWNERS ? calloc(1, sizeof *o) : NULL;

    if (p->n_owners >= MAX_OWNERS)
        proto_fail(p, RV_E_LIMIT);
    if (!o || !visit || !rv_has_room(&p->owners, &p->cap_owners, p->n_owners + 1, sizeof *p->owners)) {
        free(o);
        free(visit);
        proto_fail(p, RV_E_NOMEM);
        return NULL;
    }
    p->owners[p->n_owners++] = o;
    o->visit = visit;
    o->origin.agent = rv_str_dup(rv_str_of(agent ? agent : ""));
    o->origin.depth = depth;
    if (!o->origin.agent)
        proto_fail(p, RV_E_NOMEM);
    if (asked_by && !(o->asked_by = rv_str_dup(rv_str_of(asked_by))))
        proto_fail(p, RV_E_NOMEM);
    o->origin.parent_tool_call_id = o->asked_by;
    const struct rv_chat_speaker speaker = {
        .who = &o->origin,
        .child_text = p->opts.child_text >= 0 && p->opts.child_text < RV_N_CHILD_TEXTS ? p->opts.child_text
                                                                                       : RV_CHILD_TEXT_FINAL};
    if (p->ops->can_be_whole) /* one text out of all: see flat.c */
        rv_chat_sink_on_ask(&p->sink, &speaker);
    return o;
}

static bool is_of(const struct proto_owner *o, const char *visit, const char *asked_by)
{
    if (o->is_over || o->is_suspended || strcmp(o->visit, visit) != 0)
        return false;
    return asked_by ? o->asked_by && strcmp(o->asked_by, asked_by) == 0 : !o->asked_by;
}

static struct proto_owner *find_owner(const rv_protocol *p, const char *visit, const char *asked_by)
{
    for (size_t i = p->n_owners; i-- > 0;)
        if (is_of(p->owners[i], visit, asked_by))
            return p->owners[i];
    return NULL;
}

static struct proto_owner *root_of(rv_protocol *p, const char *visit)
{
    struct proto_owner *o = find_owner(p, visit, NULL);

    return o ? o : add_owner(p, rv_str_dup(rv_str_of(visit)), NULL, NULL, 0);
}

struct proto_call *proto_call_find(const rv_protocol *p, const char *visit, const char *id)
{
    for (size_t i = p->n_calls; i-- > 0;)
        if (strcmp(p->calls[i]->id, id) == 0 && strcmp(p->calls[i]->by->visit, visit) == 0)
            return p->calls[i];
    return NULL;
}

/* Of an agent that was asked before this stream began, the call is not known. */
static struct proto_owner *add_asked(rv_protocol *p, const char *visit, const char *agent, const char *asked_by,
                                     int depth)
{
    struct proto_call *call = proto_call_find(p, visit, asked_by);
    struct proto_owner *parent = call ? call->by : root_of(p, visit);
    struct proto_owner *o = add_owner(p, rv_str_dup(rv_str_of(visit)), agent, asked_by, depth);

    if (!o || !parent)
        return NULL;
    o->parent = parent;
    o->origin.parent = &parent->origin;
    o->call = call ? call->shown : o->asked_by;
    rv_buf run = RV_BUF_INIT(2 * MAX_NAME);
    rv_buf_puts(&run, "agent-");
    rv_buf_add_str(&run, rv_utf8_cut(rv_str_of(o->call), MAX_NAME));
    proto_keep(p, &run);
    o->run = proto_name(p, rv_buf_cstr(&run));
    rv_buf_fini(&run);
    return p->rc == 0 ? o : NULL;
}

/* Two visits to a stage at the same place: their keys differ in what is last. */
static bool same_place(const char *a, const char *b)
{
    size_t n = (size_t)(strrchr(a, '\n') - a);

    return strncmp(a, b, n + 1) == 0 && !strchr(b + n + 1, '\n');
}

/* A visit that waited for an answer goes on as the next one to its stage, with the agents and calls that it had. */
static void revive(rv_protocol *p, const char *visit)
{
    struct proto_owner *root = NULL;

    for (size_t i = p->n_owners; i-- > 0 && !root;)
        if (p->owners[i]->is_suspended && same_place(p->owners[i]->visit, visit))
            root = p->owners[i];
    if (!root)
        return;
    char *old = rv_str_dup(rv_str_of(root->visit));
    if (!old)
        proto_fail(p, RV_E_NOMEM);
    root->is_suspended = false;
    for (size_t i = 0; i < p->n_owners && p->rc == 0; i++) {
        struct proto_owner *o = p->owners[i];
        if (o->is_over || strcmp(o->visit, old) != 0)
            continue;
        char *now = rv_str_dup(rv_str_of(visit));
        if (!now) {
            proto_fail(p, RV_E_NOMEM);
            break;
        }
        free(o->visit);
        o->visit = now;
    }
    free(old);
}

static struct proto_owner *owner_at(rv_protocol *p, const char *visit, const char *agent, const char *asked_by,
                                    int depth)
{
    struct proto_owner *o = find_owner(p, visit, asked_by);

    if (o || p->rc < 0)
        return o;
    revive(p, visit);
    o = p->rc == 0 ? find_owner(p, visit, asked_by) : NULL;
    if (o || p->rc < 0)
        return o;
    return asked_by ? add_asked(p, visit, agent ? agent : "agent", asked_by, depth) : root_of(p, visit);
}

struct proto_owner *proto_owner_of(rv_protocol *p, json_object *event)
{
    char *visit = visit_of(p, event);
    struct proto_owner *o = NULL;
    int64_t depth = 0;

    if (!rv_json_get_int(event, "depth", &depth) || depth < 0 || depth > 1000)
        depth = 1;
    if (visit)
        o = owner_at(p, visit, proto_member(event, "agent"), proto_member(event, "parent_tool_call_id"), (int)depth);
    free(visit);
    return o;
}

/* Of a piece: who asked that model. */
struct proto_owner *proto_owner_of_reply(rv_protocol *p, const struct rv_protocol_from *from)
{
    for (size_t i = p->n_owners; i-- > 0;)
        if (from->call_id > 0 && p->owners[i]->reply == from->call_id)
            return p->owners[i];
    char *visit = write_visit(p, from->stage, 0, NULL, -1); /* no event told of the call */
    struct proto_owner *o =
        visit ? owner_at(p, visit, from->agent, from->agent ? from->parent_tool_call_id : NULL, from->depth) : NULL;
    free(visit);
    return o;
}
