/* The page at `/`: its files are part of the program and open to all. What they show needs a login, as for any client.
 */
#include <string.h>

#include "coreengine/server/page_internal.h"

/* No script, style, frame, form or connection but those of this server; and no text can become HTML: the page makes its
 * elements one by one. */
#define CONTENT_POLICY                                                                                                 \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "                 \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "                                \
    "require-trusted-types-for 'script'; trusted-types 'none'"

static const struct srv_page_file *find(const char *folder, const char *name)
{
    size_t n = strlen(folder);

    for (size_t i = 0; i < srv_n_page_files; i++)
        if (strncmp(srv_page_files[i].name, folder, n) == 0 && strcmp(srv_page_files[i].name + n, name) == 0)
            return &srv_page_files[i];
    return NULL;
}

/* The client has it already: one of the tags of If-None-Match is its own. */
static bool is_known(const struct srv_call *c, const char *etag)
{
    rv_str tags;
    size_t len = strlen(etag);

    if (!rv_httpd_find_field(c->req, "if-none-match", &tags, NULL))
        return false;
    return memmem(tags.ptr, tags.len, etag, len) != NULL;
}

void srv_page_tagged(struct srv_call *c, const char *etag, const char *type, rv_str bytes)
{
    srv_call_field(c, "Cache-Control", "no-cache"); /* the tag is asked for each time: a new server has new bytes */
    srv_call_field(c, "ETag", etag);
    c->status = is_known(c, etag) ? 304 : 200;
    if (c->status == 200) {
        c->type = type;
        c->fixed = bytes;
    }
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
    srv_page_tagged(c, f->etag, f->type, f->bytes);
    return 0;
}

/* --- logins --- */

static int answer_login(struct srv_call *c, int rc, rv_buf *cookie)
{
    c->is_refused = rc == RV_E_DENIED;
    if (rc == 0) {
        srv_call_field_buf(c, "Set-Cookie", cookie);
        rv_jw w = srv_call_json(c, 200);
        rv_jw_obj(&w);
        rv_jw_obj_end(&w);
    }
    rv_buf_fini(cookie);
    return rc;
}

int srv_login(struct srv_call *c, rv_err **err)
{
    const struct rv_caller caller = srv_caller_of(c->req);
    struct srv_server *s = c->server;
    rv_buf cookie = RV_BUF_INIT(1024);
    const char *key = NULL;

    if (!rv_json_get_text(c->body, "key", &key) || !key[0])
        return RV_FAIL(err, RV_E_INVALID, "the body needs \"key\": an API key as `reeve keys create` shows it");
    const struct rv_login login = {
        .store = c->store, .key = rv_str_of(key), .rand = rv_rand_system(), .now_us = srv_now_us(), .log = s->app.log};
    int rc = rv_auth_login(s->auth, &caller, &login, &cookie, c->refusal, err);
    return answer_login(c, rc, &cookie);
}

int srv_logout(struct srv_call *c, rv_err **err)
{
    const struct rv_caller caller = srv_caller_of(c->req);
    rv_buf cookie = RV_BUF_INIT(1024);
    int rc = rv_auth_logout(c->server->auth, c->store, &caller, &cookie, c->refusal, err);
    return answer_login(c, rc, &cookie);
}

int srv_login_show(struct srv_call *c, rv_err **err)
{
    const struct rv_identity *who = &c->who;
    rv_buf scopes = RV_BUF_INIT(4096);
    rv_jw w = srv_call_json(c, 200);

    rv_scopes_write(who->scopes, &scopes);
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "name", who->name[0] ? who->name : who->user);
    rv_jw_kv_text(&w, "user", who->user);
    rv_jw_kv_text(&w, "tenant", who->tenant);
    rv_jw_kv_text(&w, "level", rv_level_text(who->level));
    rv_jw_kv_text(&w, "scopes", rv_buf_cstr(&scopes));
    rv_jw_kv_bool(&w, "login", who->by == RV_BY_LOGIN);
    rv_jw_obj_end(&w);
    int rc = rv_buf_check(&scopes, "the scopes", err);
    rv_buf_fini(&scopes);
    return rc;
}
