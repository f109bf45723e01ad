/* Shared by the files of the section `tests`. */
#ifndef RV_CONFIG_TESTS_INTERNAL_H
#define RV_CONFIG_TESTS_INTERNAL_H

#include "config/config_internal.h"

#define RV_TEST_AXIS_PROMPTS "prompts" /* of a matrix: labels of maps of prompts */

/* The tests of a file, with one for each case and combination (test_cases.c). Nodes are in the arena. */
struct rv_test_node {
    const struct rv_node *node; /* a map of a test's keys */
    bool is_named;              /* its name has something of the case */
    struct rv_test_place place; /* among the cases and in the matrix */
};
struct rv_test_nodes {
    struct rv_test_node *items; /* in the arena */
    size_t n, cap;
    size_t n_values; /* that the cases and combinations come to */
};
/** Add the test, or one for each of its cases and combinations. written: its number in the list, from 0. What is wrong
 *  are findings. */
void config_read_test_cases(struct rv_key_reader *r, const struct rv_node *test, size_t written,
                            struct rv_test_nodes *out);

/* Readers of rows (test_keys.c); target is that member of a struct rv_test_config. */
void config_read_test_input(struct rv_key_reader *r, const struct rv_node *node, void *target);
void config_read_test_expect(struct rv_key_reader *r, const struct rv_node *node, void *target);

#endif
