rv_test(fault_match SOURCES fault_match.c USES rv::match rv::fault LABELS fault)
