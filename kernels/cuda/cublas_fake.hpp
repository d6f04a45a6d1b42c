#pragma once

namespace braid::cuda::cublas {

/// Whether GemmEngine::automatic finds the fake cuBLAS. It does not unless a test says so.
void set_fake_installed(bool value) noexcept;

}  // namespace braid::cuda::cublas
