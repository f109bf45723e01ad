/* References become values. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include <json-c/linkhash.h>

#include "coreengine/base/base.h"
#include "coreengine/plan/plan.h"

#define MAX_ARENA     ((size_t)64 << 20) /* bytes of the values of one step's arguments: eight times MAX_MIB of text */
#define MAX_KEY_SHOWN 64 /* bytes of a key in a reason: with MAX_SHOWN keys the reason stays within 600 bytes */
#define MAX_SHOWN     8  /* keys that a reason names: a model needs the likely ones, not all */
#define MAX_MIB       8  /* of all texts that references are put into, as of a reply */
#define MAX_MIXED     ((size_t)MAX_MIB << 20) /* the same in bytes */
#define MAX_REASON    ((size_t)4 << 10)       /* bytes: a path of RV_PLAN_MAX_PATH and keys */

struct resolving {
    const struct rv_plan_step_output *outputs;
    size_t n;
    rv_arena *arena;
    rv_buf path;
    size_t n_refs, mixed; /* so far */
    struct rv_plan_resolution *out;
};

/* The call must not run. */
static int stop(struct resolving *r, const char *code, rv_str text, rv_str reason, rv_err **err)
{
    r->out->code = code;
    r->out->argument = rv_str_dup(rv_buf_str(&r->path));
    r->out->text = rv_str_dup(text);
    r->out->reason = rv_str_dup(reason);
    if (!r->out->argument || !r->out->text || !r->out->reason)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for arguments");
    return 0;
}

/* No value of a reference: reason says why. */
static int stop_unresolved(struct resolving *r, rv_str text, const rv_buf *reason, rv_err **err)
{
    if (reason->rc == RV_E_NOMEM)
        return rv_buf_check(reason, "reason", err);
    return stop(r, "unresolved_reference", text, rv_buf_str(reason), err);
}

/* What to write instead of a string that cannot be read. */
static const char *advice_for(enum rv_plan_error_type fault)
{
    if (fault == RV_PLAN_ERROR_EMBEDDED_REFERENCE)
        return "inside a text, write ${N.output.path}, or $$ for a dollar sign that begins no reference";
    if (fault == RV_PLAN_ERROR_INVALID_TEMPLATE_SYNTAX)
        return "write $N.output.path or ${N.output.path}, or $$ for a dollar sign that begins no reference";
    assert(fault == RV_PLAN_ERROR_TOO_MANY_REFERENCES);
    return "the arguments of a call have at most " RV_LIMIT_TEXT(RV_PLAN_MAX_REFS) " references";
}

static int stop_malformed(struct resolving *r, enum rv_plan_error_type fault, rv_str text, rv_err **err)
{
    return stop(r, rv_plan_error_text(fault), text, rv_str_of(advice_for(fault)), err);
}

/* --- one reference --- */

/* Keys come from models and tools, and a reason becomes text of the run: it is cut between two characters. */
static rv_str shown(rv_str key)
{
    const char *end = memchr(key.ptr, '\0', key.len); /* of a key that a model wrote with a NUL */

    return rv_utf8_cut((rv_str){key.ptr, end ? (size_t)(end - key.ptr) : key.len}, MAX_KEY_SHOWN);
}

static void say_keys(json_object *from, rv_buf *reason)
{
    size_t n = 0;

    json_object_object_foreach (from, key, value) {
        (void)value;
        if (n == MAX_SHOWN) {
            rv_buf_puts(reason, ", ...");
            break;
        }
        rv_buf_printf(reason, "%s%.*s", n++ == 0 ? "; it has " : ", ", RV_STR_ARG(shown(rv_str_of(key))));
    }
}

