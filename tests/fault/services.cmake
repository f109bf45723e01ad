rv_test(fault_services SOURCES fault_services.c USES rv::app rv::kit rv::fault LABELS fault)
