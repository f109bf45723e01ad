# Proves 12.2/fuzz
rv_fuzz(attachments SOURCES fuzz_attachments.c USES rv::wire)
