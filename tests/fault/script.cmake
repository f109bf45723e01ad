set(rv_cli ${PROJECT_SOURCE_DIR}/coreengine/cli)
rv_test(fault_script
    SOURCES fault_script.c ../unit/cli/play.c
        ${rv_cli}/record/record.c ${rv_cli}/record/entry.c ${rv_cli}/record/hide.c ${rv_cli}/record/coarsen.c ${rv_cli}/record/tools.c
    USES rv::script rv::kit rv::fault
    LABELS fault)