/* One step down; false: there is nothing, and reason says so. */
static bool descend(json_object *from, const struct rv_plan_accessor *a, json_object **to, rv_buf *reason)
{
    if (json_object_is_type(from, json_type_array) && a->kind != RV_ACCESSOR_KEY && a->index != SIZE_MAX) {
        size_t n = json_object_array_length(from);
        *to = a->index < n ? json_object_array_get_idx(from, a->index) : NULL;
        if (a->index >= n)
            rv_buf_printf(reason, "index %zu is past the end of a list of %zu", a->index, n);
        return a->index < n;
    }
    if (json_object_is_type(from, json_type_object) && a->kind != RV_ACCESSOR_INDEX) {
        if (!memchr(a->key.ptr, '\0', a->key.len) && json_object_object_get_ex(from, a->key.ptr, to))
            return true;
        rv_buf_printf(reason, "the object has no \"%.*s\"", RV_STR_ARG(shown(a->key)));
        say_keys(from, reason);
        return false;
    }
    const char *type = rv_json_type_text(from);
    if (json_object_is_type(from, json_type_array) && a->kind == RV_ACCESSOR_INDEX)
        rv_buf_printf(reason, "the index is past the end of a list of %zu", json_object_array_length(from));
    else if (a->kind == RV_ACCESSOR_INDEX)
        rv_buf_printf(reason, "[n] needs a list, and the value is %s", type);
    else
        rv_buf_printf(reason, "\"%.*s\" cannot be looked up: the value is %s", RV_STR_ARG(shown(a->key)), type);
    return false;
}

/* A9: the id of an artifact can be referenced although the output does not have it. */
static bool is_artifact_id(const struct rv_plan_step_output *output, const struct rv_plan_accessor *a)
{
    return a && output->artifact_id && a->kind != RV_ACCESSOR_INDEX && rv_str_is(a->key, "artifact_id") &&
           !(json_object_is_type(output->value, json_type_object) &&
             json_object_object_get_ex(output->value, "artifact_id", NULL));
}

bool rv_plan_step_look_up(const struct rv_plan_step_output *outputs, size_t n, const struct rv_plan_ref *ref,
                          json_object **out, rv_buf *reason)
{
    const struct rv_plan_accessor *a = ref->path;

    if (ref->call >= n) {
        rv_buf_printf(reason, "call %zu is not an earlier call of this plan", ref->call);
        return false;
    }
    if (!outputs[ref->call].usable) {
        rv_buf_printf(reason, "call %zu did not succeed", ref->call);
        return false;
    }
    *out = outputs[ref->call].value;
    if (is_artifact_id(&outputs[ref->call], a)) {
        *out = outputs[ref->call].artifact_id;
        a = a->next;
    }
    for (; a; a = a->next)
        if (!descend(*out, a, out, reason))
            return false;
    return true;
}

/* --- one string --- */

static void put_text(json_object *value, rv_buf *to)
{
    if (json_object_is_type(value, json_type_string))
        rv_buf_add_str(to, rv_json_str(value));
    else
        rv_json_write(value, to);
}

/* The pieces one behind the other. */
static int join(struct resolving *r, const struct rv_plan_argument *t, rv_str text, json_object **to, rv_err **err)
{
    rv_buf whole = RV_BUF_INIT(MAX_MIXED - r->mixed), reason = RV_BUF_INIT(MAX_REASON);
    bool found = true;
    int rc = 0;

    for (const struct rv_plan_piece *p = t->first; p && found; p = p->next) {
        json_object *value = NULL;
        if (!p->ref)
            rv_buf_add_str(&whole, p->text);
        else if ((found = rv_plan_step_look_up(r->outputs, r->n, p->ref, &value, &reason)))
            put_text(value, &whole);
    }
    if (whole.rc == RV_E_NOMEM) {
        rc = rv_buf_check(&whole, "argument", err);
    } else if (!found) {
        rc = stop_unresolved(r, text, &reason, err);
    } else if (whole.rc == RV_E_LIMIT) {
        rc = stop(r, "too_large", text,
                  RV_STR_LIT("texts with references would have more than " RV_LIMIT_TEXT(MAX_MIB) " MiB"), err);
    } else {
        r->mixed += whole.len;
        rc = rv_buf_check(&whole, "argument", err);
        *to = rc == 0 ? json_object_new_string_len(rv_buf_cstr(&whole), (int)whole.len) : NULL;
        if (rc == 0 && !*to)
            rc = RV_FAIL(err, RV_E_NOMEM, "no memory for arguments");
    }
    rv_buf_fini(&whole);
    rv_buf_fini(&reason);
    return rc;
}

static int read_whole(struct resolving *r, const struct rv_plan_argument *t, rv_str text, json_object **to,
                      rv_err **err)
{
    rv_buf reason = RV_BUF_INIT(MAX_REASON);
    json_object *value = NULL;
    int rc = 0;

    if (rv_plan_step_look_up(r->outputs, r->n, t->first->ref, &value, &reason))
        *to = json_object_get(value);
    else
        rc = stop_unresolved(r, text, &reason, err);
    rv_buf_fini(&reason);
    return rc;
}

