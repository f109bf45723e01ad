rv_fuzz(http_request SOURCES fuzz_http_request.c USES rv::httpd)
target_include_directories(fuzz_http_request SYSTEM PRIVATE ${LLHTTP_INCLUDE_DIR})
