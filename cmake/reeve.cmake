# The three kinds of targets in this tree. A module states what it may use; nothing else is visible to it.
#
#   rv_module(base SOURCES err.c buf.c USES PkgConfig::JSONC)         -> rv_base, alias rv::base
#   rv_test(unit_base SOURCES test_err.c USES rv::base [DATA dir])    -> a Check program, run by ctest
#   rv_fuzz(json SOURCES fuzz_json.c USES rv::base)                   -> corpus runner (always), libFuzzer (preset fuzz)

add_library(rv_warnings INTERFACE)
add_library(rv::warnings ALIAS rv_warnings)
target_compile_options(rv_warnings INTERFACE
    -Wall -Wextra -Wshadow -Wconversion -Wswitch-enum -Wmissing-prototypes -Wstrict-prototypes -Wformat=2 -Wundef
    -Wpointer-arith -Wvla -Wno-sign-conversion)
if(RV_WERROR)
    target_compile_options(rv_warnings INTERFACE -Werror)
endif()

set_property(GLOBAL PROPERTY RV_MODULES "")

function(rv_module name)
    cmake_parse_arguments(arg "" "" "SOURCES;USES;PRIVATE" ${ARGN})
    add_library(rv_${name} STATIC ${arg_SOURCES})
    add_library(rv::${name} ALIAS rv_${name})
    target_include_directories(rv_${name} PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(rv_${name} PUBLIC ${arg_USES} PRIVATE rv::warnings ${arg_PRIVATE})
    set_property(GLOBAL APPEND PROPERTY RV_MODULES rv_${name})
endfunction()

function(rv_test name)
    cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;USES;ARGS" ${ARGN})
    if(NOT RV_TESTS)
        return()
    endif()
    add_executable(${name} ${arg_SOURCES})
    target_link_libraries(${name} PRIVATE rv::warnings ${arg_USES} PkgConfig::CHECK)
    target_compile_definitions(${name} PRIVATE RV_SOURCE_DIR="${PROJECT_SOURCE_DIR}" RV_BINARY_DIR="${PROJECT_BINARY_DIR}")
    add_test(NAME ${name} COMMAND ${name} ${arg_ARGS} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 120)
    endif()
    set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT})
endfunction()

# Each target has a corpus folder tests/fuzz/corpus/<name>; every file of it is run as a plain test.
function(rv_fuzz name)
    cmake_parse_arguments(arg "" "" "SOURCES;USES" ${ARGN})
    if(NOT RV_TESTS)
        return()
    endif()
    add_executable(fuzz_${name} ${arg_SOURCES})
    target_link_libraries(fuzz_${name} PRIVATE rv::warnings ${arg_USES})
    if(RV_FUZZ)
        target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
        target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    else()
        target_sources(fuzz_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/kit/fuzz_main.c)
    endif()
    add_test(NAME corpus_${name} COMMAND fuzz_${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
    set_tests_properties(corpus_${name} PROPERTIES TIMEOUT 120)
endfunction()
