# Proves 11.5/values: Errors are values with code, message, place and cause; no input and no failed allocation
#   ends the process
# Proves 11.5/memory
rv_test(fault_engine SOURCES fault_engine.c USES rv::engine rv::kit rv::fault LABELS fault)
