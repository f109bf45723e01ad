# Proves 11.5/values: Errors are values with code, message, place and cause; no input and no failed allocation
#   ends the process
# Proves 11.5/memory
rv_test(fault_shell SOURCES fault_shell.c USES rv::shell rv::kit rv::fault LABELS fault)
