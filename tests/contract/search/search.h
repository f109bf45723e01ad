/* Searching, on every store. */
#ifndef RV_TESTS_SEARCH_H
#define RV_TESTS_SEARCH_H

#include "coreengine/knowledge/knowledge.h"
#include "coreengine/match/match.h"
#include "tests/contract/store/entities.h"

Suite *search_suite(void);
Suite *equal_suite(void);
Suite *embed_suite(void);
Suite *damage_suite(void);
Suite *sessions_suite(void);

#endif
