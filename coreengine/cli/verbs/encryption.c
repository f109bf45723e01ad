/* reeve encryption: which tenants' rows are encrypted, and by which keys. */
#include "coreengine/store/store.h"

#include "coreengine/cli/show/table_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *tenant_of(const struct rv_cli *cli)
{
    if (cli_flag(cli, "all-tenants"))
        return "";
    return cli->app.scope.tenant ? cli->app.scope.tenant : RV_STORE_TENANT;
}

static void write_who(const char *tenant, rv_buf *b)
{
    if (*tenant)
        rv_buf_printf(b, "tenant \"%s\"", tenant);
    else
        rv_buf_puts(b, "all tenants without a mode of their own");
}

/* --- new-key --- */

static int write_key_file(const char *path, const rv_buf *line, rv_err **err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), rc = 0;

    if (fd < 0)
        return RV_FAIL_SYSTEM(err, errno, "write key file \"%s\"", path);
    if (write(fd, rv_buf_cstr(line), line->len) != (ssize_t)line->len || fsync(fd) < 0)
        rc = RV_FAIL_SYSTEM(err, errno, "write key file \"%s\"", path);
    if (close(fd) < 0 && rc == 0)
        rc = RV_FAIL_SYSTEM(err, errno, "write key file \"%s\"", path);
    if (rc < 0)
        unlink(path);
    return rc;
}

static int new_key(struct rv_cli *cli, rv_err **err)
{
    rv_buf line = RV_BUF_INIT(256), said = RV_BUF_INIT(16384);
    char name[RV_KEYRING_NAME];

    rv_keyring_make(rv_rand_system(), &line, name);
    rv_buf_putc(&line, '\n');
    int rc = rv_buf_check(&line, "a key", err);
    if (rc == 0 && cli->n_words > 0) {
        rc = write_key_file(cli->words[0], &line, err);
        rv_buf_printf(&said, "master key %s is in %s\n", name, cli->words[0]);
    } else if (rc == 0) {
        rv_buf_add_str(&said, rv_buf_str(&line));
    }
    if (line.ptr)
        rv_wipe(line.ptr, line.cap);
    rv_buf_fini(&line);
    return cli_print(rc, &said, err);
}

/* --- status --- */

static const struct rv_cli_column columns[] = {{"TENANT", 40, false}, {"MODE", 0, false},   {"STATUS", 0, false},
                                               {"KEY", 0, false},     {"MASTER", 0, false}, {"SINCE", 0, false}};

static int add_row(void *self, const struct rv_tenant_key *key, rv_err **err)
{
    struct rv_cli_list *l = self;
    char since[RV_TIME_MAX];

    (void)err;
    if (!cli_list_takes(l))
        return 0;
    rv_time_format(key->created_us, since);
    if (l->table) {
        cli_table_add_text(l->table, *key->tenant ? key->tenant : "(all others)");
        cli_table_add_text(l->table, rv_encryption_mode_text(key->mode));
        cli_table_add_text(l->table, key->status);
        cli_table_add_text(l->table, *key->master ? key->id : NULL);
        cli_table_add_text(l->table, *key->master ? key->master : NULL);
        cli_table_add_text(l->table, since);
    } else if (l->json) {
        rv_jw_obj(l->json);
        rv_jw_kv_text(l->json, "tenant", key->tenant);
        rv_jw_kv_text(l->json, "mode", rv_encryption_mode_text(key->mode));
        rv_jw_kv_text(l->json, "status", key->status);
        rv_jw_kv_text(l->json, "key", key->id);
        rv_jw_kv_text(l->json, "algorithm", key->algorithm);
        rv_jw_kv_text(l->json, "master_key", key->master);
        rv_jw_kv_text(l->json, "public_key", key->public_key);
        rv_jw_kv_text(l->json, "created_at", since);
        rv_jw_obj_end(l->json);
    }
    return 0;
}

static int status(struct rv_cli *cli, rv_err **err)
{
    struct rv_cli_list l = {.what = "keys"};
    const char *tenant = cli->app.scope.tenant;
    int rc = cli_list_begin(cli, &l, columns, RV_COUNT(columns), err);

    if (rc == 0 && cli->store)
        rc = rv_store_list_tenant_keys(cli->store, cli_flag(cli, "all-tenants") ? "" : tenant, add_row, &l, err);
    return cli_list_end(cli, &l, rc, err);
}

/* --- set --- */

