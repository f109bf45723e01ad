/* The fields that outputs of stages can have; shared by fields.c and names.c only. */
#ifndef RV_CONFIG_FIELDS_INTERNAL_H
#define RV_CONFIG_FIELDS_INTERNAL_H

#include "config/config_internal.h"

/* What fields the output of a stage can have; borrowed from the stage. */
struct config_fields {
    bool is_open;                 /* any */
    bool is_text;                 /* only "response" */
    json_object *properties;      /* of a closed schema; NULL: none */
    const struct rv_built *built; /* of `set`; NULL: none */
};
struct config_fields config_fields_of(const struct rv_agent *a);
bool config_has_field(const struct config_fields *fields, rv_str field);
void config_hint_fields(struct rv_loader *l, const struct config_fields *fields, rv_str field, char hint[RV_HINT_MAX]);
/** Why the output has no other fields, behind a word for it. */
const char *config_why_without(const struct config_fields *fields);
/** Fields that a stage looks for in its own output, and that this cannot have. */
void config_check_fields(struct rv_loader *l);

#endif
