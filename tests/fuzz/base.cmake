rv_fuzz(json SOURCES fuzz_json.c USES rv::base)
rv_fuzz(rsa SOURCES fuzz_rsa.c USES rv::base)
