rv_test(fault_base SOURCES fault_base.c USES rv::base rv::fault LABELS fault)
