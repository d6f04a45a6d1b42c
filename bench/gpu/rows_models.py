"""The row of a whole model: the training step of GPT-2 (G10 of the table of goals)."""

# layers, width, heads, tokens, positions, and the batch
GPT2 = (12, 768, 12, 50257, 1024, (4, 1024))
TINY = (2, 32, 2, 257, 64, (2, 8))
LR, DECAY = 6e-4, 0.1


def shapes(layers, width, heads, tokens, positions, batch):
    """The shapes of the parameters, in the order in which Braid's model lists them."""
    block = [(width,), (width,), (3 * width, width), (3 * width,), (width, width), (width,),
             (width,), (width,), (4 * width, width), (4 * width,), (width, 4 * width), (width,)]
    return [(tokens, width), (positions, width), *block * layers, (width,), (width,)]


def numel(shape):
    return shape[0] * shape[1] if len(shape) == 2 else shape[0]


def parameters_of(t, sizes, flat):
    """Returns PyTorch's parameters: matrices from `flat`, weights of norms 1 and biases 0."""
    torch, made, at = t.peer.torch, [], 0
    matrices = t.peer.view(flat)
    for i, shape in enumerate(shapes(*sizes)):
        if len(shape) == 2:
            p = matrices[at:at + numel(shape)].reshape(shape).clone()
            at += numel(shape)
        else:
            is_norm = i >= 2 and (i == len(shapes(*sizes)) - 2 or (i - 2) % 12 in (0, 6))
            p = (torch.ones if is_norm else torch.zeros)(shape, device=t.peer.device)
        made.append(p.requires_grad_())
    return made


def loss_function(t, sizes):
    """Returns GPT-2's loss as a function of parameters, tokens and the tokens after them."""
    F, (layers, width, heads, _, _, _) = t.peer.torch.nn.functional, sizes

    def norm(x, weight, bias):
        return F.layer_norm(x, (width,), weight, bias)

    def loss(p, tokens, target):
        x = F.embedding(tokens, p[0]) + p[1][:tokens.shape[1]]
        for i in range(layers):
            (norm1, shift1, qkv, qkv_bias, projection, projection_bias,
             norm2, shift2, up, up_bias, down, down_bias) = p[2 + 12 * i:14 + 12 * i]
            parts = F.linear(norm(x, norm1, shift1), qkv, qkv_bias).unflatten(2, (3, heads, -1))
            q, k, v = (parts[:, :, j].transpose(1, 2) for j in range(3))
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + F.linear(seen.transpose(1, 2).flatten(2), projection, projection_bias)
            h = F.gelu(F.linear(norm(x, norm2, shift2), up, up_bias), approximate="tanh")
            x = x + F.linear(h, down, down_bias)
        logits = F.linear(norm(x, p[-2], p[-1]), p[0])
        return F.cross_entropy(logits.flatten(0, 1), target.flatten())

    return loss


def step_of(t, loss, parameters, tokens, target):
    """Returns a training step of PyTorch with its autocast and its fused AdamW."""
    torch = t.peer.torch
    groups = [{"params": [p for p in parameters if p.dim() >= 2], "weight_decay": DECAY},
              {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=(0.9, 0.95), fused=True)

    def step():
        with torch.autocast(t.peer.device, dtype=torch.bfloat16):
            value = loss(parameters, tokens, target)
        value.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return value.detach()

    return step


def memory(t, ours, theirs):
    """Compares the most memory that tensors had in a step, with those that stay between steps:
    weights and the state of the optimizer. Memory that an allocator keeps is not counted."""
    theirs = max(theirs, 1)  # a fake PyTorch has none
    text = f"{ours / theirs:.3f} of PyTorch's: {ours / 1e9:.2f} of {theirs / 1e9:.2f} GB"
    t.table.at_most("gpt2.memory", ours / theirs, 0.9, text, ours=ours, theirs=theirs)


def gpt2(t):
    """A step of GPT-2 124M on 4 x 1024 tokens: products in bfloat16, float32 weights, clipped
    gradients, AdamW. The losses of three steps are compared before anything is timed."""
    sizes = TINY if t.dry else GPT2
    rows, context = sizes[-1]
    count = sum(numel(shape) for shape in shapes(*sizes) if len(shape) == 2)
    operands = [t.library.normal(count, scale=0.02), t.library.labels(rows * context, sizes[3]),
                t.library.labels(rows * context, sizes[3])]
    before = t.library.memory()
    # the engine that a user gets; other rows choose one
    work = t.library.work("gpt2_tiny_step" if t.dry else "gpt2_step", operands)
    work = t.engine("automatic", work)
    timers = {"braid": work.wall}
    if not t.peer.missing:
        tokens, target = (t.peer.view(x).reshape(rows, context).clone() for x in operands[1:])
        eager = loss_function(t, sizes)
        before_theirs = t.peer.memory()
        step = step_of(t, eager, parameters_of(t, sizes, operands[0]), tokens, target)
        ours = [work.result().item() for _ in range(3)]
        theirs = [step().item() for _ in range(3)]
        apart = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
        if not t.table.check("gpt2.losses", apart, 2e-3):
            return
        memory(t, t.library.peak(work.result) - before, t.peer.peak(step) - before_theirs)
        timers["eager"] = t.peer.wall(step)
        if t.peer.compiles:
            parameters = parameters_of(t, sizes, operands[0])
            with t.peer.torch.autocast(t.peer.device, dtype=t.peer.torch.bfloat16):
                fast = t.peer.compiled(eager, parameters, tokens, target, mode="default")
            timers["compile"] = t.peer.wall(step_of(t, fast, parameters, tokens, target))
    else:
        t.table.skip("gpt2.memory", t.peer.missing, "<= 0.9")
    series = t.clock.interleave(timers)
    rate = f"  {rows * context / series['braid'].time() * 1e6:.0f} tokens/s"
    t.table.ratio("gpt2.step", series, "braid", ("eager",), 0.7, t.peer.missing, rate)
    t.table.ratio("gpt2.compiled", series, "braid", ("compile",), 0.5,
                  t.peer.missing or "--no-compile")
