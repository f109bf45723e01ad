/* Shared by the files of bundles only: what an opened bundle is made of. */
#ifndef RV_BUNDLE_INTERNAL_H
#define RV_BUNDLE_INTERNAL_H

#include "coreengine/store/journal/journal.h"
#include "coreengine/tools/tools.h"

#define RV_BUNDLE_VERSION   1                       /* a newer one is refused, older ones are read */
#define RV_BUNDLE_MAX_BYTES ((size_t)64 << 20)      /* of a bundle: prompts may fill a quarter, pipelines less */
#define RV_BUNDLE_MAX_DEPTH (RV_JSON_MAX_DEPTH + 8) /* it wraps schemas that were themselves within the limit */
#define RV_BUNDLE_MAX_NAMES ((size_t)1 << 19) /* tools, or entries, or prompts: twice what capabilities can have */

/* A catalog out of a bundle. Names, texts and schemas are those of the JSON it was read from. */
struct bundle_tool {
    struct rv_tool_info info;
    rv_schema *input, *output; /* owned; NULL: anything */
};
struct bundle_catalog {
    json_object *json;             /* owned, a reference: everything below borrows from it */
    struct bundle_tool *tools;     /* owned */
    struct rv_entry_info *entries; /* owned */
    rv_template **prompts;         /* owned */
    size_t n_tools, n_entries, n_prompts;
    rv_index tool_index, prompt_index, entry_index[RV_N_NAME_KINDS];
};

struct rv_bundle {
    struct rv_pipeline *pipeline; /* owned */
    char *base;                   /* NULL: not kept; owned */
    rv_script *script;            /* NULL: none; owned */
    json_object *mcp;             /* NULL: none; owned */
    struct bundle_catalog catalog;
    struct rv_tool_source script_tools, *sources[1]; /* with a script */
    struct rv_tool_set tools;                        /* the catalog over the script's */
};

/** Tells whether the core calls entries of that kind by name; such a kind has its own map under catalog.entries. */
bool journal_bundle_has_kind(enum rv_name_kind kind);
/** json: {tools, entries, prompts}. Every member is checked. The caller finishes out even after a failure. */
RV_MUST_CHECK int journal_bundle_catalog_read(json_object *json, struct bundle_catalog *out, rv_err **err);
/** Compose its catalog with its script's tools, once both are read. */
void journal_bundle_compose(rv_bundle *b);
void journal_bundle_catalog_fini(struct bundle_catalog *c);

/* Reading objects in which every key is known. */
RV_MUST_CHECK int journal_bundle_check_keys(json_object *obj, const char *what, const char *const *keys, size_t n,
                                            rv_err **err);
/** A string without NULs; *out stays as it is when key is absent and that is allowed. */
RV_MUST_CHECK int journal_bundle_text(json_object *obj, const char *key, bool required, const char **out, rv_err **err);
/** An object; NULL when key is absent and that is allowed. */
RV_MUST_CHECK int journal_bundle_object(json_object *obj, const char *key, bool required, json_object **out,
                                        rv_err **err);

#endif
