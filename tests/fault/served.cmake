rv_test(fault_served SOURCES fault_served.c USES rv::server rv::kit rv::fault LABELS fault)
