# What `cmake --install` and `./dev deb` put where; a component is a package, see packages.cmake. The tree below the prefix has the shape of the build tree, so the
# binary finds its capabilities and pipelines by its own place and the prefix can be moved.

set(data ${CMAKE_INSTALL_DATADIR}/reeve)

if(TARGET reeve)
    set_target_properties(reeve PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
    install(TARGETS reeve RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT reeve)
    set(pages ${PROJECT_BINARY_DIR}/pages)
    install(CODE "
        execute_process(COMMAND \"${CMAKE_COMMAND}\" -DREEVE=${PROJECT_BINARY_DIR}/bin/reeve -DOUT=${pages}
            -P ${PROJECT_SOURCE_DIR}/cmake/pages.cmake COMMAND_ERROR_IS_FATAL ANY)" COMPONENT reeve)
    install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT reeve)
    install(FILES ${pages}/reeve.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME reeve COMPONENT reeve)
    install(FILES ${pages}/_reeve DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT reeve)
    install(FILES ${pages}/reeve.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT reeve)
endif()

if(TARGET reeve_shared)
    install(TARGETS reeve_static reeve_shared
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT dev)
    install(FILES ${PROJECT_SOURCE_DIR}/coreengine/lib/reeve.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reeve COMPONENT dev)
    install(FILES ${PROJECT_BINARY_DIR}/coreengine/lib/reeve.pc ${PROJECT_BINARY_DIR}/coreengine/lib/reeve-capability.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endif()

# Headers keep their path below include/reeve: they include each other by it.
get_property(modules GLOBAL PROPERTY RV_MODULES)
foreach(module IN LISTS modules)
    get_target_property(folder ${module} SOURCE_DIR)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE path)
    if(path MATCHES "/cli")
        continue()
    endif()
    rv_public_headers(${module} headers)
    install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reeve/${path} COMPONENT dev)
endforeach()
if(RV_SDK_HEADERS)
    install(FILES ${RV_SDK_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reeve COMPONENT dev)
    install(FILES ${RV_SDK_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reeve/capabilities/sdk COMPONENT dev)
endif()

get_property(capabilities GLOBAL PROPERTY RV_CAPABILITIES)
if(capabilities)
    install(TARGETS ${capabilities} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/reeve/capabilities COMPONENT reeve)
endif()
if(EXISTS ${PROJECT_SOURCE_DIR}/pipelines)
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share/reeve) # where `reeve new pipeline --from` looks
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/pipelines ${PROJECT_BINARY_DIR}/share/reeve/pipelines SYMBOLIC)
    install(DIRECTORY pipelines DESTINATION ${data} COMPONENT reeve)
    install(DIRECTORY docs DESTINATION ${data} COMPONENT doc) # what ask-docs answers from
    install(FILES README.md CONTRIBUTING.md DESTINATION ${data} COMPONENT doc)
endif()
install(FILES LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT base) # packages have files of their own

# `app` is what `./dev demo` needs: the binary and the plugins, no tests. `fuzzers` is what `./dev fuzz` needs.
add_custom_target(app DEPENDS ${capabilities})
if(TARGET reeve)
    add_dependencies(app reeve)
endif()
get_property(fuzzers GLOBAL PROPERTY RV_FUZZERS)
add_custom_target(fuzzers DEPENDS ${fuzzers})

include(cmake/packages.cmake)
