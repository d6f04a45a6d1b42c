# Looks for MPI and Gloo. Sets BRAID_MPI_FLAVOURS, a list of openmpi, mpich and abi (the ABI of
# MPI 5, which both vendors have), with BRAID_MPI_<flavour>_INCLUDES, _LIBRARIES and _DEFINITIONS,
# and BRAID_HAVE_GLOO. The library itself links none of them: parallel/CMakeLists.txt makes modules.

# braid_read_mpi(flavour words...): takes include folders and libraries from a compiler line.
function(braid_read_mpi flavour)
  set(includes "")
  set(libraries "")
  set(definitions "")
  set(folders "")
  foreach(word IN LISTS ARGN)
    if(word MATCHES "^-I(.+)")
      list(APPEND includes ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-L(.+)")
      list(APPEND folders ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-D(MPI_.+)")
      list(APPEND definitions ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-l(mpi|mpich|mpi_abi)$")
      find_library(BRAID_MPI_${flavour}_LIBRARY ${CMAKE_MATCH_1} HINTS ${folders})
      mark_as_advanced(BRAID_MPI_${flavour}_LIBRARY)
      list(APPEND libraries ${BRAID_MPI_${flavour}_LIBRARY})
    endif()
  endforeach()
  if(libraries AND NOT libraries MATCHES "NOTFOUND")
    set(BRAID_MPI_${flavour}_INCLUDES ${includes} PARENT_SCOPE)
    set(BRAID_MPI_${flavour}_LIBRARIES ${libraries} PARENT_SCOPE)
    set(BRAID_MPI_${flavour}_DEFINITIONS ${definitions} PARENT_SCOPE)
    set(BRAID_MPI_FLAVOURS ${BRAID_MPI_FLAVOURS} ${flavour} PARENT_SCOPE)
  endif()
endfunction()

set(BRAID_MPI_FLAVOURS "")
if(NOT BRAID_MPI STREQUAL "OFF")
  # What tells them apart is a macro of mpi.h: MPICH's library, too, is libmpi outside of Debian.
  set(macro_openmpi OPEN_MPI)
  set(macro_mpich MPICH_VERSION)
  set(macro_abi MPI_ABI_VERSION)
  foreach(flavour openmpi mpich abi)
    # Debian names the wrappers of both vendors; elsewhere there is one, mpicc.
    set(names mpicc.${flavour} mpicc)
    if(flavour STREQUAL "abi")
      set(names mpicc_abi)
    endif()
    find_program(BRAID_MPICC_${flavour} NAMES ${names})
    mark_as_advanced(BRAID_MPICC_${flavour})
    if(NOT BRAID_MPICC_${flavour})
      continue()
    endif()
    execute_process(COMMAND ${BRAID_MPICC_${flavour}} -show OUTPUT_VARIABLE words
                    ERROR_QUIET RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
    execute_process(COMMAND ${BRAID_MPICC_${flavour}} -E -dM -include mpi.h -x c /dev/null
                    OUTPUT_VARIABLE macros ERROR_QUIET RESULT_VARIABLE has_no_macros)
    if(failed OR has_no_macros OR NOT macros MATCHES "#define ${macro_${flavour}} ")
      continue()
    endif()
    separate_arguments(words UNIX_COMMAND "${words}")
    braid_read_mpi(${flavour} ${words})
  endforeach()
  if(BRAID_MPI STREQUAL "ON" AND NOT BRAID_MPI_FLAVOURS)
    message(FATAL_ERROR
      "BRAID_MPI=ON: no MPI was found. Install libopenmpi-dev or libmpich-dev, or give its "
      "compiler with -DBRAID_MPICC_openmpi=FILE (or _mpich, _abi), or use -DBRAID_MPI=OFF")
  endif()
endif()

set(BRAID_HAVE_GLOO OFF)
if(NOT BRAID_GLOO STREQUAL "OFF")
  find_path(BRAID_GLOO_INCLUDE_DIR gloo/rendezvous/context.h)
  find_library(BRAID_GLOO_LIBRARY gloo)
  mark_as_advanced(BRAID_GLOO_INCLUDE_DIR BRAID_GLOO_LIBRARY)
  if(BRAID_GLOO_INCLUDE_DIR AND BRAID_GLOO_LIBRARY)
    set(BRAID_HAVE_GLOO ON)
  elseif(BRAID_GLOO STREQUAL "ON")
    message(FATAL_ERROR
      "BRAID_GLOO=ON: Gloo was not found. Install libgloo-dev, or give its place with "
      "-DCMAKE_PREFIX_PATH=DIR, or use -DBRAID_GLOO=OFF")
  endif()
endif()

# braid_engine(name SOURCES files... INCLUDES folders... LIBRARIES files... DEFINITIONS macros...):
# the module braid_<name>.so.
function(braid_engine name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;INCLUDES;LIBRARIES;DEFINITIONS")
  set(target braid_engine_${name})
  add_library(${target} MODULE ${arg_SOURCES})
  braid_target_options(${target})
  target_compile_options(${target} PRIVATE -iquote${CMAKE_CURRENT_SOURCE_DIR})
  target_include_directories(${target} SYSTEM PRIVATE ${arg_INCLUDES})
  target_compile_definitions(${target} PRIVATE ${arg_DEFINITIONS})
  target_link_libraries(${target} PRIVATE ${arg_LIBRARIES} Threads::Threads)
  set_target_properties(${target} PROPERTIES
    PREFIX "" SUFFIX ".so" OUTPUT_NAME braid_${name} CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/engines
    INSTALL_RPATH_USE_LINK_PATH ON)  # MPI may be in a folder that the system does not search
  set_property(GLOBAL APPEND PROPERTY BRAID_ENGINES ${target})
endfunction()
