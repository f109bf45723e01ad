#ifndef TESTS_UNIT_BUS_SUITES_H
#define TESTS_UNIT_BUS_SUITES_H

#include <check.h>

TCase *bus_case(void);
TCase *asks_case(void);

#endif
