# Proves 5.6/fuzz: Any bytes may come
rv_fuzz(extract SOURCES fuzz_extract.c USES rv::agent)
