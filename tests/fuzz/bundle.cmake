rv_fuzz(bundle SOURCES fuzz_bundle.c USES rv::journal)
