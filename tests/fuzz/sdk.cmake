rv_fuzz(sdk SOURCES fuzz_sdk.c USES rv::base)
