# How Braid's own targets are compiled. All options here are PRIVATE to a target, so that none
# reaches a program that embeds Braid.
include(CheckCXXCompilerFlag)
include(CheckLinkerFlag)

# The hardening flags that this compiler supports, for builds other than Debug without a sanitizer.
set(BRAID_HARDENING "")
set(BRAID_HARDENING_LINK "")
foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection=full
             -ftrivial-auto-var-init=zero -fstrict-flex-arrays=3)
  string(MAKE_C_IDENTIFIER "BRAID_HAS${flag}" known)
  check_cxx_compiler_flag(${flag} ${known})
  if(${known})
    list(APPEND BRAID_HARDENING ${flag})
  endif()
endforeach()
foreach(flag -Wl,-z,relro,-z,now -Wl,-z,noexecstack)
  string(MAKE_C_IDENTIFIER "BRAID_HAS${flag}" known)
  check_linker_flag(CXX ${flag} ${known})
  if(${known})
    list(APPEND BRAID_HARDENING_LINK ${flag})
  endif()
endforeach()

# braid_target_options(target [NO_HARDENING] [NO_NATIVE]): sets the warnings, floating-point rules,
# sanitizer and hardening of one of Braid's own targets. With NO_NATIVE, BRAID_NATIVE has no effect:
# the target sets its instruction set itself.
function(braid_target_options target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_HARDENING;NO_NATIVE" "" "")
  set_target_properties(${target} PROPERTIES
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  # -ffp-contract=off: fused multiply-adds would make results depend on the processor.
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wshadow -Wconversion -Wformat=2 -ffp-contract=off)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # g++ 12 warns about std::string's own operator+ (its bug 105651)
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()
  if(BRAID_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(BRAID_COVERAGE)
    target_link_options(${target} PRIVATE --coverage)
    get_target_property(kind ${target} TYPE)
    if(kind STREQUAL "OBJECT_LIBRARY" AND NOT target MATCHES "tests")
      # Only whether a line runs is of interest, so the counters need not be atomic.
      target_compile_options(${target} PRIVATE --coverage -fprofile-update=single)
    endif()
  endif()
  if(BRAID_NATIVE AND NOT arg_NO_NATIVE)
    target_compile_options(${target} PRIVATE -march=native)
  endif()
  if(BRAID_SANITIZE STREQUAL "address")
    target_compile_options(${target} PRIVATE
      -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all)
    target_link_options(${target} PRIVATE -fsanitize=address,undefined)
  elseif(BRAID_SANITIZE STREQUAL "thread")
    target_compile_options(${target} PRIVATE -O1 -g1 -fno-omit-frame-pointer -fsanitize=thread)
    target_link_options(${target} PRIVATE -fsanitize=thread)
  elseif(NOT arg_NO_HARDENING)
    target_compile_options(${target} PRIVATE "$<$<NOT:$<CONFIG:Debug>>:${BRAID_HARDENING}>")
    # Some distributions predefine the macro at a lower level.
    set(fortify "-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3")
    target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:${fortify}>")
    target_compile_definitions(${target} PRIVATE _GLIBCXX_ASSERTIONS)
    target_link_options(${target} PRIVATE "$<$<NOT:$<CONFIG:Debug>>:${BRAID_HARDENING_LINK}>")
  endif()
endfunction()

# braid_precompile(target kind folder): with BRAID_PRECOMPILE, folder/<stem>_precompiled.hpp is
# compiled once for all targets of a kind, which have the same compile options. The first of these
# targets owns it. The stem is the kind up to its first _. This only saves time: every source
# includes what it uses, and `check compilers` makes one build without precompiled headers.
function(braid_precompile target kind folder)
  if(NOT BRAID_PRECOMPILE)
    return()
  endif()
  # ccache only shares objects that use a precompiled header if the header contains no time stamp
  # (clang) and the preprocessed source says that it includes the header (g++).
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set(flag "-Xclang -fno-pch-timestamp")
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:${flag}>")
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
  get_property(owner GLOBAL PROPERTY BRAID_PRECOMPILED_${kind})
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    # Include it by a name that is the same in every checkout, so that ccache can share objects
    # between checkouts.
    target_include_directories(${target} PRIVATE ${folder})
    string(REGEX REPLACE "_.*" "" stem ${kind})
    target_precompile_headers(${target} PRIVATE <${stem}_precompiled.hpp>)
    set_property(GLOBAL PROPERTY BRAID_PRECOMPILED_${kind} ${target})
  endif()
endfunction()

# braid_module(name DEPENDS modules... SOURCES files...): adds an object library that can include
# its own headers and those of DEPENDS.
function(braid_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_HARDENING" "" "DEPENDS;SOURCES")
  set(target braid_${name})
  if(NOT arg_SOURCES)  # a header-only module: CMake requires one source
    set(arg_SOURCES ${CMAKE_CURRENT_BINARY_DIR}/${name}_headers_only.cpp)
    file(CONFIGURE OUTPUT ${arg_SOURCES} CONTENT "// braid::${name} has no sources of its own.\n")
  endif()
  add_library(${target} OBJECT ${arg_SOURCES})
  add_library(braid::${name} ALIAS ${target})
  if(arg_NO_HARDENING)
    braid_target_options(${target} NO_HARDENING)
  else()
    braid_target_options(${target})
    braid_precompile(${target} modules ${PROJECT_SOURCE_DIR}/core/precompiled)
  endif()
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/include)
  # Private headers are included as "folder/name.hpp", relative to the module's folder. -iquote
  # keeps folders such as memory/ from hiding <memory>.
  target_compile_options(${target} PRIVATE -iquote${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${target} PUBLIC Threads::Threads)
  foreach(module IN LISTS arg_DEPENDS)
    target_link_libraries(${target} PUBLIC braid::${module})
  endforeach()
endfunction()
