"""Adds contenders to a row that may be missing or fail: torch.compile, the backends of SDPA, quack
and FlashAttention. A row goes on without one, and a line of the table says why."""

from measure import within

BACKENDS = {"flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION",
            "efficient": "EFFICIENT_ATTENTION"}


def failure(error):
    text = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    return text[:160].rstrip(": ")


def without(t, name, error):
    """Says that a contender failed. In a dry run nothing may fail."""
    if t.dry:
        raise error
    t.table.skip(name, failure(error))


def add_compiled(t, timers, function, sets, make=None):
    """Adds `compile`, the function compiled for the first set of operands, or the function that
    make(it) returns. Returns None, or the reason why it is missing."""
    if t.peer.missing or not t.peer.compiles:
        return t.peer.missing or "--no-compile"
    try:
        fast = t.peer.compiled(function, *sets[0], again=make is not None)
        run = t.turns(sets, fast) if make is None else make(fast)
        run()
    except Exception as error:  # Triton or its compiler may be missing
        if t.dry:
            raise
        return f"torch.compile: {failure(error)}"
    timers["compile"] = t.peer.events(run)
    return None


def add_package(t, name, timers, package, make, right, most):
    """Adds quack or FlashAttention, if it is installed and the function that make(package) returns
    has the right result."""
    if t.peer.missing or package.missing:
        return
    label = package.label
    try:
        run = make(package)
        got = run()
        error = t.peer.distance(got, right)
    except Exception as error:
        without(t, f"{name}.{label}", error)
        return
    if t.table.check(f"{name}.{label}", error, most):
        timers[label] = t.peer.events(run)


def add_backends(t, name, timers, make, right, most):
    """Adds the available backends of SDPA, each as `sdpa.<backend>`. make() returns a function;
    both are called while only that backend is enabled. Returns the names. `right` is what the
    function must return, or None."""
    attention, names = t.peer.torch.nn.attention, []
    for short, long in BACKENDS.items():
        backend = getattr(attention.SDPBackend, long)
        # on the CPU PyTorch has not all of them
        chosen = attention.SDPBackend.MATH if t.dry else backend

        def only(chosen=chosen):
            return attention.sdpa_kernel([chosen])

        try:
            with only():
                run = make()
                got = run()
                error = 0.0 if right is None else t.peer.distance(got, right)
        except Exception as error:  # `No available kernel`, for this GPU or these sizes
            without(t, f"{name}.sdpa.{short}", error)
            continue
        if t.table.check(f"{name}.sdpa.{short}", error, most):
            names.append(f"sdpa.{short}")
            timers[names[-1]] = within(only, t.peer.events(run))
    return names
