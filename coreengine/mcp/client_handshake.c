/* How a connection begins. A server of 2026-07-28 or later answers `server/discover`; any other answer, and none in
 * time, mean that it wants `initialize`; an answer of the new era that comes after that still counts, since a server
 * may start slowly. A server that is known to be of the new era is never asked to `initialize`. */
#include "coreengine/base/base.h"
#include "coreengine/mcp/client_internal.h"

#define META "io.modelcontextprotocol/"

static json_object *client_info(struct rv_json_build *b, json_object *to, const char *key)
{
    json_object *info = rv_json_build(b, to, key, json_object_new_object());

    rv_json_build_text(b, info, "name", "reeve");
    rv_json_build_text(b, info, "version", REEVE_VERSION);
    return info;
}

int mcp_add_meta(const rv_mcp_client *c, json_object *meta, enum rv_mcp_version version, rv_err **err)
{
    struct rv_json_build b = {.err = err};

    rv_json_build_text(&b, meta, META "protocolVersion", rv_mcp_version_text(version));
    rv_json_build(&b, meta, META "clientCapabilities", mcp_capabilities(c, true));
    client_info(&b, meta, META "clientInfo");
    return b.rc;
}

static int discover(rv_mcp_client *c, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *params = json_object_new_object();
    json_object *meta = params ? rv_json_build(&b, params, "_meta", json_object_new_object()) : NULL;

    int rc = meta       ? mcp_add_meta(c, meta, RV_MCP_2026_07_28, err)
             : b.rc < 0 ? b.rc
                        : RV_FAIL(err, RV_E_NOMEM, "begin a connection to an MCP server");
    c->handshake_id = ++c->last_id;
    if (rc == 0)
        rc = mcp_put_request(c,
                             &(struct mcp_request){.id = c->handshake_id,
                                                   .method = "server/discover",
                                                   .params = params,
                                                   .is_modern = true,
                                                   .version = RV_MCP_2026_07_28},
                             err);
    json_object_put(params);
    return rc;
}

int mcp_handshake_initialize(rv_mcp_client *c, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *params = json_object_new_object();

    if (!params)
        return RV_FAIL(err, RV_E_NOMEM, "begin a connection to an MCP server");
    rv_json_build_text(&b, params, "protocolVersion", rv_mcp_version_text(RV_MCP_NEWEST_LEGACY));
    rv_json_build(&b, params, "capabilities", mcp_capabilities(c, false));
    client_info(&b, params, "clientInfo");
    int rc = b.rc;
    c->phase = RV_MCP_INITIALIZING;
    c->phase_due_us = c->handshake_due_us;
    c->handshake_id = ++c->last_id;
    if (rc == 0)
        rc = mcp_put_request(
            c,
            &(struct mcp_request){
                .id = c->handshake_id, .method = "initialize", .params = params, .version = RV_MCP_NEWEST_LEGACY},
            err);
    json_object_put(params);
    return rc;
}

int mcp_handshake_begin(rv_mcp_client *c, int64_t now_us, rv_err **err)
{
    c->handshake_due_us = now_us + c->handshake_us;
    if (c->era == RV_MCP_ERA_LEGACY)
        return mcp_handshake_initialize(c, err);
    c->phase = RV_MCP_PROBING;
    /* a server that is known to be new, or that HTTP will hear of, has all the time */
    c->phase_due_us = c->era == RV_MCP_ERA_MODERN || c->is_http || c->handshake_us < RV_MCP_PROBE_US
                          ? c->handshake_due_us
                          : now_us + RV_MCP_PROBE_US;
    return discover(c, err);
}

/* The connection ends with what was written into text, which is freed. */
static int die_of(rv_mcp_client *c, const char *code, int rpc_code, rv_buf *text, rv_err **err)
{
    int rc = rv_buf_check(text, "reason", err);

    if (rc == 0)
        rc = mcp_die(
            c,
            &(struct rv_mcp_trouble){.code = code, .text = rv_buf_cstr(text), .rpc_code = rpc_code, .is_unsent = true},
            err);
    rv_buf_fini(text);
    return rc;
}

