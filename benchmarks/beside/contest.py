"""Ours and what runs beside it at one problem: compared with PyTorch, then timed in interleaved rounds."""
import contextlib
import math
import random
import statistics
import time

import torch

from .launch import Call
from .work import DTYPES, difference

SAMPLE_US = 3000  # at least that long is a sample
AHEAD_CYCLES = 600_000  # the GPU spins while a sample is put in its queue: else the host's time for that is measured, too
MOST_LAUNCHES = 500


class Ours:
    """A work's calls through a dispatcher, one for each set of tensors."""

    def __init__(self, dispatcher, work, sets):
        handle = dispatcher.prepare(work.op, work.problem_text)
        dtypes = {a.name: a.dtype for a in work.arguments}
        names = work.slots or list(dtypes)
        self.work, self.sets = work, sets
        self.calls = [Call(dispatcher.library, handle, [(t.get(n), dtypes.get(n, "f32")) for n in names], work.scalars) for t in sets]

    def ready(self):
        return self.calls[0].ready(stream())

    def __call__(self, index):
        self.calls[index](stream())

    def outputs(self, index):
        return {name: self.sets[index][name] for name in self.work.outputs()}


class Steps:
    """The same without fusion: a call of each step's op, with memory of its own for what lies between."""

    def __init__(self, dispatcher, work, sets):
        self.calls = []
        last = work.arguments[-1]
        for tensors in sets:
            there, calls = dict(tensors), []
            for step in work.steps:
                for name in step.arguments:
                    if name not in there:
                        there[name] = torch.empty(last.shape, dtype=DTYPES[last.dtype], device="cuda")
                problem = ",".join(f"{k}={v}" for k, v in step.problem.items())
                handle = dispatcher.prepare(step.op, problem)
                calls.append(Call(dispatcher.library, handle, [(there[name], last.dtype) for name in step.arguments], step.scalars))
            self.calls.append(calls)

    def ready(self):
        return [call.ready(stream())[0] for call in self.calls[0]]

    def __call__(self, index):
        for call in self.calls[index]:
            call(stream())


class Theirs:
    """A contender: a function of the tensors by name. What it returns stays until its set comes again."""

    def __init__(self, run, sets):
        self.run, self.sets, self.kept = run, sets, [None] * len(sets)

    def __call__(self, index):
        self.kept[index] = self.run(self.sets[index])


def stream():
    return torch._C._cuda_getCurrentRawStream(0)  # the current stream as an address; as Triton asks for it


def sets_of(work, most=256, apart=False):
    """As many sets of tensors as outgrow three second-level caches, two at least; one where memory allows no more. apart:
    no two tensors lie a power of two from each other, as PyTorch's large ones of such sizes do."""
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    footprint = sum(a.bytes() for a in work.arguments)
    count = max(2, min(most, math.ceil(3 * l2 / footprint)))
    if 4 * count * footprint > torch.cuda.mem_get_info()[0]:
        count = 1
    sets = [work.tensors("cuda") for _ in range(count)]
    return [moved_apart(tensors) for tensors in sets] if apart else sets


def moved_apart(tensors):
    moved = {}
    for i, (name, x) in enumerate(tensors.items()):
        nbytes = x.numel() * x.element_size()
        memory = torch.empty(nbytes + ((i + 1) << 21), dtype=torch.uint8, device="cuda")
        moved[name] = memory[:nbytes].view(x.dtype).view(x.shape)
        moved[name].copy_(x)
    return moved


class Sampler:
    """Launches of one contender over its sets in turn: a graph, or calls one by one where that cannot be captured."""

    def __init__(self, run, sets, launches, side, captured=True):
        self.run, self.sets, self.launches, self.graph = run, sets, launches, None
        self.events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        if not captured:
            return
        with torch.cuda.stream(side):
            for index in range(min(2, sets)):
                run(index)
        torch.cuda.synchronize()
        # By hand: `torch.cuda.graph` collects garbage and empties the allocator's cache each time.
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(side):
            self.graph.capture_begin()
            try:
                self.launch_all()
            finally:
                self.graph.capture_end()

    def launch_all(self):
        for i in range(self.launches):
            self.run(i % self.sets)

    def sample(self):
        begin, end = self.events
        if self.graph:
            torch.cuda._sleep(AHEAD_CYCLES)
        begin.record()
        self.graph.replay() if self.graph else self.launch_all()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3 / self.launches


