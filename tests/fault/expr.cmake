rv_test(fault_expr SOURCES fault_expr.c USES rv::expr rv::kit rv::fault)
