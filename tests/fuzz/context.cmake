rv_fuzz(context SOURCES fuzz_context.c USES rv::conversation)
