"""CUB's algorithms on PyTorch tensors: cub.cu, compiled by the machine's nvcc and loaded by ctypes."""
import ctypes
import os
import shutil
import subprocess

import torch


class Cub:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.temps = {}

    def __call__(self, name, *arguments):
        """Tensors as addresses, floats as float, whole numbers as int64; those named *_bins as int."""
        function = getattr(self.library, name)
        values = []
        for each in arguments:
            if isinstance(each, torch.Tensor):
                values.append(ctypes.c_void_p(each.data_ptr()))
            elif isinstance(each, (ctypes._SimpleCData, float)):
                values.append(ctypes.c_float(each) if isinstance(each, float) else each)
            else:
                values.append(ctypes.c_int64(each))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        key = (name, arguments[0].shape)
        if key not in self.temps:
            size = ctypes.c_size_t(0)
            self.check(function(None, ctypes.byref(size), *values, stream), name)
            self.temps[key] = torch.empty(max(1, size.value), dtype=torch.uint8, device="cuda")
        temp = self.temps[key]
        self.check(function(ctypes.c_void_p(temp.data_ptr()), ctypes.byref(ctypes.c_size_t(temp.numel())), *values, stream), name)

    @staticmethod
    def check(status, name):
        if status:
            raise RuntimeError(f"{name} failed with cudaError_t {status}")


def nvcc():
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return shutil.which("nvcc") or shutil.which("nvcc", path=os.path.join(home, "bin"))


def begin_build(folder, arch="native"):
    """Starts the compiler; None where there is none."""
    if not nvcc():
        return None
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cub.cu")
    command = [nvcc(), "-O3", "-std=c++17", f"-arch={arch}", "-shared", "-Xcompiler", "-fPIC", source, "-o", library_in(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def library_in(folder):
    return os.path.join(folder, "libbeside_cub.so")
