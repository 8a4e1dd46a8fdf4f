"""Goal: what benchmarks/rowops.py says of problems, and how it launches chains through the dispatcher, hold without
PyTorch or a GPU. Method: its modules run on the fake libcuda.so.1; a tensor is what has PyTorch's four methods."""
import contextlib
import ctypes
import io
import sys
import tempfile
import types

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[2])
import rowops  # noqa: E402
from beside import contestants, report  # noqa: E402
from beside.launch import Call, Dispatcher, Error, Library  # noqa: E402
from beside.tuning import match  # noqa: E402


class Tensor:
    def __init__(self, address, *shape):
        self.address, self.shape = address, shape

    def dim(self):
        return len(self.shape)

    def stride(self):
        strides = [1]
        for extent in self.shape[:0:-1]:
            strides.insert(0, strides[0] * extent)
        return tuple(strides)

    def data_ptr(self):
        return self.address


# Of two problems that agree with what was tuned, that which says more is meant.
plain, residual = "rows=8,cols=64", "rows=8,cols=64,residual=true"
assert match([plain, residual], {"rows": 8, "cols": 64, "residual": True}) == residual
assert match([plain, residual], {"rows": 8, "cols": 64, "residual": False}) == plain
assert match([plain], {"rows": 9, "cols": 64}) == "rows=9,cols=64"
assert abs(report.geometric_mean([0.5, 2, 4]) - 4 ** (1 / 3)) < 1e-12
row = {"beside": {"default": {"us": 1}, "apart": {"us": 1}, "steps": {"us": 1}, "eager": {"us": 3}, "triton": {"us": 2}}}
assert report.best_other(row)[0] == "triton"
assert report.best_other({"beside": {name: {"us": 1} for name in contestants.OURS}}) is None
assert all(one.about in rowops.__doc__ for one in contestants.CONTESTANTS)

# The tables say each row once, what went wrong with it, and the worst by name.
beside = {"default": {"us": 12.0, "ratio": 1.2, "interval": (1.1, 1.3)}, "eager": {"us": 20.0, "ratio": 2.0, "interval": (1.9, 2.1)},
          "steps": {"us": 15.0, "ratio": 1.5, "interval": (1.4, 1.6)}}
large = {"op": "relu_x", "problem": "rows=8,cols=64", "us": 10.0, "copy_us": 9.0, "small": False, "beside": beside, "notes": {},
         "chain": "relu_x = relu(x)", "step_bytes": 30, "bytes": 20, "took_s": 1.0}
small = large | {"op": "softmax", "us": 5.0, "small": True, "call_us": {"ours": 6.0, "eager": 7.0}, "beside": {}}
wrong = {"op": "scan", "problem": "n=7", "wrong": "y differs"}
asked = types.SimpleNamespace(rounds=5, budget="1s")
with contextlib.redirect_stdout(io.StringIO()) as printed:
    assert report.summarise([large, small, wrong], {"gpu": "G", "torch": "T"}, {}, 2.0, asked)
    assert not report.summarise([large], {}, {("relu_x", "rows=8,cols=64"): {"elapsed_s": 1.0}}, 2.0, asked)
text = printed.getvalue()
assert "WRONG: y differs" in text and "2 timed, 1 wrong, 1 without a time" in text, text
assert "large: 1 problems; ratio to the best other: geometric mean 2.000, worst 2.000 (relu_x rows=8,cols=64)" in text, text
assert "worst 0.900 (relu_x rows=8,cols=64), 0 at 0.94 or more" in text and "ours 6.00  eager 7.00" in text, text
assert "time 1.50, bytes 1.50, the one by the other 1.00; eager PyTorch's time 2.00" in text, text

# A work at which the process dies costs its own row; one that hangs too.
STUB = """
import json, sys, time
words = dict(zip(sys.argv, sys.argv[1:]))
say = lambda **what: print(json.dumps(what), flush=True)
say(event="started", gpu="none", torch="none")
for index in range(int(words["--start"]), int(words["--end"])):
    say(event="begins", index=index)
    if index == 1:
        sys.exit(7)
    if index == 3:
        time.sleep(60)
    say(event="row", index=index, row={"op": "op", "problem": str(index), "error": "none was asked for"})
say(event="done")
"""
with tempfile.NamedTemporaryFile("w", suffix=".py") as stub:
    stub.write(STUB)
    stub.flush()
    rowops.__file__, argv, sys.argv = stub.name, sys.argv, ["rowops.py"]
    works = [types.SimpleNamespace(op="op", problem_text=str(i)) for i in range(6)]
    rows, facts = rowops.watch(types.SimpleNamespace(db="", until=0.0, cub_library="", limit=3), works, 0, 5)
    sys.argv = argv
assert sorted(rows) == [0, 1, 2, 3, 4] and facts["gpu"] == "none", rows
said = [rows[i]["error"] for i in range(5)]
assert said == ["none was asked for", "ended its process with 7", "none was asked for", "hung for 3 s", "none was asked for"], said

library = Library(sys.argv[1])
assert ctypes.sizeof(Dispatcher.Options) == 192
dispatcher = Dispatcher(library, None, ["relu_bias = relu(x + bias)"])
handle = dispatcher.prepare("relu_bias", "rows=4,cols=64,bias_rows=1,dtype=f32")
tensors = [(Tensor(0x100000, 1, 4, 64), "f32"), (Tensor(0x200000, 1, 1, 64), "f32"), (Tensor(0x300000, 1, 4, 64), "f32")]
call = Call(library, handle, tensors, [])
rung, config, why = call.ready(None)
assert rung == "default" and config.startswith("rows "), (rung, config, why)
call(None)
# An optional tensor that is absent has its place.
norm = dispatcher.prepare("rmsnorm", "rows=4,cols=64,dtype=f32")
x, weight, y = Tensor(0x100000, 4, 64), Tensor(0x200000, 64), Tensor(0x300000, 4, 64)
slots = [(x, "f32"), (None, "f32"), (weight, "f32"), (None, "f32"), (None, "f32"), (y, "f32"), (None, "f32"), (None, "f32")]
Call(library, norm, slots, [])(None)
try:
    Call(library, norm, slots[:3], [])(None)
    raise AssertionError("a call that lacks tensors was launched")
except Error as error:
    assert error.status == 1, error
dispatcher.close()
print("as it says")
