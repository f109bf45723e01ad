rv_test(fault_identity SOURCES fault_identity.c USES rv::identity rv::kit rv::fault PkgConfig::GMP PkgConfig::NETTLE LABELS fault)
