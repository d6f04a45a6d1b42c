# Functions that build the tests and register them with ctest.
find_package(Catch2 QUIET)
if(NOT Catch2_FOUND)
  message(FATAL_ERROR "Catch2 (2 or 3) was not found. Install catch2, or configure with "
                      "-DBRAID_BUILD_TESTS=OFF")
endif()

set(BRAID_TEST_ISAS "${BRAID_ISAS}" CACHE STRING
    "The instruction sets that the suite runs with, once each")
set(BRAID_TEST_OPTIONS "" CACHE STRING "Further options for the tests' own sources")
set(BRAID_TEST_TIMEOUT 300 CACHE STRING "Seconds after which a test binary is stopped")

set(BRAID_SIMT_SEED 1 CACHE STRING
    "Seed of the SIMT tests' random orders of threads and streams; the second is the next seed")
option(BRAID_SIMT_ALL_ORDERS
       "Register the SIMT tests for every pair of an order of threads and one of streams" OFF)

# braid_add_test(<name> COMMAND <command> LABELS <labels> [ENVIRONMENT <pairs>] [TIMEOUT <seconds>]
# [NO_SKIP]): registers a test. Exit status 77 means "skipped", unless NO_SKIP is given.
function(braid_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_SKIP" "TIMEOUT" "COMMAND;LABELS;ENVIRONMENT")
  set(timeout ${BRAID_TEST_TIMEOUT})
  if(arg_TIMEOUT)
    set(timeout ${arg_TIMEOUT})
  endif()
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} LABELS "${arg_LABELS}")
  if(arg_ENVIRONMENT)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${arg_ENVIRONMENT}")
  endif()
  if(NOT arg_NO_SKIP)
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
  endif()
endfunction()

# braid_simt_order(<variable> <threads> <streams>): sets the variable to the environment of these
# orders, each `forward`, `reverse` or `random:<seed>`. With threads in a random order mma adds as
# tensor cores do, and threads let others run between barriers.
function(braid_simt_order variable threads streams)
  string(REPLACE "forward" "fifo" streams ${streams})
  set(mma nearest)
  set(delay 0)
  if(threads MATCHES "^random")
    set(mma cut)
    set(delay 300)
  endif()
  set(${variable} BRAID_SIMT_ORDER=${threads} BRAID_SIMT_STREAM_ORDER=${streams}
                  BRAID_SIMT_MMA=${mma} BRAID_SIMT_DELAY=${delay} PARENT_SCOPE)
endfunction()

# braid_simt_tests(<name> <target> ENVIRONMENT <pairs> LABELS <labels>): registers <name>.<order>
# for each order of threads and streams.
function(braid_simt_tests name target)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "CASES" "ENVIRONMENT;LABELS")
  math(EXPR next "${BRAID_SIMT_SEED} + 1")
  set(threads_of_forward forward)
  set(threads_of_reverse reverse)
  set(threads_of_random random:${BRAID_SIMT_SEED})
  set(threads_of_random2 random:${next})
  set(kinds forward reverse random random2)
  foreach(kind IN LISTS kinds)
    set(partners ${kind})
    if(BRAID_SIMT_ALL_ORDERS)
      set(partners ${kinds})
    endif()
    foreach(partner IN LISTS partners)
      braid_simt_order(order ${threads_of_${kind}} ${threads_of_${partner}})
      set(test ${name}.${kind})
      if(NOT partner STREQUAL kind)
        set(test ${name}.${kind}.streams_${partner})
      endif()
      braid_add_test(${test} COMMAND ${target} ${arg_CASES} LABELS ${arg_LABELS} simt
        ENVIRONMENT ${order} ${arg_ENVIRONMENT})
    endforeach()
  endforeach()
endfunction()

# braid_simt_each_device(<name> <target> DEVICES <n> CASES <filter> LABELS <labels>): registers
# <name>.cuda<i> on each of n emulated CUDA devices. Each device runs another order of threads and
# streams; the seed selects which. With BRAID_SIMT_ALL_ORDERS each device runs every order.
function(braid_simt_each_device name target)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "DEVICES;CASES" "LABELS")
  set(orders forward reverse random:${BRAID_SIMT_SEED})
  math(EXPR last "${arg_DEVICES} - 1")
  foreach(device RANGE ${last})
    math(EXPR which "(${device} + ${BRAID_SIMT_SEED}) % 3")
    list(GET orders ${which} chosen)
    set(tests ${name}.cuda${device})
    set(threads_of_${name}.cuda${device} ${chosen})
    if(BRAID_SIMT_ALL_ORDERS)
      foreach(order IN LISTS orders)
        if(NOT order STREQUAL chosen)
          string(REGEX REPLACE ":.*" "" kind ${order})
          list(APPEND tests ${name}.cuda${device}.${kind})
          set(threads_of_${name}.cuda${device}.${kind} ${order})
        endif()
      endforeach()
    endif()
    foreach(test IN LISTS tests)
      braid_simt_order(order ${threads_of_${test}} ${threads_of_${test}})
      braid_add_test(${test} COMMAND ${target} ${arg_CASES} LABELS ${arg_LABELS} simt
        ENVIRONMENT BRAID_SIMT_DEVICES=${arg_DEVICES} BRAID_DEVICE=cuda:${device}
                    ${order} BRAID_TEST_DIVIDE=1)
    endforeach()
  endforeach()
