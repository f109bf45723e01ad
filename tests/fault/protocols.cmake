rv_test(fault_protocols SOURCES fault_protocols.c ../unit/protocols/play.c USES rv::protocols rv::fault LABELS fault)
