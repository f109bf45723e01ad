rv_fuzz(state SOURCES fuzz_state.c USES rv::envelope)
