# Each test has a server and threads of its own.
rv_test(fault_served FORKS SOURCES fault_served.c USES rv::server rv::kit rv::fault LABELS fault)
