rv_fuzz(jwt SOURCES fuzz_jwt.c USES rv::identity)
