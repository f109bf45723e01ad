rv_fuzz(cron SOURCES fuzz_cron.c USES rv::calendar)
rv_fuzz(tzif SOURCES fuzz_tzif.c USES rv::calendar)
