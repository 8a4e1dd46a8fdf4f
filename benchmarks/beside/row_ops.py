"""The works of ops that are no products: rows, reductions, layout, lists. Large ones move 64 MiB and more, small ones less
than 4 MiB."""
import ctypes

import torch
import torch.nn.functional as F

from .work import DTYPES, Work, given, integers, normal, result, uniform

aten = torch.ops.aten
# All tensors of ops of which some may be absent: a call names each, in this order.
SLOTS = {"masked_softmax": "x keep add y", "cross_entropy": "x label loss dx", "layernorm": "x residual weight bias h y scale mean rstd",
         "rmsnorm": "x residual weight bias h y scale rstd", "layernorm_backward": "x dy weight mean rstd dh dx dweight dbias",
         "rmsnorm_backward": "x dy weight rstd dh dx dweight dbias", "rope": "x positions table q k v"}


def row_ops(kernels, liger, cub):
    """kernels: the module triton_kernels; liger: liger_kernel.ops; cub: a Cub. None of each where there is none."""
    made = []
    for maker in (softmax, masked_softmax, softmax_backward, cross_entropy, norms, norm_backwards, reductions, layout,
                  quantisation, rope, adam, scan, histogram, unique):
        made += maker(kernels, liger, cub)
    for work in made:
        work.slots = SLOTS.get(work.op, "").split() or [a.name for a in work.arguments]
    return made


def only(condition, **runs):
    return runs if condition else {}


def softmax(kernels, liger, cub):
    def work(op, rows, cols, dtype, quick=False):
        log = op == "log_softmax"
        function = torch.log_softmax if log else torch.softmax
        others = only(kernels, triton=lambda t: kernels.softmax(t["x"], t["y"], log))
        if not log:
            others |= only(liger, liger=lambda t: liger.softmax._softmax_forward(t["x"])[0])
        return Work(op, {"rows": rows, "cols": cols, "dtype": dtype},
                    [given("x", dtype, (rows, cols)), result("y", dtype, (rows, cols))], lambda x: function(x, -1),
                    eager="function" if log else lambda t: torch.softmax(t["x"], -1, out=t["y"]), others=others, quick=quick)

    return [work("softmax", 32768, 4096, "bf16", True), work("softmax", 4096, 4096, "f32"), work("softmax", 8192, 8192, "bf16"),
            work("softmax", 4096, 131072, "bf16"), work("softmax", 128, 1000, "f32", True), work("softmax", 128, 4096, "bf16"),
            work("log_softmax", 32768, 4096, "bf16", True), work("log_softmax", 4096, 50257, "bf16"),
            work("log_softmax", 128, 1000, "f32")]


def masked_softmax(kernels, liger, cub):
    def work(batch, heads, queries, keys, mask, causal, quick=False):
        x = (batch, heads, queries, keys)
        problem = {"batch": batch, "heads": heads, "queries": queries, "keys": keys, "dtype": "bf16", "mask": mask,
                   "causal": "true" if causal else "false"}
        keep = given("keep", "u8", (batch, queries, keys), integers(0, 1))
        add = given("add", "bf16", (heads, queries, keys))
        tensors = [given("x", "bf16", x), *([keep] if mask == "keep" else [add] if mask == "add" else []), result("y", "bf16", x)]

        def function(x, *rest):
            v = x * 0.125
            if mask == "keep":
                v = v.masked_fill(rest[0][:, None] == 0, float("-inf"))
            if mask == "add":
                v = v + rest[0]
            if causal:
                seen = torch.ones(queries, keys, dtype=torch.bool, device=x.device).tril(keys - queries)
                v = v.masked_fill(~seen, float("-inf"))
            return torch.softmax(v, -1)

        pairs = queries * keys - queries * (queries - 1) // 2 if causal else queries * keys
        beside = batch * pairs if mask == "keep" else 2 * heads * pairs if mask == "add" else 0
        return Work("masked_softmax", problem, tensors, function, moved=2 * batch * heads * (pairs + queries * keys) + beside,
                    quick=quick)

    return [work(4, 16, 2048, 2048, "keep", False, True), work(4, 16, 2048, 2048, "add", False),
            work(4, 16, 2048, 2048, "none", True), work(1, 4, 128, 512, "keep", False)]