def first_time(run, sets):
    """About how long a launch takes, us."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    run(0)
    events[0].record()
    for i in range(4):
        run(i % sets)
    events[1].record()
    events[1].synchronize()
    return max(1.0, events[0].elapsed_time(events[1]) * 1e3 / 4)


def copies(nbytes, sets, kernels):
    """name -> run: copies that move as many bytes as the work."""
    size = max(4096, nbytes // 2 // 16 * 16)
    pairs = [(torch.empty(size // 4, device="cuda").normal_(), torch.empty(size // 4, device="cuda")) for _ in range(sets)]
    runs = {"copy": lambda i: pairs[i][1].copy_(pairs[i][0])}
    if kernels:
        runs["copy_kernel"] = lambda i: kernels.copy(*pairs[i])
    return runs


def interval(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 20], ordered[-1 - len(ordered) // 20]


def call_us(run, sets, calls=200):
    """Time of one call from the host, back to back."""
    for i in range(20):
        run(i % sets)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for i in range(calls):
        run(i % sets)
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e6 / calls


def hold(work, ours, default, sets, kernels, steps=None, apart=None, rounds=9):
    """Compares, then times. Returns a row for the table: a dict."""
    row = {"op": work.op, "problem": work.problem_text, "bytes": work.bytes, "small": work.small, "beside": {}, "notes": {}}
    if work.chain:
        row["chain"] = work.chain
    rung, config, why = ours.ready()
    row |= {"rung": rung, "config": config}
    if rung != "exact":
        row["notes"]["ours"] = why
    inout = [a.name for a in work.arguments if a.role == "inout"]
    before = {name: value.clone() if name in inout else value for name, value in sets[0].items()}

    def restore():
        for name in inout:
            sets[0][name].copy_(before[name])

    want = None if work.check else work.reference(before)

    def wrong(got):
        return work.check(before, got) if work.check else difference(work, got, want)

    ours(0)
    torch.cuda.synchronize()
    row["wrong"] = wrong({name: value.clone() for name, value in ours.outputs(0).items()})
    if row["wrong"]:
        return row
    contenders = {"ours": ours, "default": default}
    default.ready()
    for name, run in work.contenders().items():
        restore()
        theirs = Theirs(run, sets)
        try:
            got = work.named(run(sets[0]))
            torch.cuda.synchronize()
            said = wrong(got)
            if said:
                row["notes"][name] = said
                continue
        except Exception as error:  # what cannot run here is said, and the others are timed
            row["notes"][name] = one_line(error)
            torch.cuda.synchronize()
            continue
        contenders[name] = theirs
    restore()
    del want
    if steps:
        row["step_rungs"] = steps.ready()
        contenders["steps"] = steps
    if apart:
        apart.ready()
        contenders["apart"] = apart
    contenders |= copies(work.bytes, len(sets), kernels)
    time_all(work, contenders, len(sets), rounds, row)
    return row


def time_all(work, contenders, sets, rounds, row):
    side = torch.cuda.Stream()
    samplers = {}
    # As many launches for all that last about as long: of the slower ones fewer make a sample.
    for name, run in contenders.items():
        try:
            with torch.cuda.stream(side):
                if isinstance(run, (Ours, Steps)):
                    run.ready()
                for index in range(sets):
                    run(index)
                about = first_time(run, sets)
            torch.cuda.synchronize()
            launches = max(sets, min(MOST_LAUNCHES, math.ceil(SAMPLE_US / about)))
            samplers[name] = Sampler(run, sets, launches, side, name not in work.uncaptured)
            samplers[name].sample()
        except Exception as error:
            row["notes"][name] = one_line(error)
            samplers.pop(name, None)
            with contextlib.suppress(Exception):
                torch.cuda.synchronize()
    if "ours" not in samplers:
        raise RuntimeError(row["notes"].get("ours", "ours was not timed"))
    samples = {name: [] for name in samplers}
    order, dice = list(samplers), random.Random(1)
    for _ in range(rounds):
        dice.shuffle(order)
        for name in order:
            samples[name].append(samplers[name].sample())
    row["us"] = statistics.median(samples["ours"])
    row["us_interval"] = interval(samples["ours"])
    copy = min((statistics.median(samples[name]) for name in ("copy", "copy_kernel") if name in samples), default=0)
    row["copy_us"] = copy
    for name in samples:
        if name == "ours" or name.startswith("copy"):
            continue
        ratios = [t / o for t, o in zip(samples[name], samples["ours"])]
        row["beside"][name] = {"us": statistics.median(samples[name]), "ratio": statistics.median(ratios), "interval": interval(ratios),
                               "captured": samplers[name].graph is not None}
    if work.small:
        row["call_us"] = {name: min(call_us(contenders[name], sets) for _ in range(3)) for name in samples if not name.startswith("copy")}


def one_line(error):
    return f"{type(error).__name__}: {str(error).strip()}".splitlines()[0][:300]
