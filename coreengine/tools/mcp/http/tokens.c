/* The shell of the machine for tokens: makes its requests, keeps what it gets, tells those that wait. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/tools/mcp/http/http.h"

#define MAX_FETCHES 16                  /* of one flow: a handful of addresses, and a token */
#define FETCH_US    (20 * RV_US_PER_S)  /* twenty seconds for one request to an authorization server */
#define MAX_FILE    ((size_t)256 << 10) /* bytes of tokens: some forty of RV_OAUTH_MAX_TOKEN */
#define WHY_BYTES   ((size_t)2 << 10)   /* of an error */

enum text {
    SERVER,
    RESOURCE,
    CLIENT_ID,
    METADATA_URL,
    SCOPE,
    REDIRECT_URI,
    FILE_NAME,
    KEY_ID,
    IDP_TOKEN_ENDPOINT,
    IDP_CLIENT_ID,
    CLIENT_SECRET, /* from here on secrets */
    PRIVATE_KEY,
    ASSERTION,
    ID_TOKEN,
    IDP_CLIENT_SECRET,
    N_TEXTS
};

struct rv_mcp_tokens {
    struct rv_mcp_tokens_opts opts;
    char *texts[N_TEXTS]; /* owned; those of opts */
    json_object *kept;    /* owned */
    /* the flow that is under way */
    rv_oauth *oauth; /* NULL: none; owned */
    rv_buf refused;  /* the token that began it; empty: there was none. The flow may drop it from what is kept */
    rv_buf used;     /* the refresh token of that time, empty as above */
    rv_http_call *call;
    struct rv_mcp_wait *waits; /* borrowed */
    struct rv_mcp_login *login;
    rv_buf challenge;
    int n_fetches, status;
    rv_buf answer, authorization, content_type;
};

static int64_t now_us(const rv_mcp_tokens *t)
{
    return t->opts.clock.now_us(t->opts.clock.self);
}

/* --- the file --- */

static int read_file(const char *path, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = MAX_FILE, .what = "file of tokens"};
    rv_buf text = RV_BUF_INIT(MAX_FILE);
    json_object *root = NULL;
    rv_err *why = NULL;

    int rc = rv_file_read(path, &text, &why);
    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(why);
        why = NULL;
        root = json_object_new_object();
        rc = root ? 0 : RV_FAIL(&why, RV_E_NOMEM, "read a file of tokens");
    } else if (rc == 0) {
        rc = rv_json_parse(rv_buf_str(&text), &opts, &root, &why);
        if (rc == 0 && !json_object_is_type(root, json_type_object))
            rc = RV_FAIL(&why, RV_E_INVALID, "it is not an object");
    }
    if (text.ptr)
        rv_wipe(text.ptr, text.len);
    rv_buf_fini(&text);
    if (rc < 0) {
        json_object_put(root);
        rv_err_free(why); /* its text could show a piece of the file */
        return RV_FAIL(err, rc == RV_E_NOMEM || rc == RV_E_IO ? rc : RV_E_INVALID, "the file \"%s\" cannot be read",
                       path);
    }
    *out = root;
    return 0;
}

static int save(rv_mcp_tokens *t, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_FILE);

    rv_json_write_pretty(t->kept, &text);
    rv_buf_putc(&text, '\n');
    int rc = rv_buf_check(&text, "tokens", err);
    if (rc == 0)
        rc = rv_file_make_folders(t->texts[FILE_NAME], err);
    if (rc == 0)
        rc = rv_file_write(t->texts[FILE_NAME], rv_buf_str(&text), err);
    if (text.ptr)
        rv_wipe(text.ptr, text.len);
    rv_buf_fini(&text);
    return rc;
}

/* What a flow begins with. */
static void note_tokens(rv_mcp_tokens *t)
{
    rv_buf_clear(&t->refused);
    rv_buf_puts(&t->refused, rv_json_text_or(t->kept, "access_token", ""));
    rv_buf_clear(&t->used);
    rv_buf_puts(&t->used, rv_json_text_or(t->kept, "refresh_token", ""));
}

