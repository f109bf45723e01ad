/* Filters: what is made of a page: chunks, links, names, merged edges. */
#include "coreengine/app/fn/fn_internal.h"
#include "coreengine/match/match.h"

static int chunk_text(json_object *in, rv_jw *out, rv_err **err)
{
    struct rv_chunks chunks = {NULL, 0};
    int64_t max_chars = RV_CHUNK_CHARS, overlap = RV_CHUNK_OVERLAP;

    if (!rv_json_get_int(in, "max_chars", &max_chars))
        max_chars = RV_CHUNK_CHARS;
    if (!rv_json_get_int(in, "overlap", &overlap))
        overlap = max_chars > 0 && rv_chunk_max_overlap((size_t)max_chars) >= RV_CHUNK_OVERLAP ? RV_CHUNK_OVERLAP : 0;
    if (max_chars < 1 || overlap < 0)
        return RV_FAIL(err, RV_E_INVALID, "max_chars is %lld and overlap %lld: use at least 1 and 0",
                       (long long)max_chars, (long long)overlap);
    int rc = rv_chunks_build(app_fn_str(in, "text"), (size_t)max_chars, (size_t)overlap, &chunks, err);
    if (rc < 0)
        return rc;
    rv_jw_arr(out);
    for (size_t i = 0; i < chunks.n; i++)
        rv_jw_str(out, chunks.at[i]);
    rv_jw_arr_end(out);
    rv_chunks_fini(&chunks);
    return 0;
}

static int markdown_links(json_object *in, rv_jw *out, rv_err **err)
{
    json_object *edges = NULL;
    int rc = rv_page_build_links(app_fn_str(in, "text"), app_fn_str(in, "path"), &edges, err);

    if (rc == 0)
        rv_jw_value(out, edges);
    json_object_put(edges);
    return rc;
}

static int page_name(json_object *in, rv_jw *out, rv_err **err)
{
    rv_buf name = RV_BUF_INIT(RV_FN_MAX_BYTES);

    rv_page_write_name(app_fn_str(in, "path"), &name);
    int rc = rv_buf_check(&name, "name", err);
    if (rc == 0)
        rv_jw_buf(out, &name);
    rv_buf_fini(&name);
    return rc;
}

static int merge_edges(json_object *in, rv_jw *out, rv_err **err)
{
    json_object *edges = NULL;
    size_t n_refused = 0;
    int rc = rv_edges_merge(app_fn_any(in, "existing"), app_fn_any(in, "new"), &edges, &n_refused, err);

    if (rc == 0) {
        rv_jw_obj(out);
        rv_jw_kv_value(out, "edges", edges);
        rv_jw_kv_int(out, "refused", (int64_t)n_refused);
        rv_jw_obj_end(out);
    }
    json_object_put(edges);
    return rc;
}

static const struct rv_fn items[] = {
    {"chunk_text", "{text: string, max_chars?: int, overlap?: int}", "list of strings",
     "cut a text into chunks (default 1500 characters, overlap 200) at the ends of paragraphs, sentences or words",
     chunk_text},
    {"markdown_links", "{text: string, path?: string}", "list of edges",
     "the pages that a page of Markdown links to, as edges `links_to`", markdown_links},
    {"page_name", "{path: string}", "string",
     "the name of a page: its file name without extension; README takes the name of its folder", page_name},
    {"merge_edges", "{existing?: list|string, new?: list|string}", "{edges: list, refused: int}",
     "merge edges by key of target and relation: the greater weight is kept, at the place of the first", merge_edges},
};
const struct rv_fn_group app_fn_group_pages = {items, RV_COUNT(items)};
