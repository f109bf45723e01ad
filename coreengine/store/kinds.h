/* The kinds of entities: which columns their rows have, by what they are identified and found, and where the rows are.
 * A new kind is one row of the table in kinds.c; `reeve docs reference entities` prints it. */
#ifndef RV_STORE_KINDS_H
#define RV_STORE_KINDS_H

#include "coreengine/base/base.h"

enum rv_kind_type {
    RV_KIND_TEXT,
    RV_KIND_INT,
    RV_KIND_REAL,
    RV_KIND_BOOL,
    RV_KIND_TIME,    /* RFC 3339 in, "YYYY-MM-DDTHH:MM:SS.ffffff+00:00" out */
    RV_KIND_ID,      /* of another row: a UUID, or what a session is called */
    RV_KIND_OBJECT,  /* a JSON object */
    RV_KIND_TEXTS,   /* a list of texts */
    RV_KIND_OBJECTS, /* a list of JSON objects */
    RV_N_KIND_TYPES
};
const char *rv_kind_type_text(enum rv_kind_type type); /* "text", "list of objects" */

/* What it points to is static. */
struct rv_kind_field {
    const char *name;
    enum rv_kind_type type;
    const char *fallback;    /* JSON: what a row without it shows; NULL: null, or [] for a list */
    const char *words;       /* legal texts, blank-separated; NULL: any */
    int64_t least, greatest; /* of numbers; both 0: any */
};

/* Where the rows of a kind are: `entities` has those of all kinds without a table of their own. */
enum rv_kind_place { RV_PLACE_ENTITIES, RV_PLACE_SESSIONS, RV_PLACE_MESSAGES, RV_PLACE_SCHEMAS, RV_N_KIND_PLACES };

#define RV_KIND_MAX_NAMES 3 /* fields of one kind that are encrypted, or that name a row */
/* What it points to is static. */
struct rv_kind {
    const char *name, *doc;
    enum rv_kind_place place;
    const struct rv_kind_field *fields; /* the columns between user_id and metadata, in the order of a row */
    size_t n_fields;
    const char *keys[RV_KIND_MAX_NAMES];      /* the id follows from the first that is set; none: it is random */
    const char *embedded;                     /* the field whose words are searched; NULL: none */
    const char *encrypted[RV_KIND_MAX_NAMES]; /* fields that may be ciphertext */
    const char *matched;                      /* the one that is encrypted so that equal texts are equal; NULL: none */
    const char *summary[RV_KIND_MAX_NAMES];   /* of the key index: the first one that is not empty */
    const char *about; /* the field that says what a row belongs to, "metadata.x" for a member; NULL: none */
    bool is_indexed;   /* LOOKUP finds it by its name */
    bool is_sealed;    /* the mode "sealed" seals its encrypted fields, which reeve has no need to read */
    bool is_shared;    /* rows without a tenant are there for every tenant */
};
/* In the order in which a lookup lists hits. */
extern const struct rv_kind rv_kinds[];
extern const size_t rv_n_kinds;

/** NULL: there is none. */
const struct rv_kind *rv_kind_find(rv_str name);
/** The same, or RV_E_INVALID that names the nearest one. */
RV_MUST_CHECK int rv_kind_of(rv_str name, const struct rv_kind **out, rv_err **err);
/** NULL: there is none. */
const struct rv_kind_field *rv_kind_field(const struct rv_kind *kind, rv_str name);
bool rv_kind_encrypts(const struct rv_kind *kind, const char *field);
/** docs/reference/entities.md: the columns of all kinds, ids, keys. */
void rv_kinds_write_reference(rv_buf *b);

#endif