endfunction()

# braid_test_options(<target> [OPTIMISED]): sets how a test binary's own sources are compiled. A
# binary is OPTIMISED if it spends its time in its own loops. The other binaries would take longer
# to compile with optimisation than to run without it.
function(braid_test_options target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OPTIMISED" "" "")
  braid_target_options(${target} NO_HARDENING)
  if(BRAID_SANITIZE STREQUAL "")
    target_compile_definitions(${target} PRIVATE _GLIBCXX_ASSERTIONS)
  endif()
  target_compile_options(${target} PRIVATE ${BRAID_TEST_OPTIONS})
  set(kind tests)
  if(arg_OPTIMISED)
    target_compile_options(${target} PRIVATE SHELL:-O1)  # SHELL: keeps it even after an earlier -O1
    set(kind tests_optimised)
  endif()
  braid_precompile(${target} ${kind} ${PROJECT_SOURCE_DIR}/tests/support)
endfunction()

# braid_test_binary(<module> SOURCES <files> [ALONE] [OPTIMISED] [LONG <tag>] [DEVICES <counts>]
# [SIMT_DEVICES <counts>] [SIMT_COUNTS <counts>] [SIMT_EACH <n>] [SIMT_CASES <filter>]
# [SIMT_ENVIRONMENT <pairs>]): builds
# braid_tests_<module> and registers <module>.<isa> for every instruction set, and
# <module>.devices<n> (BRAID_CPU_DEVICES=n) for every count. A run is skipped if this processor
# lacks its instruction set. These tests run on CPU devices in every build. ALONE: no other test
# runs at the same time. LONG: the cases with that tag become separate tests, <module>.<tag>.<isa>.
# In the SIMT build, SIMT_DEVICES registers <module>.simt<n>.<order>, which runs over n emulated
# CUDA devices in every order of threads and streams, and <module>.logical<n>, which runs on n
# logical devices of one emulated GPU. SIMT_COUNTS registers <module>.simt_devices<n>, which runs
# SIMT_CASES over n devices in one random order. SIMT_EACH registers <module>.cuda<i> for each of n
# emulated CUDA devices, which is then the best device; it runs all cases or SIMT_CASES (a Catch
# filter). SIMT_ENVIRONMENT overrides variables of <module>.simt<n>.<order>.
function(braid_test_binary module)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ALONE;OPTIMISED"
                        "SIMT_EACH;SIMT_CASES;LONG"
                        "SOURCES;DEVICES;SIMT_DEVICES;SIMT_COUNTS;SIMT_ENVIRONMENT")
  if(NOT arg_SOURCES)
    return()
  endif()
  set(names "")
  set(target braid_tests_${module})
  add_executable(${target} ${arg_SOURCES})
  set(optimised "")
  if(arg_OPTIMISED)
    set(optimised OPTIMISED)
  endif()
  braid_test_options(${target} ${optimised})
  target_link_libraries(${target} PRIVATE braid_tests_main braid::braid)
  # Tests include private headers of the module by the same paths as the module does.
  target_compile_options(${target} PRIVATE -iquote${PROJECT_SOURCE_DIR}/${module})
  # The numeric gradient checks repeat those of the first instruction set, so two random points are
  # enough for the other sets.
  set(fewer "")
  # Cases with the tag [once] depend neither on the instruction set nor on the devices.
  set(once "")
  foreach(isa IN LISTS BRAID_TEST_ISAS)
    set(cases "${once}")
    if(arg_LONG)
      set(cases "~[.]~[${arg_LONG}]${once}")
      braid_add_test(${module}.${arg_LONG}.${isa} COMMAND ${target} "[${arg_LONG}]~[.]"
        LABELS ${module} ENVIRONMENT BRAID_ISA=${isa} BRAID_DEVICE=cpu)
    endif()
    braid_add_test(${module}.${isa} COMMAND ${target} ${cases} LABELS ${module}
      ENVIRONMENT BRAID_ISA=${isa} BRAID_DEVICE=cpu ${fewer})
    list(APPEND names ${module}.${isa})
    set(fewer BRAID_TEST_SEEDS=2)
    set(once "~[.]~[once]")
  endforeach()
  foreach(count IN LISTS arg_DEVICES)
    braid_add_test(${module}.devices${count} NO_SKIP COMMAND ${target} ${once} LABELS ${module}
      ENVIRONMENT BRAID_CPU_DEVICES=${count} BRAID_DEVICE=cpu)
    list(APPEND names ${module}.devices${count})
  endforeach()
  if(arg_ALONE)
    set_tests_properties(${names} PROPERTIES RUN_SERIAL ON)
  endif()
  if(BRAID_CUDA STREQUAL "SIMT")
    set(random random:${BRAID_SIMT_SEED})
    foreach(count IN LISTS arg_SIMT_DEVICES)
      braid_simt_tests(${module}.simt${count} ${target} CASES "~[.]~[once]" LABELS ${module}
        ENVIRONMENT BRAID_SIMT_DEVICES=${count} ${arg_SIMT_ENVIRONMENT})
      braid_add_test(${module}.logical${count} COMMAND ${target} "~[.]~[once]"
        LABELS ${module} simt
        ENVIRONMENT BRAID_SIMT_DEVICES=1 BRAID_CUDA_DEVICES_PER_GPU=${count}
                    BRAID_SIMT_STREAM_ORDER=${random})
    endforeach()
    foreach(count IN LISTS arg_SIMT_COUNTS)
      braid_add_test(${module}.simt_devices${count} COMMAND ${target} ${arg_SIMT_CASES}
        LABELS ${module} simt
        ENVIRONMENT BRAID_SIMT_DEVICES=${count} BRAID_SIMT_ORDER=${random}
                    BRAID_SIMT_STREAM_ORDER=${random})
    endforeach()
    if(arg_SIMT_EACH)
      braid_simt_each_device(${module} ${target} DEVICES ${arg_SIMT_EACH}
        CASES "${arg_SIMT_CASES}" LABELS ${module})
    endif()
  endif()
