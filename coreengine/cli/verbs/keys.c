/* reeve keys: API keys of the server. The secret of a key is printed when it is made, and never again. */
#include "coreengine/cli/show/table_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"
#include "coreengine/identity/identity.h"

#include <stdio.h>
#include <string.h>

#define MAX_CELL 40 /* columns of a value: others stand beside it on a terminal; the rest is cut */

/* --- rows --- */

static const char *status_of(const struct rv_api_key_row *row, int64_t now_us)
{
    return row->revoked_us > 0 ? "revoked" : row->expires_us > 0 && row->expires_us <= now_us ? "expired" : "valid";
}

static void put_time(rv_jw *w, const char *member, int64_t us)
{
    char text[RV_TIME_MAX];

    rv_time_format(us, text);
    rv_jw_kv_text(w, member, us > 0 ? text : NULL);
}

/* secret: the text of a key that was just made; NULL: it is not shown. */
static void write_json(const struct rv_api_key_row *row, const char *secret, int64_t now_us, rv_jw *w)
{
    char scopes[RV_API_KEY_MAX_TEXT + 1], *rest = NULL;

    snprintf(scopes, sizeof scopes, "%s", row->scopes);
    rv_jw_obj(w);
    rv_jw_kv_text(w, "id", row->id);
    if (secret)
        rv_jw_kv_text(w, "key", secret);
    rv_jw_kv_text(w, "level", row->level);
    rv_jw_kv_text(w, "tenant", row->tenant);
    rv_jw_kv_text(w, "user", row->user[0] ? row->user : NULL);
    rv_jw_key(w, "scopes");
    rv_jw_arr(w);
    for (char *word = strtok_r(scopes, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        rv_jw_text(w, word);
    rv_jw_arr_end(w);
    rv_jw_kv_text(w, "note", row->note);
    rv_jw_kv_text(w, "status", status_of(row, now_us));
    put_time(w, "created_at", row->created_us);
    put_time(w, "expires_at", row->expires_us);
    put_time(w, "used_at", row->used_us);
    put_time(w, "revoked_at", row->revoked_us);
    rv_jw_obj_end(w);
}

/* --- one of them --- */

struct search {
    const char *word;
    char id[RV_STORE_MAX_ID + 1];
    int n;
};

static int compare(void *self, const struct rv_api_key_row *row, rv_err **err)
{
    struct search *s = self;

    (void)err;
    if (strncmp(row->id, s->word, strlen(s->word)) != 0)
        return 0;
    snprintf(s->id, sizeof s->id, "%s", row->id);
    s->n = strcmp(row->id, s->word) == 0 ? 1 : s->n + 1;
    return strcmp(row->id, s->word) == 0 ? 1 : 0;
}

/* By its id, or a unique prefix. */
static int find(struct rv_cli *cli, const char *word, struct rv_api_key_row *out, rv_err **err)
{
    struct search s = {.word = word};
    int rc = rv_store_list_api_keys(cli->store, &cli->app.scope,
                                    &(const struct rv_api_key_filter){.all = true, .now_us = rv_app_now_us()}, compare,
                                    &s, err);

    if (rc < 0)
        return rc;
    if (s.n == 1 && word[0])
        return rv_store_get_api_key(cli->store, s.id, out, err);
    if (s.n > 1)
        return RV_FAIL(err, RV_E_INVALID, "%d API keys begin with \"%s\"", s.n, word);
    RV_FAIL(err, RV_E_NOT_FOUND, "there is no API key \"%.20s\"", word);
    rv_err_set_hint(err, "`reeve keys list --all` lists them by their ids, those of other tenants with --tenant");
    return RV_E_NOT_FOUND;
}

/* --- create --- */

static int read_level(struct rv_cli *cli, enum rv_level *out, rv_err **err)
{
    const char *word = cli_value(cli, "level"), *user = cli->app.scope.user;
    bool has_user = user && user[0];
    int level = word ? rv_level_of(rv_str_of(word)) : has_user ? RV_LEVEL_USER : RV_LEVEL_TENANT;

    if (level < 0)
        return cli_usage(cli, err, "--level is \"%s\": use user, tenant or master", word);
    *out = (enum rv_level)level;
    if (*out == RV_LEVEL_USER && !has_user)
        return cli_usage(cli, err, "a key of level user needs --user");
    if (*out != RV_LEVEL_USER && has_user)
        return cli_usage(cli, err, "a key of level %s is not for user \"%s\": leave out --user and REEVE_USER", word,
                         user);
    return 0;
}

static int read_scopes(struct rv_cli *cli, enum rv_level level, rv_buf *out, rv_err **err)
{
    const char *words = cli_value(cli, "scopes");
    uint32_t scopes = level == RV_LEVEL_MASTER ? RV_SCOPES_ALL : RV_SCOPES_USUAL;
    int rc = words ? rv_scopes_parse(rv_str_of(words), &scopes, err) : 0;

    if (rc == 0 && scopes == 0)
        return cli_usage(cli, err, "--scopes is empty");
    rv_scopes_write(scopes, out);
    return rc < 0 ? rc : rv_buf_check(out, "scopes", err);
}

static int add(struct rv_cli *cli, const struct rv_api_key_row *row, const struct rv_new_key *key, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    int rc = rv_store_add_api_key(cli->store, row, err);

    if (rc == 0 && cli_flag(cli, "json")) {
        rv_jw w = rv_jw_on(&text);
        write_json(row, key->text, row->created_us, &w);
        rv_buf_putc(&text, '\n');
    } else if (rc == 0) {
        rv_buf_printf(&text, "%s\n", key->text);
        cli_say("key %s, level %s; its text is shown this once\n", key->id, row->level);
    }
    return cli_print(rc, &text, err);
}

static int create(struct rv_cli *cli, rv_err **err)
{
    const char *note = cli_value(cli, "note"), *lasts = cli_value(cli, "expires"), *user = cli->app.scope.user;
    int64_t now_us = rv_app_now_us(), span_us = 0;
    rv_buf scopes = RV_BUF_INIT(RV_API_KEY_MAX_TEXT);
    enum rv_level level = RV_LEVEL_USER;
    struct rv_new_key key;

    int rc = read_level(cli, &level, err);
    if (rc == 0)
        rc = read_scopes(cli, level, &scopes, err);
    if (rc == 0 && lasts)
        rc = cli_parse_duration(lasts, &span_us, err);
    if (rc == 0 && lasts && span_us <= 0)
        rc = cli_usage(cli, err, "--expires is \"%s\": use a time in the future, such as 90d", lasts);
    if (rc == 0) {
        rv_api_key_make(rv_rand_system(), &key);
        const struct rv_api_key_row row = {.id = key.id,
                                           .hash = key.hash,
                                           .level = rv_level_text(level),
                                           .tenant = cli->app.scope.tenant ? cli->app.scope.tenant : RV_STORE_TENANT,
                                           .user = user ? user : "",
                                           .scopes = rv_buf_cstr(&scopes),
                                           .note = note ? note : "",
                                           .created_us = now_us,
                                           .expires_us = lasts ? now_us + span_us : 0};
        rc = add(cli, &row, &key, err);
        rv_secret_wipe(&key, sizeof key);
    }
    rv_buf_fini(&scopes);
    return rc;
}

/* --- list --- */

static void add_age(rv_cli_table *t, int64_t us, int64_t now_us)
{
    rv_buf age = RV_BUF_INIT(64);

    if (us > 0)
        cli_write_age(&age, us > now_us ? us - now_us : now_us - us);
    cli_table_add_text(t, us > 0 ? rv_buf_cstr(&age) : NULL);
    rv_buf_fini(&age);
}

static int take_key(void *self, const struct rv_api_key_row *row, rv_err **err)
{
    struct rv_cli_list *l = self;
    int64_t now_us = rv_app_now_us();

    (void)err;
    if (!cli_list_takes(l))
        return 0;
    if (l->json) {
        write_json(row, NULL, now_us, l->json);
    } else if (l->table) {
        cli_table_add_text(l->table, row->id);
        cli_table_add_text(l->table, row->level);
        cli_table_add_text(l->table, row->user[0] ? row->user : NULL);
        cli_table_add_text(l->table, row->scopes);
        cli_table_add_text(l->table, status_of(row, now_us));
        add_age(l->table, row->created_us, now_us);
        add_age(l->table, row->used_us, now_us);
        add_age(l->table, row->expires_us, now_us);
        cli_table_add_text(l->table, row->note[0] ? row->note : NULL);
    } else {
        rv_buf_printf(&l->text, "%s\n", row->id);
    }
    return 0;
}

static int list(struct rv_cli *cli, rv_err **err)
{
    static const struct rv_cli_column columns[] = {
        {"KEY", 0, false},           {"LEVEL", 0, false},  {"USER", MAX_CELL, false},
        {"SCOPES", MAX_CELL, false}, {"STATUS", 0, false}, {"AGE", 0, true},
        {"USED", 0, true},           {"ENDS IN", 0, true}, {"NOTE", MAX_CELL, false},
    };
    struct rv_cli_list l = {.what = "API keys", .words = "ids"};
    int rc = cli_list_begin(cli, &l, columns, RV_COUNT(columns), err);

    if (rc == 0 && cli->store)
        rc = rv_store_list_api_keys(
            cli->store, &cli->app.scope,
            &(const struct rv_api_key_filter){.all = cli_flag(cli, "all"), .now_us = rv_app_now_us()}, take_key, &l,
            err);
    return cli_list_end(cli, &l, rc, err);
}

/* --- show, revoke --- */

static int show(struct rv_cli *cli, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    struct rv_api_key_row row = {.own = NULL};
    int rc = find(cli, cli->words[0], &row, err);

    if (rc == 0 && cli_flag(cli, "json")) {
        rv_jw w = rv_jw_on(&text);
        write_json(&row, NULL, rv_app_now_us(), &w);
        rv_buf_putc(&text, '\n');
    } else if (rc == 0) {
        cli_put_line(&text, "key", row.id);
        cli_put_line(&text, "status", status_of(&row, rv_app_now_us()));
        cli_put_line(&text, "level", row.level);
        cli_put_line(&text, "tenant", row.tenant);
        cli_put_line(&text, "user", row.user);
        cli_put_line(&text, "scopes", row.scopes);
        cli_put_line(&text, "note", row.note);
        cli_put_moment(&text, "created", row.created_us);
        cli_put_moment(&text, "used", row.used_us);
        cli_put_moment(&text, "expires", row.expires_us);
        cli_put_moment(&text, "revoked", row.revoked_us);
    }
    rv_api_key_row_fini(&row);
    return cli_print(rc, &text, err);
}

static int revoke(struct rv_cli *cli, rv_err **err)
{
    rv_buf said = RV_BUF_INIT(RV_APP_MAX_TEXT);
    int rc = 0;

    for (size_t i = 0; i < cli->n_words && rc == 0; i++) {
        struct rv_api_key_row row = {.own = NULL};
        rc = find(cli, cli->words[i], &row, err);
        if (rc == 0)
            rc = rv_store_revoke_api_key(cli->store, &cli->app.scope, row.id, rv_app_now_us(), err);
        if (rc == 0)
            rv_buf_printf(&said, "API key %s is revoked\n", row.id);
        rv_api_key_row_fini(&row);
    }
    if (said.len > 0) /* also of those before the one that failed */
        cli_out(rv_buf_str(&said));
    rv_buf_fini(&said);
    return rc;
}

/* --- the table --- */

static const struct rv_cli_option list_options[] = {
    {"all", 'a', NULL, "also keys that are revoked or expired", NULL, false},
    {"json", 'j', NULL, "print a JSON array of keys", NULL, false},
    {"ids", 0, NULL, "print ids only, one a line", NULL, false},
};
static const struct rv_cli_option create_options[] = {
    {"level", 0, "LEVEL", "user (default with --user), tenant (default without) or master", "user tenant master",
     false},
    {"scopes", 0, "LIST", "what the key allows, with commas between; also all, usual (default) and read", NULL, false},
    {"expires", 0, "SPAN", "the key opens nothing after this time, e.g. 90d (default: it does not expire)", NULL,
     false},
    {"note", 0, "TEXT", "what the key is for", NULL, false},
    {"json", 'j', NULL, "print a JSON object", NULL, false},
};
static const struct rv_cli_option show_options[] = {
    {"json", 'j', NULL, "print a JSON object", NULL, false},
};

static const struct rv_cli_verb list_verb = {
    .name = "keys list",
    .args = "",
    .summary = "list API keys, newest first",
    .text = "Prints a table: id, level, user, scopes, status, how long ago the key was created and used, when it\n"
            "expires, and its note. Secrets are not kept and cannot be shown again.",
    .examples = "reeve keys\n"
                "reeve keys list --all --json | jq -r '.[] | select(.status == \"expired\") | .id'",
    RV_CLI_OPTIONS(list_options),
    .groups = {&cli_of_stores},
    .excludes = "json ids",
    .store = RV_CLI_READS_IF_ANY,
    .run = list,
};
static const struct rv_cli_verb create_verb = {
    .name = "keys create",
    .args = "",
    .summary = "create an API key and print it, once",
    .text =
        "Clients send it as `Authorization: Bearer KEY` or `X-Api-Key: KEY`. The store keeps a hash of its secret, so\n"
        "the text cannot be shown again. A key of level user sees what belongs to the user of --user; level tenant\n"
        "sees all users of the tenant, level master all tenants. Scope data:read includes\n"
        "agents:read and sessions:read: queries read all rows. All scopes: docs/reference/identity.md.",
    .examples = "reeve keys create --user ada --scopes chat,runs:read --expires 90d --note laptop\n"
                "reeve keys create --level master --note operator --json",
    RV_CLI_OPTIONS(create_options),
    .groups = {&cli_of_stores, &cli_of_commits},
    .store = RV_CLI_MAKES,
    .run = create,
};
static const struct rv_cli_verb show_verb = {
    .name = "keys show",
    .args = "KEY",
    .summary = "show an API key without its secret",
    .text = "KEY is the id of the key, the digits between the first two underscores of its text. A unique prefix is\n"
            "enough.",
    .examples = "reeve keys show 8f14a1b2c3d4e5f6",
    RV_CLI_OPTIONS(show_options),
    .groups = {&cli_of_stores},
    RV_CLI_ONE_WORD,
    .takes = &cli_takes_keys,
    .store = RV_CLI_READS,
    .run = show,
};
static const struct rv_cli_verb revoke_verb = {
    .name = "keys revoke",
    .args = "KEY...",
    .summary = "revoke API keys",
    .text = "A revoked key opens nothing from the next request on, and the logins that were exchanged for it end.\n"
            "It stays in `reeve keys list --all`.",
    .examples = "reeve keys revoke 8f14a1b2c3d4e5f6",
    .groups = {&cli_of_stores, &cli_of_commits},
    .min_words = 1,
    .max_words = RV_CLI_MAX_ARGS,
    .takes = &cli_takes_keys,
    .store = RV_CLI_CHANGES,
    .run = revoke,
};

static const struct rv_cli_verb *const subs[] = {&list_verb, &create_verb, &show_verb, &revoke_verb, NULL};

const struct rv_cli_verb verb_keys = {
    .name = "keys",
    .args = "VERB",
    .summary = "list, create and revoke API keys of the server",
    .text =
        "An API key says who asks: a level (user, tenant, master), a tenant, a user, and scopes. While there is no\n"
        "key, the server lets in callers on its own machine only; the first key closes it for them, too.",
    .examples = "reeve keys                             # those that are valid\n"
                "reeve keys create --user ada --expires 90d",
    .subs = subs,
};
