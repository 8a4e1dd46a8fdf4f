"""Goal: the classes of examples/python/dispatch.py do what they say. Method: they run on the fake libcuda.so.1."""
import ctypes
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[2])
from dispatch import Decision, Dispatcher, Error, Library, Options, Scalar, Tensor  # noqa: E402

library = Library(sys.argv[1])
assert [ctypes.sizeof(kind) for kind in (Tensor, Scalar, Decision, Options)] == [32, 16, 48, 176]
assert "softmax" in library.command("ops")
told = []
dispatcher = Dispatcher(library, log=told.append)
try:
    dispatcher.prepare("softmx")
    raise AssertionError("an op that is none was prepared")
except Error as error:
    assert error.status == 1 and "did you mean 'softmax'?" in str(error), error
handle = dispatcher.prepare("softmax", "dtype=f32")
tensors = [(0x100000, "f32", (300, 1000), None), (0x200000, "f32", (300, 1000), (1000, 1))]
decision = dispatcher.launch(handle, tensors)
assert decision.launched and decision.config and b"not tuned" in decision.why, decision.why
assert any("not tuned" in sentence for sentence in told), told
misses = dispatcher.misses()
assert [(miss["op"], miss["problem"]) for miss in misses] == [("softmax", "rows=300,cols=1000,dtype=f32")], misses
try:
    dispatcher.launch(handle, tensors[:1])
    raise AssertionError("a call that lacks a tensor was launched")
except Error as error:
    assert error.status == 1, error
dispatcher.close()
# Emulated, in processes of the worker program that lies beside the library.
lines = library.command("tune", "softmax", "rows=4,cols=64,dtype=f32", "--gpu", "emulated:sm_86", "--budget", "2",
                        "--effort", "quick", "--db", "none", "--json").splitlines()
assert '"summary"' in lines[-1], lines
print("as it says")
