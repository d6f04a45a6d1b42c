# Compile options of .cu files: Braid's, and those of programs that link braid::braid. Installed
# with the package, which sets the variables:
#   BRAID_CUDA        OFF, ON (nvcc) or SIMT (the C++ compiler, against the emulation)
#   BRAID_DEVICE_INCLUDE_DIR   where simt/simt.hpp is; unset in Braid's own sources

# braid_cuda_sources(files...): sets the options of .cu files.
function(braid_cuda_sources)
  if(BRAID_CUDA STREQUAL "SIMT")
    set(flags -fno-strict-aliasing -Wno-unknown-pragmas)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # otherwise two kernels with the same body would be merged, with one name and one line
      list(APPEND flags -fno-ipa-icf)
      # keeps loops: the checker does not see the calls of memset and memcpy that replace them
      list(APPEND flags -fno-tree-loop-distribute-patterns)
    endif()
    if(CMAKE_BUILD_TYPE STREQUAL "Debug" AND NOT BRAID_SIMT_CHECK AND NOT BRAID_SANITIZE)
      list(APPEND flags -O0 -g)  # for a debugger: docs/guides/debug_a_kernel.md
    else()
      list(APPEND flags -g1)
    endif()
    if(BRAID_SIMT_CHECK)
      # The compiler then calls the checker before every load and store (kernels/simt/tsan_abi.cpp
      # implements the functions of the sanitizer's library).
      list(APPEND flags -fsanitize=thread --param=tsan-instrument-func-entry-exit=0)
    endif()
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "${flags}")
  endif()
endfunction()

# braid_add_kernels(<target> <files.cu>...): adds a program's own kernels to a target that links
# braid::braid. They are compiled like Braid's: by nvcc, by the C++ compiler against the emulation,
# or, in a build without CUDA, not at all. The target's sources see BRAID_HAVE_KERNELS as 1 or 0.
# With nvcc the project needs enable_language(CUDA). See docs/guides/custom_op.md.
function(braid_add_kernels target)
  if(BRAID_CUDA STREQUAL "OFF")
    target_compile_definitions(${target} PRIVATE BRAID_HAVE_KERNELS=0)
    return()
  endif()
  if(BRAID_CUDA STREQUAL "ON" AND NOT CMAKE_CUDA_COMPILER)
    message(FATAL_ERROR "braid_add_kernels: expected a project with the language CUDA, got none: "
                        "add enable_language(CUDA)")
  endif()
  set(kernels ${target}_kernels)
  braid_cuda_sources(${ARGN})
  add_library(${kernels} OBJECT ${ARGN})
  target_compile_features(${kernels} PUBLIC cxx_std_20)
  if(NOT BRAID_DEVICE_INCLUDE_DIR)
    set(BRAID_DEVICE_INCLUDE_DIR ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/..)
  endif()
  target_include_directories(${kernels} PRIVATE
    ${BRAID_DEVICE_INCLUDE_DIR} $<TARGET_PROPERTY:braid::braid,INTERFACE_INCLUDE_DIRECTORIES>)
  if(BRAID_CUDA STREQUAL "SIMT")
    if(COMMAND braid_target_options)
      braid_target_options(${kernels} NO_HARDENING)
      target_compile_options(${kernels} PRIVATE
        -Wno-shadow -Wno-conversion -Wno-sign-conversion -Wno-float-conversion)
    endif()
    if(NOT BRAID_SANITIZE)
      target_compile_options(${kernels} PRIVATE -O2)
    endif()
    target_compile_definitions(${kernels} PRIVATE BRAID_CUDA_SIMT=1)
  else()
    set_target_properties(${kernels} PROPERTIES
      POSITION_INDEPENDENT_CODE ON CUDA_ARCHITECTURES "${BRAID_CUDA_ARCHITECTURES}")
    target_compile_options(${kernels} PRIVATE
      $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 --expt-relaxed-constexpr>)
    target_compile_definitions(${kernels} PRIVATE BRAID_CUDA_ON=1)
    if(NOT TARGET CUDA::cudart_static)
      find_package(CUDAToolkit REQUIRED)
    endif()
    target_link_libraries(${target} PRIVATE CUDA::cudart_static)
  endif()
  target_compile_definitions(${target} PRIVATE BRAID_HAVE_KERNELS=1)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${kernels}>)
endfunction()