/* A private key is not needed, and should not be where reeve is. */
static int read_public(const char *path, struct rv_rsa *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_RSA_TEXT), source = RV_BUF_INIT(8192);
    int rc = rv_file_read(path, &text, err);
    rv_str rest = rv_buf_str(&text);

    rv_buf_printf(&source, "public key file \"%.4096s\"", path);
    if (rc == 0)
        rc = rv_rsa_read(&rest, rv_buf_cstr(&source), out, err);
    if (rc == 0 && out->is_private) {
        rc = RV_FAIL(err, RV_E_INVALID, "%s: a private key", rv_buf_cstr(&source));
        rv_err_set_hint(err, "`openssl pkey -in FILE -pubout` prints its public key");
    } else if (rc == 0 && rv_str_trim(rest).len > 0) {
        rc = RV_FAIL(err, RV_E_INVALID, "%s: something is behind the key", rv_buf_cstr(&source));
    }
    if (text.ptr)
        rv_wipe(text.ptr, text.cap);
    if (rc < 0)
        rv_wipe(out, sizeof *out);
    rv_buf_fini(&text);
    rv_buf_fini(&source);
    return rc;
}

static int set(struct rv_cli *cli, rv_err **err)
{
    const char *path = cli_value(cli, "public-key");
    rv_buf said = RV_BUF_INIT(4096);
    enum rv_encryption_mode mode = RV_ENCRYPTION_NONE;
    char id[RV_ENCRYPTION_ID] = "";
    struct rv_rsa seal;

    int rc = rv_encryption_mode_of(rv_str_of(cli->words[0]), &mode, err);
    if (rc == 0 && mode == RV_ENCRYPTION_SEALED && !path) {
        rc = RV_FAIL(err, RV_E_INVALID, "the mode sealed needs the tenant's public key");
        rv_err_set_hint(err, "name its file with --public-key; the private key stays with the tenant");
    }
    if (rc == 0 && path)
        rc = read_public(path, &seal, err);
    if (rc == 0)
        rc = rv_store_set_encryption(cli->store, tenant_of(cli),
                                     &(const struct rv_encryption_choice){.mode = mode, .seal = path ? &seal : NULL},
                                     rv_app_now_us(), id, err);
    write_who(tenant_of(cli), &said);
    rv_buf_printf(&said, ": mode %s", cli->words[0]);
    if (mode >= RV_ENCRYPTION_PLATFORM)
        rv_buf_printf(&said, ", key %s", id);
    rv_buf_puts(&said, "; `reeve encryption apply` rewrites the rows that are there\n");
    return cli_print(rc, &said, err);
}

/* --- apply, prune --- */

static int apply(struct rv_cli *cli, rv_err **err)
{
    struct rv_encryption_walked walked = {0};
    rv_buf said = RV_BUF_INIT(4096);

    int rc = rv_store_encrypt(cli->store, cli_flag(cli, "all-tenants") ? NULL : tenant_of(cli), rv_app_now_us(),
                              &walked, err);
    rv_buf_printf(&said, "%lld text%s, %lld of them rewritten\n", (long long)walked.texts, cli_plural(walked.texts),
                  (long long)walked.rewritten);
    if (walked.locked > 0)
        rv_buf_printf(&said, "%lld stay sealed: REEVE_PRIVATE_KEY_FILE names the file with the private key\n",
                      (long long)walked.locked);
    return cli_print(rc, &said, err);
}

static int prune(struct rv_cli *cli, rv_err **err)
{
    const char *age = cli_value(cli, "older-than");
    rv_buf said = RV_BUF_INIT(4096);
    int64_t age_us = INT64_C(3600000000), n = 0;

    int rc = age ? cli_parse_duration(age, &age_us, err) : 0;
    if (rc == 0)
        rc = rv_store_prune_tenant_keys(cli->store, rv_app_now_us() - age_us, &n, err);
    rv_buf_printf(&said, "deleted %lld retired key%s that nothing needs\n", (long long)n, cli_plural(n));
    return cli_print(rc, &said, err);
}

/* --- rewrap --- */

static int rewrap(struct rv_cli *cli, rv_err **err)
{
    rv_buf said = RV_BUF_INIT(4096);
    int64_t n = 0;

    int rc = rv_store_rewrap_keys(cli->store, &n, err);
    rv_buf_printf(&said, "%lld key%s of tenants %s wrapped by another master key now\n", (long long)n, cli_plural(n),
                  n == 1 ? "is" : "are");
    return cli_print(rc, &said, err);
}

/* --- the verbs --- */

#define ALL_TENANTS                                                                                                    \
    {                                                                                                                  \
        "all-tenants", 0, NULL, "the rule of every tenant that has none of its own", NULL, false                       \
    }
static const struct rv_cli_option status_options[] = {
    {"json", 'j', NULL, "print a JSON array of objects", NULL, false},
    ALL_TENANTS,
};
static const struct rv_cli_option set_options[] = {
    ALL_TENANTS,
    {"public-key", 0, "FILE", "the tenant's RSA key for the mode sealed: PEM or DER, at least 2048 bits", NULL, false},
};

