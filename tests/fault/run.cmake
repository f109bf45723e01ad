# Proves 11.5/memory: Every allocation of a run may fail: an error, no leak
rv_test(fault_run SOURCES fault_run.c USES rv::drive rv::fault LABELS fault)
