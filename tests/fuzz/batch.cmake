rv_fuzz(batch SOURCES fuzz_batch.c USES rv::app)