static int refuse_version(rv_mcp_client *c, rv_str said, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(1000);

    said = rv_utf8_cut(said, 60);
    rv_buf_printf(&text, "the server speaks revision \"%.*s\" of MCP: reeve speaks %s to %s and %s", (int)said.len,
                  said.len ? said.ptr : "", rv_mcp_version_text(RV_MCP_2024_11_05),
                  rv_mcp_version_text(RV_MCP_NEWEST_LEGACY), rv_mcp_version_text(RV_MCP_2026_07_28));
    return die_of(c, "unsupported_version", 0, &text, err);
}

static int be_ready(rv_mcp_client *c, enum rv_mcp_era era, enum rv_mcp_version version, json_object *answer,
                    rv_err **err)
{
    int rc = 0;

    c->phase = RV_MCP_READY;
    c->era = era;
    c->version = version;
    c->phase_due_us = RV_NEVER;
    c->handshake_id = 0;
    json_object_put(c->answer);
    c->answer = json_object_get(answer);
    if (era == RV_MCP_ERA_LEGACY)
        rc = mcp_put_notification(c, "notifications/initialized", NULL, err);
    if (rc == 0)
        rc = mcp_put_simple(c, RV_MCP_OUT_READY, 0, err);
    for (struct rv_mcp_open *o = c->open, *next; o && rc == 0; o = next) {
        next = o->next;
        if (!o->id)
            rc = mcp_send_open(c, o, err);
    }
    return rc;
}

/* It refused the revision that it lists: it may have looked at the list just now, and is asked once more. */
static int discover_again(rv_mcp_client *c, rv_err **err)
{
    c->is_retried = true;
    c->era = RV_MCP_ERA_MODERN;
    c->phase_due_us = c->handshake_due_us;
    return discover(c, err);
}

static bool speaks_modern(json_object *versions)
{
    size_t n = json_object_is_type(versions, json_type_array) ? json_object_array_length(versions) : 0;

    for (size_t i = 0; i < n; i++)
        if (rv_mcp_version_of(rv_json_str(json_object_array_get_idx(versions, i))) == RV_MCP_2026_07_28)
            return true;
    return false;
}

/* The server is of the new era and has said what it speaks; answer NULL: it refused the request, and says so. */
static int choose(rv_mcp_client *c, json_object *versions, json_object *answer, rv_err **err)
{
    size_t n = json_object_is_type(versions, json_type_array) ? json_object_array_length(versions) : 0;

    if (speaks_modern(versions))
        return answer          ? be_ready(c, RV_MCP_ERA_MODERN, RV_MCP_2026_07_28, answer, err)
               : c->is_retried ? refuse_version(c, RV_STR_LIT("2026-07-28, but not as reeve does"), err)
                               : discover_again(c, err);
    return refuse_version(c, n ? rv_json_str(json_object_array_get_idx(versions, 0)) : RV_STR_LIT("unknown"), err);
}

static bool is_modern_code(int code)
{
    return code == RV_MCP_UNSUPPORTED_VERSION || code == RV_MCP_HEADER_MISMATCH || code == RV_MCP_MISSING_CAPABILITY;
}

static int rejected(rv_mcp_client *c, const struct rv_mcp_message *m, rv_err **err)
{
    rv_str said = rv_utf8_cut(rv_str_of(m->text), 400);
    rv_buf text = RV_BUF_INIT(1000);

    rv_buf_printf(&text, "the server refuses the connection: %.*s (%d)", RV_STR_ARG(said), m->code);
    return die_of(c, "rejected", m->code, &text, err);
}

