# Finds nvcc and the toolkit for BRAID_CUDA=ON. Toolkits are often installed outside PATH.
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(BRAID_NVCC nvcc
               HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin PATHS /usr/local/cuda/bin)
  mark_as_advanced(BRAID_NVCC)
  if(NOT BRAID_NVCC)
    message(FATAL_ERROR
      "BRAID_CUDA=ON: nvcc was not found. Install the CUDA toolkit (12.4 or newer), or give "
      "-DCMAKE_CUDA_COMPILER=PATH, or use -DBRAID_CUDA=SIMT, which needs none")
  endif()
  set(CMAKE_CUDA_COMPILER ${BRAID_NVCC})
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES ${BRAID_CUDA_ARCHITECTURES})
endif()
enable_language(CUDA)
find_package(CUDAToolkit 12.4 REQUIRED)
