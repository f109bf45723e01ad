rv_test(fault_agentdoc SOURCES fault_agentdoc.c USES rv::agentdoc rv::kit rv::fault LABELS fault)
