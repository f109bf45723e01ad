/* What the tests of queries share: stores with the data of two tenants and three users, and answers as text. */
#ifndef RV_TESTS_KNOWLEDGE_PEOPLE_H
#define RV_TESTS_KNOWLEDGE_PEOPLE_H

#include "coreengine/knowledge/knowledge.h"
#include "tests/contract/store/entities.h"

/** Rows that ada sees: her own and shared ones. Texts, names and edges say so. */
void fill_seen(struct world *w);
/** Rows that she does not see: of bob, of another tenant, deleted ones. Each text of theirs contains HIDDEN; names and
 * edges lead to and from hers. */
#define HIDDEN "hidden"
void fill_hidden(struct world *w);

/** The answer as JSON, or "FAULT: texts of the error"; free() it. opts may be NULL. */
char *ask(struct world *w, const struct rv_store_scope *scope, const char *query, const struct rv_knowledge_opts *opts);
/** The results of the answer as JSON; free() it. */
char *results_of(struct world *w, const struct rv_store_scope *scope, const char *query);
void answers(struct world *w, const struct rv_store_scope *scope, const char *query, const char *want, int line);
#define ANSWERS(scope, query, want) answers(w, (scope), (query), (want), __LINE__)

/** The results, each as tell() writes it, with a blank between them. */
void tells(struct world *w, const struct rv_store_scope *scope, const char *query,
           void (*tell)(json_object *row, rv_buf *out), const char *want, int line);

/** Call each with each line of a file that is neither empty nor a comment. */
void each_line(const char *path, void (*each)(void *self, char *line), void *self);

Suite *lookup_suite(void);
Suite *traverse_suite(void);
Suite *sql_suite(void);
Suite *hostile_suite(void);
Suite *walls_suite(void);
Suite *scripts_suite(void);
Suite *existence_suite(void);

#endif
