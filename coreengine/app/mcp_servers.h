/* The MCP servers of a pipeline, for those who look at them without running the pipeline. */
#ifndef RV_APP_MCP_SERVERS_H
#define RV_APP_MCP_SERVERS_H

#include "coreengine/app/app.h"

/** Fills in l->mcp: lists from the servers, if connects, else from kept files. What goes wrong with a server is a
 * finding of l. */
RV_MUST_CHECK int rv_app_mcp_open(const struct rv_app *app, struct rv_app_loaded *l, bool connects, rv_err **err);
/** The same, connecting; the tools that differ from what was approved are appended to text, and approved with is_yes.
 * server NULL: of all. */
RV_MUST_CHECK int rv_app_mcp_approve(const struct rv_app *app, struct rv_app_loaded *l, const char *server, bool is_yes,
                                     rv_buf *text, rv_err **err);
/** Get a token for a server over HTTP, and keep it: show() tells the person which address to open, browser (NULL: none)
 * is a program that is started with it. RV_E_NOT_FOUND: the pipeline has no such server; RV_E_INVALID: it is not one
 * over HTTP. */
RV_MUST_CHECK int rv_app_mcp_login(const struct rv_app_loaded *l, const char *server, const char *browser,
                                   void (*show)(void *self, const char *url), void *self, rv_err **err);
/** Remove what a login kept; *had: there was something. */
RV_MUST_CHECK int rv_app_mcp_logout(const struct rv_app_loaded *l, const char *server, bool *had, rv_err **err);
/** Write the lists of l->mcp to the files that `catalog` names. *n counts the files; servers without one are findings.
 * RV_E_IO. */
RV_MUST_CHECK int rv_app_mcp_keep(struct rv_app_loaded *l, size_t *n, rv_err **err);
/** {name, server, title?, description, read_only, ..., input_schema, output_schema?}, as the pipeline sees the tool. */
void rv_app_mcp_write_tool(const struct rv_mcp_tool *t, bool with_schemas, rv_jw *w);
/** RV_E_NOT_FOUND: the servers do not have that tool; the hint has the nearest one. */
RV_MUST_CHECK int rv_app_mcp_unknown(const struct rv_app_loaded *l, const char *tool, rv_err **err);
/** Call a tool and wait. args: JSON text of an object. The answer is appended to text: the output, or with *failed a
 * message. RV_E_NOT_FOUND, RV_E_INVALID. */
RV_MUST_CHECK int rv_app_mcp_call(struct rv_app_loaded *l, const char *tool, rv_str args, rv_buf *text, bool *failed,
                                  rv_err **err);

#endif