/* Has another process got a token meanwhile? Then its file counts. It counts, too, when that token has ended by now: a
 * refresh token is good once, and the file has the one that comes after ours. */
static bool has_newer(rv_mcp_tokens *t)
{
    const char *theirs = NULL, *refresh = NULL;
    rv_buf token = RV_BUF_INIT(RV_OAUTH_MAX_TOKEN);
    json_object *fresh = NULL;

    if (read_file(t->texts[FILE_NAME], &fresh,
                  RV_CODE_ONLY("without a newer token the login goes on, and reports its own trouble")) < 0)
        return false;
    bool is_newer = rv_json_get_text(fresh, "access_token", &theirs) && !rv_str_is(rv_buf_str(&t->refused), theirs) &&
                    rv_oauth_read_token(fresh, now_us(t), &token);
    bool is_renewed = rv_json_get_text(fresh, "refresh_token", &refresh) && !rv_str_is(rv_buf_str(&t->used), refresh);
    if (is_newer || is_renewed) {
        json_object_put(t->kept);
        t->kept = json_object_get(fresh);
    }
    json_object_put(fresh);
    rv_buf_fini(&token);
    return is_newer;
}

/* --- a flow --- */

static void end_flow(rv_mcp_tokens *t)
{
    if (t->call)
        rv_http_cancel(t->call);
    t->call = NULL;
    rv_oauth_free(t->oauth);
    t->oauth = NULL;
    t->n_fetches = 0;
    if (t->answer.ptr)
        rv_wipe(t->answer.ptr, t->answer.len);
    rv_buf_clear(&t->answer);
    rv_buf_clear(&t->authorization);
}

/* Tells all that wait. Takes problem. */
static void finish(rv_mcp_tokens *t, rv_err *problem)
{
    RV_AUTO(rv_buf_fini) rv_buf why = RV_BUF_INIT(WHY_BYTES);
    struct rv_mcp_login *login = t->login;

    end_flow(t);
    bool has_theirs = problem && has_newer(t); /* and their refresh token is not overwritten by ours */
    if (has_theirs && !login) {
        rv_err_free(problem);
        problem = NULL;
    } else if (!problem)
        RV_IGNORE(save(t, &problem), "problem says it");
    else if (rv_oauth_note(t->kept, rv_buf_str(&t->challenge),
                           RV_CODE_ONLY("without the note a login asks for the usual scopes")) == 0)
        RV_IGNORE(save(t, NULL), "without the note a login asks for the usual scopes");
    if (problem) {
        rv_err_write_chain(problem, &why);
        if (rv_err_hint_text(problem))
            rv_buf_printf(&why, ": %s", rv_err_hint_text(problem));
    }
    t->login = NULL;
    bool is_good = !problem;
    if (login)
        login->done(login, problem);
    else
        rv_err_free(problem);
    while (t->waits) {
        struct rv_mcp_wait *w = t->waits;
        t->waits = w->next;
        w->done(w, is_good, rv_buf_cstr(&why));
    }
}

static int perform(rv_mcp_tokens *t, rv_err **err);

static void on_head(void *self, const struct rv_http_head *head)
{
    rv_mcp_tokens *t = self;

    t->status = head->status;
}

static bool on_body(void *self, rv_str bytes)
{
    rv_mcp_tokens *t = self;

    rv_buf_add_str(&t->answer, bytes);
    return true;
}

static void on_end(void *self, const struct rv_http_end *end)
{
    rv_mcp_tokens *t = self;
    rv_err *problem = NULL;
    int rc = 0;

    t->call = NULL;
    if (end->is_denied)
        rc = RV_FAIL(&problem, RV_E_DENIED, "%s" RV_HTTP_ALLOW_NET, end->text);
    else if (end->fault != RV_HTTP_OK && rv_oauth_step(t->oauth)->body.len)
        rc = RV_FAIL(&problem, RV_E_IO, "%s", end->text);
    else
        rc = rv_oauth_on_answer(t->oauth, end->fault == RV_HTTP_OK ? t->status : 0,
                                end->fault == RV_HTTP_OK ? rv_buf_str(&t->answer) : (rv_str){NULL, 0}, now_us(t),
                                &problem);
    if (rc == 0)
        rc = perform(t, &problem);
    if (rc < 0)
        finish(t, problem);
}

