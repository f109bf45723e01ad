# What `cmake --install` and `./dev deb` put where. The tree below the prefix has the shape of the build tree, so the
# binary finds its capabilities and pipelines by its own place and the prefix can be moved.

set(data ${CMAKE_INSTALL_DATADIR}/reeve)

if(TARGET reeve)
    set_target_properties(reeve PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
    install(TARGETS reeve RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    set(pages ${PROJECT_BINARY_DIR}/pages)
    install(CODE "
        execute_process(COMMAND \"${CMAKE_COMMAND}\" -DREEVE=${PROJECT_BINARY_DIR}/bin/reeve -DOUT=${pages}
            -P ${PROJECT_SOURCE_DIR}/cmake/pages.cmake COMMAND_ERROR_IS_FATAL ANY)")
    install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
    install(FILES ${pages}/reeve.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME reeve)
    install(FILES ${pages}/_reeve DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
    install(FILES ${pages}/reeve.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

if(TARGET reeve_shared)
    install(TARGETS reeve_static reeve_shared
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(FILES ${PROJECT_SOURCE_DIR}/coreengine/lib/reeve.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reeve)
    install(FILES ${PROJECT_BINARY_DIR}/coreengine/lib/reeve.pc ${PROJECT_BINARY_DIR}/coreengine/lib/reeve-capability.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

# Headers keep their path below include/reeve: they include each other by it.
get_property(modules GLOBAL PROPERTY RV_MODULES)
foreach(module IN LISTS modules)
    get_target_property(folder ${module} SOURCE_DIR)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE path)
    if(path MATCHES "/cli")
        continue()
    endif()
    file(GLOB headers CONFIGURE_DEPENDS ${folder}/*.h)
    list(FILTER headers EXCLUDE REGEX "_internal\\.h$")
    install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reeve/${path})
endforeach()
if(RV_SDK_HEADERS)
    install(FILES ${RV_SDK_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reeve)
    install(FILES ${RV_SDK_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reeve/capabilities/sdk)
endif()

get_property(capabilities GLOBAL PROPERTY RV_CAPABILITIES)
if(capabilities)
    install(TARGETS ${capabilities} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/reeve/capabilities)
endif()
if(EXISTS ${PROJECT_SOURCE_DIR}/pipelines)
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share/reeve) # where `reeve new pipeline --from` looks
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/pipelines ${PROJECT_BINARY_DIR}/share/reeve/pipelines SYMBOLIC)
    install(DIRECTORY pipelines DESTINATION ${data})
    install(DIRECTORY docs DESTINATION ${data} OPTIONAL) # what ask-docs answers from
    install(FILES README.md CONTRIBUTING.md DESTINATION ${data})
endif()
install(FILES LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

# `app` is what `./dev demo` needs: the binary and the plugins, no tests. `fuzzers` is what `./dev fuzz` needs.
add_custom_target(app DEPENDS ${capabilities})
if(TARGET reeve)
    add_dependencies(app reeve)
endif()
get_property(fuzzers GLOBAL PROPERTY RV_FUZZERS)
add_custom_target(fuzzers DEPENDS ${fuzzers})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME reeve)
set(CPACK_PACKAGE_CONTACT "The reeve authors <reeve@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "runs LLM-agent pipelines declared in YAML")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libcurl4 (>= 7.80)") # opened at run time: what is linked does not show it
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS tzdata) # schedules in a time zone other than UTC
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libpq5 (>= 14)") # stores of PostgreSQL
include(CPack)
