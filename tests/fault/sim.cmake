rv_test(fault_sim SOURCES fault_sim.c USES rv::sim rv::kit rv::fault LABELS fault)
