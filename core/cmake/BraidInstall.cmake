# Install rules: headers, the library, the CMake package, the pkg-config file, and the documentation
# with the tutorials. Component braid is all but the documentation, which is component braid_docs.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/braid)

foreach(root core/include core/umbrella kernels/include nn/include data/include parallel/include)
  install(DIRECTORY ${root}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT braid
          FILES_MATCHING PATTERN "*.hpp" PATTERN "*.def")
endforeach()
if(NOT BRAID_CUDA STREQUAL "OFF")  # the headers that a program's own kernels include
  install(DIRECTORY kernels/simt DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/braid/device
          COMPONENT braid FILES_MATCHING PATTERN "*.hpp")
endif()
install(FILES kernels/cmake/BraidKernels.cmake DESTINATION ${package_dir} COMPONENT braid)
install(TARGETS braid EXPORT braid-targets COMPONENT braid
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
get_property(engines GLOBAL PROPERTY BRAID_ENGINES)
if(engines)
  add_dependencies(braid ${engines})  # so that `--target braid` builds all that is installed
  install(TARGETS ${engines} COMPONENT braid LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/braid)
endif()
install(EXPORT braid-targets NAMESPACE braid:: DESTINATION ${package_dir} COMPONENT braid)

# A shared library is already linked with its dependencies. A program that links the static library
# must link them itself.
get_target_property(kind braid TYPE)
set(BRAID_PACKAGE_DEPENDENCIES "")
set(BRAID_PC_PRIVATE "")
if(kind STREQUAL "STATIC_LIBRARY")
  string(APPEND BRAID_PC_PRIVATE " -lstdc++ -lm")
  if(BRAID_HAVE_ONEDNN)
    string(APPEND BRAID_PACKAGE_DEPENDENCIES
      "list(INSERT CMAKE_MODULE_PATH 0 \${CMAKE_CURRENT_LIST_DIR})\n"
      "find_dependency(BraidOneDNN)\nlist(REMOVE_AT CMAKE_MODULE_PATH 0)\n")
    string(APPEND BRAID_PC_PRIVATE " ${BraidOneDNN_LIBRARY}")
    install(FILES ${CMAKE_CURRENT_LIST_DIR}/FindBraidOneDNN.cmake
            DESTINATION ${package_dir} COMPONENT braid)
  endif()
  if(BRAID_CUDA STREQUAL "ON")
    string(APPEND BRAID_PACKAGE_DEPENDENCIES "find_dependency(CUDAToolkit)\n")
    string(APPEND BRAID_PC_PRIVATE " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lpthread -lrt")
  endif()
  if(BRAID_HAVE_ZLIB)
    string(APPEND BRAID_PACKAGE_DEPENDENCIES "find_dependency(ZLIB)\n")
    string(APPEND BRAID_PC_PRIVATE " -lz")
  endif()
  foreach(library IN LISTS CMAKE_DL_LIBS)
    string(APPEND BRAID_PC_PRIVATE " -l${library}")
  endforeach()
endif()
set(package_config ${CMAKE_CURRENT_BINARY_DIR}/braid-config.cmake)
set(package_version ${CMAKE_CURRENT_BINARY_DIR}/braid-config-version.cmake)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/braid-config.cmake.in ${package_config}
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${package_version} COMPATIBILITY SameMinorVersion)
install(FILES ${package_config} ${package_version} DESTINATION ${package_dir} COMPONENT braid)

# braid.pc computes its prefix from its own location, because `cmake --install --prefix`, DESTDIR
# and relocated packages choose the prefix later. Folders given as absolute paths stay absolute.
set(BRAID_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
foreach(folder LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}")
    set(BRAID_PC_${folder} ${CMAKE_INSTALL_${folder}})
  else()
    set(BRAID_PC_${folder} "\${prefix}/${CMAKE_INSTALL_${folder}}")
  endif()
endforeach()
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" up "${up}")
  set(BRAID_PC_PREFIX "\${pcfiledir}/${up}")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/braid.pc.in ${CMAKE_CURRENT_BINARY_DIR}/braid.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/braid.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT braid)

# The documentation keeps its folders, so that the links in it hold. The tutorials get a
# CMakeLists.txt that builds them with the installed Braid.
if(BRAID_INSTALL_DOCS)
  install(FILES README.md CHANGELOG.md LICENSE
          DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT braid_docs)
  install(FILES docs/architecture.md docs/glossary.md
          DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs COMPONENT braid_docs)
  install(DIRECTORY docs/guides docs/notes docs/decisions
          DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs COMPONENT braid_docs)
  install(DIRECTORY docs/tutorials DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs COMPONENT braid_docs
          FILES_MATCHING PATTERN "*.cpp" PATTERN "*.hpp" PATTERN "*.cu" PATTERN "*.png"
          PATTERN "*.svg" PATTERN "*.expected")
  install(FILES docs/tutorials/embed/CMakeLists.txt
          DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs/tutorials/embed COMPONENT braid_docs)
  install(FILES ${CMAKE_CURRENT_LIST_DIR}/tutorials.cmake RENAME CMakeLists.txt
          DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs/tutorials COMPONENT braid_docs)
endif()
