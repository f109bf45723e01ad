rv_fuzz(trace_headers SOURCES fuzz_trace_headers.c USES rv::telemetry)