static int fetch(rv_mcp_tokens *t, const struct rv_oauth_step *step, rv_err **err)
{
    static const struct rv_http_events usual = {on_head, on_body, on_end, NULL};
    struct rv_http_events events = usual;
    const char *headers[3] = {"Accept: application/json"};
    size_t n = 1;

    if (t->n_fetches++ == MAX_FETCHES)
        return RV_FAIL(err, RV_E_LIMIT, "a token takes more than %d requests", MAX_FETCHES);
    rv_buf_clear(&t->authorization);
    rv_buf_clear(&t->content_type);
    rv_buf_clear(&t->answer);
    t->status = 0;
    if (step->content_type) {
        rv_buf_printf(&t->content_type, "Content-Type: %s", step->content_type);
        headers[n++] = rv_buf_cstr(&t->content_type);
    }
    if (step->authorization) {
        rv_buf_printf(&t->authorization, "Authorization: %s", step->authorization);
        headers[n++] = rv_buf_cstr(&t->authorization);
    }
    int rc = rv_buf_check(&t->authorization, "a request", err);
    const struct rv_http_request req = {.method = step->method,
                                        .url = step->url,
                                        .headers = headers,
                                        .n_headers = n,
                                        .body = step->body,
                                        .connect_us = FETCH_US,
                                        .total_us = FETCH_US,
                                        .max_body = RV_OAUTH_MAX_ANSWER,
                                        .ca_file = t->opts.ca_file,
                                        .egress = t->opts.egress};
    events.self = t;
    return rc < 0 ? rc : rv_http_start(t->opts.http, &req, &events, &t->call, err);
}

static int perform(rv_mcp_tokens *t, rv_err **err)
{
    const struct rv_oauth_step *step = rv_oauth_step(t->oauth);

    switch (step->kind) {
    case RV_OAUTH_FETCH:
        return fetch(t, step, err);
    case RV_OAUTH_ASK:
        if (!t->login)
            return RV_FAIL(err, RV_E_DENIED, "a person has to approve the access to the server");
        t->login->ask(t->login, step->url);
        return 0;
    case RV_OAUTH_DONE:
        finish(t, NULL);
        return 0;
    }
    return 0;
}

static int begin(rv_mcp_tokens *t, int status, rv_str challenge, rv_err **err)
{
    unsigned char random[RV_OAUTH_RANDOM];

    t->opts.rand.fill(t->opts.rand.self, random, sizeof random);
    rv_buf_clear(&t->challenge);
    rv_buf_add_str(&t->challenge, challenge);
    int rc = rv_oauth_new(
        &t->opts.config,
        &(const struct rv_oauth_start){.kept = t->kept, .status = status, .challenge = challenge, .random = random},
        &t->oauth, err);
    rv_wipe(random, sizeof random);
    if (rc == 0)
        rc = perform(t, err);
    if (rc < 0)
        end_flow(t);
    return rc;
}

/* --- for links and logins --- */

bool rv_mcp_tokens_get(const rv_mcp_tokens *t, rv_buf *out)
{
    return rv_oauth_read_token(t->kept, now_us(t), out);
}

int rv_mcp_tokens_renew(rv_mcp_tokens *t, const struct rv_mcp_refusal *why, struct rv_mcp_wait *w, rv_err **err)
{
    if (!t->oauth) {
        note_tokens(t);
        if (has_newer(t))
            return 1;
        note_tokens(t);
    }
    int rc = t->oauth ? 0 : begin(t, why->status, why->challenge, err);
    if (rc < 0)
        return rc;
    w->next = t->waits;
    t->waits = w;
    return 0;
}

void rv_mcp_tokens_forget(rv_mcp_tokens *t, struct rv_mcp_wait *w)
{
    for (struct rv_mcp_wait **at = &t->waits; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            return;
        }
}

