# The kernels under cpu/simd are compiled once for every instruction set, into objects of their own;
# the library picks one set at run time. Each compilation has -DBRAID_ISA=<name> (sse, avx2, avx512,
# or generic elsewhere); BRAID_X86=1 is defined where the three exist.
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
      # BRAID_ISA=sse means sse, on any processor
      braid_target_options(${target} NO_HARDENING NO_NATIVE)
      target_compile_features(${target} PUBLIC cxx_std_20)
      target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/include)
      target_link_libraries(${target} PRIVATE braid::core)
      target_compile_definitions(${target} PRIVATE
        BRAID_ISA=${isa} $<$<BOOL:${BRAID_X86}>:BRAID_X86=1>)
      target_compile_options(${target} PRIVATE
        -iquote${CMAKE_CURRENT_SOURCE_DIR} ${BRAID_ISA_FLAGS_${isa}})
      # g++ 12 warns inside its own <immintrin.h>, whose "undefined" vectors are meant (GCC bug
      # 105593).
      target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized>)
      # Its frames for finding a use after return are aligned to 32 bytes only, too little for a 64
      # byte vector (GCC bug 110027).
      if(isa STREQUAL "avx512" AND BRAID_SANITIZE MATCHES "address"
         AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        target_compile_options(${target} PRIVATE --param=asan-use-after-return=0)
      endif()
      # clang's check of calls through pointers leaves typeinfo in every set, which the linker then
      # shares (kernels.isa_symbols); g++ has no such check.
      if(BRAID_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
        target_compile_options(${target} PRIVATE -fno-sanitize=function)
      endif()
      # A set that the tests do not run with is there to be linked: in a build with sanitizers,
      # instrumenting it takes four times as long.
      if(BRAID_TEST_ISAS AND NOT isa IN_LIST BRAID_TEST_ISAS)
        target_compile_options(${target} PRIVATE -fno-sanitize=all)
      endif()
      if(BRAID_SANITIZE STREQUAL "")
        # In debug builds too: unoptimised kernels make every test minutes long. The set for old
        # processors at -O2 with vectors: two thirds of the time to compile.
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
      # a system header: our warnings are not for it (oneDNN 3 shadows names)
      set(where "-isystem${BraidOneDNN_INCLUDE_DIR}")
    endif()
    set_source_files_properties(${ARGN} PROPERTIES
      COMPILE_DEFINITIONS BRAID_WITH_ONEDNN=1 COMPILE_OPTIONS "${where}")
  endif()
endmacro()
