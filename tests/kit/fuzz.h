/* A fuzz target: RV_FUZZ_TARGET(json) { ... data, size ...; return 0; } in fuzz_json.c, with rv_fuzz(json ...) in a
 * .cmake file of tests/fuzz. With libFuzzer each is a program; else all are in one, `fuzz_corpus json FILES...`, which
 * runs them over what was kept. A target takes any bytes, and aborts when what must hold does not. */
#ifndef RV_KIT_FUZZ_H
#define RV_KIT_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef RV_LIBFUZZER
#define RV_FUZZ_TARGET(name)                                                                                           \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);                                                      \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
#else
struct rv_fuzz_target {
    const char *name;
    int (*run)(const uint8_t *data, size_t size);
    struct rv_fuzz_target *next;
};
/* target: lasts as long as the program. */
void rv_fuzz_add(struct rv_fuzz_target *target);

#define RV_FUZZ_TARGET(name)                                                                                           \
    static int fuzz_##name(const uint8_t *data, size_t size);                                                          \
    __attribute__((constructor)) static void add_##name(void)                                                          \
    {                                                                                                                  \
        static struct rv_fuzz_target added = {#name, fuzz_##name, NULL};                                               \
        rv_fuzz_add(&added);                                                                                           \
    }                                                                                                                  \
    static int fuzz_##name(const uint8_t *data, size_t size)
#endif

static inline void require(bool fact)
{
    if (!fact)
        abort();
}

#endif
