/* Shared by the files of the section `tests`. */
#ifndef RV_CONFIG_TESTS_INTERNAL_H
#define RV_CONFIG_TESTS_INTERNAL_H

#include "config/config_internal.h"

/* The tests of a file, with one for each case (test_cases.c). */
struct rv_test_node {
    const struct rv_node *node; /* a map of a test's keys */
    int number;                 /* of its case, from 1; 0: it has no cases */
    bool is_named;              /* its name has something of the case */
};
struct rv_test_nodes {
    struct rv_test_node *items; /* in the arena */
    size_t n, cap;
    size_t n_values; /* that the cases come to */
};
/** Add the test, or one for each of its cases. What is wrong are findings. */
void rv_read_test_cases(struct rv_key_reader *r, const struct rv_node *test, struct rv_test_nodes *out);

/* Readers of rows (test_keys.c); target is that member of a struct rv_test_config. */
void rv_read_test_input(struct rv_key_reader *r, const struct rv_node *node, void *target);
void rv_read_test_expect(struct rv_key_reader *r, const struct rv_node *node, void *target);

#endif