def softmax_backward(kernels, liger, cub):
    def work(rows, cols, dtype, quick=False):
        y = lambda shape, dtype, device: torch.softmax(normal(shape, torch.float32, device), -1)
        others = only(kernels, triton=lambda t: kernels.softmax_backward(t["y"], t["dy"], t["dx"]))
        return Work("softmax_backward", {"rows": rows, "cols": cols, "dtype": dtype},
                    [given("y", dtype, (rows, cols), y), given("dy", dtype, (rows, cols)), result("dx", dtype, (rows, cols))],
                    lambda y, dy: (y.float() * (dy.float() - (y.float() * dy.float()).sum(-1, keepdim=True))).to(y.dtype),
                    eager=lambda t: aten._softmax_backward_data(t["dy"], t["y"], -1, DTYPES[dtype]), others=others, quick=quick)

    return [work(32768, 4096, "bf16", True), work(16384, 4096, "f32"), work(128, 1000, "bf16")]


def cross_entropy(kernels, liger, cub):
    def work(rows, cols, dtype, quick=False):
        def function(x, label):
            log = torch.log_softmax(x.float(), -1)
            hot = torch.arange(cols, device=x.device)[None, :] == label[:, None]
            return -log.gather(1, label[:, None])[:, 0], (log.exp() - hot.float()).to(x.dtype)

        def eager(t):
            log = torch.log_softmax(t["x"], -1)
            loss, total = aten.nll_loss_forward(log, t["label"], None, 0, -100)
            ones = torch.ones_like(loss)
            grad = aten.nll_loss_backward(ones, log, t["label"], None, 0, -100, total)
            return loss, aten._log_softmax_backward_data(grad, log, 1, log.dtype)

        def liger_run(t):  # puts the gradient where the logits were, so these are its own
            if "liger_x" not in t:
                t["liger_x"] = t["x"].clone().requires_grad_()
            with torch.no_grad():
                return liger.cross_entropy.cross_entropy_forward(t["liger_x"], t["label"], None, -100, 0.0, 0.0, "none", None, False)[0:1]

        others = only(kernels, triton=lambda t: kernels.cross_entropy(t["x"], t["label"], t["loss"], t["dx"]))
        others |= only(liger, liger=liger_run)
        return Work("cross_entropy", {"rows": rows, "cols": cols, "dtype": dtype},
                    [given("x", dtype, (rows, cols)), given("label", "i64", (rows,), integers(0, cols - 1)),
                     result("loss", "f32", (rows,)), result("dx", dtype, (rows, cols))], function, eager=eager, others=others,
                    uncaptured=("liger",), tolerance={"loss": 6e-3}, quick=quick)

    return [work(8192, 32768, "bf16", True), work(4096, 128256, "bf16"), work(8192, 50257, "f32"), work(128, 1000, "bf16")]


