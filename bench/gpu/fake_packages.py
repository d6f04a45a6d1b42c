"""Fakes of quack and FlashAttention in dry runs. They have the names and signatures of the
real packages, and compute the same with PyTorch, so that a wrong layout gives a wrong result."""

import types


def fake_packages(torch):
    """Returns a function that imports the fakes, in place of importlib.import_module."""
    F = torch.nn.functional

    def cross_entropy(x, target, lse_partial=None, weight=None, ignore_index=-100,
                      reduction="mean", inplace_backward=False):
        return F.cross_entropy(x, target, reduction=reduction)

    def rmsnorm(x, weight=None, bias=None, residual=None, out_dtype=None, residual_dtype=None,
                eps=1e-6, prenorm=False, weight_offset=0.0):
        return F.rms_norm(x.float(), weight.shape, weight, eps).to(x.dtype)

    def statistics(x, eps):
        x = x.float()
        return torch.rsqrt(x.var(-1, correction=0) + eps), x.mean(-1)

    def layernorm_fwd(x, weight, bias=None, eps=1e-6, return_rstd=False, return_mean=False):
        y = F.layer_norm(x.float(), weight.shape, weight, bias, eps).to(x.dtype)
        rstd, mean = statistics(x, eps)
        chosen = [y] + [rstd] * return_rstd + [mean] * return_mean
        return tuple(chosen) if len(chosen) > 1 else y

    def layernorm_bwd(x, weight, dout, rstd, mean, has_bias=True):
        z = (x.float() - mean.unsqueeze(-1)) * rstd.unsqueeze(-1)
        dout = dout.float()
        g = dout * weight
        dx = (g - g.mean(-1, keepdim=True) - z * (g * z).mean(-1, keepdim=True))
        dx = dx * rstd.unsqueeze(-1)
        return dx.to(x.dtype), (dout * z).sum(0), dout.sum(0) if has_bias else None

    def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False,
                        window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
                        deterministic=False, return_attn_probs=False):
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2)

    modules = {
        "quack": {},
        "quack.softmax": {"softmax": lambda x: torch.softmax(x, -1)},
        "quack.cross_entropy": {"cross_entropy": cross_entropy},
        "quack.rmsnorm": {"rmsnorm": rmsnorm, "layernorm_fwd": layernorm_fwd,
                          "layernorm_bwd": layernorm_bwd},
        "flash_attn": {"flash_attn_func": flash_attn_func},
    }
    # like a real module, it has no other names
    return lambda name: types.SimpleNamespace(__version__="fake", **modules[name])
