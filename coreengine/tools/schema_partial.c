/* A check for a caller that wants each fault by itself, of a value parts of which may not be known yet. */
#include <json-c/linkhash.h>
#include <stdlib.h>

#include "coreengine/tools/schema_internal.h"

void tools_schema_report(struct rv_schema_check *c, rv_buf *line)
{
    size_t n = (size_t)c->fault_at->depth, i = n;
    struct rv_schema_step *steps = calloc(n + 1, sizeof *steps);

    if (!steps) {
        c->rc = RV_E_NOMEM;
        return;
    }
    for (const struct rv_schema_path *at = c->fault_at; at->up; at = at->up)
        steps[--i] = (struct rv_schema_step){at->key, at->i};
    rv_buf_truncate(line, rv_utf8_cut((rv_str){line->ptr, line->len}, line->len).len);
    c->fault.steps = steps;
    c->fault.n_steps = n;
    c->fault.text = rv_buf_cstr(line);
    c->partial->fault(c->partial->self, &c->fault);
    c->n_listed++;
    free(steps);
}

bool tools_schema_has_hole(struct rv_schema_check *c, json_object *v)
{
    bool found = c->partial && v && v == c->partial->hole;

    if (!c->partial || !c->partial->hole || found || c->rc)
        return found;
    if (c->steps == 0) {
        c->rc = RV_E_LIMIT;
        return false;
    }
    c->steps--;
    if (json_object_is_type(v, json_type_array)) {
        for (size_t i = 0; !found && i < json_object_array_length(v); i++)
            found = tools_schema_has_hole(c, json_object_array_get_idx(v, i));
    } else if (json_object_is_type(v, json_type_object)) {
        json_object_object_foreach (v, key, child) {
            (void)key;
            found = found || tools_schema_has_hole(c, child);
        }
    }
    return found;
}

int rv_schema_check_partial(const rv_schema *s, json_object *value, const struct rv_schema_partial *partial,
                            size_t *n_faults, rv_err **err)
{
    struct rv_schema_check c = {.steps = RV_SCHEMA_MAX_STEPS, .partial = partial};
    struct rv_schema_path top = {NULL, NULL, 0, 0};

    tools_schema_check_node(&c, s->root, value, &top);
    *n_faults = c.n_faults;
    int rc = c.rc ? tools_schema_unfinished(s, &c, err) : 0;
    rv_err_free(c.failed);
    return rc;
}
