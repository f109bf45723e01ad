/* Artifacts: what tools make for people, found in their results. Also the shape in which tools that this engine serves
 * return theirs. Pure: ids and times are the caller's. */
#ifndef RV_PLAN_ARTIFACT_H
#define RV_PLAN_ARTIFACT_H

#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"

/* --- Results of tools become the outputs that templates reference. A result is hostile: one that is not formed as a
 * result is a failure of that call, with a code. --- */

enum rv_output_check { RV_OUTPUT_STRICT, RV_OUTPUT_WARN, RV_OUTPUT_OFF, RV_N_OUTPUT_CHECKS };

/* What a tool promises about its outputs. */
struct rv_output_promise {
    bool has_schema;
    enum rv_output_check check;
    const void *schema; /* borrowed; what `fits` is asked with */
    /** 0: the value fits. RV_E_NOMEM, or any other failure: it does not, and *err says why. NULL: everything fits. */
    int (*fits)(const void *schema, json_object *value, rv_err **err);
};

struct rv_output {
    json_object *value; /* owned; of a success, NULL is a JSON null; of a failure always NULL */
    const char *code;   /* static; of a failure: tool_error, invalid_result, missing_structured_content,
                           output_schema_violation; NULL: a success */
    char *text;         /* owned; why it failed, or of a success a warning, else NULL */
};

/** The output of one result of `tools/call`: {content?, structuredContent?, isError?}.
 *  @param out filled in any case; rv_output_fini() it. It shares what it holds with result.
 *  @return 0 (also for a failed call), RV_E_NOMEM */
RV_MUST_CHECK int rv_output_build(json_object *result, const struct rv_output_promise *promise, struct rv_output *out,
                                  rv_err **err);
static inline void rv_output_fini(struct rv_output *out)
{
    json_object_put(out->value);
    free(out->text);
    memset(out, 0, sizeof *out);
}

#define RV_ARTIFACT_PROVENANCE "io.systemprompt/execution" /* the key of a result's _meta, unless configured */
#define RV_ARTIFACT_MAX_TYPE   64                          /* bytes of the name of a type; a longer one is cut */

/* Who asked, and where; NULL: not known. What it points to is borrowed for the call. */
struct rv_artifact_context {
    const char *context_id, *request_id, *trace_id, *session_id, *user_id, *agent_name, *task_id;
    const char *skill_id, *skill_name, *execution_id;
};

/* A call that succeeded, or failed. All borrowed. */
struct rv_artifact_source {
    const char *tool;        /* its name: the title */
    json_object *arguments;  /* resolved; NULL: {} */
    json_object *result;     /* of tools/call */
    json_object *schema;     /* the output schema of the tool; NULL: none */
    size_t index;            /* of the call in the plan */
    const char *fresh_id;    /* the id of an artifact whose result has none; NULL: such a result has none */
    const char *created_at;  /* RFC 3339 */
    const char *provenance;  /* the key in _meta; NULL: RV_ARTIFACT_PROVENANCE */
    bool is_internal;        /* not shown to people */
    bool is_refused;         /* a policy: this caller may not create artifacts, for instance without an identity */
    json_object *extensions; /* URIs of how it may be rendered, a list that is carried through; NULL: none */
    struct rv_artifact_context context;
};

enum rv_artifact_form { RV_ARTIFACT_WRAPPER, RV_ARTIFACT_WITH_META, RV_ARTIFACT_BARE };

struct rv_artifact {
    bool exists; /* A7: false of a call that failed or has no structured content */
    enum rv_artifact_form form;
    json_object *id;       /* owned, a string: also what references to artifact_id find; NULL: none */
    json_object *parts;    /* owned, a list, of every result that succeeded: {text} | {data} | {file: {name?, mimeType?,
                              bytes | url}} */
    json_object *payload;  /* borrowed from the result */
    json_object *metadata; /* owned, an object */
    char type[RV_ARTIFACT_MAX_TYPE + 1];
    char *warning; /* owned; what could not be read, or what the payload of this type lacks; else NULL */
};

/** Does the output schema say that the tool makes artifacts, by x-artifact-type? NULL: no. */
bool rv_artifact_is_declared(json_object *schema);
/** A1: is the value a wrapper around an artifact? */
bool rv_artifact_is_wrapped(json_object *value);
/** Read the artifact of a result. A result that is not formed as one has none, with a warning.
 *  @param out filled in any case; rv_artifact_fini() it
 *  @return 0, RV_E_NOMEM */
RV_MUST_CHECK int rv_artifact_build(const struct rv_artifact_source *source, struct rv_artifact *out, rv_err **err);
void rv_artifact_fini(struct rv_artifact *artifact);
/** {id, title, type, parts, metadata} of an artifact that exists. */
void rv_artifact_write(const struct rv_artifact *artifact, const char *title, rv_jw *out);

/* --- tools that this engine serves --- */

/** The output schema of a tool that returns wrapped artifacts.
 *  @param artifact the schema of the artifact, of which *out takes a reference; NULL: any object */
RV_MUST_CHECK int rv_artifact_build_schema(json_object *artifact, json_object **out, rv_err **err);
/* What such a tool made. Borrowed for the call. */
struct rv_artifact_made {
    json_object *artifact;
    const char *id, *tool;
    const char *at;      /* RFC 3339 */
    const char *summary; /* the text block for models */
};
/** Its result: {content, structuredContent: {artifact_id, artifact, _metadata}, _meta}. */
RV_MUST_CHECK int rv_artifact_wrap(const struct rv_artifact_made *made, const struct rv_artifact_context *context,
                                   json_object **out, rv_err **err);

#endif
