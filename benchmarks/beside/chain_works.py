"""The works of chains: each fused, beside the same in PyTorch, and beside its steps one by one with our own kernels."""
import torch
import torch.nn.functional as F

from .work import Step, Work, given, result

# NAME = EXPRESSION of each step; one database holds a name once.
STEPS = {"add_row": "add_row = x + bias", "add_two": "add_two = a + b", "times": "times = a * b", "only_relu": "only_relu = relu(x)",
         "only_gelu": "only_gelu = gelu(x)", "only_silu": "only_silu = silu(x)", "only_dropout": "only_dropout = dropout(x, p)"}
P = 0.25


def chains(kernels, liger):
    size = (16384, 4096)
    made = []

    def add(name, expression, names, function, kind, steps=(), dtype="bf16", size=size, dropped="", scalars=(), quick=False):
        """names: the inputs; bias is one row. steps: (step, arguments) each."""
        rows, cols = size
        tensors = [given(n, dtype, (1, 1 if n == "bias" else rows, cols)) for n in names] + [result("y", dtype, (1, rows, cols))]
        problem = {"rows": rows, "cols": cols, "dtype": dtype} | ({"bias_rows": 1} if "bias" in names else {})

        def step(which, arguments):
            values = {"rows": rows, "cols": cols, "dtype": dtype} | ({"bias_rows": 1} if "bias" in arguments else {})
            return Step(STEPS[which], values, list(arguments), list(scalars) if which == "only_dropout" else [])

        others = {}
        if kernels:
            def triton(t):
                rest = [t[n] for n in names[1:]] + [None, None]
                return kernels.chain(kind, t[names[0]], t["y"], rest[0], rest[1], p=P)
            others["triton"] = triton
        if liger and kind == "silu_mul":
            others["liger"] = lambda t: liger.swiglu.swiglu_forward(t[names[0]], t[names[1]])[2]
        made.append(Work(name, problem, tensors, function, scalars=list(scalars), others=others, chain=f"{name} = {expression}",
                         steps=[step(*s) for s in steps], check=dropped_check(function, dropped) if dropped else None, quick=quick))

    add("relu_bias", "relu(x + bias)", ["x", "bias"], lambda x, b: F.relu(x + b), "relu_bias",
        [("add_row", ("x", "bias", "s1")), ("only_relu", ("s1", "y"))], quick=True)
    add("gelu_bias", "gelu(x + bias)", ["x", "bias"], lambda x, b: F.gelu(x + b), "gelu_bias",
        [("add_row", ("x", "bias", "s1")), ("only_gelu", ("s1", "y"))])
    add("silu_mul", "silu(a) * b", ["a", "b"], lambda a, b: F.silu(a) * b, "silu_mul",
        [("only_silu", ("a", "s1")), ("times", ("s1", "b", "y"))])
    add("relu_add_mul", "relu(a + b) * c", ["a", "b", "c"], lambda a, b, c: F.relu(a + b) * c, "relu_add_mul",
        [("add_two", ("a", "b", "s1")), ("only_relu", ("s1", "s2")), ("times", ("s2", "c", "y"))])
    add("drop_relu_bias", "dropout(relu(x + bias), p)", ["x", "bias"], lambda x, b: F.dropout(F.relu(x + b), P), "drop_relu_bias",
        [("add_row", ("x", "bias", "s1")), ("only_relu", ("s1", "s2")), ("only_dropout", ("s2", "y"))], dropped="relu", scalars=(P, 1, 0))
    add("drop_gelu_add", "dropout(gelu(x + bias), p) + other", ["x", "bias", "other"],
        lambda x, b, o: F.dropout(F.gelu(x + b), P) + o, "drop_gelu_bias_add",
        [("add_row", ("x", "bias", "s1")), ("only_gelu", ("s1", "s2")), ("only_dropout", ("s2", "s3")), ("add_two", ("s3", "other", "y"))],
        dropped="gelu", scalars=(P, 1, 0), quick=True)
    add("add_f32", "a + b", ["a", "b"], lambda a, b: a + b, "add", dtype="f32", size=(16384, 4096))
    add("gelu_tanh_x", "gelu_tanh(x)", ["x"], lambda x: F.gelu(x, approximate="tanh"), "gelu_tanh")
    add("relu_bias_small", "relu(x + bias)", ["x", "bias"], lambda x, b: F.relu(x + b), "relu_bias", size=(128, 4096))
    return made


def dropped_check(function, kind):
    """Each element is one of two, the share of those that are dropped is p within five sigmas."""
    def check(before, got):
        act = F.relu if kind == "relu" else F.gelu
        inner = act(before["x"].float() + before["bias"].float())
        other = before["other"].float() if "other" in before else torch.zeros((), device=inner.device)
        y = got["y"].float()
        kept, gone = inner / (1 - P) + other, other + torch.zeros_like(inner)
        bound = 1e-2 * (inner.abs() / (1 - P) + other.abs()) + 1e-2
        near = lambda want: (y - want).abs() <= bound
        telling = (kept - gone).abs() > 4 * bound
        if not (near(kept) | near(gone)).all():
            return "y holds what is neither kept nor dropped"
        n = telling.sum().item()
        share = (near(gone) & ~near(kept) & telling).sum().item() / n
        if abs(share - P) > 5 * (P * (1 - P) / n) ** 0.5 + 1e-3:
            return f"a share of {share:.4f} is dropped, not {P}"
        return ""
    return check
