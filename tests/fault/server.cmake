rv_test(fault_server SOURCES fault_server.c USES rv::server rv::fault LABELS fault)
