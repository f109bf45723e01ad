rv_fuzz(expr SOURCES fuzz_expr.c USES rv::lang)
rv_fuzz(template SOURCES fuzz_template.c USES rv::lang)
rv_fuzz(pattern SOURCES fuzz_pattern.c USES rv::lang)
rv_fuzz(table SOURCES fuzz_table.c USES rv::lang)