def norms(kernels, liger, cub):
    def work(op, rows, cols, dtype="bf16", residual=False, out="same", quick=False):
        centred = op == "layernorm"
        problem = {"rows": rows, "cols": cols, "dtype": dtype}
        if residual:
            problem["residual"] = "true"
        if out != "same":
            problem["out"] = out
        shape = (rows, cols)
        y_type = {"same": dtype, "e4m3": "f8e4m3", "int8": "i8"}[out]
        tensors = [given("x", dtype, shape)]
        tensors += [given("residual", dtype, shape)] if residual else []
        tensors += [given("weight", dtype, (cols,))]
        tensors += [given("bias", dtype, (cols,))] if centred else []
        tensors += [result("h", dtype, shape)] if residual else []
        tensors += [result("y", y_type, shape)]
        tensors += [result("scale", "f32", (rows,))] if out != "same" else []

        def function(x, *rest):
            rest = list(rest)
            other = rest.pop(0) if residual else None
            weight, bias = rest[0], rest[1] if centred else None
            h = x + other if residual else x
            wide = out != "same"
            v = h.float() if wide else h
            w, b = (weight.float(), bias.float() if centred else None) if wide else (weight, bias)
            y = F.layer_norm(v, (cols,), w, b, 1e-5) if centred else F.rms_norm(v, (cols,), w, 1e-5)
            results = [h] if residual else []
            if not wide:
                return (*results, y)
            scale = y.abs().amax(-1, keepdim=True) / (448 if out == "e4m3" else 127)
            q = y / scale
            q = q.to(torch.float8_e4m3fn) if out == "e4m3" else q.round().to(torch.int8)
            return (*results, q, scale[:, 0])

        others = {}
        if kernels and out == "same":
            others["triton"] = lambda t: kernels.norm(t["x"], t["weight"], t["y"], t.get("bias"), t.get("residual"), t.get("h"), centred)
        if liger and out == "same" and centred and not residual:
            others["liger"] = lambda t: liger.layer_norm.layer_norm_forward(t["x"], t["weight"], t["bias"], 1e-5)[0]
        if liger and out == "same" and not centred and not residual:
            others["liger"] = lambda t: liger.rms_norm.rms_norm_forward(t["x"], t["weight"], 1e-5, 0.0, "llama", None)[0]
        if liger and out == "same" and not centred and residual:
            def fused(t):
                y, h = liger.fused_add_rms_norm.fused_add_rms_norm_forward(t["x"], t["residual"], t["weight"], 1e-5, 0.0, "llama")[:2]
                return h, y
            others["liger"] = fused
        # A quantised value may fall on the other side of a rounding.
        return Work(op, problem, tensors, function, others=others, quick=quick, tolerance={"y": 2e-2, "scale": 1e-2} if out != "same" else {})

    return [work("layernorm", 32768, 4096, quick=True), work("layernorm", 65536, 1024, "f32"), work("layernorm", 16384, 4096, residual=True),
            work("layernorm", 128, 768), work("rmsnorm", 32768, 4096, quick=True), work("rmsnorm", 16384, 8192),
            work("rmsnorm", 32768, 4096, residual=True, quick=True), work("rmsnorm", 32768, 4096, out="e4m3", quick=True),
            work("rmsnorm", 16384, 4096, residual=True, out="int8"), work("rmsnorm", 1024, 65536, "f32"), work("rmsnorm", 128, 4096)]


def norm_backwards(kernels, liger, cub):
    def work(op, rows, cols, dtype="bf16", quick=False):
        centred = op == "layernorm_backward"
        shape = (rows, cols)

        def rstd(t):
            x = t["x"].float()
            spread = x.var(-1, unbiased=False) if centred else x.square().mean(-1)
            return (spread + 1e-5).rsqrt()

        tensors = [given("x", dtype, shape), given("dy", dtype, shape), given("weight", dtype, (cols,))]
        tensors += [given("mean", "f32", (rows,), lambda t: t["x"].float().mean(-1), True)] if centred else []
        tensors += [given("rstd", "f32", (rows,), rstd, True), result("dx", dtype, shape), result("dweight", dtype, (cols,))]
        tensors += [result("dbias", dtype, (cols,))] if centred else []

        def function(x, dy, weight, *rest):
            v = x.float()
            r = rest[-1][:, None]
            n = (v - rest[0][:, None]) * r if centred else v * r
            g = dy.float() * weight.float()
            dx = g - n * (g * n).mean(-1, keepdim=True)
            if centred:
                dx = dx - g.mean(-1, keepdim=True)
            sums = [(dy.float() * n).sum(0).to(weight.dtype)] + ([dy.float().sum(0).to(weight.dtype)] if centred else [])
            return ((dx * r).to(x.dtype), *sums)

        def eager(t):
            if centred:
                return aten.native_layer_norm_backward(t["dy"], t["x"], [cols], t["mean"][:, None], t["rstd"][:, None], t["weight"],
                                                       t["weight"], [True, True, True])
            return aten._fused_rms_norm_backward(t["dy"], t["x"], [cols], t["rstd"][:, None], t["weight"], [True, True])

        return Work(op, {"rows": rows, "cols": cols, "dtype": dtype}, tensors, function, eager=eager, quick=quick,
                    tolerance={"dx": 2e-5 if dtype == "f32" else 8e-3, "dweight": 1e-4 if dtype == "f32" else 8e-3,
                               "dbias": 1e-4 if dtype == "f32" else 8e-3})

    return [work("layernorm_backward", 32768, 4096, quick=True), work("layernorm_backward", 65536, 1024, "f32"),
            work("layernorm_backward", 128, 768), work("rmsnorm_backward", 32768, 4096, quick=True),
            work("rmsnorm_backward", 16384, 8192), work("rmsnorm_backward", 128, 4096)]


