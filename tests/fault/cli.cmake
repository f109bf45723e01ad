set(rv_cli ${PROJECT_SOURCE_DIR}/coreengine/cli)
rv_test(fault_cli
    SOURCES fault_cli.c ${rv_cli}/show/tally.c ${rv_cli}/show/text.c ${rv_cli}/show/width.c ${rv_cli}/markdown/blocks.c ${rv_cli}/markdown/spans.c ${rv_cli}/markdown/table.c ${rv_cli}/top/draw.c ${rv_cli}/top/screen.c
    USES rv::app rv::script rv::kit rv::fault PkgConfig::UTF8PROC
    LABELS fault)
