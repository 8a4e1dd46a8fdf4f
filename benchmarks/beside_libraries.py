#!/usr/bin/env python3
"""Stored winners beside the libraries that people would use instead, in one process on one card.

  beside_libraries.py --autotune build/release/bin/autotune [--budget 20s] [--db FILE] [--only gemm]

Tunes each problem (what the database holds already is not searched again), loads the winner's cubin into this process,
and times it and the library in interleaved rounds over the same rotated buffers of fresh random data. Each sample is the
replay of a CUDA graph of about 4 ms after 120 ms of idleness: L2 is cold, and the clock is at its limit for both sides.
A ratio is the median over rounds of theirs / ours, with its extremes over the middle 90 %. Needs PyTorch with CUDA.
"""
import argparse
import ctypes
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.nn.functional as F

CUDA = ctypes.CDLL("libcuda.so.1")
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64, "i32": torch.int32}
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


def check(status, what):
    if status:
        raise RuntimeError(f"{what} failed with CUresult {status}")


class Kernel:
    """The winner of one problem: its cubin, loaded here, and its launches with every number filled in."""

    def __init__(self, record, cubin):
        self.record = record
        self.module = ctypes.c_void_p()
        check(CUDA.cuModuleLoadData(ctypes.byref(self.module), cubin), "cuModuleLoadData")
        self.launches = []
        for launch in record["launches"]:
            if launch["cluster"] != [1, 1, 1] or launch["cooperative"]:
                raise RuntimeError("cluster and cooperative launches are not served here")
            function = ctypes.c_void_p()
            check(CUDA.cuModuleGetFunction(ctypes.byref(function), self.module, launch["entry"].encode()), "cuModuleGetFunction")
            if launch["shared_bytes"] > 48 * 1024:
                check(CUDA.cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED, launch["shared_bytes"]), "cuFuncSetAttribute")
            self.launches.append((function, launch))
        self.scratch = {s["name"]: torch.empty(max(1, s["bytes"]), dtype=torch.uint8, device="cuda") for s in record["scratch"]}
        self.zeroed = [self.scratch[s["name"]] for s in record["scratch"] if s["zeroed"]]

    def __call__(self, tensors):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        for scratch in self.zeroed:
            scratch.zero_()
        for function, launch in self.launches:
            values = []
            for argument in launch["arguments"]:
                if "buffer" in argument:
                    name = argument["buffer"]
                    tensor = tensors[name] if name in tensors else self.scratch[name]
                    values.append(ctypes.create_string_buffer(tensor.data_ptr().to_bytes(8, "little"), 8))
                else:
                    values.append(ctypes.create_string_buffer(bytes.fromhex(argument["bytes"]).ljust(8, b"\0"), 8))
            pointers = (ctypes.c_void_p * len(values))(*[ctypes.cast(v, ctypes.c_void_p) for v in values])
            for _ in range(launch["repeat"]):
                check(CUDA.cuLaunchKernel(function, *launch["grid"], *launch["block"], launch["shared_bytes"], stream, pointers, None), "cuLaunchKernel")


class Autotune:
    def __init__(self, program, db, budget):
        self.program, self.db, self.budget = program, db, budget

    def run(self, *words):
        done = subprocess.run([self.program, *words], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"autotune {' '.join(words)}: exit code {done.returncode}\n{done.stderr}{done.stdout}")
        return done.stdout

    def tune(self, op, problem):
        text = ",".join(f"{k}={v}" for k, v in problem.items())
        print(self.run("tune", op, text, "--budget", self.budget, "--db", self.db, "--progress", "none"), flush=True)

    def winner(self, op, problem):
        where = " and ".join(f"{k} == {v}" if not isinstance(v, str) or v in ("true", "false") else f"{k} == '{v}'" for k, v in problem.items())
        record = json.loads(self.run("query", op, "--where", where, "--as", "json", "--db", self.db))
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            self.run("query", op, "--where", where, "--as", "cubin", "-o", file.name, "--db", self.db)
            cubin = open(file.name, "rb").read()
        return Kernel(record, cubin)


def random_tensors(record, seed):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    tensors = {}
    for t in record["tensors"]:
        if not t["present"]:
            continue
        size = math.prod(t["shape"])
        tensors[t["name"]] = torch.randn(size, generator=generator, device="cuda", dtype=torch.float32).to(DTYPES[t["dtype"]]).view(t["shape"])
    return tensors


def graph_of(run, sets, launches):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for tensors in sets:
            run(tensors)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(launches):
            run(sets[i % len(sets)])
    return graph


def sample_us(graph, launches):
    time.sleep(0.12)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / launches


