/* The page at `/`: its files are part of the program and open to all. What they show needs a login, as for any client.
 */
#include <string.h>

#include "coreengine/server/server_internal.h"

/* No script, style, frame, form or connection but those of this server; and no text becomes a script: only what the
 * sanitiser has made becomes elements. */
#define CONTENT_POLICY                                                                                                 \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "                 \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "                                \
    "require-trusted-types-for 'script'; trusted-types dompurify"

static const struct srv_page_file *find(const char *folder, const char *name)
{
    size_t n = strlen(folder);

    for (size_t i = 0; i < srv_n_page_files; i++)
        if (strncmp(srv_page_files[i].name, folder, n) == 0 && strcmp(srv_page_files[i].name + n, name) == 0)
            return &srv_page_files[i];
    return NULL;
}

/* The client has it already: one of the tags of If-None-Match is its own. */
static bool is_known(const struct srv_call *c, const struct srv_page_file *f)
{
    rv_str tags;
    size_t len = strlen(f->etag);

    if (!rv_httpd_field(c->req, "if-none-match", &tags, NULL))
        return false;
    return memmem(tags.ptr, tags.len, f->etag, len) != NULL;
}

int srv_page(struct srv_call *c, rv_err **err)
{
    bool is_view = strstr(c->route->path, "/views/") != NULL;
    const char *name = c->n_args > 0 ? c->args[0] : "index.html";
    const struct srv_page_file *f = find(is_view ? "views/" : "", name);

    if (!f)
        return RV_FAIL(err, RV_E_NOT_FOUND, "the page has no file \"%.100s\"", name);
    srv_call_field(c, "Content-Security-Policy", CONTENT_POLICY);
    srv_call_field(c, "X-Content-Type-Options", "nosniff");
    srv_call_field(c, "Referrer-Policy", "no-referrer");
    srv_call_field(c, "Cross-Origin-Opener-Policy", "same-origin");
    srv_call_field(c, "Cross-Origin-Resource-Policy", "same-origin");
    srv_call_field(c, "Cache-Control", "no-cache"); /* the tag is asked for each time: a new server has new files */
    srv_call_field(c, "ETag", f->etag);
    c->status = is_known(c, f) ? 304 : 200;
    if (c->status == 200) {
        c->type = f->type;
        c->fixed = f->bytes;
    }
    return 0;
}
