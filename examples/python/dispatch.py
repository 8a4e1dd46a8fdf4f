#!/usr/bin/env python3
"""Softmax of a PyTorch tensor through libautotune.so, with ctypes alone: the tuned kernel where the user's database has
one for this GPU and shape, else the default, on PyTorch's current stream.

    dispatch.py [--library FILE] [--bundle FILE] [ROWS [COLS]]

Tune first to see the difference:  autotune --op softmax --problem rows=4096,cols=4096,dtype=bf16
"""

import argparse
import ctypes
import ctypes.util
import json
import sys
from ctypes import POINTER, Structure, Union, byref, c_char_p, c_double, c_float, c_int, c_int32, c_int64
from ctypes import c_size_t, c_uint8, c_uint64, c_void_p

SKIPPED = 77  # what ctest takes for "cannot run here"
DTYPES = ["f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u8", "u32", "bool"]
Log = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)
Output = ctypes.CFUNCTYPE(c_int, c_void_p, c_int, c_void_p, c_size_t)


class Bytes(Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t)]


class Options(Structure):
    _fields_ = [("size", c_size_t), ("flags", c_uint64), ("databases", POINTER(c_char_p)), ("database_count", c_size_t),
                ("op_folders", POINTER(c_char_p)), ("op_folder_count", c_size_t), ("most_problems", c_size_t),
                ("log", Log), ("log_context", c_void_p), ("on_miss", c_int64), ("tune_budget_ms", c_uint64),
                ("tune_patience_ms", c_uint64), ("learn", c_char_p), ("bundles", POINTER(c_char_p)),
                ("bundle_count", c_size_t), ("embedded_bundles", POINTER(Bytes)),
                ("embedded_bundle_count", c_size_t), ("embedded_database", Bytes), ("online", POINTER(c_char_p)),
                ("online_count", c_size_t), ("online_share", c_double)]


class Tensor(Structure):
    _fields_ = [("data", c_void_p), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("rank", c_int32),
                ("dtype", c_int32)]


class Number(Union):
    _fields_ = [("real", c_double), ("integer", c_int64)]


class Scalar(Structure):
    _fields_ = [("is_integer", c_int64), ("value", Number)]


class Decision(Structure):
    _fields_ = [("size", c_size_t), ("rung", c_int32), ("layer", c_int32), ("error", c_int32), ("distance", c_float),
                ("launched", c_uint8), ("verified", c_uint8), ("stale", c_uint8), ("imported", c_uint8),
                ("reserved", c_uint8 * 4), ("config", c_char_p), ("why", c_char_p)]


class Error(Exception):
    """status is of enum autotune_status; help is a line that helps, or ''."""

    def __init__(self, status, message, help):
        super().__init__(message)
        self.status, self.help = status, help


class Library:
    """libautotune.so. Statuses become exceptions."""

    def __init__(self, path=None):
        self.c = ctypes.CDLL(path or ctypes.util.find_library("autotune") or "libautotune.so.1")
        for name in ("autotune_version", "autotune_error_message", "autotune_error_help", "autotune_rung_name"):
            getattr(self.c, name).restype = c_char_p
        launch = [c_void_p, POINTER(Tensor), c_size_t, POINTER(Scalar), c_size_t, c_void_p, POINTER(Decision)]
        self.c.autotune_launch.argtypes = self.c.autotune_ready.argtypes = launch
        self.c.autotune_dispatcher_create.argtypes = [POINTER(Options), POINTER(c_void_p)]
        self.c.autotune_dispatcher_destroy.argtypes = [c_void_p]
        self.c.autotune_dispatcher_destroy.restype = None
        self.c.autotune_prepare.argtypes = [c_void_p, c_char_p, c_char_p, POINTER(c_void_p)]
        self.c.autotune_misses.argtypes = [c_void_p, Output, c_void_p]
        self.c.autotune_command.argtypes = [c_size_t, POINTER(c_char_p), Output, c_void_p]

    def check(self, status):
        if status:
            message, help = self.c.autotune_error_message(), self.c.autotune_error_help()
            raise Error(status, message.decode(errors="replace"), help.decode(errors="replace"))

    def version(self):
        return self.c.autotune_version().decode()

    def command(self, *words):
        """A subcommand, as the shell's `autotune` takes it. Returns what that writes to stdout."""
        text = []

        def take(_, stream, data, size):
            (text.append if stream == 1 else sys.stderr.write)(ctypes.string_at(data, size).decode(errors="replace"))
            return 0

        array = (c_char_p * len(words))(*[word.encode() for word in words])
        self.check(self.c.autotune_command(len(words), array, Output(take), None))
        return "".join(text)


