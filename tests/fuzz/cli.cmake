set(rv_cli ${PROJECT_SOURCE_DIR}/coreengine/cli)
rv_fuzz(markdown SOURCES fuzz_markdown.c ${rv_cli}/markdown/blocks.c ${rv_cli}/markdown/spans.c ${rv_cli}/markdown/table.c
    ${rv_cli}/show/text.c ${rv_cli}/show/width.c USES rv::app PkgConfig::UTF8PROC)