def reductions(kernels, liger, cub):
    def reduce(outer, n, inner, kind, dtype="bf16", out=None, quick=False):
        out = out or dtype
        functions = {"sum": lambda x: x.sum(1, dtype=DTYPES[out]), "max": lambda x: x.amax(1), "mean": lambda x: x.mean(1),
                     "l2": lambda x: torch.linalg.vector_norm(x, dim=1)}
        others = {}
        if kernels and inner == 1 and outer >= 1024 and kind in ("sum", "max"):
            others["triton"] = lambda t: kernels.reduce_rows(t["x"].view(outer, n), t["y"].view(-1), kind == "max")
        if cub and outer == 1 and inner == 1 and kind == "sum":
            def whole(t):
                cub(f"cub_sum_{dtype}", t["x"], t["y"], n)
                return t["y"]
            others["CUB"] = whole
        problem = {"outer": outer, "n": n, "inner": inner, "dtype": dtype, "out": out, "kind": kind}
        # Of one sign: what is left of a sum of both signs is no measure of its error.
        return Work("reduce", problem, [given("x", dtype, (outer, n, inner), uniform(0, 1)), result("y", out, (outer, inner))],
                    functions[kind], others=others, quick=quick, tolerance={"y": 1e-4} if out == "f32" else {})

    def argreduce(outer, n, inner, quick=False):
        def check(before, got):
            x, at = before["x"], got["y"]
            there = x.gather(1, at.view(outer, 1, inner))[:, 0]
            return "" if torch.equal(there, x.amax(1)) else "y is not where the greatest elements are"

        return Work("argreduce", {"outer": outer, "n": n, "inner": inner, "dtype": "bf16"},
                    [given("x", "bf16", (outer, n, inner)), result("y", "i64", (outer, inner))], lambda x: x.argmax(1),
                    check=check, quick=quick)

    return [reduce(32768, 4096, 1, "sum", quick=True), reduce(1048576, 128, 1, "max"), reduce(1, 32768, 4096, "sum"),
            reduce(64, 512, 4096, "mean"), reduce(1, 134217728, 1, "sum", "f32", quick=True),
            reduce(1, 268435456, 1, "sum", "bf16", "f32"), reduce(32768, 4099, 1, "l2"), reduce(128, 4096, 1, "sum"),
            argreduce(32768, 4096, 1, True), argreduce(64, 512, 4096), argreduce(32, 32000, 1)]


