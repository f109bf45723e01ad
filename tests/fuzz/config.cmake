rv_fuzz(config SOURCES fuzz_config.c USES rv::config)
