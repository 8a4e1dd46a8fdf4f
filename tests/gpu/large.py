#!/usr/bin/env python3
"""Goal: ops are right beyond 2^31 elements where `autotune check` cannot say so: adam, which needs more memory with its
reference, and extents of 2^31 rows; scans and unique beside it. Method: the default config is launched through
libautotune.so on PyTorch's tensors, and all of the result is compared with PyTorch's, a part at a time.

    large.py --library build/release/lib/libautotune.so.1

A line each; 1 where one is wrong, 77 without PyTorch or a GPU. What does not fit the GPU's memory is skipped by name.
"""
import argparse
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "benchmarks"))

PART = 1 << 26  # elements


class Wrong(Exception):
    pass


def parts(size, most=PART):
    for first in range(0, size, most):
        yield first, min(size, first + most)


def filled(torch, size, dtype, make):
    """make(first, last) of each part."""
    x = torch.empty(size, dtype=dtype, device="cuda")
    for first, last in parts(size):
        x[first:last] = make(first, last)
    return x


def expect_equal(torch, name, got, want, first):
    if not torch.equal(got, want):
        bad = (got != want).nonzero()[0].item()
        raise Wrong(f"{name}[{first + bad}] is {got[bad].item()}, not {want[bad].item()}")


def scan(torch, launch, rows, n):
    x = filled(torch, rows * n, torch.int32, lambda a, b: torch.randint(-9, 10, (b - a,), dtype=torch.int32, device="cuda"))
    y = torch.empty_like(x)
    launch("scan", f"rows={rows},n={n},dtype=i32", [(x.view(rows, n), "i32"), (y.view(rows, n), "i32")])
    for row in range(rows):
        before = 0
        for first, last in parts(n):
            at = row * n + first
            sums = x[at:at + last - first].cumsum(0, dtype=torch.int64) + before
            expect_equal(torch, "y", y[at:at + last - first], sums.to(torch.int32), at)
            before = sums[-1].item()


