/* Pieces of an answer, which a provider hands out while it makes the rest: checked one by one, in the engine's process
 * wherever the function runs, and handed on. The first one that is none ends it, and fails the call after it returned.
 */
#include "coreengine/tools/plugin/plugin_internal.h"

#define MAX_DEPTH 8 /* of a piece: it has one level, and the error shall say what is wrong with a second one */

void rv_plugin_pieces_fini(struct rv_plugin_pieces *p)
{
    rv_err_free(p->err);
    p->err = NULL;
}

int rv_plugin_pieces_fail(enum rv_piece_fault fault, rv_err **err)
{
    switch (fault) {
    case RV_PIECE_GOOD:
    case RV_N_PIECE_FAULTS:
        break;
    case RV_PIECE_NULL:
        return RV_FAIL(err, RV_E_PLUGIN, "it handed out a piece that is a null pointer");
    case RV_PIECE_LARGE:
        return RV_FAIL(err, RV_E_PLUGIN, "it handed out pieces of more than %u bytes", RV_CAP_MAX_REPLY);
    case RV_PIECE_LATE:
        return RV_FAIL(err, RV_E_PLUGIN, "it handed out a piece after its answer");
    }
    return 0;
}

int rv_plugin_pieces_check(struct rv_plugin_pieces *p, enum rv_piece_fault fault, rv_err **err)
{
    if (p->rc == 0)
        return rv_plugin_pieces_fail(fault, err);
    if (err)
        *err = p->err;
    else
        rv_err_free(p->err);
    p->err = NULL;
    return p->rc;
}

/* {"text": "..."} or {"thinking": "..."}, and what it holds. */
static int read_piece(json_object *piece, rv_str *out, rv_err **err)
{
    static const char *const keys[] = {"text", "thinking"};
    json_object *value = NULL;
    size_t at = 0;

    if (!json_object_is_type(piece, json_type_object))
        return RV_FAIL(err, RV_E_PLUGIN, "it handed out a piece that is no object but %s", rv_json_type_text(piece));
    while (at < RV_COUNT(keys) && !json_object_object_get_ex(piece, keys[at], &value))
        at++;
    if (at == RV_COUNT(keys) || json_object_object_length(piece) != 1)
        return RV_FAIL(err, RV_E_PLUGIN, "it handed out a piece that has not \"text\" or \"thinking\" alone");
    if (!json_object_is_type(value, json_type_string))
        return RV_FAIL(err, RV_E_PLUGIN, "it handed out \"%s\" that is no string but %s", keys[at],
                       rv_json_type_text(value));
    *out = rv_json_str(value);
    return 0;
}

static int check_piece(rv_str json, bool *is_empty, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_CAP_MAX_REPLY, .max_depth = MAX_DEPTH, .what = "piece"};
    json_object *piece = NULL;
    rv_str text = {NULL, 0};
    int rc = rv_json_parse(json, &opts, &piece, err);

    if (rc < 0)
        return rc == RV_E_NOMEM ? rc : RV_WRAP(err, RV_E_PLUGIN, "it handed out a piece that is not JSON");
    rc = read_piece(piece, &text, err);
    *is_empty = text.len == 0;
    json_object_put(piece);
    return rc;
}

bool rv_plugin_piece(struct rv_plugin_pieces *p, rv_str json)
{
    const struct rv_plugin_call *call = p->call;
    bool is_empty = false;

    if (p->enough)
        return true;
    p->rc = check_piece(json, &is_empty, &p->err);
    if (p->rc < 0)
        p->enough = true;
    else if (!is_empty && call->on_emit)
        p->enough = call->on_emit(call->emit_self, json) != 0;
    return p->enough;
}
