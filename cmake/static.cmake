# RV_STATIC: one program without shared objects. Libraries are Debian's archives, but for libcurl, whose archive there
# needs libraries that have none (GSSAPI, LDAP): packaging/static-curl builds one of the same source without them.
#
#   rv_static_capability(files "SOURCES" "USES")   capabilities/files.o, whose one symbol is rv_capability_files
#   rv_static_program(reeve)                       links it statically, with the table of all capabilities

set(CMAKE_FIND_LIBRARY_SUFFIXES .a _a.a) # libuv's is libuv_a.a
add_compile_definitions(RV_STATIC)
set(RV_CURL "" CACHE PATH "prefix of a libcurl with an archive that needs OpenSSL, nghttp2 and zlib only")
set(CMAKE_C_STANDARD_LIBRARIES "${RV_CURL}/lib/libcurl.a -lnghttp2 -lssl -lcrypto -lz -ltinfo -lbsd -lmd -lm") # last of all
set_property(GLOBAL PROPERTY RV_LINKED_NAMES "")

# Two capabilities may have functions of one name: what a shared object would hide becomes local.
function(rv_static_capability name sources uses)
    add_library(${name}_capability OBJECT ${sources})
    target_include_directories(${name}_capability PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/include)
    target_link_libraries(${name}_capability PRIVATE rv::warnings ${uses})
    set_target_properties(${name}_capability PROPERTIES C_VISIBILITY_PRESET hidden)
    set(object ${PROJECT_BINARY_DIR}/capabilities/${name}.o)
    add_custom_command(OUTPUT ${object}
        COMMAND ${CMAKE_LINKER} -r -o ${object} $<TARGET_OBJECTS:${name}_capability>
        COMMAND ${CMAKE_OBJCOPY} --localize-hidden --redefine-sym rv_capability=rv_capability_${name} ${object}
        DEPENDS ${name}_capability $<TARGET_OBJECTS:${name}_capability> COMMAND_EXPAND_LISTS VERBATIM)
    add_custom_target(${name}_linked DEPENDS ${object})
    set_property(GLOBAL APPEND PROPERTY RV_LINKED_NAMES ${name})
endfunction()

function(rv_static_program program)
    get_property(names GLOBAL PROPERTY RV_LINKED_NAMES)
    set(declarations "")
    set(rows "")
    foreach(name IN LISTS names)
        set(object ${PROJECT_BINARY_DIR}/capabilities/${name}.o)
        set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
        target_sources(${program} PRIVATE ${object})
        add_dependencies(${program} ${name}_linked)
        string(APPEND declarations "const struct rv_cap_desc *rv_capability_${name}(void);\n")
        string(APPEND rows "    {\"${name}\", rv_capability_${name}},\n")
    endforeach()
    file(CONFIGURE OUTPUT linked.c @ONLY CONTENT [=[
#include "coreengine/tools/plugin/plugin.h"

@declarations@
const struct rv_capability_linked rv_capabilities_linked[] = {
@rows@    {NULL, NULL},
};
]=])
    target_sources(${program} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/linked.c)
    target_link_options(${program} PRIVATE -static-pie)
endfunction()
