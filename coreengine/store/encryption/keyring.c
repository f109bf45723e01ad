/* Master keys, read from a text or a file, and what they wrap; the modes of encryption. */
#include "coreengine/store/encryption/vault_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRAPPED (RV_CIPHER_NONCE + RV_CIPHER_KEY + RV_CIPHER_TAG)

struct master {
    char name[RV_KEYRING_NAME];
    unsigned char bytes[RV_CIPHER_KEY];
};
struct rv_keyring {
    atomic_int refs;
    size_t n;
    struct master keys[RV_KEYRING_MAX]; /* the first wraps */
    size_t n_private;
    struct rv_rsa *private[RV_KEYRING_PRIVATE]; /* owned */
};

/* The name is a hash of the key, whose 256 random bits it does not give away. */
static void name_of(const unsigned char key[RV_CIPHER_KEY], char name[RV_KEYRING_NAME])
{
    static const char of[] = "reeve master key";
    char hex[RV_HASH_MAX];
    struct rv_hash h;

    rv_hash_init(&h);
    rv_hash_add(&h, (rv_str){of, sizeof of});
    rv_hash_add(&h, (rv_str){(const char *)key, RV_CIPHER_KEY});
    rv_hash_finish_hex(&h, hex);
    rv_wipe(&h, sizeof h);
    memcpy(name, hex, RV_KEYRING_NAME - 1);
    name[RV_KEYRING_NAME - 1] = '\0';
}

/* --- Reading --- */

static int fail_line(const char *source, int line, rv_err **err)
{
    RV_FAIL(err, RV_E_INVALID, "%s, key %d: not a key: a key is 32 bytes as base64, which are 44 characters", source,
            line);
    rv_err_set_hint(err, "`reeve encryption new-key` prints one");
    return RV_E_INVALID;
}

static int add_key(rv_keyring *ring, rv_str word, const char *source, int line, rv_err **err)
{
    rv_buf bytes = RV_BUF_INIT(256);
    int rc = 0;

    if (ring->n == RV_KEYRING_MAX)
        return RV_FAIL(err, RV_E_LIMIT, "%s has more than %d keys", source, RV_KEYRING_MAX);
    if (word.len != RV_KEYRING_CHARS || !rv_base64_read(word, &bytes) || (bytes.rc == 0 && bytes.len != RV_CIPHER_KEY))
        rc = fail_line(source, line, err);
    else
        rc = rv_buf_check(&bytes, "a key", err);
    if (rc == 0) {
        struct master *m = &ring->keys[ring->n];
        memcpy(m->bytes, bytes.ptr, sizeof m->bytes);
        name_of(m->bytes, m->name);
        for (size_t i = 0; i < ring->n && rc == 0; i++)
            if (strcmp(ring->keys[i].name, m->name) == 0)
                rc = RV_FAIL(err, RV_E_INVALID, "%s, key %d: the same key as key %zu", source, line, i + 1);
        ring->n++;
    }
    if (bytes.ptr)
        rv_wipe(bytes.ptr, bytes.cap);
    rv_buf_fini(&bytes);
    return rc;
}

static int add_keys(rv_keyring *ring, rv_str text, const char *source, rv_err **err)
{
    int n = 0, rc = 0;

    while (text.len > 0 && rc == 0) {
        size_t len = 0;
        bool is_comment = rv_str_trim(text).len > 0 && *rv_str_trim(text).ptr == '#';
        while (len < text.len && text.ptr[len] != '\n' && (is_comment || text.ptr[len] != ','))
            len++;
        rv_str word = rv_str_trim((rv_str){text.ptr, len});
        if (word.len > 0 && *word.ptr != '#')
            rc = add_key(ring, word, source, ++n, err);
        len += len < text.len;
        text = (rv_str){text.ptr + len, text.len - len};
    }
    if (rc == 0 && ring->n == 0) {
        rc = RV_FAIL(err, RV_E_INVALID, "%s has no key", source);
        rv_err_set_hint(err, "`reeve encryption new-key` prints one");
    }
    return rc;
}

int rv_keyring_read(rv_str text, const char *source, rv_keyring **out, rv_err **err)
{
    rv_keyring *ring = calloc(1, sizeof *ring);
    int rc = ring ? 0 : RV_FAIL(err, RV_E_NOMEM, "read master keys");

    if (rc == 0) {
        atomic_init(&ring->refs, 1);
        rc = text.len > RV_KEYRING_BYTES
                 ? RV_FAIL(err, RV_E_LIMIT, "%s has more than %zu bytes", source, RV_KEYRING_BYTES)
                 : add_keys(ring, text, source, err);
    }
    if (rc == 0)
        *out = ring;
    else
        rv_keyring_unref(ring);
    return rc;
}

