rv_test(fault_httpd
    SOURCES fault_httpd.c
    USES rv::httpd rv::kit rv::fault PkgConfig::UV
    LABELS fault)
