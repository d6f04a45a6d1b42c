# Declares and checks Braid's options, and prints the summary at the end of the configure step.

function(braid_choice name default help)
  set(${name} ${default} CACHE STRING "${help}: ${ARGN}")
  set_property(CACHE ${name} PROPERTY STRINGS ${ARGN})
  if(NOT "${${name}}" IN_LIST ARGN)
    list(JOIN ARGN ", " allowed)
    message(FATAL_ERROR "${name}: expected one of ${allowed}, got '${${name}}'")
  endif()
endfunction()

braid_choice(BRAID_CUDA OFF "CUDA backend" OFF ON SIMT)
braid_choice(BRAID_ONEDNN AUTO "oneDNN for large GEMM" AUTO ON OFF)
braid_choice(BRAID_ZLIB AUTO "zlib, to read .gz files" AUTO ON OFF)
braid_choice(BRAID_STB AUTO "stb, to read PNG and JPEG files" AUTO ON OFF)
# Newer GPUs compile the PTX of 90 at run time, whatever their architecture. PTX of the newest
# architecture that the toolkit knows would only run on that one and later ones (that of 121 not on
# 100, 103, 110 and 120), so it cannot replace it. Besides it, it takes nvcc 13.0 a fifth more time
# and the objects a fifth more bytes (softmax, fill, optim and attention together: 46 to 56 s, 1.11
# to 1.35 MB), and gives nothing: no kernel uses instructions that are newer than those of sm_80.
set(BRAID_CUDA_ARCHITECTURES "80-real;90" CACHE STRING
    "BRAID_CUDA=ON: the GPU architectures, as in CUDA_ARCHITECTURES (80, 90 and PTX of 90)")
option(BRAID_CUDA_COMPRESS
       "Pack the kernels small (nvcc from 12.8 on): a tenth of the time they take to compile" ON)
option(BRAID_SIMT_CHECK "BRAID_CUDA=SIMT: compile kernels with the calls of the checker" ON)
braid_choice(BRAID_MPI AUTO "Engine of collectives between processes: MPI" AUTO ON OFF)
braid_choice(BRAID_GLOO AUTO "Engine of collectives between processes: Gloo" AUTO ON OFF)
option(BRAID_NATIVE
       "Compile for this machine's processor (kernels choose at run time in any case)" OFF)
string(CONCAT help "One portable set of kernels instead of one for each instruction set: "
                   "a third of the time to build, slower loops")
option(BRAID_GENERIC "${help}" OFF)
string(CONCAT help "Compile common headers once: the modules but for the kernels take little "
                   "more than half the time; includes that a source lacks then go unseen")