def compare(name, kernel, others, verify, rounds=15):
    """others: name -> function of tensors. Prints a row for each; returns the rows."""
    record = kernel.record
    footprint = sum(t["bytes"] for t in record["tensors"])
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    free = torch.cuda.mem_get_info()[0]
    count = max(2, min(math.ceil(3 * l2 / footprint), int(free / 3 / footprint), 64))
    sets = [random_tensors(record, seed) for seed in range(count)]
    kernel(sets[0])
    torch.cuda.synchronize()
    verify(sets[0])
    launches = max(count, math.ceil(4000 / record["time_us"]))
    graphs = {"ours": graph_of(kernel, sets, launches)}
    for other, run in others.items():
        graphs[other] = graph_of(run, sets, launches)
    for graph in graphs.values():
        sample_us(graph, launches)
    samples = {key: [] for key in graphs}
    order = list(graphs)
    dice = random.Random(1)
    for _ in range(rounds):
        dice.shuffle(order)
        for key in order:
            samples[key].append(sample_us(graphs[key], launches))
    ours = statistics.median(samples["ours"])
    rows = []
    for other in others:
        ratios = sorted(t / o for t, o in zip(samples[other], samples["ours"]))
        low, high = ratios[len(ratios) // 20], ratios[-1 - len(ratios) // 20]
        rows.append((name, other, ours, statistics.median(samples[other]), statistics.median(ratios), low, high, record))
    del graphs
    torch.cuda.empty_cache()
    return rows


def close(tensor, want, tolerance, name):
    error = (tensor.double() - want.double()).norm() / want.double().norm()
    if not error < tolerance:
        raise RuntimeError(f"{name}: relative error {error:.3g} against the library")


class Softmax:
    def __init__(self, rows, cols, dtype):
        self.name, self.op = f"softmax {rows}x{cols} {dtype}", "softmax"
        self.problem = {"rows": rows, "cols": cols, "dtype": dtype}

    def others(self):
        return {"copy of the same size": lambda t: t["y"].copy_(t["x"]), "torch.softmax": lambda t: torch.softmax(t["x"], -1, out=t["y"])}

    def verify(self, t):
        close(t["y"], torch.softmax(t["x"].float(), -1), 1e-2, self.name)


class Gemm:
    def __init__(self, m, n, k, dtype):
        self.name, self.op = f"gemm {m}x{n}x{k} {dtype}", "gemm"
        self.problem = {"m": m, "n": n, "k": k, "dtype": dtype}

    def others(self):
        return {"cuBLAS": lambda t: torch.mm(t["a"], t["b"], out=t["c"])}

    def verify(self, t):
        close(t["c"], t["a"].double() @ t["b"].double(), 1e-2, self.name)


class Attention:
    def __init__(self, causal, batch=4, heads=16, seq=4096, dim=128, dtype="bf16"):
        self.name, self.op = f"attention B{batch} H{heads} S{seq} D{dim} {dtype} {'causal' if causal else 'full'}", "attention"
        self.causal = causal
        self.problem = {"batch": batch, "q_heads": heads, "kv_heads": heads, "seq_q": seq, "seq_k": seq, "head_dim": dim, "dtype": dtype,
                        "causal": "true" if causal else "false"}

    def flash(self, t):
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
            return F.scaled_dot_product_attention(t["q"], t["k"], t["v"], is_causal=self.causal, scale=0.08838834764)

    def others(self):
        return {"FlashAttention-2 (PyTorch)": self.flash}

    def verify(self, t):
        close(t["o"], self.flash(t), 2e-2, self.name)


def rate(record, time_us):
    if record["flops"] > 100 * record["bytes"]:
        return f"{record['flops'] / time_us * 1e-6:.1f} TFLOP/s"
    return f"{record['bytes'] / time_us * 1e-3:.0f} GB/s"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--autotune", required=True)
    parser.add_argument("--budget", default="20s")
    parser.add_argument("--db", default=os.path.join(tempfile.mkdtemp(), "bench.db"))
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", help="a file for all rows")
    options = parser.parse_args()
    tuner = Autotune(options.autotune, options.db, options.budget)
    work = [Softmax(32768, 4096, "bf16"), Softmax(4096, 4096, "f32"), Gemm(4096, 4096, 4096, "bf16"), Gemm(4096, 4096, 4096, "f32"),
            Attention(True), Attention(False)]
    work = [each for each in work if options.only in ("", each.op)]
    rows, failed = [], False
    # All tuning comes before this process has a context: another process on the GPU would taint every measurement.
    for each in work:
        tuner.tune(each.op, each.problem)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.zeros(1, device="cuda")
    for each in work:
        try:
            rows += compare(each.name, tuner.winner(each.op, each.problem), each.others(), each.verify, options.rounds)
        except Exception as error:  # one problem's trouble must not cost the others' rows
            failed = True
            print(f"error: {each.name}: {error}", file=sys.stderr)
    print(f"\n{torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}; ratio = theirs / ours, median [5 %, 95 %] of {options.rounds} rounds")
    print(f"{'problem':<46} {'ours':>10} {'':>14} {'beside':<28} {'theirs':>10} {'ratio':>7}")
    for name, other, ours, theirs, ratio, low, high, record in rows:
        print(f"{name:<46} {ours:>7.1f} us {rate(record, ours):>14} {other:<28} {theirs:>7.1f} us {ratio:>7.3f} [{low:.3f}, {high:.3f}]")
    if options.json:
        json.dump([{"problem": r[0], "beside": r[1], "ours_us": r[2], "theirs_us": r[3], "ratio": r[4], "config": r[7]["config"]["text"]} for r in rows],
                  open(options.json, "w"), indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
