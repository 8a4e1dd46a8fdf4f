"""Ours, through libautotune.so with ctypes: the classes of examples/python/dispatch.py, with databases and chains."""
import ctypes
import functools
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_size_t, c_void_p

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "python"))
from dispatch import DTYPES, Decision, Error, Library, Options, Scalar, Tensor  # noqa: E402

NO_USER_DATABASE, NO_PREDICTIONS, NO_SYSTEM_DATABASE = 1, 2, 16


class Dispatcher:
    """db: what answers beside the ops themselves; None: nothing, so that every call runs its default."""

    class Options(Options):
        _fields_ = [("chains", POINTER(c_char_p)), ("chain_count", c_size_t)]

    def __init__(self, library, db, chains):
        self.library, self.pointer = library, c_void_p()
        databases = (c_char_p * 1)(db.encode()) if db else None
        texts = (c_char_p * len(chains))(*[text.encode() for text in chains])
        options = self.Options(size=ctypes.sizeof(self.Options), chains=texts, chain_count=len(chains),
                               flags=NO_USER_DATABASE | NO_SYSTEM_DATABASE | (0 if db else NO_PREDICTIONS))
        if db:
            options.databases, options.database_count = databases, 1
        library.check(library.c.autotune_dispatcher_create(byref(options), byref(self.pointer)))

    def close(self):
        self.library.c.autotune_dispatcher_destroy(self.pointer)
        self.pointer = c_void_p()

    def prepare(self, op, fields):
        handle = c_void_p()
        self.library.check(self.library.c.autotune_prepare(self.pointer, op.encode(), fields.encode(), byref(handle)))
        return handle


class Call:
    """One call of an op on tensors, its arguments converted once, as an application that repeats it would."""

    def __init__(self, library, handle, tensors, scalars):
        """tensors: (torch tensor or None, dtype by our name), all of the op in its order."""
        self.library, self.handle, self.count, self.scalar_count = library, handle, len(tensors), len(scalars)
        self.tensors = (Tensor * max(1, len(tensors)))()
        self.kept = []
        for slot, (tensor, dtype) in zip(self.tensors, tensors):
            slot.dtype = DTYPES.index(dtype)
            if tensor is None:
                continue
            shape = (ctypes.c_int64 * tensor.dim())(*tensor.shape)
            strides = (ctypes.c_int64 * tensor.dim())(*tensor.stride())
            self.kept += [tensor, shape, strides]
            slot.data, slot.shape, slot.strides, slot.rank = tensor.data_ptr(), shape, strides, tensor.dim()
        self.scalars = (Scalar * max(1, len(scalars)))()
        for slot, number in zip(self.scalars, scalars):
            slot.is_integer = isinstance(number, int)
            setattr(slot.value, "integer" if slot.is_integer else "real", number)

        self.launch = functools.partial(library.c.autotune_launch, handle, self.tensors, self.count, self.scalars,
                                        self.scalar_count)

    def __call__(self, stream):
        status = self.launch(stream, None)
        if status:
            self.library.check(status)

    def ready(self, stream):
        """Loads what it launches. Returns the rung's name, the config and the reason."""
        decision = Decision(size=ctypes.sizeof(Decision))
        self.library.check(self.library.c.autotune_ready(self.handle, self.tensors, self.count, self.scalars,
                                                         self.scalar_count, stream, byref(decision)))
        rung = self.library.c.autotune_rung_name(decision.rung).decode()
        return rung, decision.config.decode(), decision.why.decode()


__all__ = ["Call", "Dispatcher", "Error", "Library"]