class Dispatcher:
    def __init__(self, library, log=None, bundles=()):
        self.library = library
        self.log = Log(lambda _, sentence: log(sentence.decode(errors="replace"))) if log else Log()
        self.pointer = c_void_p()
        names = (c_char_p * len(bundles))(*[name.encode() for name in bundles])
        options = Options(size=ctypes.sizeof(Options), log=self.log, bundles=names, bundle_count=len(bundles))
        library.check(library.c.autotune_dispatcher_create(byref(options), byref(self.pointer)))

    def close(self):
        self.library.c.autotune_dispatcher_destroy(self.pointer)
        self.pointer = c_void_p()

    def prepare(self, op, fields=""):
        handle = c_void_p()
        self.library.check(self.library.c.autotune_prepare(self.pointer, op.encode(), fields.encode(), byref(handle)))
        return handle

    def launch(self, handle, tensors, scalars=(), stream=None):
        """tensors: (address, dtype, shape, strides or None) each. Returns the decision."""
        taken = (Tensor * max(1, len(tensors)))()
        for slot, (address, dtype, shape, strides) in zip(taken, tensors):
            slot.data, slot.dtype, slot.rank = address, DTYPES.index(dtype), len(shape)
            slot.shape = (c_int64 * len(shape))(*shape)
            if strides is not None:
                slot.strides = (c_int64 * len(strides))(*strides)
        values = (Scalar * max(1, len(scalars)))()
        for slot, number in zip(values, scalars):
            slot.is_integer = isinstance(number, int)
            setattr(slot.value, "integer" if slot.is_integer else "real", number)
        decision = Decision(size=ctypes.sizeof(Decision))
        self.library.check(self.library.c.autotune_launch(handle, taken, len(tensors), values, len(scalars), stream,
                                                          byref(decision)))
        return decision

    def misses(self):
        """What ran without a record, as {'op', 'problem', 'device'}."""
        lines = []
        take = Output(lambda _, stream, data, size: lines.append(ctypes.string_at(data, size)) or 0)
        self.library.check(self.library.c.autotune_misses(self.pointer, take, None))
        return [json.loads(line) for line in lines]


def tensor_of(x):
    """A PyTorch tensor as launch() takes it."""
    names = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}
    return x.data_ptr(), names[str(x.dtype).split(".")[1]], tuple(x.shape), tuple(x.stride())


def softmax_of_torch(torch, dispatcher, rows, cols):
    x = torch.randn(rows, cols, device="cuda", dtype=torch.bfloat16)
    y = torch.empty_like(x)
    softmax = dispatcher.prepare("softmax", "dtype=bf16")
    decision = dispatcher.launch(softmax, [tensor_of(x), tensor_of(y)], stream=torch.cuda.current_stream().cuda_stream)
    rung = dispatcher.library.c.autotune_rung_name(decision.rung).decode()
    print(f"softmax rows={rows} cols={cols} dtype=bf16: {rung} ({decision.why.decode()}), {decision.config.decode()}")
    error = (y.float() - torch.softmax(x.float(), -1)).abs().max().item()
    print(f"largest error against PyTorch: {error:.2g}")
    return 0 if error < 5e-3 else 1


def main():
    parser = argparse.ArgumentParser(description="softmax of a PyTorch tensor through libautotune.so")
    parser.add_argument("--library", help="libautotune.so, where the loader does not find it")
    parser.add_argument("--bundle", action="append", default=[], help="a file of `autotune db bundle`")
    parser.add_argument("rows", nargs="?", type=int, default=4096)
    parser.add_argument("cols", nargs="?", type=int, default=4096)
    asked = parser.parse_args()
    try:
        library = Library(asked.library)
    except OSError as error:
        sys.exit(f"error: {error}; --library names libautotune.so.1 where the loader does not find it")
    dispatcher = Dispatcher(library, log=lambda sentence: print("note:", sentence, file=sys.stderr),
                            bundles=asked.bundle)
    try:
        dispatcher.prepare("softmax", "dtype=bf16")
        try:
            import torch
        except ImportError:
            print(f"skipped: there is no PyTorch here; autotune {library.version()} is loaded and knows softmax")
            return SKIPPED
        if not torch.cuda.is_available():
            print(f"skipped: PyTorch sees no GPU here; autotune {library.version()} is loaded and knows softmax")
            return SKIPPED
        return softmax_of_torch(torch, dispatcher, asked.rows, asked.cols)
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        if error.help:
            print(f"help: {error.help}", file=sys.stderr)
        return 1
    finally:
        dispatcher.close()


if __name__ == "__main__":
    sys.exit(main())
