/* What the tests of encryption share: keys, modes, and what is kept behind store.h. */
#ifndef RV_TESTS_STORE_SECRETS_H
#define RV_TESTS_STORE_SECRETS_H

#include "coreengine/store/store.h"

#include "coreengine/store/encryption/vault_internal.h"
#include "coreengine/store/store_internal.h"
#include "tests/contract/store/entities.h"

#define ONE     "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
#define TWO     "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
#define CONTENT "SELECT content FROM messages WHERE seq = 1"
#define ROW                                                                                                            \
    "{\"name\":\"Bread\",\"content\":\"flour and "                                                                     \
    "kangaroo\",\"comment\":\"wombat\",\"metadata\":{\"who\":\"platypus\"}}"

/** Another handle of the same store, or this one, with these master keys. "": none. */
void use_keys(struct world *w, const char *keys);
/** The same with private keys beside. */
void use_private(struct world *w, const char *keys, const char *pem);
struct rv_rsa rsa_of(const char *text);
/** Of the default tenant; sealed: by RSA_PUBLIC. */
void set_mode(struct world *w, enum rv_encryption_mode mode);
/** A text of a statement, as the store keeps it; the caller's. */
char *kept(struct world *w, const char *sql);
void change(struct world *w, const char *sql, const char *text, enum sql_type type);
/** A session with one message. */
void say(struct world *w, const char *session, const char *content);

#endif
