/* Roots: the folders that a pipeline names for a server, as the addresses that the protocol wants. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "coreengine/tools/mcp/mcptools_internal.h"

#define MAX_URI ((size_t)16 << 10) /* bytes: three for each of a path, and some */

/* file:// and the path, in which what may not stand in an address is encoded. */
static void write_uri(const char *path, rv_buf *out)
{
    rv_buf_puts(out, "file://");
    for (const char *p = path; *p; p++) {
        if (rv_is_letter(*p) || rv_is_digit(*p) || strchr("-._~/", *p))
            rv_buf_putc(out, *p);
        else
            rv_buf_printf(out, "%%%02X", (unsigned)(unsigned char)*p);
    }
}

static int add_root(json_object *list, const char *path, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf uri = RV_BUF_INIT(MAX_URI);
    struct rv_json_build b = {.err = err};
    const char *name = strrchr(path, '/');

    write_uri(path, &uri);
    int rc = rv_buf_check(&uri, "address of a root", err);
    if (rc < 0)
        return rc;
    json_object *one = rv_json_build(&b, list, NULL, json_object_new_object());
    rv_json_build_text(&b, one, "uri", rv_buf_cstr(&uri));
    if (name && name[1] && rv_utf8_valid(rv_str_of(name + 1), NULL))
        rv_json_build_text(&b, one, "name", name + 1);
    return b.rc;
}

static int find_root(const struct rv_mcp_server_config *server, const char *path, json_object *list, rv_err **err)
{
    char *real = realpath(path, NULL);
    struct stat st;
    int rc;

    if (!real && errno == ENOMEM)
        rc = RV_FAIL(err, RV_E_NOMEM, "find a root");
    else if (!real)
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "MCP server \"%s\": root \"%s\": %s", server->name, path, strerror(errno));
    else if (stat(real, &st) != 0 || !S_ISDIR(st.st_mode))
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "MCP server \"%s\": root \"%s\" is not a folder", server->name, path);
    else
        rc = add_root(list, real, err);
    free(real);
    return rc;
}

int mcptools_mcp_roots(const struct rv_mcp_server_config *server, json_object **out, rv_err **err)
{
    json_object *list = json_object_new_array();
    int rc = list ? 0 : RV_FAIL(err, RV_E_NOMEM, "find roots");

    for (size_t i = 0; i < server->roots.n && rc == 0; i++)
        rc = find_root(server, server->roots.items[i], list, err);
    if (rc < 0)
        json_object_put(list);
    else
        *out = list;
    return rc;
}
