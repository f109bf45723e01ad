rv_test(fault_provider
    SOURCES fault_provider.c
    USES rv::provider rv::kit rv::fault
    LABELS fault)