def layout(kernels, liger, cub):
    def made(dtype):
        return integers(-100, 100) if DTYPES[dtype] in (torch.int8, torch.int32) else integers(0, 200) if dtype == "u8" else normal

    def transpose(rows, cols, dtype, quick=False):
        def eager(t):
            t["y"].copy_(t["x"].transpose(1, 2))
            return t["y"]

        others = only(kernels, triton=lambda t: kernels.transpose(t["x"], t["y"]))
        return Work("transpose", {"batch": 1, "rows": rows, "cols": cols, "dtype": dtype},
                    [given("x", dtype, (1, rows, cols), made(dtype)), result("y", dtype, (1, cols, rows))],
                    lambda x: x.transpose(1, 2).contiguous(), eager=eager, others=others, tolerance={"y": 0}, in_float=False, quick=quick)

    def permute(extents, order, dtype="bf16", quick=False):
        turned = tuple(extents[k] for k in order)

        def eager(t):
            t["y"].copy_(t["x"].permute(order))
            return t["y"]

        problem = {f"d{i}": d for i, d in enumerate(extents)} | {"order": int("".join(map(str, order))), "dtype": dtype}
        return Work("permute", problem, [given("x", dtype, extents), result("y", dtype, turned)],
                    lambda x: x.permute(order).contiguous(), eager=eager, tolerance={"y": 0}, in_float=False, quick=quick)

    def copy(rows, cols, quick=False):
        def eager(t):
            return t["y"].copy_(t["x"])

        return Work("copy", {"rows": rows, "cols": cols, "dtype": "bf16"},
                    [given("x", "bf16", (rows, cols)), result("y", "bf16", (rows, cols))], lambda x: x.clone(), eager=eager,
                    tolerance={"y": 0}, in_float=False, quick=quick)

    return [transpose(8192, 8192, "bf16", True), transpose(8193, 8191, "bf16"), transpose(8191, 8190, "f32"),
            transpose(16384, 8192, "u8"), transpose(512, 1024, "bf16"), permute((8, 2048, 32, 128), (0, 2, 1, 3), quick=True),
            permute((16, 512, 512, 16), (0, 3, 1, 2)), copy(32768, 4096, True), copy(128, 4096)]


