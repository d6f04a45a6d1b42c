# Builds the tutorials with an installed Braid:
#   cmake -S . -B build -DCMAKE_PREFIX_PATH=<where it is installed> && cmake --build build
# One of them: cmake --build build --target train
cmake_minimum_required(VERSION 3.22)
project(braid_tutorials LANGUAGES CXX)
find_package(braid 0.1 REQUIRED)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()
if(BRAID_CUDA STREQUAL "ON")
  enable_language(CUDA)
endif()

file(GLOB programs *.cpp)
foreach(program IN LISTS programs)
  get_filename_component(name ${program} NAME_WE)
  add_executable(${name} ${program})
  target_link_libraries(${name} PRIVATE braid::braid)
endforeach()
target_sources(custom_op PRIVATE custom_op/softsign.cpp)
braid_add_kernels(custom_op custom_op/softsign.cu)
add_subdirectory(embed)
