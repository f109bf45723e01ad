/* What the files of artifacts share. */
#ifndef RV_PLAN_ARTIFACT_INTERNAL_H
#define RV_PLAN_ARTIFACT_INTERNAL_H

#include "coreengine/plan/artifact.h"

/* The object under a key, if that is one in an object; else NULL. */
static inline json_object *plan_artifact_object(json_object *from, const char *key)
{
    return json_object_is_type(from, json_type_object) ? rv_json_get_obj(from, key) : NULL;
}

/* The text under a key of an object; NULL: there is none, or it is empty. */
static inline const char *plan_artifact_text(json_object *from, const char *key)
{
    const char *text = NULL;

    if (!json_object_is_type(from, json_type_object) || !rv_json_get_text(from, key, &text) || !text[0])
        return NULL;
    return text;
}

/* Add another reference to a value, which may be NULL: null. */
static inline void plan_artifact_share(struct rv_json_build *b, json_object *to, const char *key, json_object *value)
{
    if (b->rc == 0)
        b->rc = key ? rv_json_set_ref(to, key, value, b->err) : rv_json_push_ref(to, value, b->err);
}

/* wrapper.c */
/** Add {"type": type} under key, or to an array with key NULL; returns it, borrowed. */
json_object *plan_typed_schema(struct rv_json_build *b, json_object *to, const char *key, const char *type);

/* artifact_type.c */
/** The type of a payload, in lower case, and how it is rendered.
 *  @param schema of the tool; NULL: none */
void plan_artifact_infer(json_object *schema, json_object *payload, char type[RV_ARTIFACT_MAX_TYPE + 1]);
/** Set rendering_hints of the metadata, if the type has some. */
void plan_artifact_add_hints(struct rv_json_build *b, json_object *metadata, const char *type, json_object *schema);
/** Append what a payload of this type lacks. */
void plan_artifact_check(const char *type, json_object *payload, rv_buf *faults);

#endif
