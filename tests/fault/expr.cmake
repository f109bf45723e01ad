rv_test(fault_expr SOURCES fault_expr.c USES rv::lang rv::kit rv::fault)