static int discovered(rv_mcp_client *c, const struct rv_mcp_message *m, rv_err **err)
{
    json_object *versions = m->kind == RV_MCP_RESULT ? rv_json_get_arr(m->result, "supportedVersions")
                            : json_object_is_type(m->data, json_type_object) ? rv_json_get_arr(m->data, "supported")
                                                                             : NULL;

    if (m->kind == RV_MCP_RESULT && versions)
        return choose(c, versions, m->result, err);
    if (m->kind == RV_MCP_ERROR && m->code == RV_MCP_UNSUPPORTED_VERSION)
        return choose(c, versions, NULL, err);
    if (c->era == RV_MCP_ERA_MODERN || (m->kind == RV_MCP_ERROR && is_modern_code(m->code)))
        return m->kind == RV_MCP_ERROR ? rejected(c, m, err) : refuse_version(c, RV_STR_LIT("unknown"), err);
    return mcp_handshake_initialize(c, err);
}

static int initialized(rv_mcp_client *c, const struct rv_mcp_message *m, rv_err **err)
{
    if (m->kind == RV_MCP_ERROR)
        return rejected(c, m, err);
    const char *said = rv_json_text_or(m->result, "protocolVersion", "unknown");
    int version = rv_mcp_version_of(rv_str_of(said));
    if (version < 0 || version > RV_MCP_NEWEST_LEGACY)
        return refuse_version(c, rv_str_of(said), err);
    return be_ready(c, RV_MCP_ERA_LEGACY, (enum rv_mcp_version)version, m->result, err);
}

int mcp_handshake_answer(rv_mcp_client *c, const struct rv_mcp_message *m, rv_err **err)
{
    c->handshake_id = 0;
    return c->phase == RV_MCP_PROBING ? discovered(c, m, err) : initialized(c, m, err);
}

int mcp_handshake_probed(rv_mcp_client *c, const struct rv_mcp_message *m, rv_err **err)
{
    json_object *versions = m->kind == RV_MCP_RESULT ? rv_json_get_arr(m->result, "supportedVersions") : NULL;

    c->probe_id = 0;
    return c->phase == RV_MCP_INITIALIZING && speaks_modern(versions)
               ? be_ready(c, RV_MCP_ERA_MODERN, RV_MCP_2026_07_28, m->result, err)
               : 0; /* `initialize` decides */
}

/* A status that says that the endpoint does not know requests of the new era. */
static bool means_legacy(const rv_mcp_client *c, const struct rv_mcp_failure *f)
{
    return c->phase == RV_MCP_PROBING && c->era == RV_MCP_ERA_UNKNOWN && f->fault == RV_MCP_FAULT_HTTP_STATUS &&
           f->status >= 400 && f->status < 500;
}

int mcp_handshake_failed(rv_mcp_client *c, const struct rv_mcp_failure *f, rv_err **err)
{
    struct rv_mcp_message m = {0};
    int rc = 0;

    c->handshake_id = 0;
    if (c->phase == RV_MCP_PROBING && f->status == 400 && f->body.len > 0) {
        rc = rv_mcp_read(f->body, &m, NULL,
                         RV_CODE_ONLY("a body that is not a message: an older server, which is tried below"));
        if (rc == 0 && m.kind == RV_MCP_ERROR && is_modern_code(m.code)) {
            rc = discovered(c, &m, err);
            rv_mcp_message_fini(&m);
            return rc;
        }
        rv_mcp_message_fini(&m);
        if (rc == RV_E_NOMEM)
            return RV_FAIL(err, RV_E_NOMEM, "begin a connection to an MCP server");
    }
    if (means_legacy(c, f))
        return mcp_handshake_initialize(c, err);
    return mcp_die(c,
                   &(struct rv_mcp_trouble){.code = rv_mcp_fault_code(f->fault),
                                            .text = f->text,
                                            .status = f->status,
                                            .is_unsent = true,
                                            .retryable = f->retryable,
                                            .is_timeout = f->fault == RV_MCP_FAULT_TIMED_OUT},
                   err);
}