/* In one block, so that no copies of a part are left in memory. */
static int read_whole(int fd, const rv_buf *source, rv_buf *text, rv_err **err)
{
    char *bytes = malloc(text->max + 1);
    size_t n = 0;
    ssize_t got = 0;

    while (bytes && n <= text->max &&
           ((got = read(fd, bytes + n, text->max + 1 - n)) > 0 || (got < 0 && errno == EINTR)))
        n += got > 0 ? (size_t)got : 0;
    int rc = !bytes          ? RV_FAIL(err, RV_E_NOMEM, "read %s", rv_buf_cstr(source))
             : got < 0       ? RV_FAIL_SYSTEM(err, errno, "%s", rv_buf_cstr(source))
             : n > text->max ? RV_FAIL(err, RV_E_LIMIT, "%s has more than %zu bytes", rv_buf_cstr(source), text->max)
                             : 0;
    if (rc == 0)
        rv_buf_add(text, bytes, n);
    if (bytes)
        rv_wipe(bytes, text->max + 1);
    free(bytes);
    return rc == 0 ? rv_buf_check(text, rv_buf_cstr(source), err) : rc;
}

/* A file that only some users may read. source names it, in this error and in later ones. */
static int read_secret(const char *path, const rv_buf *source, rv_buf *text, rv_err **err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st; /* of the file that is read, also when another one gets its name meanwhile */
    int rc = fd < 0 || fstat(fd, &st) < 0 ? RV_FAIL_SYSTEM(err, errno, "%s", rv_buf_cstr(source)) : 0;

    if (rc == 0 && S_ISREG(st.st_mode) && (st.st_mode & (S_IROTH | S_IWOTH))) {
        rc = RV_FAIL(err, RV_E_DENIED, "%s: every user of this machine can %s it", rv_buf_cstr(source),
                     st.st_mode & S_IROTH ? "read" : "change");
        rv_err_set_hint(err, "chmod 600 \"%.4096s\"", path);
    }
    if (rc == 0)
        rc = read_whole(fd, source, text, err);
    if (fd >= 0)
        close(fd);
    return rc;
}

static void forget_text(rv_buf *text)
{
    if (text->ptr)
        rv_wipe(text->ptr, text->cap);
    rv_buf_fini(text);
}

int rv_keyring_read_file(const char *path, rv_keyring **out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_KEYRING_BYTES), source = RV_BUF_INIT(8192);

    rv_buf_printf(&source, "key file \"%.4096s\"", path);
    int rc = read_secret(path, &source, &text, err);
    if (rc == 0)
        rc = rv_keyring_read(rv_buf_str(&text), rv_buf_cstr(&source), out, err);
    forget_text(&text);
    rv_buf_fini(&source);
    return rc;
}

/* --- Private keys --- */

/* Takes the key. */
static int add_private(rv_keyring *ring, struct rv_rsa *key, const char *source, rv_err **err)
{
    int rc = 0;

    if (!key->is_private)
        rc = RV_FAIL(err, RV_E_INVALID, "%s: a public key, which opens nothing", source);
    else if (store_keyring_private(ring, key))
        rc = RV_FAIL(err, RV_E_INVALID, "%s: the same key twice", source);
    else if (ring->n_private == RV_KEYRING_PRIVATE)
        rc = RV_FAIL(err, RV_E_LIMIT, "%s has more than %d keys", source, RV_KEYRING_PRIVATE);
    if (rc == 0) {
        ring->private[ring->n_private++] = key;
        return 0;
    }
    rv_wipe(key, sizeof *key);
    free(key);
    return rc;
}

static int add_privates(rv_keyring *ring, rv_str text, const char *source, rv_err **err)
{
    int rc = 0;

    do {
        struct rv_rsa *key = calloc(1, sizeof *key);
        rc = key ? rv_rsa_read(&text, source, key, err) : RV_FAIL(err, RV_E_NOMEM, "read private keys");
        if (rc < 0)
            free(key);
        else
            rc = add_private(ring, key, source, err);
        text = rc == 0 ? rv_str_trim(text) : text;
    } while (rc == 0 && text.len > 0);
    return rc;
}

int rv_keyring_add_private(rv_keyring **ring, const char *path, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_RSA_TEXT), source = RV_BUF_INIT(8192);
    rv_keyring *made = NULL;

    rv_buf_printf(&source, "private key file \"%.4096s\"", path);
    int rc = read_secret(path, &source, &text, err);
    if (rc == 0 && !*ring) {
        made = calloc(1, sizeof *made);
        rc = made ? 0 : RV_FAIL(err, RV_E_NOMEM, "read private keys");
        if (made)
            atomic_init(&made->refs, 1);
    }
    if (rc == 0)
        rc = add_privates(*ring ? *ring : made, rv_buf_str(&text), rv_buf_cstr(&source), err);
    if (rc == 0 && made)
        *ring = made;
    else
        rv_keyring_unref(made);
    forget_text(&text);
    rv_buf_fini(&source);
    return rc;
}

const struct rv_rsa *store_keyring_private(const rv_keyring *ring, const struct rv_rsa *seal)
{
    for (size_t i = 0; ring && i < ring->n_private; i++)
        if (rv_rsa_is_same(ring->private[i], seal))
            return ring->private[i];
    return NULL;
}

