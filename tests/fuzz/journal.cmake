rv_fuzz(journal SOURCES fuzz_journal.c USES rv::journal)
