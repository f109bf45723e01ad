rv_fuzz(hints SOURCES fuzz_hints.c USES rv::provider)
