#include "cuda/table.hpp"

#include "cuda/kernels.hpp"

namespace braid::cuda {

const KernelTable& kernel_table() noexcept {
  static constexpr KernelTable table{.unary = &unary,
                                     .binary = &binary,
                                     .where = &where,
                                     .activation = &activation,
                                     .copy = &copy,
                                     .fill = &fill,
                                     .reduce = &reduce,
                                     .gemm = &gemm,
                                     .gemm_pair = &gemm_pair,
                                     .softmax = &softmax,
                                     .softmax_backward = &softmax_backward,
                                     .cross_entropy = &cross_entropy,
                                     .cross_entropy_backward = &cross_entropy_backward,
                                     .mse = &mse,
                                     .mse_backward = &mse_backward,
                                     .gather_rows = &gather_rows,
                                     .scatter_add_rows = &scatter_add_rows,
                                     .gather = &gather,
                                     .scatter = &scatter,
                                     .scan = &scan,
                                     .sort = &sort,
                                     .random = &random,
                                     .rnn_cell = &rnn_cell,
                                     .rnn_cell_backward = &rnn_cell_backward,
                                     .sgd = &sgd,
                                     .norm_rows = &norm_rows,
                                     .norm_rows_backward = &norm_rows_backward,
                                     .norm_channels = &norm_channels,
                                     .norm_channels_backward = &norm_channels_backward,
                                     .dropout = &dropout,
                                     .attention = &attention,
                                     .attention_backward = &attention_backward,
                                     .adam = &adam,
                                     .rmsprop = &rmsprop,
                                     .adagrad = &adagrad,
                                     .lion = &lion,
                                     .conv = &conv,
                                     .conv_backward_data = &conv_backward_data,
                                     .conv_backward_weight = &conv_backward_weight,
                                     .max_pool = &max_pool,
                                     .max_pool_backward = &max_pool_backward,
                                     .max_pool_pick = &max_pool_pick,
                                     .resample = &resample};
  return table;
}

}  // namespace braid::cuda
