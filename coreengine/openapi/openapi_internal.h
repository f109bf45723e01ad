/* Shared by the files of this folder only. */
#ifndef RV_OPENAPI_INTERNAL_H
#define RV_OPENAPI_INTERNAL_H

#include "coreengine/mcp/mcp.h"
#include "coreengine/openapi/openapi.h"

#define OPENAPI_MAX_WHY    ((size_t)600) /* bytes of a reason: MAX_SHOWN of a path and a sentence */
#define OPENAPI_NOMEM(err) RV_FAIL((err), RV_E_NOMEM, "no memory for the operations of a REST server")

/* --- base.c --- */
/** Append the address at which the operations begin, without a slash at its end. RV_E_INVALID, RV_E_NOMEM. */
RV_MUST_CHECK int openapi_base(json_object *document, const struct rv_openapi_opts *opts, rv_buf *out, rv_err **err);

/* --- schema.c --- */
/** Follow the `$ref` of a value, if it has one. NULL: it leads nowhere, outside, or in a circle; then why says so. */
json_object *openapi_follow(json_object *document, json_object *value, rv_buf *why);
/* Schemas of one operation in one direction: those that references name are gathered beside the schema itself. */
struct openapi_schemas {
    json_object *document; /* borrowed */
    bool is_answer;    /* what the server sends: its members that are only read stay, those that are only written go */
    bool is_30;        /* the dialect of OpenAPI 3.0 */
    json_object *defs; /* of $defs; owned; NULL: none */
    rv_index names;    /* of references: places in refs */
    const char **refs; /* borrowed from the document */
    size_t n_refs, cap_refs;
    size_t n_bytes; /* of what was copied */
    rv_buf *why;    /* not empty: it cannot be used; borrowed */
};
/** The schema as JSON Schema has it, the caller's. 0 with why set: it cannot be used, and *out is not set. */
RV_MUST_CHECK int openapi_schema(struct openapi_schemas *s, json_object *schema, json_object **out, rv_err **err);
/** Copy all that references name into defs. As above. */
RV_MUST_CHECK int openapi_schemas_finish(struct openapi_schemas *s, rv_err **err);
void openapi_schemas_fini(struct openapi_schemas *s);

/* --- operation.c --- */
enum openapi_in { OPENAPI_PATH, OPENAPI_QUERY, OPENAPI_HEADER, OPENAPI_BODY, OPENAPI_N_INS };
enum openapi_style { OPENAPI_PLAIN, OPENAPI_DEEP, OPENAPI_SPACES, OPENAPI_PIPES, OPENAPI_JSON, OPENAPI_N_STYLES };
extern const char *const openapi_ins[], *const openapi_styles[]; /* by these, as a definition has them */
/* Texts are borrowed from the document or the definition. */
struct openapi_parameter {
    const char *argument, *name; /* of the tool; in the request */
    enum openapi_in in;
    enum openapi_style style;
    bool explode;
};
/* Texts are borrowed from the document or the definition. */
struct openapi_operation {
    const char *method, *path;
    const char *url; /* at which it begins; "": the configured one */
    struct openapi_parameter parameters[RV_OPENAPI_MAX_PARAMETERS + 1];
    size_t n;
};
/** Can it be the path of an operation? */
bool openapi_is_path(const char *path);
/** May a parameter be that header? Some belong to the connection; with `how` also to who configures the server, and to
 *  what the engine says of a call. */
bool openapi_is_header(const char *name, const struct rv_openapi_opts *how);

/* --- parameters.c --- */
struct openapi_source {
    json_object *document, *path_item, *operation; /* borrowed */
    const struct rv_openapi_opts *how;             /* borrowed */
    bool is_30;
    size_t *n_bytes; /* of the schemas that were copied: counts on */
};
/** What the operation takes: fills in o->parameters, and the schemas of its arguments and of its answer, which are the
 *  caller's; *output NULL: the document does not promise one. 0 with why set: it cannot be a tool, and neither is set.
 */
RV_MUST_CHECK int openapi_parameters(const struct openapi_source *s, struct openapi_operation *o, json_object **input,
                                     json_object **output, rv_buf *why, rv_err **err);

#endif
