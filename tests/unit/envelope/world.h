/* What the tests of the envelope share: a fresh one with fixed ids and times, and its state as text. */
#ifndef RV_TESTS_UNIT_ENVELOPE_WORLD_H
#define RV_TESTS_UNIT_ENVELOPE_WORLD_H

#include "envelope/envelope.h"
#include "tests/kit/kit.h"

#include <check.h>

#define T0       INT64_C(1764000000123456) /* now, in every test that does not say otherwise */
#define SEC      INT64_C(1000000)
#define S(text)  RV_STR_LIT(text)
#define NO_TEXT  ((rv_str){NULL, 0})
#define OK(call) ck_assert_int_eq((call), 0)

struct rv_rand world_rand(void); /* the same bytes each time it is called */
rv_envelope *world_fresh(void);
/** A fresh envelope with `partial` (rv_kit_json's syntax) loaded over it. */
rv_envelope *world_load(const char *partial);
char *world_state(const rv_envelope *env); /* free() it */
json_object *world_state_json(const rv_envelope *env);
json_object *world_result_json(const rv_envelope *env);
/** The value of key in the state dict is what `want` (rv_kit_json's syntax) says; byte by byte. */
void world_expect(const rv_envelope *env, const char *key, const char *want);
/** obj[key] is `want`; want NULL: the key is absent. */
void world_expect_in(json_object *obj, const char *key, const char *want);
void world_set_output(rv_envelope *env, const char *key, const char *json);
void world_set_metadata(rv_envelope *env, const char *key, const char *json);
bool world_has_output(const rv_envelope *env, const char *key);
/** Patch with rv_kit_json's syntax; the return code. */
int world_patch(rv_envelope *env, const char *partial, rv_err **err);

/* random.c: an envelope with everything in it, from a seed */
rv_envelope *random_envelope(uint64_t seed);

#endif