def many_scans(torch, launch, rows, n):
    x = filled(torch, rows * n, torch.int32, lambda a, b: torch.randint(-9, 10, (b - a,), dtype=torch.int32, device="cuda")).view(rows, n)
    y = torch.empty_like(x)
    launch("scan", f"rows={rows},n={n},dtype=i32", [(x, "i32"), (y, "i32")])
    for first, last in parts(rows, max(1, PART // n)):
        expect_equal(torch, "y", y[first:last].flatten(), x[first:last].cumsum(1, dtype=torch.int32).flatten(), first * n)


def unique(torch, launch, n, run):
    x = filled(torch, n, torch.int32, lambda a, b: (torch.arange(a, b, device="cuda") // run).to(torch.int32))
    y = torch.full((n,), -1, dtype=torch.int32, device="cuda")
    counts = torch.zeros(1, dtype=torch.int64, device="cuda")
    launch("unique", f"n={n},dtype=i32", [(x, "i32"), (y, "i32"), (counts, "i64")])
    count = (n + run - 1) // run
    if counts.item() != count:
        raise Wrong(f"counts is {counts.item()}, not {count}")
    for first, last in parts(n):
        at = torch.arange(first, last, device="cuda")
        expect_equal(torch, "y", y[first:last], torch.where(at < count, at, -1).to(torch.int32), first)


def adam(torch, launch, count):
    tensors = 64
    random = lambda a, b: torch.randn(b - a, device="cuda")
    p, g = filled(torch, count, torch.bfloat16, random), filled(torch, count, torch.bfloat16, random)
    m = filled(torch, count, torch.float32, random)
    v = filled(torch, count, torch.float32, lambda a, b: torch.rand(b - a, device="cuda"))
    ends = (torch.arange(1, tensors + 1, device="cuda") * count) // tensors
    rate = torch.rand(tensors, device="cuda") * 0.01
    decay = torch.rand(tensors, device="cuda") * 0.1
    old = [t.clone() for t in (p, m, v)]
    launch("adam", f"count={count},tensors={tensors},dtype=bf16,grad=bf16",
           [(p, "bf16"), (g, "bf16"), (m, "f32"), (v, "f32"), (ends, "i64"), (rate, "f32"), (decay, "f32")])
    for first, last in parts(count):
        of = torch.searchsorted(ends, torch.arange(first, last, device="cuda"), right=True)
        before, grad = old[0][first:last].double(), g[first:last].double()
        mean = 0.9 * old[1][first:last].double() + 0.1 * grad
        square = 0.999 * old[2][first:last].double() + 0.001 * grad * grad
        step = (mean / 0.1) / ((square / 0.001).sqrt() + 1e-8) + decay[of].double() * before
        for name, got, want, unit in (("p", p, before - rate[of].double() * step, 2.0 ** -8), ("m", m, mean, 1e-5), ("v", v, square, 1e-5)):
            apart = (got[first:last].double() - want).abs()
            bad = apart > unit * want.abs() + 1e-4 * unit + (1e-6 if name != "p" else 1e-5)
            if bad.any():
                at = bad.nonzero()[0].item()
                raise Wrong(f"{name}[{first + at}] is {got[first + at].item()}, not {want[at].item()}")


def softmax_rows(torch, launch, rows, cols):
    x = filled(torch, rows * cols, torch.bfloat16, lambda a, b: torch.randn(b - a, device="cuda")).view(rows, cols)
    y = torch.empty_like(x)
    launch("softmax", f"rows={rows},cols={cols},dtype=bf16", [(x, "bf16"), (y, "bf16")])
    for first, last in parts(rows, PART // cols):
        apart = (y[first:last].float() - torch.softmax(x[first:last].float(), -1)).abs().max().item()
        if not apart < 5e-3:
            raise Wrong(f"rows from {first} on are wrong by up to {apart}")


def reduce_rows(torch, launch, outer, n):
    x = filled(torch, outer * n, torch.bfloat16, lambda a, b: torch.randn(b - a, device="cuda")).view(outer, n)
    y = torch.empty(outer, dtype=torch.bfloat16, device="cuda")
    launch("reduce", f"outer={outer},n={n},inner=1,dtype=bf16,out=bf16,kind=max", [(x.view(outer, n, 1), "bf16"), (y.view(outer, 1), "bf16")])
    for first, last in parts(outer, PART // n):
        expect_equal(torch, "y", y[first:last], x[first:last].amax(1), first)


def reduce_columns(torch, launch, n, inner):
    x = filled(torch, n * inner, torch.bfloat16, lambda a, b: torch.randn(b - a, device="cuda")).view(n, inner)
    y = torch.empty(inner, dtype=torch.bfloat16, device="cuda")
    launch("reduce", f"outer=1,n={n},inner={inner},dtype=bf16,out=bf16,kind=max", [(x.view(1, n, inner), "bf16"), (y.view(1, inner), "bf16")])
    for first, last in parts(inner):
        expect_equal(torch, "y", y[first:last], x[:, first:last].amax(0), first)


def transpose(torch, launch, rows, cols):
    x = filled(torch, rows * cols, torch.bfloat16, lambda a, b: torch.randn(b - a, device="cuda")).view(rows, cols)
    y = torch.empty(cols, rows, dtype=torch.bfloat16, device="cuda")
    launch("transpose", f"batch=1,rows={rows},cols={cols},dtype=bf16", [(x.view(1, rows, cols), "bf16"), (y.view(1, cols, rows), "bf16")])
    for first, last in parts(rows, PART // cols):
        for c in range(cols):
            expect_equal(torch, f"y[{c}]", y[c, first:last], x[first:last, c].contiguous(), first)


CASES = [  # what, GB that it needs, function, extents
    ("scan", 19, scan, (1, 2_200_000_000)), ("scan", 19, scan, (3, 733_000_001)), ("scan", 19, many_scans, (1_100_000, 2000)),
    ("unique", 20, unique, (2_200_000_000, 3)), ("unique", 20, unique, (2_147_483_700, 1)), ("adam", 56, adam, (2_200_000_000,)),
    ("softmax", 12, softmax_rows, (2_147_483_700, 1)), ("softmax", 12, softmax_rows, (1_100_000_000, 2)),
    ("reduce", 12, reduce_rows, (2_147_483_700, 1)), ("reduce", 12, reduce_columns, (2, 1_100_000_000)),
    ("transpose", 12, transpose, (1_100_000_000, 2)),
]


def main():
    parser = argparse.ArgumentParser(description="ops beyond 2^31 elements, compared with PyTorch")
    parser.add_argument("--library", required=True)
    asked = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("large.py skipped: there is no PyTorch here")
        return 77
    if not torch.cuda.is_available():
        print("large.py skipped: PyTorch sees no GPU here")
        return 77
    from beside.launch import Call, Dispatcher, Library
    torch.set_grad_enabled(False)
    torch.manual_seed(1)
    torch.zeros(1, device="cuda")
    library = Library(asked.library)
    dispatcher = Dispatcher(library, None, [])
    configs = []

    def launch(op, problem, tensors):
        call = Call(library, dispatcher.prepare(op, problem), tensors, [])
        stream = torch.cuda.current_stream().cuda_stream
        configs.append(call.ready(stream)[1])
        call(stream)
        torch.cuda.synchronize()

    failed = False
    for what, gigabytes, run, extents in CASES:
        began, name = time.time(), f"{what} {'x'.join(map(str, extents))}"
        configs.clear()
        if torch.cuda.mem_get_info()[0] < gigabytes * 1e9:
            said = f"skipped: needs {gigabytes} GB on the GPU, which has {torch.cuda.mem_get_info()[0] / 1e9:.1f} GB free"
        else:
            try:
                run(torch, launch, *extents)
                said = f"right: {configs[0]}"
            except Exception as error:
                failed = True
                said = f"WRONG: {error}" if isinstance(error, Wrong) else f"{type(error).__name__}: {error}".splitlines()[0]
        torch.cuda.empty_cache()
        print(f"{name:<90} {time.time() - began:4.0f} s  {said}", flush=True)
    dispatcher.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
