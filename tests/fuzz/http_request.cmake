rv_fuzz(http_request SOURCES fuzz_http_request.c USES rv::httpd INCLUDES ${LLHTTP_INCLUDE_DIR})
