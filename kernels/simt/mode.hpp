#pragma once
// Which world a file is compiled for.
//   SIMT_EMULATED 1   a plain C++ compiler: every CUDA word is our own (the SIMT build, and any
//   test that compiles a .cu file with -x c++) SIMT_EMULATED 0   nvcc, or a plain .cpp of the
//   BRAID_CUDA=ON build, which CMake compiles with -DBRAID_CUDA_ON=1: the toolkit's headers
#if !defined(SIMT_EMULATED)
#if defined(__CUDACC__) || defined(BRAID_CUDA_ON)
#define SIMT_EMULATED 0
#else
#define SIMT_EMULATED 1
#endif
#endif

#if SIMT_EMULATED
// Code of the emulation inside a kernel's translation unit that the checker must not see.
#define SIMT_NO_CHECK __attribute__((no_sanitize("thread")))
#endif
