/* The gallery: pipelines that come with the program, to begin with. The list is pipelines/gallery/gallery.yaml. */
#ifndef RV_APP_GALLERY_H
#define RV_APP_GALLERY_H

#include "coreengine/base/base.h"

#define RV_GALLERY_MAX_FILES 16 /* beside a pipeline and its script: an example is read in minutes */

struct rv_gallery_item { /* its texts are borrowed from the gallery */
    const char *name, *summary, *does, *change;
    const char *input;   /* that its script answers */
    const char *options; /* of `reeve run`, as words of a shell; "": none */
    const char *files[RV_GALLERY_MAX_FILES];
    size_t n_files;
};

typedef struct rv_gallery rv_gallery;
/** The one beside the program: <prefix>/share/reeve/pipelines. RV_E_NOT_FOUND: there is none; RV_E_INVALID: its list
 *  breaks the form that its first lines state. */
RV_MUST_CHECK int rv_gallery_open(rv_gallery **out, rv_err **err);
void rv_gallery_free(rv_gallery *g);
size_t rv_gallery_n(const rv_gallery *g);
const struct rv_gallery_item *rv_gallery_at(const rv_gallery *g, size_t i); /* borrowed */
/** RV_E_NOT_FOUND, with the nearest name as a hint. */
RV_MUST_CHECK int rv_gallery_find(const rv_gallery *g, const char *name, const struct rv_gallery_item **out,
                                  rv_err **err);

/* What a copy wrote. */
struct rv_gallery_copy {
    rv_buf pipeline, script; /* paths */
    rv_buf others;           /* paths of its other files that were not there yet, a line each */
};
void rv_gallery_copy_fini(struct rv_gallery_copy *c);
/** Copy an item to path, its script and its other files into the folder of path, under the name of the file. All or
 *  nothing; folders that are missing are made. A path that does not end with .yaml or .yml gets ".yaml". Files that
 * exist stay as they are: RV_E_EXISTS, but for other files that are the same already. Zero out first; finish it in any
 * case. */
RV_MUST_CHECK int rv_gallery_copy(const rv_gallery *g, const struct rv_gallery_item *item, const char *path,
                                  struct rv_gallery_copy *out, rv_err **err);

#endif
