/* Error details from the engine's own errors. */
#include "coreengine/tools/tools_internal.h"

static const char *type_of(int code)
{
    switch (code) {
    case RV_E_NOT_FOUND:
        return "NotFoundError";
    case RV_E_DENIED:
        return "AccessDenied";
    case RV_E_TIMEOUT:
        return "TimeoutError";
    case RV_E_INVALID:
    case RV_E_PARSE:
        return "ValidationError";
    }
    return "ExecutionError";
}

/* One line per link, outermost first. Without places in our source: these texts end up in state that must not differ
 * between builds. */
static void write_traceback(const rv_err *native, rv_buf *b)
{
    for (; native; native = rv_err_cause(native)) {
        struct rv_src src = rv_err_src(native);
        rv_buf_printf(b, "%s [%s]", rv_err_text(native), rv_code_text(rv_err_code(native)));
        if (src.file)
            rv_buf_printf(b, " (%s:%d:%d)", src.file, src.line, src.col);
        rv_buf_putc(b, '\n');
    }
}

int rv_tool_error_from(const rv_err *native, bool recoverable, json_object **out, rv_err **err)
{
    rv_buf message = RV_BUF_INIT(RV_TOOL_MAX_TEXT), traceback = RV_BUF_INIT(RV_TOOL_MAX_TEXT);
    json_object *details = json_object_new_object();
    const rv_err *link;
    int rc;

    if (!details)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for error details");
    for (link = native; link; link = rv_err_cause(link)) {
        rv_buf_puts(&message, link == native ? "" : ": ");
        rv_buf_puts(&message, rv_err_text(link));
    }
    write_traceback(native, &traceback);
    rc = rv_buf_check(&message, "the text of an error", err);
    if (rc == 0)
        rc = rv_buf_check(&traceback, "the text of an error", err);
    if (rc == 0)
        rc = rv_tool_put_str(details, "traceback", (rv_str){traceback.ptr, traceback.len}, err);
    if (rc == 0)
        rc = rv_tool_error_details(type_of(rv_err_code(native)), (rv_str){message.ptr, message.len}, details,
                                   recoverable, out, err);
    json_object_put(details);
    rv_buf_fini(&message);
    rv_buf_fini(&traceback);
    return rc;
}

int rv_tool_error_not_found(const char *entity, const char *id, json_object **out, rv_err **err)
{
    rv_buf message = RV_BUF_INIT(RV_TOOL_MAX_TEXT);
    int rc;

    rv_buf_printf(&message, "%s \"%s\" not found", entity, id);
    rc = rv_buf_check(&message, "the text of an error", err);
    if (rc == 0)
        rc = rv_tool_error_details("NotFoundError", (rv_str){message.ptr, message.len}, NULL, false, out, err);
    rv_buf_fini(&message);
    return rc;
}
