/* A flow for a token whose answers come from anywhere: a byte chooses the configuration, then each line is an answer,
 * its first byte the status. The flow ends; addresses that it asks for are https or this machine, and no secret is in
 * one. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/mcp/mcp.h"
#include "tests/kit/fuzz.h"

#define SECRET    "the-secret-of-a-client"
#define IDP       "https://i.example/token" /* the only one that sees the token of a person */
#define MAX_STEPS 20

static rv_str next_line(const uint8_t **at, const uint8_t *end)
{
    const uint8_t *from = *at, *stop = from < end ? memchr(from, '\n', (size_t)(end - from)) : NULL;
    size_t n = stop ? (size_t)(stop - from) : (size_t)(end - from);

    *at = stop ? stop + 1 : end;
    return (rv_str){(const char *)from, n};
}

static void check_step(const struct rv_oauth_step *step)
{
    struct rv_mcp_url u;

    require(rv_mcp_url_read(rv_str_of(step->url), &u));
    require((u.is_https || rv_mcp_url_is_local(&u)) && !u.has_user);
    require(!strstr(step->url, SECRET));
    if (step->body.len && memmem(step->body.ptr, step->body.len, "subject_token=", 14))
        require(strcmp(step->url, IDP) == 0);
    for (const char *p = step->url; *p; p++)
        require((unsigned char)*p > ' ' && *p != 0x7F);
    for (const char *p = step->authorization ? step->authorization : ""; *p; p++)
        require(*p != '\n' && *p != '\r');
}

static int answer(rv_oauth *o, rv_str line)
{
    static const int statuses[] = {200, 201, 302, 400, 401, 404, 429, 500, 0};
    rv_err *err = NULL;
    int status = line.len ? statuses[(unsigned char)line.ptr[0] % RV_COUNT(statuses)] : 0;
    rv_str body = line.len ? (rv_str){line.ptr + 1, line.len - 1} : line;
    int rc = rv_oauth_step(o)->kind == RV_OAUTH_ASK ? rv_oauth_on_redirect(o, line, 1, &err)
                                                    : rv_oauth_on_answer(o, status, body, 1, &err);

    if (rc < 0)
        require(err && !strstr(rv_err_text(err), SECRET));
    rv_err_free(err);
    return rc;
}

RV_FUZZ_TARGET(mcp_oauth)
{
    static const unsigned char random[RV_OAUTH_RANDOM] = {1};
    const uint8_t *at = data + 1, *end = data + size;
    rv_oauth *o = NULL;

    if (size < 1 || memmem(data, size, SECRET, sizeof SECRET - 1)) /* a server that knows it may say it */
        return 0;
    const struct rv_oauth_config config = {.server = "s",
                                           .resource = data[0] & 1 ? "https://s.example/mcp" : "http://127.0.0.1:1/mcp",
                                           .client_id = data[0] & 2 ? "i" : NULL,
                                           .client_secret = data[0] & 4 ? SECRET : NULL,
                                           .metadata_url = data[0] & 8 ? "https://c.example/id" : NULL,
                                           .redirect_uri = data[0] & 16 ? "http://127.0.0.1:2/callback" : NULL,
                                           .grant = data[0] & 32 ? 1 + size % (RV_N_OAUTH_GRANTS - 1) : RV_OAUTH_PERSON,
                                           .assertion = "e30.eyJhdWQiOiJodHRwczovL2EuZXhhbXBsZSJ9." SECRET,
                                           .id_token = SECRET,
                                           .idp_token_endpoint = IDP,
                                           .idp_client_id = "i",
                                           .idp_client_secret = SECRET};
    json_object *kept = json_object_new_object();
    rv_str challenge = next_line(&at, end);
    if (data[0] & 64)
        require(rv_json_set_text(kept, "refresh_token", "r", NULL) == 0);
    if (data[0] & 128)
        require(rv_oauth_note(kept, challenge, NULL) == 0);
    int rc =
        rv_oauth_new(&config,
                     &(const struct rv_oauth_start){
                         .kept = kept, .status = data[0] & 1 ? 401 : 403, .challenge = challenge, .random = random},
                     &o, NULL);
    for (int i = 0; rc == 0 && rv_oauth_step(o)->kind != RV_OAUTH_DONE && at < end; i++) {
        require(i < MAX_STEPS);
        check_step(rv_oauth_step(o));
        rc = answer(o, next_line(&at, end));
        if (rc == RV_E_INVALID && rv_oauth_step(o)->kind == RV_OAUTH_ASK)
            break; /* it goes on waiting */
    }
    if (rc == 0 && rv_oauth_step(o)->kind == RV_OAUTH_DONE) {
        rv_buf token = RV_BUF_INIT(RV_OAUTH_MAX_TOKEN);
        struct rv_mcp_headers h = {.n = 0};
        if (rv_oauth_read_token(kept, 1, &token))
            require(rv_mcp_headers_add(&h, "Authorization", rv_buf_str(&token), NULL) == 0);
        rv_mcp_headers_fini(&h);
        rv_buf_fini(&token);
    }
    rv_oauth_free(o);
    json_object_put(kept);
    return 0;
}
