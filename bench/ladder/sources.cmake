# The kernels of the steps, and the sources shared by the benchmark and the tests.
set(BRAID_LADDER_KERNELS "")
foreach(file sgemm/1_naive sgemm/2_coalesced sgemm/3_shared sgemm/4_registers sgemm/5_pipeline
             sgemm/6_ours softmax/1_naive softmax/2_tree softmax/3_shuffles softmax/4_online
             softmax/5_registers softmax/6_ours tensor/1_floats tensor/2_mma tensor/3_ldmatrix
             tensor/4_swizzle tensor/5_pipeline tensor/6_backward tensor/7_ours)
  list(APPEND BRAID_LADDER_KERNELS ${CMAKE_CURRENT_LIST_DIR}/${file}.cu)
endforeach()
set(BRAID_LADDER_SOURCES ${CMAKE_CURRENT_LIST_DIR}/trial.cpp)
