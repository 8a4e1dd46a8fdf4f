"""One row of the table: an op at a problem, its tensors, what PyTorch says of them, and what runs beside ours."""
import math
from dataclasses import dataclass, field
from typing import Any, Callable

import torch

DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
          "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool,
          "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2}
SIZES = {name: torch.empty(0, dtype=dtype).element_size() for name, dtype in DTYPES.items()}


def normal(shape, dtype, device):
    return torch.randn(shape, dtype=dtype, device=device)


def uniform(low, high):
    return lambda shape, dtype, device: torch.empty(shape, dtype=dtype, device=device).uniform_(low, high)


def integers(low, high):
    """From low to high, both included."""
    return lambda shape, dtype, device: torch.randint(low, high + 1, shape, dtype=dtype, device=device)


@dataclass
class Argument:
    """A tensor of the op. role: in, out or inout; make: of (shape, dtype, device), or of the tensors so far."""
    name: str
    role: str
    dtype: str
    shape: tuple
    make: Callable = normal
    of_others: bool = False

    def bytes(self):
        return math.prod(self.shape) * SIZES[self.dtype]


def given(name, dtype, shape, make=normal, of_others=False):
    return Argument(name, "in", dtype, shape, make, of_others)


def result(name, dtype, shape):
    return Argument(name, "out", dtype, shape)


@dataclass
class Step:
    """A part of a chain that is not fused: an op of its own. arguments: names of tensors of the work, or of results of
    steps before it; the last is the result."""
    chain: str  # NAME = EXPRESSION
    problem: dict
    arguments: list
    scalars: list = field(default_factory=list)

    @property
    def op(self):
        return self.chain.split(" = ")[0]


@dataclass
class Work:
    op: str
    problem: dict
    arguments: list
    function: Callable  # PyTorch's way from the inputs, in their order, to the outputs, in theirs; None: there is none
    scalars: list = field(default_factory=list)
    eager: Any = "function"  # of the tensors by name: what eager PyTorch runs; "function": `function`; None: nothing
    others: dict = field(default_factory=dict)  # name -> of the tensors by name
    compiled: bool = True
    uncaptured: tuple = ()  # those of them that read from the device, and cannot be part of a graph
    tolerance: dict = field(default_factory=dict)  # output -> relative error of its norm; None: not compared
    moved: int = 0  # bytes; 0: those of all tensors
    chain: str = ""
    steps: list = field(default_factory=list)
    check: Callable = None  # of (tensors before, outputs): instead of a comparison with `function`; says what is wrong
    slots: list = field(default_factory=list)  # all tensors of the op, in its order; empty: `arguments`
    quick: bool = False
    place: int = 0  # in the table
    in_float: bool = True  # the reference is `function` of inputs as f32

    @property
    def name(self):
        return f"{self.op} " + ",".join(f"{k}={v}" for k, v in self.problem.items())

    @property
    def problem_text(self):
        return ",".join(f"{k}={v}" for k, v in self.problem.items())

    @property
    def bytes(self):
        return self.moved or sum(a.bytes() * (2 if a.role == "inout" else 1) for a in self.arguments)

    @property
    def step_bytes(self):
        known = {a.name: a.bytes() for a in self.arguments}
        full = math.prod(self.arguments[-1].shape) * SIZES[self.arguments[-1].dtype]
        return sum(sum(known.get(name, full) for name in step.arguments) for step in self.steps)

    @property
    def small(self):
        return self.bytes < 4 << 20

    def inputs(self):
        return [a.name for a in self.arguments if a.role != "out"]

    def outputs(self):
        return [a.name for a in self.arguments if a.role != "in"]

    def tensors(self, device):
        """A set of tensors by name, of fresh data."""
        made = {}
        for a in self.arguments:
            if a.role == "out":
                made[a.name] = torch.empty(a.shape, dtype=DTYPES[a.dtype], device=device)
            else:
                value = a.make(made) if a.of_others else a.make(a.shape, DTYPES[a.dtype], device)
                made[a.name] = value.to(DTYPES[a.dtype]).contiguous()
        return made

    def call(self, tensors):
        """`function` of these, as a dict of outputs."""
        return self.named(self.function(*[tensors[name] for name in self.inputs()]))

    def named(self, results):
        if isinstance(results, dict):
            return results
        return dict(zip(self.outputs(), results if isinstance(results, (tuple, list)) else [results]))

    def reference(self, tensors):
        if not self.in_float:
            return self.call(tensors)
        wide = {k: v.float() if v.dtype in (torch.bfloat16, torch.float16) else v for k, v in tensors.items()}
        return self.call(wide)

    def contenders(self):
        """name -> of the tensors by name: all that runs beside ours, PyTorch's first."""
        runs = {}
        if self.eager == "function":
            runs["eager"] = self.call
        elif self.eager:
            runs["eager"] = self.eager
        if self.compiled and self.function:
            runs["compile"] = compiled(self)
        runs.update(self.others)
        return runs


def compiled(work):
    """torch.compile of the work's function, whose results replace what it updates, as ours do."""
    held = []

    def function(*inputs):
        before, results = dict(zip(work.inputs(), inputs)), work.named(work.function(*inputs))
        return {name: before[name].copy_(result) if name in before else result for name, result in results.items()}

    def run(tensors):
        if not held:
            held.append(torch.compile(function, dynamic=False, fullgraph=True))
        return held[0](*[tensors[name] for name in work.inputs()])

    return run


def difference(work, got, want):
    """What differs between two dicts of outputs, or ''. Compared is the norm of an output's error beside its norm."""
    for name in work.outputs():
        if name not in got or got[name] is None or name not in want:
            continue
        allowed = work.tolerance.get(name, usual_tolerance(got[name].dtype))
        if allowed is None:
            continue
        a, b = got[name], want[name]
        if a.numel() != b.numel():
            return f"{name} has {tuple(a.shape)} elements, PyTorch's {tuple(b.shape)}"
        a, b = a.reshape(-1), b.reshape(-1)
        if allowed == 0:
            if not torch.equal(a, b.to(a.dtype)):
                return f"{name} is not equal to PyTorch's"
            continue
        a, b = a.float(), b.float()
        finite = torch.isfinite(a).all().item()
        norm, size = (a - b).norm().item(), b.norm().item()
        if not finite or not norm <= allowed * max(size, 1e-30):
            return f"{name} differs from PyTorch's by {norm / max(size, 1e-30):.2g} of its norm"
    return ""


def usual_tolerance(dtype):
    if dtype == torch.float32:
        return 2e-5
    if dtype.itemsize == 2:
        return 6e-3
    return 0 if not dtype.is_floating_point else 5e-2
