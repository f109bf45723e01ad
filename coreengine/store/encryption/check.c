/* Can every encrypted text be decrypted? For the check of a store. */
#include "coreengine/store/encryption/texts_internal.h"

struct checking {
    bool (*tell)(void *self, const char *what);
    void *self;
    bool is_full;
};

/* A text that does not decrypt is reported; without its key it is not known whether it would. */
static int check_text(struct rv_texts_walk *w, const struct rv_place *at, const char *column, rv_buf *text,
                      bool *changed, rv_err **err)
{
    struct checking *c = w->self;
    rv_buf plain = RV_BUF_INIT(text->max);
    rv_err *why = NULL;
    int rc = 0;

    (void)changed;
    if (!store_secret_is(rv_buf_str(text)) || c->is_full)
        return 0;
    rc = store_secret_read(w->st, at, column, rv_buf_str(text), &plain, &why);
    if (plain.ptr)
        rv_wipe(plain.ptr, plain.cap);
    rv_buf_fini(&plain);
    if (rc < 0 && rc != RV_E_NOMEM && rc != RV_E_DENIED) {
        const rv_err *last = why;
        while (rv_err_cause(last))
            last = rv_err_cause(last);
        c->is_full = c->tell(c->self, rv_err_text(last));
        rc = 0;
    }
    if (rc == RV_E_NOMEM)
        rv_err_pass(err, why);
    else
        rv_err_free(why);
    return rc == RV_E_DENIED ? 0 : rc;
}

int store_encryption_check(struct sql_store *st, bool (*tell)(void *self, const char *what), void *self, rv_err **err)
{
    struct checking c = {.tell = tell, .self = self};
    struct rv_texts_walk w = {.st = st, .visit = check_text, .self = &c};
    bool is_used = false;

    vault_look_again(st);
    int rc = vault_is_used(st, &is_used, err);
    return rc < 0 || !is_used ? rc : store_texts_read(&w, err);
}
