rv_test(fault_shell SOURCES fault_shell.c USES rv::shell rv::kit rv::fault LABELS fault)
