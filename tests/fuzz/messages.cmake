rv_fuzz(history SOURCES fuzz_history.c USES rv::conversation)
