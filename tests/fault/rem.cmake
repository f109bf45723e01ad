rv_test(fault_rem SOURCES fault_rem.c USES rv::rem rv::fault LABELS fault)
