/* Any bytes as a message of MCP: they are refused with a code, or the members are what the kind promises, and the
 * message reads the same after it was written. */
#include <stdlib.h>

#include "coreengine/mcp/mcp.h"
#include "tests/kit/fuzz.h"

static bool is_id(json_object *id)
{
    return json_object_is_type(id, json_type_string) || rv_json_is_int(id);
}

static int write(const struct rv_mcp_message *m, rv_buf *out)
{
    switch (m->kind) {
    case RV_MCP_REQUEST:
        return rv_json_is_int(m->id)
                   ? rv_mcp_write_request(json_object_get_int64(m->id), m->method, m->params, out, NULL)
                   : RV_E_INVALID; /* ids of ours are numbers */
    case RV_MCP_NOTIFICATION:
        return rv_mcp_write_notification(m->method, m->params, out, NULL);
    case RV_MCP_RESULT:
        return rv_mcp_write_result(m->id, m->result, out, NULL);
    case RV_MCP_ERROR:
        return rv_mcp_write_error(m->id, m->code, m->text, m->data, out, NULL);
    }
    return RV_E_INTERNAL;
}

static void check(const struct rv_mcp_message *m)
{
    bool is_call = m->kind == RV_MCP_REQUEST || m->kind == RV_MCP_NOTIFICATION;
    rv_buf text = RV_BUF_INIT(RV_MCP_MAX_MESSAGE);
    struct rv_mcp_message again;

    require(is_call == (m->method != NULL));
    require(m->kind == RV_MCP_ERROR ? !m->id || is_id(m->id) : (m->kind == RV_MCP_NOTIFICATION) == !is_id(m->id));
    require(!m->params || (is_call && json_object_is_type(m->params, json_type_object)));
    require((m->kind == RV_MCP_RESULT) == json_object_is_type(m->result, json_type_object));
    require((m->kind == RV_MCP_ERROR) == (m->text != NULL));
    if (write(m, &text) == 0) {
        require(!memchr(text.ptr, '\n', text.len));
        require(rv_mcp_read(rv_buf_str(&text), &again, NULL, NULL) == 0);
        require(again.kind == m->kind && again.code == m->code && rv_json_equal(again.id, m->id));
        require(rv_json_equal(again.params, m->params) && rv_json_equal(again.result, m->result));
        rv_mcp_message_fini(&again);
    }
    rv_buf_fini(&text);
}

RV_FUZZ_TARGET(mcp_message)
{
    struct rv_mcp_message m;
    rv_err *err = NULL;
    int code = 0, rc = rv_mcp_read((rv_str){(const char *)data, size}, &m, &code, &err);

    require((rc == 0) == (err == NULL));
    if (rc == 0) {
        check(&m);
    } else if (rc == RV_E_INVALID) {
        require(code == RV_MCP_PARSE_ERROR || code == RV_MCP_INVALID_REQUEST);
        require(!m.method && !m.result && !m.text && (!m.id || is_id(m.id)));
    }
    rv_err_free(err);
    rv_mcp_message_fini(&m);
    return 0;
}
