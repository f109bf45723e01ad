rv_fuzz(match SOURCES fuzz_match.c USES rv::match)
