rv_fuzz(openapi SOURCES fuzz_openapi.c USES rv::openapi)
