/* Bundles: everything that decides what a run does, kept by the hash of its content.
 *
 * {reeve_bundle: 1, pipeline: {file, dir, text, models}, files: {path: text}, agents: {name: {place, text}}?, script:
 * {file, text}?, catalog: {tools, entries, prompts}, mcp: {server: {tools, resources?, prompts?}}?}. A run keeps the
 * bundle it was started with; changing a file makes another bundle. The same files and capabilities give the same
 * bytes. What ${env:} and ${file:} give is never in it, with one exception that decides a run: `models` says which
 * optional roles were left out (null), which provider and model a role got by them, and what a table of prices knew of
 * a model. */
#ifndef RV_BUNDLE_H
#define RV_BUNDLE_H

#include "coreengine/tools/script/script.h"

typedef struct rv_bundle rv_bundle;

/* What it points to is borrowed for the call. */
struct rv_bundle_source {
    const struct rv_pipeline *pipeline;
    const struct rv_catalog *catalog;   /* tools, entries and prompts are asked for by the names below */
    const struct rv_known_names *names; /* of the capabilities; tools of the script are found by the script's */
    rv_script *script;                  /* NULL: none */
    const char
        *base; /* absolute path of the pipeline's folder, for another process that continues the run; NULL: as given */
    json_object *mcp; /* lists of the tools of MCP servers, as they were when the run began; borrowed; NULL: none */
};
/** Append the bundle's JSON text to out; hash (may be NULL) receives the name of the bundle. RV_E_NOMEM, RV_E_LIMIT
 * (too large), RV_E_STATE (the pipeline is not sound, or its agents are not bound), RV_E_INVALID (a path is not UTF-8).
 * After a failure out is unchanged. */
RV_MUST_CHECK int rv_bundle_write(const struct rv_bundle_source *from, rv_buf *out, char hash[RV_HASH_MAX],
                                  rv_err **err);

struct rv_bundle_opts {
    bool offline; /* for replay: a missing secret is not an error (it decides nothing), no file is read */
};
/** The pipeline and catalog as they were. No capability is loaded. RV_E_INVALID, RV_E_VERSION, RV_E_LIMIT; findings in
 * the pipeline's text (an engine that has become stricter) are RV_E_INVALID with the first one's text and place. */
RV_MUST_CHECK int rv_bundle_open(rv_str json, const struct rv_bundle_opts *opts, rv_bundle **out, rv_err **err);
void rv_bundle_free(rv_bundle *b);
const struct rv_pipeline *rv_bundle_pipeline(const rv_bundle *b);
struct rv_catalog rv_bundle_catalog(const rv_bundle *b); /* borrows b */
const char *rv_bundle_base(const rv_bundle *b);          /* the pipeline's folder, absolute; NULL: not kept */
json_object *rv_bundle_mcp(const rv_bundle *b);          /* borrowed; NULL: none */
rv_script *rv_bundle_script(rv_bundle *b);               /* borrowed, at its first entries; NULL: none */

/** Check whether a run that stands at `env` can go on with another pipeline. Its stages, active and completed ones,
 * interrupt and suspended work must exist there, and its bounds must not be passed. RV_E_STATE lists every reason why
 * not. */
RV_MUST_CHECK int rv_bundle_fits(const struct rv_pipeline *next, const rv_envelope *env, rv_err **err);

#endif
