/* A text of an object, or another one where it has none. */
#ifndef RV_JSON_TEXT_H
#define RV_JSON_TEXT_H

#include "coreengine/base/json.h"

/** Borrowed. obj may be NULL; otherwise: of an absent member, and of one that is not a text. */
static inline const char *rv_json_text_or(json_object *obj, const char *key, const char *otherwise)
{
    const char *text;

    return obj && rv_json_get_text(obj, key, &text) ? text : otherwise;
}

#endif
