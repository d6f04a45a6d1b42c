# The CUDA backend, built in one of two ways from the same files:
#   BRAID_CUDA=ON    .cu files by nvcc, cudart linked statically (never -lcuda), so that the library
#   loads on a machine without a driver;
#   BRAID_CUDA=SIMT  .cu files by the C++ compiler against the emulation in kernels/simt.
# BRAID_CUDA_ON=1 or BRAID_CUDA_SIMT=1 is defined for the sources of this folder, and
# BRAID_WITH_CUDA=1 in both cases.

# braid_cuda_target(target): sets the options of an object library of .cu files.
function(braid_cuda_target target)
  if(BRAID_CUDA STREQUAL "SIMT")
    braid_target_options(${target} NO_HARDENING)
    target_compile_options(${target} PRIVATE
      -Wno-shadow -Wno-conversion -Wno-sign-conversion -Wno-float-conversion)
    if(BRAID_SANITIZE STREQUAL "")
      # in debug builds too, because emulated kernels are slow
      target_compile_options(${target} PRIVATE -O2)
    endif()
    target_compile_definitions(${target} PRIVATE BRAID_CUDA_SIMT=1)
  else()
    set_target_properties(${target} PROPERTIES
      POSITION_INDEPENDENT_CODE ON CUDA_ARCHITECTURES "${BRAID_CUDA_ARCHITECTURES}")
    # -std explicitly: CMake before 3.25.2 does not know that nvcc supports C++20. nvcc can compress
    # the kernels from 12.8 on.
    set(flags -std=c++20 --expt-relaxed-constexpr)
    if(BRAID_CUDA_COMPRESS AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
      list(APPEND flags --compress-mode=size)
    endif()
    list(APPEND flags -Xcompiler=-Wall,-Wextra,-Wno-unknown-pragmas)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${flags}>")
    if(BRAID_WERROR)
      set(errors "-Werror all-warnings")
      target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:${errors}>")
    endif()
    target_compile_definitions(${target} PRIVATE BRAID_CUDA_ON=1)
  endif()
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_definitions(${target} PRIVATE BRAID_WITH_CUDA=1)
endfunction()

# Adds the object libraries to BRAID_KERNEL_OBJECTS.
macro(braid_cuda_backend)
  include(${CMAKE_CURRENT_SOURCE_DIR}/cuda/sources.cmake)
  braid_cuda_sources(${BRAID_CUDA_KERNEL_SOURCES})
  set(exact -fmad=false)
  set(kind BRAID_CUDA_ON=1)
  if(BRAID_CUDA STREQUAL "SIMT")
    set(exact -ffp-contract=off)
    set(kind BRAID_CUDA_SIMT=1)
  endif()
  set_property(SOURCE ${BRAID_CUDA_EXACT_SOURCES} APPEND PROPERTY COMPILE_OPTIONS ${exact})
  add_library(braid_cuda_kernels OBJECT ${BRAID_CUDA_KERNEL_SOURCES})
  braid_cuda_target(braid_cuda_kernels)
  add_library(braid_cuda_runtime OBJECT ${BRAID_CUDA_RUNTIME_SOURCES})
  braid_target_options(braid_cuda_runtime)
  braid_precompile(braid_cuda_runtime modules ${PROJECT_SOURCE_DIR}/core/precompiled)
  target_compile_features(braid_cuda_runtime PUBLIC cxx_std_20)
  target_compile_definitions(braid_cuda_runtime PRIVATE BRAID_WITH_CUDA=1 ${kind})
  set(targets braid_cuda_kernels braid_cuda_runtime)
  if(BRAID_CUDA STREQUAL "SIMT")
    include(${CMAKE_CURRENT_SOURCE_DIR}/simt/sources.cmake)
    add_library(braid_simt OBJECT ${BRAID_SIMT_SOURCES})
    braid_target_options(braid_simt)
    target_compile_features(braid_simt PUBLIC cxx_std_20)
    target_compile_definitions(braid_simt PRIVATE BRAID_CUDA_SIMT=1)
    list(APPEND targets braid_simt)
  else()
    target_link_libraries(braid_cuda_runtime PRIVATE CUDA::cudart_static)
    target_link_libraries(braid_cuda_kernels PRIVATE CUDA::cudart_static)
  endif()
  foreach(target IN LISTS targets)
    target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/include)
    # nvcc does not support -iquote. No file in the folder kernels has the name of a system header.
    target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(${target} PRIVATE braid::core)
  endforeach()
  list(APPEND BRAID_KERNEL_OBJECTS ${targets})
  target_compile_definitions(braid_kernels PRIVATE BRAID_WITH_CUDA=1 ${kind})
endmacro()