option(BRAID_PRECOMPILE "${help}" ${PROJECT_IS_TOP_LEVEL})
option(BRAID_WERROR "Warnings are errors" OFF)
option(BRAID_INSTALL "Install rules" ${PROJECT_IS_TOP_LEVEL})
option(BRAID_INSTALL_DOCS "Install the documentation and the tutorials too" ON)
option(BRAID_BUILD_TESTS "Tests" ${PROJECT_IS_TOP_LEVEL})
option(BRAID_BUILD_BENCH "Benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(BRAID_BUILD_DOCS "Tutorials" ${PROJECT_IS_TOP_LEVEL})
option(BRAID_BUILD_FUZZ "Fuzzers of the file formats (clang)" OFF)
set(BRAID_SANITIZE "" CACHE STRING
    "Sanitizers on Braid's own targets: empty, address (with undefined behaviour) or thread")
option(BRAID_COVERAGE "Count the executed lines of the library (./dev check coverage)" OFF)
if(NOT BRAID_SANITIZE MATCHES "^(|address|thread)$")
  message(FATAL_ERROR "BRAID_SANITIZE: expected empty, address or thread, got '${BRAID_SANITIZE}'")
endif()

if(BRAID_CUDA STREQUAL "SIMT" AND BRAID_SANITIZE STREQUAL "thread")
  message(FATAL_ERROR
    "BRAID_CUDA=SIMT: expected BRAID_SANITIZE empty or address, got thread: the emulation's "
    "checker stands in for that sanitizer's library")
endif()

if(NOT BRAID_CUDA STREQUAL "SIMT" OR NOT BRAID_SANITIZE STREQUAL ""
   OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # The checker needs -fsanitize=thread, which excludes the address sanitizer. The instrumentation
  # of clang 14 turns 16-byte copies into calls of memcpy.
  set(BRAID_SIMT_CHECK OFF)
endif()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8
   AND NOT BRAID_GENERIC)
  set(BRAID_X86 ON)
else()
  set(BRAID_X86 OFF)
endif()

set(BRAID_HAVE_ONEDNN OFF)
if(NOT BRAID_ONEDNN STREQUAL "OFF")
  list(INSERT CMAKE_MODULE_PATH 0 ${CMAKE_CURRENT_LIST_DIR})
  find_package(BraidOneDNN QUIET)
  list(REMOVE_AT CMAKE_MODULE_PATH 0)
  if(BraidOneDNN_FOUND)
    set(BRAID_HAVE_ONEDNN ON)
  elseif(BRAID_ONEDNN STREQUAL "ON")
    message(FATAL_ERROR
      "BRAID_ONEDNN=ON: oneDNN was not found. Install libdnnl-dev, or give its place with "
      "-DCMAKE_PREFIX_PATH=DIR, or use -DBRAID_ONEDNN=OFF")
  endif()
endif()

set(BRAID_HAVE_ZLIB OFF)
if(NOT BRAID_ZLIB STREQUAL "OFF")
  find_package(ZLIB QUIET)
  if(ZLIB_FOUND)
    set(BRAID_HAVE_ZLIB ON)
  elseif(BRAID_ZLIB STREQUAL "ON")
    message(FATAL_ERROR
      "BRAID_ZLIB=ON: zlib was not found. Install zlib1g-dev, or use -DBRAID_ZLIB=OFF")
  endif()
endif()

# Headers only: nothing of stb is linked, and no public header includes it.
set(BRAID_HAVE_STB OFF)
if(NOT BRAID_STB STREQUAL "OFF")
  find_path(BRAID_STB_INCLUDE_DIR stb/stb_image.h)
  mark_as_advanced(BRAID_STB_INCLUDE_DIR)
  if(BRAID_STB_INCLUDE_DIR)
    set(BRAID_HAVE_STB ON)
    # For the one source that includes stb: its sums of what a file holds may overflow. They must
    # wrap around, and the sanitizer must not stop at them, nor at copies of 0 bytes from null.
    set(BRAID_STB_OPTIONS -fwrapv)
    if(BRAID_SANITIZE STREQUAL "address")
      list(APPEND BRAID_STB_OPTIONS -fno-sanitize=shift,nonnull-attribute)
    endif()
  elseif(BRAID_STB STREQUAL "ON")
    message(FATAL_ERROR
      "BRAID_STB=ON: stb/stb_image.h was not found. Install libstb-dev, or give the folder that "
      "contains stb/ with -DBRAID_STB_INCLUDE_DIR=DIR, or use -DBRAID_STB=OFF")
  endif()
endif()

function(braid_print_summary)
  set(onednn "not used: own portable loops")
  if(BRAID_HAVE_ONEDNN)
    set(onednn "${BraidOneDNN_VERSION} (${BraidOneDNN_LIBRARY})")
  elseif(BRAID_ONEDNN STREQUAL "AUTO")
    set(onednn "not found: own portable loops (libdnnl-dev has it)")
  endif()
  set(zlib "not used: .gz files are refused")
  if(BRAID_HAVE_ZLIB)
    set(zlib "${ZLIB_VERSION_STRING}")
  endif()
  set(stb "not used: PNG and JPEG files are written (PNG), but not read")
  if(BRAID_HAVE_STB)
    set(stb "reads PNG and JPEG")
  endif()
  set(engines ${BRAID_MPI_FLAVOURS})
  if(BRAID_HAVE_GLOO)
    list(APPEND engines gloo)
  endif()
  if(NOT engines)
    set(engines "none (libopenmpi-dev, libmpich-dev and libgloo-dev have them)")
  endif()
  list(JOIN engines ", " engines)
  set(kind static)
  if(BUILD_SHARED_LIBS)
    set(kind shared)
  endif()
  message(STATUS
    "Braid ${braid_VERSION} (${kind}): oneDNN ${onednn}; zlib ${zlib}; stb ${stb}; "
    "kernels ${BRAID_ISAS}; CUDA ${BRAID_CUDA}; engines ${engines}; sanitizer '${BRAID_SANITIZE}'")
endfunction()
