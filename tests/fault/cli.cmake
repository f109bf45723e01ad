set(rv_cli ${PROJECT_SOURCE_DIR}/coreengine/cli)
rv_test(fault_cli
    SOURCES fault_cli.c ${rv_cli}/tally.c ${rv_cli}/figures.c ${rv_cli}/times.c ${rv_cli}/chat_sink.c
    USES rv::script rv::kit rv::fault
    LABELS fault)