static const struct rv_cli_verb status_verb = {
    .name = "encryption status",
    .args = "",
    .summary = "list tenants with their keys and what is encrypted",
    .text =
        "Prints the mode of each tenant and the names of its keys, also of retired ones, which go on decrypting what\n"
        "they encrypted. No key is printed.",
    .examples = "reeve encryption status\n"
                "reeve encryption status --tenant acme --json",
    RV_CLI_OPTIONS(status_options),
    .groups = {&cli_of_stores},
    .store = RV_CLI_READS_IF_ANY,
    .run = status,
};
static const struct rv_cli_verb set_verb = {
    .name = "encryption set",
    .args = "MODE",
    .summary = "set the mode of a tenant, with a new key",
    .text =
        "platform: contents are encrypted in the store and decrypted when they are read. client: they are also shown\n"
        "encrypted, only agents are told the plain text. sealed: contents of resources, ontologies, files, feedback\n"
        "and users are encrypted by the tenant's public key, so that reeve cannot read them; everything else is as in\n"
        "platform. disabled: plain text. What is written from now on follows the mode. Setting the same mode again\n"
        "makes a new key and retires the former one.",
    .examples = "reeve encryption set platform --tenant acme\n"
                "reeve encryption set platform --all-tenants\n"
                "reeve encryption set sealed --public-key public.pem --tenant vault",
    RV_CLI_OPTIONS(set_options),
    .groups = {&cli_of_stores, &cli_of_commits},
    RV_CLI_ONE_WORD,
    .store = RV_CLI_MAKES,
    .run = set,
};
static const struct rv_cli_verb new_key_verb = {
    .name = "encryption new-key",
    .args = "[FILE]",
    .summary = "make a master key",
    .text =
        "Prints 32 random bytes as base64, or writes them to FILE, which must not exist and which only its owner can\n"
        "read. Name the file in REEVE_ENCRYPTION_KEY_FILE, and keep a copy elsewhere: what it encrypts is lost\n"
        "without it.",
    .examples = "reeve encryption new-key master.key\n"
                "export REEVE_ENCRYPTION_KEY_FILE=$PWD/master.key",
    .max_words = 1,
    .run = new_key,
};
static const struct rv_cli_verb rewrap_verb = {
    .name = "encryption rewrap",
    .args = "",
    .summary = "wrap the keys of all tenants by the first master key",
    .text =
        "To replace the master key, put a new one before the old one in the key file, run this command, and remove\n"
        "the old one. Rows are not changed: the keys of tenants stay the same.",
    .examples = "reeve encryption rewrap",
    .groups = {&cli_of_stores, &cli_of_commits},
    .store = RV_CLI_CHANGES,
    .run = rewrap,
};

static const struct rv_cli_option apply_options[] = {
    {"all-tenants", 0, NULL, "of every tenant", NULL, false},
};
static const struct rv_cli_verb apply_verb = {
    .name = "encryption apply",
    .args = "",
    .summary = "rewrite the rows that are there by the mode and the key of their tenant",
    .text = "Encrypts what is plain, encrypts again what a retired key encrypted, and decrypts what should be plain, a "
            "few\n"
            "rows in a transaction; others can use the store meanwhile. If the command ends early, repeat it: it "
            "continues.\n"
            "Large values leave their former bytes until `reeve gc`.",
    .examples = "reeve encryption apply --tenant acme\n"
                "reeve encryption apply --all-tenants",
    RV_CLI_OPTIONS(apply_options),
    .groups = {&cli_of_stores, &cli_of_commits},
    .store = RV_CLI_CHANGES,
    .run = apply,
};
static const struct rv_cli_option prune_options[] = {
    {"older-than", 0, "AGE", "only keys that were retired longer ago (default 1h): 30m, 7d", NULL, false},
};
static const struct rv_cli_verb prune_verb = {
    .name = "encryption prune",
    .args = "",
    .summary = "delete retired keys that no row needs",
    .text = "Reads the whole store. Backups that were made with a deleted key can no longer be decrypted.",
    .examples = "reeve encryption prune\n"
                "reeve encryption prune --older-than 30d",
    RV_CLI_OPTIONS(prune_options),
    .groups = {&cli_of_stores, &cli_of_commits},
    .store = RV_CLI_CHANGES,
    .run = prune,
};

static const struct rv_cli_verb *const subs[] = {&status_verb, &set_verb,   &apply_verb, &new_key_verb,
                                                 &rewrap_verb, &prune_verb, NULL};

const struct rv_cli_verb verb_encryption = {
    .name = "encryption",
    .args = "VERB",
    .summary = "encrypt the stored data of a tenant",
    .text =
        "Contents of messages, runs, tasks and entities are encrypted by a key of their tenant, which a master key\n"
        "wraps. REEVE_ENCRYPTION_KEY_FILE names the file with the master key.",
    .examples = "reeve encryption new-key                           # print a master key, for REEVE_ENCRYPTION_KEY\n"
                "reeve encryption set platform --tenant acme        # from now on\n"
                "reeve encryption status",
    .subs = subs,
};
