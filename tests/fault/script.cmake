set(rv_cli ${PROJECT_SOURCE_DIR}/coreengine/cli)
rv_test(fault_script
    SOURCES fault_script.c ../unit/cli/play.c
        ${rv_cli}/record.c ${rv_cli}/record_entry.c ${rv_cli}/record_hide.c ${rv_cli}/record_coarsen.c ${rv_cli}/record_tools.c
    USES rv::script rv::kit rv::fault
    LABELS fault)
