rv_test(fault_encryption SOURCES fault_encryption.c USES rv::store rv::kit rv::fault LABELS fault)