int rv_mcp_tokens_login(rv_mcp_tokens *t, struct rv_mcp_login *l, rv_err **err)
{
    if (t->oauth)
        return RV_FAIL(err, RV_E_STATE, "a login is under way");
    t->login = l;
    note_tokens(t);
    int rc = begin(t, 0, (rv_str){NULL, 0}, err);
    if (rc < 0)
        t->login = NULL;
    return rc;
}

int rv_mcp_tokens_on_redirect(rv_mcp_tokens *t, rv_str query, rv_err **err)
{
    if (!t->oauth)
        return RV_FAIL(err, RV_E_STATE, "no login is under way");
    int rc = rv_oauth_on_redirect(t->oauth, query, now_us(t), err);
    if (rc == 0)
        rc = perform(t, err);
    return rc;
}

/* --- its life --- */

static int copy_texts(rv_mcp_tokens *t, rv_err **err)
{
    struct rv_oauth_config *c = &t->opts.config;
    const char **const places[] = {[SERVER] = &c->server,
                                   [RESOURCE] = &c->resource,
                                   [CLIENT_ID] = &c->client_id,
                                   [CLIENT_SECRET] = &c->client_secret,
                                   [METADATA_URL] = &c->metadata_url,
                                   [SCOPE] = &c->scope,
                                   [REDIRECT_URI] = &c->redirect_uri,
                                   [FILE_NAME] = &t->opts.file,
                                   [KEY_ID] = &c->key_id,
                                   [IDP_TOKEN_ENDPOINT] = &c->idp_token_endpoint,
                                   [IDP_CLIENT_ID] = &c->idp_client_id,
                                   [PRIVATE_KEY] = &c->private_key,
                                   [ASSERTION] = &c->assertion,
                                   [ID_TOKEN] = &c->id_token,
                                   [IDP_CLIENT_SECRET] = &c->idp_client_secret};
    RV_EACH_HAS_ROW(places, N_TEXTS);

    for (size_t i = 0; i < N_TEXTS; i++) {
        if (!*places[i])
            continue;
        t->texts[i] = rv_str_dup(rv_str_of(*places[i]));
        if (!t->texts[i])
            return RV_FAIL(err, RV_E_NOMEM, "keep tokens");
        *places[i] = t->texts[i];
    }
    return 0;
}

void rv_mcp_tokens_free(rv_mcp_tokens *t)
{
    if (!t)
        return;
    end_flow(t);
    for (size_t i = 0; i < N_TEXTS; i++) {
        if (i >= CLIENT_SECRET && t->texts[i])
            rv_wipe(t->texts[i], strlen(t->texts[i]));
        free(t->texts[i]);
    }
    json_object_put(t->kept);
    if (t->refused.ptr)
        rv_wipe(t->refused.ptr, t->refused.len);
    rv_buf_fini(&t->refused);
    if (t->used.ptr)
        rv_wipe(t->used.ptr, t->used.len);
    rv_buf_fini(&t->used);
    rv_buf_fini(&t->challenge);
    rv_buf_fini(&t->answer);
    rv_buf_fini(&t->authorization);
    rv_buf_fini(&t->content_type);
    free(t);
}

int rv_mcp_tokens_new(const struct rv_mcp_tokens_opts *opts, rv_mcp_tokens **out, rv_err **err)
{
    rv_mcp_tokens *t = calloc(1, sizeof *t);

    if (!t)
        return RV_FAIL(err, RV_E_NOMEM, "keep tokens");
    t->opts = *opts;
    rv_buf_init(&t->challenge, (size_t)8 << 10);
    rv_buf_init(&t->refused, RV_OAUTH_MAX_TOKEN);
    rv_buf_init(&t->used, RV_OAUTH_MAX_TOKEN);
    rv_buf_init(&t->answer, RV_OAUTH_MAX_ANSWER);
    rv_buf_init(&t->authorization, (size_t)32 << 10);
    rv_buf_init(&t->content_type, 100);
    int rc = copy_texts(t, err);
    if (rc == 0)
        rc = read_file(t->texts[FILE_NAME], &t->kept, err);
    if (rc < 0) {
        rv_mcp_tokens_free(t);
        return rc;
    }
    *out = t;
    return 0;
}
