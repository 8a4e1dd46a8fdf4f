"""Kernels in Triton as its users write them: a row a program, held whole where it fits, or a block of elements."""
import triton
import triton.language as tl

LONGEST_HELD = 32768


def warps(block):
    return 4 if block <= 2048 else 8 if block <= 8192 else 16


@triton.jit
def copy_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)


def copy(x, y):
    """Of 4-byte elements."""
    copy_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), BLOCK=4096, num_warps=8)
    return y


@triton.jit
def softmax_kernel(x, y, cols, LOG: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row + at, mask=at < cols, other=-float("inf")).to(tl.float32)
    v = v - tl.max(v, 0)
    e = tl.exp(v)
    total = tl.sum(e, 0)
    if LOG:
        tl.store(y + row + at, v - tl.log(total), mask=at < cols)
    else:
        tl.store(y + row + at, e / total, mask=at < cols)


@triton.jit
def long_softmax_kernel(x, y, cols, LOG: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    most = tl.full([BLOCK], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for c in range(0, cols, BLOCK):
        at = c + tl.arange(0, BLOCK)
        v = tl.load(x + row + at, mask=at < cols, other=-float("inf")).to(tl.float32)
        new = tl.maximum(most, v)
        total = tl.where(new == -float("inf"), 0.0, total * tl.exp(most - new) + tl.exp(v - new))
        most = new
    top = tl.max(most, 0)
    whole = tl.sum(total * tl.exp(most - top), 0)
    for c in range(0, cols, BLOCK):
        at = c + tl.arange(0, BLOCK)
        v = tl.load(x + row + at, mask=at < cols, other=0).to(tl.float32) - top
        if LOG:
            tl.store(y + row + at, v - tl.log(whole), mask=at < cols)
        else:
            tl.store(y + row + at, tl.exp(v) / whole, mask=at < cols)


def softmax(x, y, log=False):
    rows, cols = x.shape
    block = triton.next_power_of_2(cols)
    if block <= LONGEST_HELD:
        softmax_kernel[(rows,)](x, y, cols, LOG=log, BLOCK=block, num_warps=warps(block))
    else:
        long_softmax_kernel[(rows,)](x, y, cols, LOG=log, BLOCK=4096, num_warps=8)
    return y


@triton.jit
def softmax_backward_kernel(y, dy, dx, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    at = tl.arange(0, BLOCK)
    a = tl.load(y + row + at, mask=at < cols, other=0).to(tl.float32)
    b = tl.load(dy + row + at, mask=at < cols, other=0).to(tl.float32)
    tl.store(dx + row + at, a * (b - tl.sum(a * b, 0)), mask=at < cols)


def softmax_backward(y, dy, dx):
    block = triton.next_power_of_2(y.shape[1])
    softmax_backward_kernel[(y.shape[0],)](y, dy, dx, y.shape[1], BLOCK=block, num_warps=warps(block))
    return dx


@triton.jit
def norm_kernel(x, residual, weight, bias, h, y, cols, eps, CENTRED: tl.constexpr, RESIDUAL: tl.constexpr,
                BIAS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    at = tl.arange(0, BLOCK)
    inside = at < cols
    v = tl.load(x + row + at, mask=inside, other=0).to(tl.float32)
    if RESIDUAL:
        v += tl.load(residual + row + at, mask=inside, other=0).to(tl.float32)
        tl.store(h + row + at, v, mask=inside)
    if CENTRED:
        v = tl.where(inside, v - tl.sum(v, 0) / cols, 0.0)
    v = v * tl.rsqrt(tl.sum(v * v, 0) / cols + eps) * tl.load(weight + at, mask=inside, other=0).to(tl.float32)
    if BIAS:
        v += tl.load(bias + at, mask=inside, other=0).to(tl.float32)
    tl.store(y + row + at, v, mask=inside)


def norm(x, weight, y, bias=None, residual=None, h=None, centred=True, eps=1e-5):
    rows, cols = x.shape
    block = triton.next_power_of_2(cols)
    norm_kernel[(rows,)](x, x if residual is None else residual, weight, weight if bias is None else bias,
                         y if h is None else h, y, cols, eps, CENTRED=centred, RESIDUAL=residual is not None,
                         BIAS=bias is not None, BLOCK=block, num_warps=warps(block))
    return y if h is None else (h, y)


@triton.jit
def cross_entropy_kernel(x, label, loss, dx, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    most = tl.full([BLOCK], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for c in range(0, cols, BLOCK):
        at = c + tl.arange(0, BLOCK)
        v = tl.load(x + row + at, mask=at < cols, other=-float("inf")).to(tl.float32)
        new = tl.maximum(most, v)
        total = tl.where(new == -float("inf"), 0.0, total * tl.exp(most - new) + tl.exp(v - new))
        most = new
    top = tl.max(most, 0)
    log_sum = top + tl.log(tl.sum(total * tl.exp(most - top), 0))
    right = tl.load(label + tl.program_id(0))
    tl.store(loss + tl.program_id(0), log_sum - tl.load(x + row + right).to(tl.float32))
    for c in range(0, cols, BLOCK):
        at = c + tl.arange(0, BLOCK)
        v = tl.load(x + row + at, mask=at < cols, other=0).to(tl.float32)
        tl.store(dx + row + at, tl.exp(v - log_sum) - tl.where(at == right, 1.0, 0.0), mask=at < cols)


def cross_entropy(x, label, loss, dx):
    cross_entropy_kernel[(x.shape[0],)](x, label, loss, dx, x.shape[1], BLOCK=4096, num_warps=8)
    return loss, dx


@triton.jit
def reduce_rows_kernel(x, y, cols, MOST: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    sums = tl.full([BLOCK], -float("inf") if MOST else 0.0, tl.float32)
    for c in range(0, cols, BLOCK):
        at = c + tl.arange(0, BLOCK)
        v = tl.load(x + row + at, mask=at < cols, other=-float("inf") if MOST else 0.0).to(tl.float32)
        sums = tl.maximum(sums, v) if MOST else sums + v
    tl.store(y + tl.program_id(0), tl.max(sums, 0) if MOST else tl.sum(sums, 0))


def reduce_rows(x, y, most=False):
    block = min(4096, triton.next_power_of_2(x.shape[1]))
    reduce_rows_kernel[(x.shape[0],)](x, y, x.shape[1], MOST=most, BLOCK=block, num_warps=warps(block))
    return y


@triton.jit
def transpose_kernel(x, y, rows, cols, TILE: tl.constexpr):
    r = tl.program_id(1) * TILE + tl.arange(0, TILE)
    c = tl.program_id(0) * TILE + tl.arange(0, TILE)
    v = tl.load(x + r.to(tl.int64)[:, None] * cols + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < cols))
    tl.store(y + c.to(tl.int64)[:, None] * rows + r[None, :], tl.trans(v), mask=(c[:, None] < cols) & (r[None, :] < rows))


def transpose(x, y):
    """Of one matrix."""
    rows, cols = x.shape[-2:]
    transpose_kernel[(triton.cdiv(cols, 64), triton.cdiv(rows, 64))](x, y, rows, cols, TILE=64, num_warps=8)
    return y


@triton.jit
def quantise_rows_kernel(x, q, scale, cols, limit, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row + at, mask=at < cols, other=0).to(tl.float32)
    divisor = tl.maximum(tl.max(tl.abs(v), 0), 1e-28) / limit
    tl.store(scale + tl.program_id(0), divisor)
    tl.store(q + row + at, (v * (1.0 / divisor)).to(q.dtype.element_ty), mask=at < cols)


def quantise_rows(x, q, scale, limit):
    """To e4m3."""
    block = triton.next_power_of_2(x.shape[1])
    quantise_rows_kernel[(x.shape[0],)](x, q, scale, x.shape[1], limit, BLOCK=block, num_warps=warps(block))
    return q, scale


@triton.jit
def gelu(v):
    return 0.5 * v * (1.0 + tl.erf(v * 0.7071067811865476))


@triton.jit
def chain_kernel(x, b, c, y, n, cols, p, seed, KIND: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + at, mask=inside).to(tl.float32)
    if KIND == "relu_bias":
        v = tl.maximum(v + tl.load(b + at % cols, mask=inside).to(tl.float32), 0.0)
    if KIND == "gelu_bias":
        v = gelu(v + tl.load(b + at % cols, mask=inside).to(tl.float32))
    if KIND == "silu_mul":
        v = v * tl.sigmoid(v) * tl.load(b + at, mask=inside).to(tl.float32)
    if KIND == "relu_add_mul":
        v = tl.maximum(v + tl.load(b + at, mask=inside).to(tl.float32), 0.0)
        v = v * tl.load(c + at, mask=inside).to(tl.float32)
    if KIND == "add":
        v += tl.load(b + at, mask=inside).to(tl.float32)
    if KIND == "gelu_tanh":
        t = 0.7978845608028654 * (v + 0.044715 * v * v * v)
        v = v * tl.sigmoid(2.0 * t)
    if KIND == "drop_relu_bias":
        v = tl.maximum(v + tl.load(b + at % cols, mask=inside).to(tl.float32), 0.0)
        v = tl.where(tl.rand(seed, at) < p, 0.0, v / (1.0 - p))
    if KIND == "drop_gelu_bias_add":
        v = gelu(v + tl.load(b + at % cols, mask=inside).to(tl.float32))
        v = tl.where(tl.rand(seed, at) < p, 0.0, v / (1.0 - p))
        v += tl.load(c + at, mask=inside).to(tl.float32)
    tl.store(y + at, v, mask=inside)


def chain(kind, x, y, b=None, c=None, p=0.0, seed=1):
    """b: a row or as large as x; c: as large as x."""
    n = x.numel()
    chain_kernel[(triton.cdiv(n, 2048),)](x, x if b is None else b, x if c is None else c, y, n, x.shape[-1], p, seed,
                                          KIND=kind, BLOCK=2048, num_warps=8)
    return y
