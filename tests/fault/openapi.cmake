rv_test(fault_openapi SOURCES fault_openapi.c USES rv::openapi rv::fault LABELS fault)
