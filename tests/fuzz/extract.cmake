rv_fuzz(extract SOURCES fuzz_extract.c USES rv::agent)