def quantisation(kernels, liger, cub):
    limits = {"e4m3": 448.0, "int8": 127.0}
    types = {"e4m3": "f8e4m3", "int8": "i8"}

    def groups(scales, rows, cols):
        return {"row": (rows, 1), "block": (rows, cols // 128), "tensor": (1, 1)}[scales]

    def quantise(rows, cols, form, scales, quick=False):
        count = groups(scales, rows, cols)

        def function(x):
            v = x.float().view(count[0], count[1], -1)
            scale = v.abs().amax(-1, keepdim=True).clamp(min=2.0 ** -96) / limits[form]
            q = v * (1 / scale)
            q = q.to(torch.float8_e4m3fn) if form == "e4m3" else q.round().to(torch.int8)
            return q.view(rows, cols), scale.view(count)

        others = {}
        if kernels and form == "e4m3" and scales == "row":
            others["triton"] = lambda t: kernels.quantise_rows(t["x"], t["q"], t["scale"], 448.0)
        return Work("quantise", {"rows": rows, "cols": cols, "dtype": "bf16", "format": form, "scales": scales},
                    [given("x", "bf16", (rows, cols)), result("q", types[form], (rows, cols)), result("scale", "f32", count)],
                    function, others=others, tolerance={"q": 1e-2}, quick=quick)

    def dequantise(rows, cols, form, scales, quick=False):
        count = groups(scales, rows, cols)
        fill = integers(-128, 127) if form == "int8" else lambda shape, dtype, device: (torch.randn(shape, device=device) * 100).clamp(-400, 400).to(dtype)

        def function(q, scale):
            return (q.to(torch.float32).view(count[0], count[1], -1) * scale[:, :, None]).to(torch.bfloat16).view(rows, cols)

        return Work("dequantise", {"rows": rows, "cols": cols, "dtype": "bf16", "format": form, "scales": scales},
                    [given("q", types[form], (rows, cols), fill), given("scale", "f32", count, uniform(0.01, 1)),
                     result("y", "bf16", (rows, cols))], function, in_float=False, quick=quick)

    return [quantise(16384, 4096, "e4m3", "row", True), quantise(16384, 4096, "int8", "row"), quantise(16384, 4096, "e4m3", "block"),
            quantise(32768, 4096, "e4m3", "tensor"), quantise(128, 4096, "e4m3", "row"), dequantise(16384, 4096, "e4m3", "row", True),
            dequantise(16384, 4096, "int8", "block"), dequantise(128, 4096, "e4m3", "row")]


def rope(kernels, liger, cub):
    def work(tokens, angles, quick=False, q_heads=32, kv_heads=8, dim=128, span=8192):
        heads, half = q_heads + 2 * kv_heads, dim // 2

        def table(shape, dtype, device):
            t = torch.arange(span, device=device).double()[:, None] * 10000.0 ** (-torch.arange(half, device=device).double() / half)
            return torch.cat([t.cos(), t.sin()], 1)

        def function(x, positions, *rest):
            if rest:
                turn = rest[0][positions]
                c, s = turn[:, None, :half], turn[:, None, half:]
            else:
                t = positions.double()[:, None] * 10000.0 ** (-torch.arange(half, device=x.device).double() / half)
                c, s = t.cos().float()[:, None], t.sin().float()[:, None]
            turned, v = x[:, :q_heads + kv_heads].float(), x[:, q_heads + kv_heads:]
            a, b = turned[..., :half], turned[..., half:]
            turned = torch.cat([a * c - b * s, b * c + a * s], -1).to(x.dtype)
            return turned[:, :q_heads].contiguous(), turned[:, q_heads:].contiguous(), v.contiguous()

        tensors = [given("x", "bf16", (tokens, heads, dim)), given("positions", "i64", (tokens,), integers(0, span - 1))]
        tensors += [given("table", "f32", (span, dim), table)] if angles == "table" else []
        tensors += [result("q", "bf16", (tokens, q_heads, dim)), result("k", "bf16", (tokens, kv_heads, dim)), result("v", "bf16", (tokens, kv_heads, dim))]
        problem = {"tokens": tokens, "q_heads": q_heads, "kv_heads": kv_heads, "dim": dim, "dtype": "bf16", "angles": angles}
        if angles == "table":
            problem["span"] = span
        return Work("rope", problem, tensors, function, quick=quick, moved=2 * tokens * heads * dim * 2 + 8 * tokens)

    return [work(16384, "table", True), work(16384, "computed"), work(64, "table")]


def adam(kernels, liger, cub):
    def work(count, dtype, quick=False):
        each = count // 64

        def function(p, g, m, v, ends, rate, decay):
            m = 0.9 * m + 0.1 * g.float()
            v = 0.999 * v + 0.001 * g.float().square()
            step = (m / 0.1) / ((v / 0.001).sqrt() + 1e-8)
            return (p.float() - 1e-3 * (step + 0.01 * p.float())).to(p.dtype), m, v

        def eager(t):
            if "lists" not in t:
                t["lists"] = [list(t[name].split(each)) for name in ("p", "g", "m", "v")]
                t["steps"] = [torch.ones((), device=t["p"].device) for _ in range(64)]
            p, g, m, v = t["lists"]
            torch._fused_adamw_(p, g, m, v, [], t["steps"], lr=1e-3, beta1=0.9, beta2=0.999, weight_decay=0.01, eps=1e-8,
                                amsgrad=False, maximize=False)
            return t["p"], t["m"], t["v"]

        def constant(value):
            return lambda shape, dtype, device: torch.full(shape, value, dtype=dtype, device=device)

        ends = lambda shape, dtype, device: (torch.arange(64, device=device) + 1) * each
        tensors = [given("p", dtype, (count,)), given("g", dtype, (count,)), given("m", "f32", (count,)),
                   given("v", "f32", (count,), uniform(0, 1)), given("ends", "i64", (64,), ends),
                   given("rate", "f32", (64,), constant(1e-3)), given("decay", "f32", (64,), constant(0.01))]
        for index in (0, 2, 3):
            tensors[index].role = "inout"
        # PyTorch's fused step wants all four of one type.
        return Work("adam", {"count": count, "tensors": 64, "dtype": dtype, "grad": dtype}, tensors, function,
                    eager=eager if dtype == "f32" else None, quick=quick)

    return [work(33554432, "f32", True), work(33554432, "bf16"), work(131072, "f32")]


def scan(kernels, liger, cub):
    def work(rows, n, dtype, quick=False):
        others = {}
        if cub and rows == 1 and dtype in ("f32", "i32"):
            def whole(t):
                cub(f"cub_scan_{dtype}", t["x"], t["y"], n)
                return t["y"]
            others["CUB"] = whole
        kind = DTYPES[dtype]
        return Work("scan", {"rows": rows, "n": n, "dtype": dtype},
                    [given("x", dtype, (rows, n), integers(-9, 9) if dtype == "i32" else uniform(0, 1)), result("y", dtype, (rows, n))],
                    lambda x: x.cumsum(1, dtype=kind), eager=lambda t: torch.cumsum(t["x"], 1, dtype=kind, out=t["y"]), others=others,
                    tolerance={"y": 1e-3 if dtype == "f32" else 0}, quick=quick)

    return [work(1, 67108864, "f32", True), work(1, 16777216, "i32"), work(4096, 4096, "f32"), work(1, 262144, "f32")]


def histogram(kernels, liger, cub):
    def work(n, bins, dtype, quick=False):
        floats = dtype == "f32"
        function = (lambda x: torch.histc(x, bins, -4.0, 4.0)) if floats else (lambda x: torch.bincount(x, minlength=bins))
        others = {}
        if cub:
            def counted(t):
                if "cub_counts" not in t:
                    t["cub_counts"] = torch.empty(bins, dtype=torch.int32, device=t["x"].device)
                rest = (ctypes.c_int(bins), -4.0, 4.0, n) if floats else (ctypes.c_int(bins), n)
                cub(f"cub_histogram_{dtype}", t["x"], t["cub_counts"], *rest)
                return t["cub_counts"]
            others["CUB"] = counted
        return Work("histogram", {"n": n, "bins": bins, "dtype": dtype},
                    [given("x", dtype, (n,), normal if floats else integers(0, bins - 1)), result("counts", "i64", (bins,))],
                    function, others=others, compiled=False, uncaptured=() if floats else ("eager",), in_float=False,
                    tolerance={"counts": 1e-4 if floats else 0}, quick=quick)

    return [work(67108864, 256, "f32", True), work(268435456, 256, "u8"), work(262144, 256, "f32")]


def unique(kernels, liger, cub):
    def work(n, distinct, quick=False):
        def sorted_values(shape, dtype, device):
            return torch.randint(0, distinct, shape, dtype=dtype, device=device).sort()[0]

        def check(before, got):
            want = torch.unique_consecutive(before["x"])
            count = int(got["counts"].item())
            if count != want.numel():
                return f"there are {want.numel()} runs, and {count} are said"
            return "" if torch.equal(got["y"][:count], want) else "y is not equal to PyTorch's"

        def eager(t):
            found = torch.unique_consecutive(t["x"])
            return found, torch.tensor([found.numel()])

        others = {}
        if cub:
            def run(t):
                cub("cub_unique_i32", t["x"], t["y"], t["counts"], n)
                return t["y"], t["counts"]
            others["CUB"] = run
        tensors = [given("x", "i32", (n,), sorted_values), given("y", "i32", (n,), lambda s, d, v: torch.zeros(s, dtype=d, device=v)),
                   result("counts", "i64", (1,))]
        tensors[1].role = "inout"
        return Work("unique", {"n": n, "distinct": distinct, "dtype": "i32"}, tensors, None, eager=eager, others=others, compiled=False,
                    uncaptured=("eager",), check=check, moved=4 * (n + min(n, distinct)), quick=quick)

    return [work(67108864, 1048576, True), work(16777216, 16777216), work(262144, 4096)]
