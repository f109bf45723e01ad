rv_fuzz(sealed SOURCES fuzz_sealed.c USES rv::store)
