rv_fuzz(format SOURCES fuzz_format.c USES rv::lang)
rv_fuzz(config SOURCES fuzz_config.c USES rv::config)
