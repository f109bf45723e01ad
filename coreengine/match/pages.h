/* What is made of a page: its name, its chunks, the edges that its links stand for; and how edges are merged. */
#ifndef RV_MATCH_PAGES_H
#define RV_MATCH_PAGES_H

#include "coreengine/match/match.h"

/* --- chunks --- */

#define RV_CHUNK_CHARS   1500 /* of a piece, unless told otherwise: about 400 tokens */
#define RV_CHUNK_OVERLAP 200  /* characters that a piece repeats of the one before, unless told otherwise */

/** The most characters that neighbouring chunks of so many may share: less than half of them, so that no character is
 * in three. */
size_t rv_chunk_max_overlap(size_t max_chars);

struct rv_chunks {
    rv_str *at; /* owned; the texts are borrowed from the text that was cut */
    size_t n;
};
/** Cut a text into chunks of at most max_chars characters (code points), none of which is cut. A chunk ends, if its
 * second half has such a place, behind the last empty line, else behind the last end of a sentence (. ! ? and
 * white space, or their ideographic forms, or a line feed), else behind the last white space, else where it is full.
 * The next one begins `overlap` characters before that end, or behind the first white space after that point.
 * A text that has no more than max_chars characters is one chunk; an empty one, or one of white space, is none.
 * @param out  overwritten; rv_chunks_fini() it
 * @return 0, RV_E_INVALID (max_chars 0, or overlap above rv_chunk_max_overlap()), RV_E_NOMEM */
RV_MUST_CHECK int rv_chunks_of(rv_str text, size_t max_chars, size_t overlap, struct rv_chunks *out, rv_err **err);
void rv_chunks_fini(struct rv_chunks *chunks);

/* --- names and links --- */

/** Append the name of a page: its file name without folders and without its last extension; README takes the name of
 * its folder, if the path has one. */
void rv_page_name(rv_str path, rv_buf *out);
/** An array of edges {target, relation: "links_to", weight: 1.0}, one for each page that a page of Markdown links to,
 * in order of first appearance. A link is [text](target) or [text](<target> "title") outside of code (fences, `spans`),
 * not a picture, whose target is not a place elsewhere (with a scheme such as https:, or a host) or within the page
 * (#...). The edge's target is the name of the page, without query and fragment, %XX decoded.
 * @param path  of the page, for targets such as ../README.md; may be empty
 * @param out   owned by the caller. RV_E_LIMIT (a page of more than RV_PAGE_MAX_BYTES), RV_E_NOMEM */
#define RV_PAGE_MAX_BYTES ((size_t)8 << 20)
#define RV_PAGE_MAX_LINKS 1000 /* edges of one page; links after them are not looked at */
RV_MUST_CHECK int rv_page_links(rv_str markdown, rv_str path, json_object **out, rv_err **err);

/* --- edges --- */

#define RV_EDGE_RELATION "related" /* of an edge that names none */
#define RV_EDGES_MAX     10000     /* of one entity */

/** Merge the edges of an entity with new ones: arrays of {target, relation?, weight?, ...}. Two edges are the same if
 * the keys of their targets and their relations are. Of those the one with the greatest weight (absent: 1.0) is kept
 * whole, the first of equal ones, at the place of the first. Weights are clamped to 0..1. What is not an edge (not an
 * object, no text as target, a relation that is not text, a weight that is not a number) is left out.
 * @param existing, more  arrays, or strings that contain one as JSON (a fault of older writers, repaired here); NULL:
 * empty
 * @param out        a new array, owned by the caller; neither input is changed
 * @param n_refused  how many elements of `more` were left out; may be NULL
 * @return 0, RV_E_INVALID (an input is not an array), RV_E_LIMIT (more than RV_EDGES_MAX edges), RV_E_NOMEM */
RV_MUST_CHECK int rv_edges_merge(json_object *existing, json_object *more, json_object **out, size_t *n_refused,
                                 rv_err **err);
/** The relation of an edge; RV_EDGE_RELATION if it is absent, null or empty. Borrowed. */
rv_str rv_edge_relation(json_object *edge);

#endif
