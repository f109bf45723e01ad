set(rv_cli ${PROJECT_SOURCE_DIR}/coreengine/cli)
rv_test(fault_cli
    SOURCES fault_cli.c ${rv_cli}/show/tally.c ${rv_cli}/show/text.c
    USES rv::app rv::script rv::kit rv::fault
    LABELS fault)
