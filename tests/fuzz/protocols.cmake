rv_fuzz(requests SOURCES fuzz_requests.c USES rv::protocols)
rv_fuzz(protocols SOURCES fuzz_protocols.c USES rv::protocols)
