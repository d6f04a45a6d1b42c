"""quack and FlashAttention, which are contenders beside PyTorch where they are installed. They run
on PyTorch's tensors."""

import importlib


class Package:
    """A Python package that may be absent. `missing` is the reason why it cannot be used, `name`
    its name and version, `label` what rows call it."""

    def __init__(self, name, importing=importlib.import_module):
        self.importing, self.missing, self.name, self.label = importing, None, name, name
        try:
            module = importing(name)
        except ModuleNotFoundError as error:
            # one that lacks a package itself is installed, and that has to be known
            self.missing = "absent" if error.name == name else f"{name} lacks {error.name}"
        except Exception as error:  # a package for another GPU or PyTorch may fail in any way
            self.missing = f"{name}: {type(error).__name__}: {str(error)[:120]}"
        else:
            self.name = f"{name} {getattr(module, '__version__', '')}".strip()

    def module(self, name):
        """Returns a module of the package. `quack.rmsnorm` is also a function, which hides the
        module of that name from an attribute of the package."""
        return self.importing(name)

    def said(self):
        """Returns what the first line of a table says about it."""
        return self.name if self.missing is None else f"{self.name}: {self.missing}"


class Quack(Package):
    """The calls of quack-kernels 0.2 to 0.6. The functions take rows of the last dim. A norm's
    weight and bias are float32, whatever x is."""

    def __init__(self, importing=importlib.import_module):
        super().__init__("quack", importing)

    def softmax(self, x):
        function = self.module("quack.softmax").softmax
        return lambda: function(x)

    def cross_entropy(self, x, target):
        function = self.module("quack.cross_entropy").cross_entropy
        return lambda: function(x, target, reduction="mean")

    def rms_norm(self, x, weight, eps):
        function = self.module("quack.rmsnorm").rmsnorm
        return lambda: function(x, weight, eps=eps)

    def layer_norm(self, x, weight, bias, eps):
        function = self.module("quack.rmsnorm").layernorm_fwd
        return lambda: function(x, weight, bias, eps=eps)

    def layer_norm_backward(self, x, weight, bias, dy, eps):
        """Returns a function that returns dx, and computes the other gradients too."""
        module = self.module("quack.rmsnorm")
        backward = module.layernorm_bwd  # 0.6.5 has it, 0.6.0 does not
        _, rstd, mean = module.layernorm_fwd(x, weight, bias, eps=eps, return_rstd=True,
                                             return_mean=True)
        return lambda: backward(x, weight, dy, rstd, mean, has_bias=True)[0]


class FlashAttention(Package):
    """FlashAttention 2. Its tensors are [batch, positions, heads, width]."""

    def __init__(self, importing=importlib.import_module):
        super().__init__("flash_attn", importing)

    def causal(self, q, k, v):
        """Returns the function for [batch, heads, positions, width], whose result has its layout.
        The operands are arranged before."""
        attend = self.module("flash_attn").flash_attn_func
        q, k, v = (x.transpose(1, 2).contiguous() for x in (q, k, v))
        return lambda: attend(q, k, v, causal=True).transpose(1, 2)

    def causal_gradients(self, q, k, v, dy, torch):
        """Returns a function that returns dq, in the layout of q, and computes dk and dv too."""
        attend = self.module("flash_attn").flash_attn_func
        q, k, v = (x.detach().transpose(1, 2).contiguous().requires_grad_() for x in (q, k, v))
        dy, y = dy.transpose(1, 2).contiguous(), attend(q, k, v, causal=True)

        def gradients():
            return torch.autograd.grad(y, (q, k, v), dy, retain_graph=True)[0].transpose(1, 2)

        return gradients