static int resolve_string(struct resolving *r, json_object *from, json_object **to, rv_err **err)
{
    rv_str text = rv_json_str(from);
    struct rv_plan_argument t;

    *to = NULL;
    if (!memchr(text.ptr, '$', text.len)) {
        *to = json_object_get(from);
        return 0;
    }
    int rc = rv_plan_argument_read(text, r->arena, &t, err);
    if (rc < 0)
        return rc;
    r->n_refs += t.n_refs;
    if (t.fault || r->n_refs > RV_PLAN_MAX_REFS)
        return stop_malformed(r, t.fault ? t.fault : RV_PLAN_ERROR_TOO_MANY_REFERENCES, text, err);
    return t.whole ? read_whole(r, &t, text, to, err) : join(r, &t, text, to, err);
}

/* --- a tree --- */

static int resolve(struct resolving *r, json_object *from, int depth, json_object **to, rv_err **err);

static int resolve_object(struct resolving *r, json_object *from, int depth, json_object *into, rv_err **err)
{
    size_t mark = r->path.len;

    json_object_object_foreach (from, key, value) {
        json_object *child = NULL;
        rv_buf_printf(&r->path, "%s%s", mark > 0 ? "." : "", key);
        int rc = resolve(r, value, depth + 1, &child, err);
        if (rc < 0 || r->out->code)
            return rc;
        rc = rv_json_set_ref(into, key, child, err);
        json_object_put(child);
        if (rc < 0)
            return rc;
        rv_buf_truncate(&r->path, mark);
    }
    return 0;
}

static int resolve_array(struct resolving *r, json_object *from, int depth, json_object *into, rv_err **err)
{
    size_t mark = r->path.len;

    for (size_t i = 0; i < json_object_array_length(from); i++) {
        json_object *child = NULL;
        rv_buf_printf(&r->path, "[%zu]", i);
        int rc = resolve(r, json_object_array_get_idx(from, i), depth + 1, &child, err);
        if (rc < 0 || r->out->code)
            return rc;
        rc = rv_json_push_ref(into, child, err);
        json_object_put(child);
        if (rc < 0)
            return rc;
        rv_buf_truncate(&r->path, mark);
    }
    return 0;
}

/* A copy in *to, owned, NULL for null; nothing when the call must not run. */
static int resolve(struct resolving *r, json_object *from, int depth, json_object **to, rv_err **err)
{
    bool is_object = json_object_is_type(from, json_type_object);

    *to = NULL;
    if (json_object_is_type(from, json_type_string))
        return resolve_string(r, from, to, err);
    if (!is_object && !json_object_is_type(from, json_type_array)) {
        *to = json_object_get(from);
        return 0;
    }
    if (depth >= RV_PLAN_MAX_DEPTH)
        return stop(r, "too_large", RV_STR_LIT(""),
                    RV_STR_LIT("the arguments have more than " RV_LIMIT_TEXT(RV_PLAN_MAX_DEPTH) " levels"), err);
    *to = is_object ? json_object_new_object() : json_object_new_array();
    if (!*to)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for arguments");
    int rc = is_object ? resolve_object(r, from, depth, *to, err) : resolve_array(r, from, depth, *to, err);
    if (rc < 0 || r->out->code) {
        json_object_put(*to);
        *to = NULL;
    }
    return rc;
}

int rv_plan_resolve(json_object *arguments, const struct rv_plan_step_output *outputs, size_t n,
                    struct rv_plan_resolution *out, rv_err **err)
{
    struct resolving r = {outputs, n, rv_arena_new(MAX_ARENA), RV_BUF_INIT(RV_PLAN_MAX_BYTES), 0, 0, out};

    *out = (struct rv_plan_resolution){0};
    if (!r.arena)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for arguments");
    int rc = resolve(&r, arguments, 0, &out->arguments, err);
    if (rc == 0 && r.path.rc == RV_E_NOMEM)
        rc = RV_FAIL(err, RV_E_NOMEM, "no memory for arguments");
    rv_arena_free(r.arena);
    rv_buf_fini(&r.path);
    return rc;
}
