# The kernels under cpu/simd are compiled once for every instruction set, into separate objects. The
# library selects one set at run time. Each compilation has -DBRAID_ISA=<name> (sse, avx2 and avx512
# on x86, else generic). BRAID_X86=1 is defined on x86.
set(BRAID_ISA_FLAGS_sse -msse2)
set(BRAID_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(BRAID_ISA_FLAGS_avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx2 -mfma -mf16c
                           -mprefer-vector-width=512)
set(BRAID_ISA_FLAGS_generic "")
if(BRAID_X86)
  set(BRAID_ISAS sse avx2 avx512)
else()
  set(BRAID_ISAS generic)
endif()
set(BRAID_KERNEL_OBJECTS "")

macro(braid_simd_sources)
  if(${ARGC} GREATER 0)
    foreach(isa IN LISTS BRAID_ISAS)
      set(target braid_kernels_${isa})
      add_library(${target} OBJECT ${ARGN})
      # NO_NATIVE: BRAID_ISA=sse uses only SSE, on any processor
      braid_target_options(${target} NO_HARDENING NO_NATIVE)
      target_compile_features(${target} PUBLIC cxx_std_20)
      target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/include)
      target_link_libraries(${target} PRIVATE braid::core)
      target_compile_definitions(${target} PRIVATE
        BRAID_ISA=${isa} $<$<BOOL:${BRAID_X86}>:BRAID_X86=1>)
      target_compile_options(${target} PRIVATE
        -iquote${CMAKE_CURRENT_SOURCE_DIR} ${BRAID_ISA_FLAGS_${isa}})
      # g++ 12 warns inside its own <immintrin.h>, whose vectors are undefined on purpose (GCC bug
      # 105593).
      target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized>)
      # g++'s stack frames for use-after-return detection are only aligned to 32 bytes, too little
      # for a 64-byte vector (GCC bug 110027).
      if(isa STREQUAL "avx512" AND BRAID_SANITIZE MATCHES "address"
         AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        target_compile_options(${target} PRIVATE --param=asan-use-after-return=0)
      endif()
      # clang's check of calls through pointers emits typeinfo for every set. The linker would share
      # it (see kernels.isa_symbols). g++ has no such check.
      if(BRAID_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
        target_compile_options(${target} PRIVATE -fno-sanitize=function)
      endif()
      # A set that the tests do not use is only linked: in a build with sanitizers, instrumenting it
      # takes four times as long.
      if(BRAID_TEST_ISAS AND NOT isa IN_LIST BRAID_TEST_ISAS)
        target_compile_options(${target} PRIVATE -fno-sanitize=all)
      endif()
      if(BRAID_SANITIZE STREQUAL "")
        # In debug builds too, because unoptimised kernels make every test take minutes. The set for
        # old processors is compiled at -O2 with vectorization, which takes two thirds of the time.
        if(isa STREQUAL "sse")
          target_compile_options(${target} PRIVATE
            -O2 -ftree-vectorize $<$<CXX_COMPILER_ID:GNU>:-fvect-cost-model=dynamic>)
        else()
          target_compile_options(${target} PRIVATE -O3)
        endif()
      endif()
      list(APPEND BRAID_KERNEL_OBJECTS ${target})
    endforeach()
  endif()
endmacro()

macro(braid_onednn_sources)
  if(BRAID_HAVE_ONEDNN AND ${ARGC} GREATER 0)
    set(where "")
    if(NOT BraidOneDNN_INCLUDE_DIR IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
      # a system header, so that it causes no warnings (oneDNN 3 shadows names)
      set(where "-isystem${BraidOneDNN_INCLUDE_DIR}")
    endif()
    set_source_files_properties(${ARGN} PROPERTIES
      COMPILE_DEFINITIONS BRAID_WITH_ONEDNN=1 COMPILE_OPTIONS "${where}")
  endif()
endmacro()
