#ifndef RV_TESTS_CLI_SUITES_H
#define RV_TESTS_CLI_SUITES_H

#include <check.h>

Suite *record_suite(void);
Suite *record_property_suite(void);
Suite *tally_suite(void);
Suite *chat_sink_suite(void);
Suite *chat_calls_suite(void);
Suite *tables_suite(void);
Suite *lines_suite(void);
Suite *yaml_text_suite(void);
Suite *top_suite(void);
Suite *markdown_suite(void);
Suite *terminal_suite(void);
Suite *watch_suite(void);

#endif
