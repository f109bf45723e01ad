/* One row for each key that people can write: two variants of a small example which differ in that key alone, and which
 * must not have the same effect. What a variant does is told as text by the teller of the row's file. Texts that only
 * print the pipeline or the document back do not count, but for texts that are there to be read. */
#ifndef RV_TESTS_KEYS_ROWS_H
#define RV_TESTS_KEYS_ROWS_H

#include <check.h>

#include "tests/kit/drive.h"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* rows say what they need */

struct key_row {
    const char *key;            /* "table.key", or "table.key.member" */
    const char *before, *after; /* what replaces each "@" of the text */
    const char *text;
    struct drive_answer answers[5]; /* of a driven run */
    const char *with;               /* a driven run: the decision on a review; chat: messages, script; a command */
    const char *state;              /* a driven run: the state it starts from */
    const char *file;               /* a driven run: the text of inner.yaml; other.yaml is empty but for a stage */
};

struct key_rows {
    const struct key_row *rows;
    size_t n;
    char *(*tell)(const struct key_row *row, const char *variant); /* free() it */
};

extern const struct key_rows key_rows_pipeline, key_rows_stage, key_rows_execution, key_rows_models, key_rows_commands,
    key_rows_agents, key_rows_ask, key_rows_work, key_rows_declared, key_rows_plans;

/** The text of the row with the variant in it; free() it. */
char *key_text(const char *text, const char *variant);
/** What a command says of the text, in a folder of its own. */
char *key_tell_command(const struct key_row *row, const char *variant);
/** A tool stage, a model stage and so on, driven in virtual time. */
char *key_tell_run(const struct key_row *row, const char *variant);
char *key_tell_run_of(const struct key_row *row, const char *variant, enum rv_rules rules);

#endif
