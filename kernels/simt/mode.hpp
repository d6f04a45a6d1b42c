#pragma once
// Selects what a file is compiled for.
//   SIMT_EMULATED 1   a plain C++ compiler: every CUDA name is the emulation's (the SIMT build, and
//                     any test that compiles a .cu file with -x c++)
//   SIMT_EMULATED 0   the toolkit's headers: nvcc, or a plain .cpp of the BRAID_CUDA=ON build,
//                     which CMake compiles with -DBRAID_CUDA_ON=1
#if !defined(SIMT_EMULATED)
#if defined(__CUDACC__) || defined(BRAID_CUDA_ON)
#define SIMT_EMULATED 0
#else
#define SIMT_EMULATED 1
#endif
#endif

#if SIMT_EMULATED
// For code of the emulation inside a kernel's translation unit, which the checker must not see.
#define SIMT_NO_CHECK __attribute__((no_sanitize("thread")))
#endif