rv_keyring *store_keyring_ref(rv_keyring *ring)
{
    if (ring)
        atomic_fetch_add(&ring->refs, 1);
    return ring;
}

void rv_keyring_unref(rv_keyring *ring)
{
    if (!ring || atomic_fetch_sub(&ring->refs, 1) != 1)
        return;
    for (size_t i = 0; i < ring->n_private; i++) {
        rv_wipe(ring->private[i], sizeof *ring->private[i]);
        free(ring->private[i]);
    }
    rv_wipe(ring, sizeof *ring);
    free(ring);
}

size_t store_keyring_size(const rv_keyring *ring)
{
    return ring ? ring->n : 0;
}

const char *store_keyring_name(const rv_keyring *ring, size_t i)
{
    return ring->keys[i].name;
}

void rv_keyring_make(struct rv_rand rand, rv_buf *out, char name[RV_KEYRING_NAME])
{
    unsigned char key[RV_CIPHER_KEY];

    rand.fill(rand.self, key, sizeof key);
    rv_base64_write((rv_str){(const char *)key, sizeof key}, out);
    name_of(key, name);
    rv_wipe(key, sizeof key);
}

/* --- Wrapping --- */

void store_keyring_wrap(const rv_keyring *ring, struct rv_rand rand, rv_str bound,
                        const unsigned char key[RV_CIPHER_KEY], rv_buf *out)
{
    unsigned char bytes[WRAPPED];
    struct rv_cipher c;

    rand.fill(rand.self, bytes, RV_CIPHER_NONCE);
    rv_cipher_init(&c, ring->keys[0].bytes);
    rv_cipher_encrypt(&c, bytes, bound, (rv_str){(const char *)key, RV_CIPHER_KEY}, bytes + RV_CIPHER_NONCE);
    rv_wipe(&c, sizeof c);
    rv_base64_write((rv_str){(const char *)bytes, sizeof bytes}, out);
}

static const struct master *find(const rv_keyring *ring, const char *name)
{
    for (size_t i = 0; i < store_keyring_size(ring); i++)
        if (strcmp(ring->keys[i].name, name) == 0)
            return &ring->keys[i];
    return NULL;
}

int store_keyring_unwrap(const rv_keyring *ring, const char *name, rv_str bound, rv_str wrapped,
                         unsigned char key[RV_CIPHER_KEY], rv_err **err)
{
    const struct master *m = find(ring, name);
    rv_buf bytes = RV_BUF_INIT(256);
    struct rv_cipher c;
    int rc = 0;

    if (!m) {
        RV_FAIL(err, RV_E_DENIED, "the master key %s is needed, and %s", name,
                store_keyring_size(ring) > 0 ? "is not among those given" : "no master key is given");
        rv_err_set_hint(err, "REEVE_ENCRYPTION_KEY_FILE names a file with the master keys");
        return RV_E_DENIED;
    }
    if (!rv_base64_read(wrapped, &bytes) || bytes.len != WRAPPED) {
        rc = bytes.rc == RV_E_NOMEM ? rv_buf_check(&bytes, "a key", err)
                                    : RV_FAIL(err, RV_E_IO, "a wrapped key is damaged");
    } else {
        rv_cipher_init(&c, m->bytes);
        if (!rv_cipher_decrypt(&c, (const unsigned char *)bytes.ptr, bound,
                               (rv_str){bytes.ptr + RV_CIPHER_NONCE, WRAPPED - RV_CIPHER_NONCE}, key))
            rc = RV_FAIL(err, RV_E_IO, "a wrapped key was changed, or is that of another tenant");
        rv_wipe(&c, sizeof c);
    }
    rv_buf_fini(&bytes);
    return rc;
}

/* --- Modes --- */

const char *rv_encryption_mode_text(enum rv_encryption_mode mode)
{
#define X(name, text, meaning) text,
    static const char *const texts[] = {RV_ENCRYPTION_MODES(X)};
#undef X
    return texts[mode];
}

int rv_encryption_mode_of(rv_str text, enum rv_encryption_mode *out, rv_err **err)
{
    rv_buf words = RV_BUF_INIT(200);

    for (int i = RV_ENCRYPTION_NONE + 1; i < RV_N_ENCRYPTION_MODES; i++) {
        if (rv_str_is(text, rv_encryption_mode_text((enum rv_encryption_mode)i))) {
            *out = (enum rv_encryption_mode)i;
            rv_buf_fini(&words);
            return 0;
        }
        rv_buf_printf(&words, "%s%s", words.len ? ", " : "", rv_encryption_mode_text((enum rv_encryption_mode)i));
    }
    rv_str shown = rv_utf8_cut(text, 40);
    RV_FAIL(err, RV_E_INVALID, "unknown mode of encryption \"%.*s\"", RV_STR_ARG(shown));
    rv_err_set_hint(err, "modes: %s", rv_buf_cstr(&words));
    rv_buf_fini(&words);
    return RV_E_INVALID;
}
