/* What the tests of bundles start with: a pipeline with its capabilities and script, and the bundle of them. */
#ifndef RV_TESTS_BUNDLE_WORLD_H
#define RV_TESTS_BUNDLE_WORLD_H

#include <check.h>

#include "coreengine/store/journal/journal.h"
#include "coreengine/tools/plugin/plugin.h"
#include "tests/kit/kit.h"

Suite *write_suite(void);
Suite *open_suite(void);
Suite *catalog_suite(void);
Suite *broken_suite(void);
Suite *same_suite(void);
Suite *fits_suite(void);
Suite *agents_suite(void);

struct world {
    struct rv_pipeline *pipeline;
    rv_plugins *plugins;
    rv_script *script;         /* NULL: none */
    struct rv_catalog catalog; /* of both */
};
/** Load a pipeline file with its capabilities; ends the test if anything is wrong with it. */
void world_load(struct world *w, const char *path);
/** The same from text, which stands for dir/p.yaml; no capability is loaded. */
void world_parse(struct world *w, const char *text, const char *dir);
/** Add a script; it is what the catalog then has beside the capabilities. */
void world_script(struct world *w, rv_script *script);
void world_script_text(struct world *w, const char *text);
void world_fini(struct world *w);

/** Its bundle; free() the text. hash may be NULL. */
char *world_bundle(const struct world *w, char hash[RV_HASH_MAX]);
/** Open, which has to work. */
rv_bundle *world_open(const char *text, bool offline);
/** Open, which must fail with that code; the printed error, free() it. */
char *world_refused(const char *text, bool offline, int rc);

/** rv_pipeline_write_json() as text; free() it. */
char *world_explained(const struct rv_pipeline *p);
/** Both of a run's ways to look at names agree on everything the catalog `a` and `names` know. */
void world_same_catalog(const struct rv_catalog *a, const struct rv_catalog *b, const struct rv_known_names *names);

/** text with the first `from` in it replaced; free() it. Ends the test if it is not there. */
char *replaced(const char *text, const char *from, const char *to);

#endif