endfunction()

# braid_cuda_test_binary(<name> SOURCES <files> [ORDERS] [ALONE] [TIMEOUT <seconds>]): builds
# braid_tests_<name> from .cpp and .cu files. Registers it once or, in the SIMT build with ORDERS,
# as <name>.<order> for every order of threads and streams. ALONE: no other test runs at the same
# time.
function(braid_cuda_test_binary name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ORDERS;ALONE" "TIMEOUT" "SOURCES")
  set(target braid_tests_${name})
  if(NOT arg_TIMEOUT OR arg_TIMEOUT LESS BRAID_TEST_TIMEOUT)
    set(arg_TIMEOUT ${BRAID_TEST_TIMEOUT})
  endif()
  set(kernels ${arg_SOURCES})
  list(FILTER kernels INCLUDE REGEX "\\.cu$")
  list(FILTER arg_SOURCES EXCLUDE REGEX "\\.cu$")
  add_executable(${target} ${arg_SOURCES})
  braid_test_options(${target})
  target_link_libraries(${target} PRIVATE braid_tests_main braid::braid)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/kernels)
  target_compile_definitions(${target} PRIVATE BRAID_CUDA_${BRAID_CUDA}=1)
  if(kernels)
    braid_cuda_sources(${kernels})
    add_library(${target}_device OBJECT ${kernels})
    braid_cuda_target(${target}_device)
    set(folders tests kernels core/include kernels/include)
    list(TRANSFORM folders PREPEND ${PROJECT_SOURCE_DIR}/)
    target_include_directories(${target}_device PRIVATE ${folders})
    target_link_libraries(${target} PRIVATE ${target}_device)
  endif()
  if(BRAID_CUDA STREQUAL "ON")
    target_link_libraries(${target} PRIVATE CUDA::cudart_static)
  endif()
  if(BRAID_CUDA STREQUAL "SIMT" AND arg_ORDERS)
    braid_simt_tests(${name} ${target} LABELS ${name})
  else()
    braid_add_test(${name} COMMAND ${target} LABELS ${name} simt TIMEOUT ${arg_TIMEOUT})
    if(arg_ALONE)
      set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
    endif()
  endif()
endfunction()

# Registers a test for every file of the folder. The file must fail to compile with a message that
# matches its first line "// expect: <regex>", but control.cpp must compile. g++ uses Braid's header
# precompiled.
function(braid_must_not_compile_tests folder)
  file(GLOB cases CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
  set(includes "")
  foreach(module core kernels nn data parallel)
    list(APPEND includes -I${PROJECT_SOURCE_DIR}/${module}/include)
  endforeach()
  list(APPEND includes -I${PROJECT_SOURCE_DIR}/core/umbrella)
  set(compiler ${CMAKE_CXX_COMPILER} -std=c++20)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(header ${PROJECT_SOURCE_DIR}/core/umbrella/braid/braid.hpp)
    set(precompiled ${CMAKE_CURRENT_BINARY_DIR}/${folder}/braid/braid.hpp.gch)
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${folder}/braid)
    # -w suppresses the warning "#pragma once in main file".
    add_custom_command(OUTPUT ${precompiled} DEPENDS ${header} DEPFILE ${precompiled}.d VERBATIM
      COMMAND ${compiler} -w ${includes} -MD -MF ${precompiled}.d -MT ${precompiled}
              -x c++-header ${header} -o ${precompiled})
    add_custom_target(braid_${folder} ALL DEPENDS ${precompiled})
    list(APPEND compiler -I${CMAKE_CURRENT_BINARY_DIR}/${folder})
  else()
    add_custom_target(braid_${folder})
  endif()
  foreach(file IN LISTS cases)
    get_filename_component(name ${file} NAME_WE)
    braid_add_test(must_not_compile.${name} NO_SKIP LABELS must_not_compile TIMEOUT 120
      COMMAND ${PROJECT_SOURCE_DIR}/tests/support/must_not_compile.sh ${file} ${compiler}
              ${includes})
  endforeach()
endfunction()
