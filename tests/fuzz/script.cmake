rv_fuzz(script SOURCES fuzz_script.c USES rv::script)
