# The kinds of targets in this tree. A module states what it may use; nothing else is visible to it.
#
#   rv_module(base SOURCES err.c buf.c USES PkgConfig::JSONC [PRIVATE Threads::Threads])
#       static library rv_base, alias rv::base. Every module named before coreengine/lib is part of libreeve.
#   rv_capability(files SOURCES files.c search.c [USES PkgConfig::JSONC])
#       lib/reeve/capabilities/files.so in the build and in the install tree; sees the SDK header, never the engine.
#   rv_test(unit_base SOURCES test_err.c USES rv::base [ARGS ...] [LABELS ...])
#       a Check program, run by ctest from the root of the tree; RV_SOURCE_DIR and RV_BINARY_DIR are defined.
#   rv_script_test(no_banned_calls tests/scripts/banned-calls [ARGS ...])
#       a script about the tree or what was built, run by ctest from the root, label "script"; plain builds only.
#   rv_fuzz(json SOURCES fuzz_json.c USES rv::base [INCLUDES ...])
#       a target of fuzz_corpus, run by ctest over tests/fuzz/corpus/json as corpus_json; with RV_FUZZ the libFuzzer
#       program fuzz_json.

add_library(rv_warnings INTERFACE)
add_library(rv::warnings ALIAS rv_warnings)
target_compile_options(rv_warnings INTERFACE
    -Wall -Wextra -Wshadow -Wconversion -Wswitch-enum -Wmissing-prototypes -Wstrict-prototypes -Wformat=2 -Wundef
    -Wpointer-arith -Wvla -Wno-sign-conversion)
if(RV_GROUPS)
    target_compile_options(rv_warnings INTERFACE -Wno-shadow) # a file may call a variable as another its function
endif()
if(RV_WERROR)
    target_compile_options(rv_warnings INTERFACE -Werror)
endif()

if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND (RV_SANITIZE OR RV_COVERAGE))
    # GCC's data-flow warnings take the branches of the instrumentation for the program's; the plain build has them on.
    target_compile_options(rv_warnings INTERFACE
        -Wno-format-truncation -Wno-format-overflow -Wno-maybe-uninitialized -Wno-stringop-overflow
        -Wno-stringop-truncation -Wno-array-bounds -Wno-null-dereference)
endif()

set_property(GLOBAL PROPERTY RV_MODULES "")
set_property(GLOBAL PROPERTY RV_CAPABILITIES "")
set_property(GLOBAL PROPERTY RV_FUZZERS "")

