rv_fuzz(json SOURCES fuzz_json.c USES rv::base)
