# The packages of `./dev deb`, one for each component of install.cmake, and the files that only packages have: copyright,
# changelogs, units. `cmake --install` leaves those out.

set(packages reeve library dev doc)
set(name_reeve reeve)
set(name_library libreeve${PROJECT_VERSION_MAJOR})
set(name_dev libreeve-dev)
set(name_doc reeve-doc)
set(debian_revision 1)
set(debian_version ${PROJECT_VERSION}-${debian_revision})

# Compressed without time and name, so that the same tree gives the same package.
string(TIMESTAMP changelog_date "%a, %d %b %Y %H:%M:%S +0000" UTC) # SOURCE_DATE_EPOCH, where it is set
set(packaging ${PROJECT_BINARY_DIR}/packaging)
configure_file(packaging/changelog.in ${packaging}/changelog @ONLY)
install(CODE "
    execute_process(COMMAND gzip -9nc ${packaging}/changelog OUTPUT_FILE ${packaging}/changelog.Debian.gz COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND gzip -9nc ${PROJECT_SOURCE_DIR}/CHANGELOG.md OUTPUT_FILE ${packaging}/changelog.gz COMMAND_ERROR_IS_FATAL ANY)
    " COMPONENT reeve EXCLUDE_FROM_ALL)
foreach(package IN LISTS packages)
    set(folder ${CMAKE_INSTALL_DATADIR}/doc/${name_${package}})
    install(FILES packaging/copyright ${packaging}/changelog.Debian.gz ${packaging}/changelog.gz DESTINATION ${folder}
        COMPONENT ${package} EXCLUDE_FROM_ALL)
    set(overrides packaging/lintian)
    if(EXISTS ${PROJECT_SOURCE_DIR}/${overrides}-${package})
        string(APPEND overrides -${package})
    endif()
    install(FILES ${overrides} DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides
        RENAME ${name_${package}} COMPONENT ${package} EXCLUDE_FROM_ALL)
endforeach()
install(FILES docs/how-to/reeve-worker.service DESTINATION ${CMAKE_INSTALL_LIBDIR}/systemd/system COMPONENT reeve EXCLUDE_FROM_ALL)
install(FILES packaging/sysusers.conf DESTINATION ${CMAKE_INSTALL_LIBDIR}/sysusers.d RENAME reeve.conf COMPONENT reeve EXCLUDE_FROM_ALL)

find_program(RV_NODE node)
if(RV_NODE) # else the package has the Markdown only
    set(site ${packaging}/site)
    install(CODE "
        execute_process(COMMAND ${RV_NODE} ${PROJECT_SOURCE_DIR}/packaging/site/build.mjs ${site} ${PAGE_MARKED} COMMAND_ERROR_IS_FATAL ANY)
        " COMPONENT doc EXCLUDE_FROM_ALL)
    install(DIRECTORY ${site}/ DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/reeve-doc/html COMPONENT doc EXCLUDE_FROM_ALL)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME reeve)
set(CPACK_PACKAGE_CONTACT "The reeve authors <reeve@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # CPack would begin the description of each package with it
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL ${packages})
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${debian_revision})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# The first releases were one package, of version 0.1.0 without a revision, which owned all these files.
set(one_package "reeve (<< 0.1.0-1)")
# Opened at run time, which what is linked does not show.
set(opened "libcurl4 (>= 7.80)")

foreach(package IN LISTS packages)
    string(TOUPPER ${package} key)
    set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${name_${package}})
    set(CPACK_DEBIAN_${key}_PACKAGE_SHLIBDEPS OFF)
    if(NOT package STREQUAL reeve)
        set(CPACK_DEBIAN_${key}_PACKAGE_BREAKS ${one_package})
        set(CPACK_DEBIAN_${key}_PACKAGE_REPLACES ${one_package})
    endif()
    file(READ packaging/${name_${package}}.description text)
    string(STRIP "${text}" text)
    set(CPACK_DEBIAN_${key}_DESCRIPTION "${text}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS packaging/${name_${package}}.description)
endforeach()

set(CPACK_DEBIAN_REEVE_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_REEVE_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_REEVE_PACKAGE_DEPENDS ${opened})
set(CPACK_DEBIAN_REEVE_PACKAGE_RECOMMENDS "ca-certificates, tzdata, reeve-doc") # schedules in time zones; ask-docs
set(CPACK_DEBIAN_REEVE_PACKAGE_SUGGESTS "libpq5 (>= 14), libssl3, libreeve-dev") # stores of PostgreSQL, servers with TLS
set(CPACK_DEBIAN_REEVE_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/postinst)

set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS ${opened})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/triggers)

set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${name_library} (= ${debian_version}), libjson-c-dev, libyaml-dev, libuv1-dev, libsqlite3-dev, nettle-dev, libgmp-dev, libpcre2-dev, libutf8proc-dev")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "reeve-doc, pkg-config")

set(CPACK_DEBIAN_DOC_PACKAGE_SECTION doc)
set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DOC_PACKAGE_SUGGESTS "reeve (>= ${PROJECT_VERSION}), www-browser")
include(CPack)