# Plugin authors write #include <reeve/capability.h>; the same line has to work here, before anything is installed.
file(GLOB RV_SDK_HEADERS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/capabilities/sdk/*.h)
foreach(header IN LISTS RV_SDK_HEADERS)
    cmake_path(GET header FILENAME file)
    configure_file(${header} ${PROJECT_BINARY_DIR}/include/reeve/${file} COPYONLY)
endforeach()

function(rv_module name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;USES;PRIVATE")
    add_library(rv_${name} STATIC ${arg_SOURCES})
    add_library(rv::${name} ALIAS rv_${name})
    target_include_directories(rv_${name} PUBLIC ${PROJECT_SOURCE_DIR} PRIVATE ${PROJECT_BINARY_DIR}/include)
    target_link_libraries(rv_${name} PUBLIC ${arg_USES} PRIVATE rv::warnings ${arg_PRIVATE})
    # A version script cannot export what the compiler has hidden: coreengine/lib hides what is not public.
    set_target_properties(rv_${name} PROPERTIES C_VISIBILITY_PRESET default)
    target_compile_options(rv_${name} PRIVATE -fno-semantic-interposition)
    set_property(GLOBAL APPEND PROPERTY RV_MODULES rv_${name})
    rv_group(rv_${name} ${arg_SOURCES})
endfunction()

# With RV_GROUPS the files of a module or a test program are compiled several at a time (cmake/groups.py), which takes half
# the time where nothing is optimised. A build that is edited has more of files that are compiled alone.
function(rv_group target)
    set(files ${ARGN})
    list(FILTER files INCLUDE REGEX "\\.c$")
    if(RV_GROUPS AND files)
        list(JOIN files " " files)
        set_property(GLOBAL APPEND_STRING PROPERTY RV_GROUPED "${target} ${CMAKE_CURRENT_SOURCE_DIR} ${files}\n")
    endif()
endfunction()

# Once all targets are known. A file with options of its own stays as it is.
function(rv_make_groups)
    get_property(grouped GLOBAL PROPERTY RV_GROUPED)
    string(REGEX MATCHALL "[^\n]+" lines "${grouped}")
    set(plain "")
    foreach(line IN LISTS lines)
        string(REPLACE " " ";" line "${line}")
        list(POP_FRONT line target folder)
        string(APPEND plain "${target} ${folder}")
        foreach(file IN LISTS line)
            get_property(options SOURCE ${file} DIRECTORY ${folder} PROPERTY COMPILE_OPTIONS)
            get_property(definitions SOURCE ${file} DIRECTORY ${folder} PROPERTY COMPILE_DEFINITIONS)
            cmake_path(IS_PREFIX PROJECT_BINARY_DIR "${file}" is_made)
            if("${options}${definitions}" STREQUAL "" AND NOT is_made)
                string(APPEND plain " ${file}")
            endif()
        endforeach()
        string(APPEND plain "\n")
    endforeach()
    file(WRITE ${PROJECT_BINARY_DIR}/groups.txt "${plain}")
    execute_process(COMMAND python3 ${PROJECT_SOURCE_DIR}/cmake/groups.py ${PROJECT_BINARY_DIR}/groups
        INPUT_FILE ${PROJECT_BINARY_DIR}/groups.txt OUTPUT_VARIABLE lines COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCHALL "[^\n]+" lines "${lines}")
    foreach(line IN LISTS lines)
        string(REPLACE " " ";" line "${line}")
        list(POP_FRONT line target folder group)
        target_sources(${target} PRIVATE ${group})
        set_property(SOURCE ${line} DIRECTORY ${folder} PROPERTY HEADER_FILE_ONLY ON)
    endforeach()
endfunction()
if(RV_GROUPS)
    cmake_language(DEFER DIRECTORY ${PROJECT_SOURCE_DIR} CALL rv_make_groups)
endif()

# The headers of a module that others may include, and that are installed.
function(rv_public_headers module out)
    get_target_property(folder ${module} SOURCE_DIR)
    file(GLOB headers CONFIGURE_DEPENDS ${folder}/*.h)
    list(FILTER headers EXCLUDE REGEX "_internal\\.h$")
    set(${out} ${headers} PARENT_SCOPE)
endfunction()

function(rv_capability name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;USES")
    if(RV_STATIC)
        rv_static_capability(${name} "${arg_SOURCES}" "${arg_USES}")
        return()
    endif()
    add_library(${name}_capability MODULE ${arg_SOURCES})
    target_include_directories(${name}_capability PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/include)
    target_link_libraries(${name}_capability PRIVATE rv::warnings ${arg_USES})
    set_target_properties(${name}_capability PROPERTIES
        PREFIX "" OUTPUT_NAME ${name} C_VISIBILITY_PRESET hidden
        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/reeve/capabilities)
    if(NOT RV_SANITIZE) # a sanitizer's run-time lives in the executable
        target_link_options(${name}_capability PRIVATE -Wl,-z,defs)
    endif()
    rv_script_test(exports_${name} tests/scripts/exports ARGS $<TARGET_FILE:${name}_capability> "^rv_capability$")
    rv_group(${name}_capability ${arg_SOURCES})
    set_property(GLOBAL APPEND PROPERTY RV_CAPABILITIES ${name}_capability)
endfunction()

# Where runs are kept that a test starts without saying where: not among those of whoever runs the tests.
set(RV_TEST_PLACES "XDG_STATE_HOME=${PROJECT_BINARY_DIR}/tests/state;XDG_CONFIG_HOME=${PROJECT_BINARY_DIR}/tests/config")

# ctest ends what hangs, and nothing else: no test of the check takes 20 minutes, however slow or busy the machine and however
# instrumented the build; the long counts of `./dev soak` do. Entries have no limits of their own. Without include(CTest) this file is ours to write.
if(RV_TESTS)
    file(WRITE ${PROJECT_BINARY_DIR}/DartConfiguration.tcl "TimeOut: 1200\n")
endif()

# Test programs run in a network of their own, without a route to any other, where the machine permits that; `./dev` says so
# where it does not.
set(RV_OFFLINE ${PROJECT_SOURCE_DIR}/tests/kit/offline)
execute_process(COMMAND ${RV_OFFLINE} true RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
if(failed)
    set(RV_OFFLINE "")
endif()

# There are hundreds of test programs, and most of a build without changes links them: LLVM's linker takes a third.
find_program(RV_LLD ld.lld)

# By itself each test of a program runs in a process of its own. Under a sanitizer all of them run in one, which
# takes a quarter of the time: a fork has to copy its tables, and each end looks for leaks. FORKS: the tests need
# processes of their own, because they change or end theirs. PLAIN: it is about time or very many cases; `./dev check`
# runs it without sanitizers, all others of these under them. LONG: it begins first, or the end of a check waits for it alone.
function(rv_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "FORKS;PLAIN;LONG;POSTGRES" "" "SOURCES;USES;ARGS;LABELS")
    if(NOT RV_TESTS)
        return()
    endif()
    add_executable(${name} ${arg_SOURCES})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/include)
    target_link_libraries(${name} PRIVATE rv::warnings ${arg_USES} rv::suites)
    if(RV_LLD)
        target_link_options(${name} PRIVATE -fuse-ld=lld)
    endif()
    target_link_options(${name} PRIVATE -Wl,--wrap=_tcase_add_test) # their order: tests/kit/suites.c
    target_compile_definitions(${name} PRIVATE
        RV_SOURCE_DIR="${PROJECT_SOURCE_DIR}" RV_BINARY_DIR="${PROJECT_BINARY_DIR}")
    add_test(NAME ${name} COMMAND ${RV_OFFLINE} $<TARGET_FILE:${name}> ${arg_ARGS}
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set(environment ${RV_TEST_PLACES})
    if(RV_SANITIZE AND NOT arg_FORKS)
        list(APPEND environment CK_FORK=no)
        if(NOT name MATCHES "^(unit|contract)_") # the order of others in one process is as written
            list(APPEND environment REEVE_ORDER=written)
        endif()
    endif()
    set(side inside)
    if(arg_PLAIN)
        set(side plain)
    endif()
    set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS};${side}" ENVIRONMENT "${environment}")
    if(arg_LONG)
        set_tests_properties(${name} PROPERTIES COST 100)
    endif()
    if(arg_POSTGRES AND NOT RV_SANITIZE)
        add_test(NAME ${name}_postgres COMMAND ${RV_OFFLINE} $<TARGET_FILE:${name}> ${arg_ARGS}
            WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
        set_tests_properties(${name}_postgres PROPERTIES LABELS "${arg_LABELS};plain" ENVIRONMENT
            "${environment};REEVE_STORES=postgres" COST 100)
        set(side plain)
    endif()
    rv_group(${name} ${arg_SOURCES})
    set_property(GLOBAL APPEND PROPERTY RV_${side} ${name})
endfunction()

function(rv_script_test name script)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "ARGS")
    if(NOT RV_TESTS OR RV_SANITIZE OR RV_COVERAGE) # instrumentation adds symbols and changes no source
        return()
    endif()
    add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/${script} ${arg_ARGS} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES LABELS script ENVIRONMENT "CC=${CMAKE_C_COMPILER};${RV_TEST_PLACES}")
endfunction()

function(rv_fuzz name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;USES;INCLUDES")
    if(NOT RV_TESTS)
        return()
    endif()
    set(program fuzz_corpus)
    set(corpus ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
    if(RV_FUZZ)
        set(program fuzz_${name})
        set(main "")
        add_test(NAME corpus_${name} COMMAND ${program} -runs=0 ${corpus})
    else()
        set(main ${PROJECT_SOURCE_DIR}/tests/kit/fuzz.c)
        add_test(NAME corpus_${name} COMMAND ${program} ${name} ${corpus})
    endif()
    set_tests_properties(corpus_${name} PROPERTIES LABELS "corpus;inside")
    if(NOT TARGET ${program})
        add_executable(${program} ${main})
        target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/include)
        target_link_libraries(${program} PRIVATE rv::warnings)
        if(RV_FUZZ)
            target_compile_definitions(${program} PRIVATE RV_LIBFUZZER)
            target_link_options(${program} PRIVATE -fsanitize=fuzzer)
        elseif(RV_LLD)
            target_link_options(${program} PRIVATE -fuse-ld=lld)
        endif()
        set_property(GLOBAL APPEND PROPERTY RV_FUZZERS ${program})
        set_property(GLOBAL APPEND PROPERTY RV_inside ${program})
    endif()
    target_sources(${program} PRIVATE ${arg_SOURCES})
    target_include_directories(${program} SYSTEM PRIVATE ${arg_INCLUDES})
    target_link_libraries(${program} PRIVATE ${arg_USES})
    set_property(GLOBAL APPEND PROPERTY RV_CORPUS_SOURCES ${arg_SOURCES})
endfunction()

# All that is built, but for the tests that are programs of their own and look at the product from inside (label
# "inside"): what the tests from outside need.
function(rv_add_outside)
    get_property(inside GLOBAL PROPERTY RV_inside)
    set(dirs ${PROJECT_SOURCE_DIR})
    set(targets "")
    while(dirs)
        list(POP_FRONT dirs dir)
        get_property(below DIRECTORY ${dir} PROPERTY SUBDIRECTORIES)
        list(APPEND dirs ${below})
        get_property(here DIRECTORY ${dir} PROPERTY BUILDSYSTEM_TARGETS)
        foreach(target ${here})
            get_target_property(type ${target} TYPE)
            if(NOT type MATCHES "INTERFACE|UTILITY")
                list(APPEND targets ${target})
            endif()
        endforeach()
    endwhile()
    list(REMOVE_ITEM targets ${inside})
    add_custom_target(outside DEPENDS ${targets})
endfunction()
