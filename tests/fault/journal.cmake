rv_test(fault_journal SOURCES fault_journal.c USES rv::journal rv::kit rv::fault LABELS fault)
