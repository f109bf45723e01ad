/* Each allocation of encryption fails once: master keys, setting a mode, writing and reading messages, records and
 * entities, rotation, the check. No crash, no leak, nothing plain where ciphertext is due; the code is RV_E_NOMEM. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "coreengine/store/store.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/rsa_keys.h"
#include "tests/kit/suites.h"

#define T0 INT64_C(1700000000000000)

static const struct rv_store_scope scope = {RV_STORE_TENANT, "ada"};
static char private_file[300];
static int broken_line; /* Check's own assertions allocate */

static int see(void *self, const struct rv_message *m, rv_err **err)
{
    (void)err;
    *(bool *)self = rv_str_is(m->content, "the plain words");
    return 0;
}

static int write_rows(rv_store *s, rv_err **err)
{
    struct rv_message m = {
        .id = "m1", .type = "user", .has_content = true, .content = RV_STR_LIT("the plain words"), .token_count = 3};
    const struct rv_turn turn = {.session = "s1", .rows = &m, .n_rows = 1};
    const struct rv_session_row session = {.id = "s1", .tenant = RV_STORE_TENANT, .user = "ada", .created_us = T0};
    json_object *row = NULL;
    int rc = rv_store_ensure_session(s, &session, NULL, err);

    if (rc == 0)
        rc = rv_store_add_messages(s, &scope, &turn, T0, err);
    if (rc == 0)
        rc = rv_json_parse(RV_STR_LIT("{\"name\":\"x\",\"content\":\"c\",\"metadata\":{\"a\":1}}"), NULL, &row, err);
    const struct rv_entities_put how = {.kind = "resources", .rows = &row, .n_rows = 1, .now_us = T0};
    if (rc == 0)
        rc = rv_store_put_entities(s, &scope, &how, NULL, err);
    json_object_put(row);
    return rc;
}

static int see_row(void *self, json_object *row, rv_err **err)
{
    (void)row;
    (void)err;
    ++*(int *)self;
    return 0;
}

/* The address is found while it is encrypted; a sealed text is opened by the private key, and stays when it is not
 * given. */
static int use_sealed(rv_store *s, rv_err **err)
{
    rv_str text = RV_STR_LIT(RSA_PUBLIC);
    struct rv_rsa seal;
    char id[RV_ENCRYPTION_ID];
    json_object *row = NULL, *value = NULL;
    int n = 0, rc = rv_rsa_read(&text, "a key", &seal, err);

    if (rc == 0)
        rc = rv_json_parse(RV_STR_LIT("{\"email\":\"ada@example.com\",\"content\":\"c\"}"), NULL, &row, err);
    const struct rv_entities_put how = {.kind = "users", .rows = &row, .n_rows = 1, .now_us = T0};
    if (rc == 0)
        rc = rv_store_put_entities(s, &scope, &how, NULL, err);
    if (rc == 0 && !(value = json_object_new_string("ada@example.com")))
        rc = RV_FAIL(err, RV_E_NOMEM, "make a value");
    const struct rv_entity_where where = {"email", value};
    const struct rv_entity_filter filter = {.where = &where, .n_where = 1};
    if (rc == 0)
        rc = rv_store_find_entities(s, &scope, &(const struct rv_entities_of){"users", &filter}, see_row, &n, err);
    if (rc == 0 && n != 1)
        broken_line = __LINE__;
    if (rc == 0)
        rc = rv_store_set_encryption(s, RV_STORE_TENANT,
                                     &(const struct rv_encryption_choice){.mode = RV_ENCRYPTION_SEALED, .seal = &seal},
                                     T0, id, err);
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = rv_store_put_entities(s, &scope, &how, NULL, err);
    json_object_put(value);
    json_object_put(row);
    return rc;
}

static int use(rv_store *s, rv_err **err)
{
    struct rv_encryption_walked walked;
    char id[RV_ENCRYPTION_ID];
    bool same = false;
    int64_t n = 0;

    int rc = rv_store_set_encryption(s, RV_STORE_TENANT,
                                     &(const struct rv_encryption_choice){.mode = RV_ENCRYPTION_PLATFORM}, T0, id, err);
    if (rc == 0)
        rc = write_rows(s, err);
    if (rc == 0)
        rc = rv_store_read_messages(s, &scope, &(const struct rv_messages_of){"s1", NULL}, see, &same, err);
    if (rc == 0 && !same)
        broken_line = __LINE__;
    if (rc == 0)
        rc = rv_store_set_encryption(s, RV_STORE_TENANT,
                                     &(const struct rv_encryption_choice){.mode = RV_ENCRYPTION_PLATFORM}, T0, id, err);
    if (rc == 0)
        rc = rv_store_encrypt(s, NULL, T0, &walked, err);
    if (rc == 0)
        rc = rv_store_prune_tenant_keys(s, T0 + 1, &n, err);
    if (rc == 0 && n != 1)
        broken_line = __LINE__;
    if (rc == 0)
        rc = rv_store_rewrap_keys(s, &n, err);
    if (rc == 0)
        rc = use_sealed(s, err);
    if (rc == 0)
        rc = rv_store_encrypt(s, NULL, T0, &walked, err);
    return rc == 0 ? rv_store_check(s, err) : rc;
}

static int scenario(void)
{
    struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    rv_store *s = NULL;
    rv_err *err = NULL;

    int rc = rv_keyring_read(RV_STR_LIT("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="), "keys", &opts.ring, &err);
    if (rc == 0)
        rc = rv_keyring_add_private(&opts.ring, private_file, &err);
    if (rc == 0)
        rc = rv_store_open("memory:", &opts, &s, &err);
    if (rc == 0)
        rc = use(s, &err);
    if ((rc < 0) != (err != NULL) || (rc < 0 && !rv_err_is(err, RV_E_NOMEM)))
        broken_line = __LINE__;
    rv_store_close(s);
    rv_keyring_unref(opts.ring);
    rv_err_free(err);
    return rc;
}

START_TEST(any_allocation_of_encryption_may_fail)
{
    size_t n, n_tried = 0;
    char *dir = rv_kit_tmpdir();

    snprintf(private_file, sizeof private_file, "%s/private.pem", dir);
    FILE *f = fopen(private_file, "w");
    ck_assert_ptr_nonnull(f);
    fputs(RSA_PRIVATE, f);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(chmod(private_file, 0600), 0);
    rv_fault_arm(SIZE_MAX);
    ck_assert_int_eq(scenario(), 0);
    rv_fault_disarm();
    const size_t step = rv_kit_step(rv_fault_count() / 120 + 1);
    ck_assert_int_eq(broken_line, 0);
    for (n = rv_kit_first(step);; n += step) {
        rv_fault_arm(n);
        int rc = scenario();
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(broken_line == 0, "allocation %zu: broken at line %d", n, broken_line);
        ck_assert_msg(rc == RV_E_NOMEM || rc == 0, "allocation %zu: %d", n, rc);
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu: %ld blocks", n, rv_fault_balance());
        n_tried++;
    }
    ck_assert(!rv_fault_works() || n_tried > 100);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_encryption");
    TCase *tc = tcase_create("encryption");

    tcase_add_test(tc, any_allocation_of_encryption_may_fail);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
