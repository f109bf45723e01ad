/* A catalog that is a list of tools and knows nothing else. For tests that drive the core without capabilities; a
 * header alone, because the kit's library knows base only. */
#ifndef RV_TESTS_KIT_CATALOG_H
#define RV_TESTS_KIT_CATALOG_H

#include "coreengine/tools/tools.h"

struct rv_kit_tools {
    const struct rv_tool_info *items; /* borrowed */
    size_t n;
};

static inline const struct rv_tool_info *rv_kit_find_tool(void *self, rv_str name)
{
    const struct rv_kit_tools *tools = self;

    for (size_t i = 0; i < tools->n; i++)
        if (rv_str_is(name, tools->items[i].name))
            return &tools->items[i];
    return NULL;
}

static inline const struct rv_entry_info *rv_kit_no_entry(void *self, enum rv_name_kind kind, rv_str name)
{
    (void)self;
    (void)kind;
    (void)name;
    return NULL;
}

static inline const rv_template *rv_kit_no_prompt(void *self, rv_str key)
{
    (void)self;
    (void)key;
    return NULL;
}

/* Initialises a struct rv_catalog; list: a struct rv_kit_tools *, borrowed. */
#define RV_KIT_CATALOG(list)                                                                                           \
    {                                                                                                                  \
        .tool = rv_kit_find_tool, .entry = rv_kit_no_entry, .prompt = rv_kit_no_prompt, .self = list                   \
    }

#endif
