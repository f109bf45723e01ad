rv_test(fault_http
    SOURCES fault_http.c
    USES rv::http rv::kit rv::fault PkgConfig::UV Threads::Threads ${CMAKE_DL_LIBS}
    LABELS fault)
if(RV_TESTS)
    target_include_directories(fault_http PRIVATE ${CURL_INCLUDE_DIRS})
endif()
