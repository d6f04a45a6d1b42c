# How tests are built and registered with ctest.
find_package(Catch2 QUIET)
if(NOT Catch2_FOUND)
  message(FATAL_ERROR "Catch2 (2 or 3) was not found. Install catch2, or configure with -DBRAID_BUILD_TESTS=OFF")
endif()

set(BRAID_TEST_ISAS "${BRAID_ISAS}" CACHE STRING "The instruction sets that the suite runs with, once each")
set(BRAID_TEST_TIMEOUT 300 CACHE STRING "Seconds after which a test binary is stopped")

# braid_test_binary(<module> SOURCES <files> [DEVICES <counts>]): builds braid_tests_<module> and registers <module>.<isa> for every
# instruction set, and <module>.devices<n> (BRAID_CPU_DEVICES=n) for every count. A run whose instruction set this processor lacks is skipped.
function(braid_test_binary module)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEVICES")
  if(NOT arg_SOURCES)
    return()
  endif()
  set(target braid_tests_${module})
  add_executable(${target} ${arg_SOURCES})
  braid_target_options(${target})
  target_link_libraries(${target} PRIVATE braid_tests_main braid::braid)
  # Private headers of the module under test, written as the module writes them.
  target_compile_options(${target} PRIVATE -iquote${PROJECT_SOURCE_DIR}/${module})
  target_compile_definitions(${target} PRIVATE BRAID_TESTS_DIR="${PROJECT_SOURCE_DIR}/tests")
  foreach(isa IN LISTS BRAID_TEST_ISAS)
    add_test(NAME ${module}.${isa} COMMAND ${target})
    set_tests_properties(${module}.${isa} PROPERTIES ENVIRONMENT "BRAID_ISA=${isa}" SKIP_RETURN_CODE 77 TIMEOUT ${BRAID_TEST_TIMEOUT} LABELS ${module})
  endforeach()
  foreach(count IN LISTS arg_DEVICES)
    add_test(NAME ${module}.devices${count} COMMAND ${target})
    set_tests_properties(${module}.devices${count} PROPERTIES ENVIRONMENT "BRAID_CPU_DEVICES=${count}" TIMEOUT ${BRAID_TEST_TIMEOUT} LABELS ${module})
  endforeach()
endfunction()

# Every file of the folder must fail to compile, with a message that matches its first line "// expect: <regex>"; control.cpp must compile.
function(braid_must_not_compile_tests folder)
  file(GLOB cases CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
  set(includes "")
  foreach(module core kernels nn data parallel)
    list(APPEND includes -I${PROJECT_SOURCE_DIR}/${module}/include)
  endforeach()
  foreach(file IN LISTS cases)
    get_filename_component(name ${file} NAME_WE)
    add_test(NAME must_not_compile.${name}
             COMMAND ${PROJECT_SOURCE_DIR}/tests/support/must_not_compile.sh ${file} ${CMAKE_CXX_COMPILER} -std=c++20 ${includes} -I${PROJECT_SOURCE_DIR}/core/umbrella)
    set_tests_properties(must_not_compile.${name} PROPERTIES TIMEOUT 120 LABELS must_not_compile)
  endforeach()
endfunction()
