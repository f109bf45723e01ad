/* What the tests of the store's contract share. Each test is run once for each row of store_impls[]; a new
 * implementation is a new row. Nothing here looks behind store.h. */
#ifndef RV_TESTS_STORE_WORLD_H
#define RV_TESTS_STORE_WORLD_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/store.h"
#include "tests/kit/kit.h"

struct store_impl {
    const char *name;
    const char *scheme; /* of its url; a path follows when it keeps files; NULL: a schema of the test's server */
    bool is_shared;     /* many handles; survives being closed */
    bool gives_back;    /* a sweep makes it smaller */
};
extern const struct store_impl store_impls[];
extern int first_store_impl, n_store_impls; /* those that this process tries: REEVE_STORES=postgres, or all others */

struct world {
    const struct store_impl *impl;
    char *dir, *url;
    rv_store *s;
    char bundle[RV_STORE_HASH_MAX];
    rv_err *err;
};
/** In main(), before Check forks: a server of PostgreSQL if a row of store_impls wants one, with the schema that
 * rv_kit_postgres_reuse() takes the first rows from. */
void worlds_begin(void);
/** A fresh store with a bundle in it. i: the row of store_impls. */
void world_open(struct world *w, int i);
/** Another handle on the same store; close it yourself. */
rv_store *world_other(struct world *w);
void world_close(struct world *w);

#define T0 INT64_C(1700000000000000) /* when the tests' time begins */

/* Every failure has an error with text, no success has one. Both forget the error. */
void must_ok(struct world *w, int rc, const char *what, int line);
void must_fail(struct world *w, int rc, int code, const char *what, int line);
/** As must_fail, and the text of some link of the chain contains part. */
void must_say(struct world *w, int rc, int code, const char *part, int line);
#define OK(call)               must_ok(w, (call), #call, __LINE__)
#define FAILS(code, call)      must_fail(w, (call), (code), #call, __LINE__)
#define SAYS(code, part, call) must_say(w, (call), (code), (part), __LINE__)

extern const struct rv_store_scope operator_scope; /* default tenant, all users */

/** A run of user "u", session "s", pipeline "p", running in stage "a", owned by "A" until T0 + 100, one record. */
struct rv_store_new_run world_run(struct world *w, const char *id);
void make_run(struct world *w, const char *id);
/** An append of one record with that seq and body to a run. r is where the record goes. */
struct rv_store_append world_append(const char *run, int64_t fence, struct rv_record *r, int64_t seq, const char *body);
int append(struct world *w, const char *run, int64_t fence, int64_t seq, const char *body, const char *value);

/* --- Sessions --- */
/** Session of that id in the default tenant, made when it is not there. user "": nobody's. */
void make_session(struct world *w, const char *id, const char *user);
/** A message of that id, type and content (NULL: none), with nothing else. */
struct rv_message world_message(const char *id, const char *type, const char *content);
/** "user:hello assistant:hi": one message a word, ids "<prefix>1", "<prefix>2", ...; at most WORLD_ROWS. */
#define WORLD_ROWS 16
size_t world_rows(struct rv_message rows[WORLD_ROWS], rv_arena *room, const char *prefix, const char *text);
/** Add them to a session of the default tenant. */
int add_rows(struct world *w, const char *session, const char *prefix, const char *text);
int see_session(void *self, const struct rv_session_row *row, rv_err **err);
int see_message(void *self, const struct rv_message *m, rv_err **err);     /* "1:user=hello 2:tool_call ..." */
int see_schema(void *self, const struct rv_schema_row *row, rv_err **err); /* "name/user" */
void messages_are(struct world *w, const char *session, const char *text, int line);
#define MESSAGES(session, text) messages_are(w, (session), (text), __LINE__)
/** "name mode tokens n metadata". */
void session_is(struct world *w, const char *id, const char *text, int line);
/** Metadata of which a session can have one, not two. */
json_object *world_half(struct world *w, const char *name);
#define SESSION(id, text) session_is(w, (id), (text), __LINE__)

/* What a walk found, as text: "1:body=value 2:body ...", "r1 r2 ...", "run/id:text ...". */
struct seen {
    rv_buf text;
    int stop_at; /* from 1: return `code` there; 0: never */
    int code, n;
};
int see_record(void *self, const struct rv_record *r, rv_err **err);
int see_run(void *self, const struct rv_run_row *row, rv_err **err);
int see_pending(void *self, const struct rv_pending *p, rv_err **err);
int see_id(void *self, const char *id, rv_err **err);
/** Compare and forget. */
void must_see(struct seen *seen, const char *text, int line);
#define SEEN(seen, text) must_see((seen), (text), __LINE__)
#define SEEN_INIT        ((struct seen){.text = RV_BUF_INIT(1 << 20)})

void records_are(struct world *w, const char *run, const char *text, int line);
#define RECORDS(run, text) records_are(w, (run), (text), __LINE__)

Suite *runs_suite(void);
Suite *append_suite(void);
Suite *pending_suite(void);
Suite *interrupts_suite(void);
Suite *owners_suite(void);
Suite *values_suite(void);
Suite *groups_suite(void);
Suite *arguments_suite(void);
Suite *faults_suite(void);
Suite *sessions_suite(void);
Suite *messages_suite(void);
Suite *turns_suite(void);
Suite *schemas_suite(void);
Suite *isolation_suite(void);
Suite *tasks_suite(void);
Suite *tasks_people_suite(void);
Suite *tasks_shares_suite(void);
Suite *tasks_random_suite(void);
Suite *schedules_suite(void);
Suite *schedules_random_suite(void);
Suite *quotas_suite(void);
Suite *api_keys_suite(void);
Suite *quotas_random_suite(void);
Suite *listen_suite(void);
Suite *workers_suite(void);
Suite *erasure_suite(void);
Suite *entities_suite(void);
Suite *versions_suite(void);
Suite *encryption_suite(void);
Suite *clients_suite(void);
Suite *sealed_suite(void);
Suite *entities_names_suite(void);
Suite *entities_random_suite(void);
Suite *moments_suite(void);

#define ADD(tc, test) tcase_add_loop_test((tc), (test), first_store_impl, n_store_impls)

#endif
