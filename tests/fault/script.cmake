rv_test(fault_script
    SOURCES fault_script.c ../unit/cli/play.c
    USES rv::app rv::script rv::kit rv::fault
    LABELS fault)
