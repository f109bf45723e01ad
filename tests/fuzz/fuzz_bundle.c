/* Any bytes as a bundle: it opens or is refused; what opens can be kept again, and that bundle opens too and is its own
 * copy: nothing gets lost or added on the way. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/journal/journal.h"
#include "tests/kit/fuzz.h"

#define MAX_TEXT ((size_t)64 << 20)

static rv_bundle *open_bundle(rv_str text)
{
    const struct rv_bundle_opts opts = {.offline = true};
    rv_bundle *b = NULL;
    rv_err *err = NULL;
    int rc = rv_bundle_open(text, &opts, &b, &err);

    require((rc == 0) == (b != NULL) && (rc < 0) == (err != NULL));
    rv_err_free(err);
    return b;
}

/* Kept without the names of a catalog, which only capabilities can list. */
static bool keep(rv_bundle *b, rv_buf *out)
{
    const struct rv_catalog catalog = rv_bundle_catalog(b);
    const struct rv_bundle_source from = {
        .pipeline = rv_bundle_pipeline(b), .catalog = &catalog, .script = rv_bundle_script(b)};

    return rv_bundle_write(&from, out, NULL, NULL) == 0;
}

static void use(rv_bundle *b)
{
    rv_buf first = RV_BUF_INIT(MAX_TEXT), second = RV_BUF_INIT(MAX_TEXT);
    rv_bundle *again;

    require(rv_bundle_pipeline(b)->is_sound);
    if (keep(b, &first)) {
        again = open_bundle(rv_buf_str(&first));
        require(again && keep(again, &second));
        require(rv_str_eq(rv_buf_str(&first), rv_buf_str(&second)));
        rv_bundle_free(again);
    }
    rv_buf_fini(&first);
    rv_buf_fini(&second);
}

RV_FUZZ_TARGET(bundle)
{
    rv_bundle *b = open_bundle((rv_str){(const char *)data, size});

    if (b)
        use(b);
    rv_bundle_free(b);
    return 0;
}
