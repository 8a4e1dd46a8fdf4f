"""Who runs in one row of the table, in the order in which they are said. What is no other of ours is what it is held
against."""
from typing import NamedTuple


class Contestant(NamedTuple):
    name: str
    about: str
    ours: bool = False


CONTESTANTS = [
    Contestant("ours", "the winner of the search, launched through the dispatcher", True),
    Contestant("default", "the config that runs where nothing was tuned, launched so too", True),
    Contestant("steps", "a chain's steps one by one, each a tuned kernel of its own", True),
    Contestant("apart", "the winner where no two tensors lie a power of two apart (--apart)", True),
    Contestant("eager", "PyTorch's own operators"),
    Contestant("compile", "torch.compile of them"),
    Contestant("triton", "a kernel of beside/triton_kernels.py"),
    Contestant("liger", "Liger-Kernel's"),
    Contestant("CUB", "CUB's device-wide algorithm, as beside/cub.cu calls it"),
    Contestant("copy", "PyTorch's copy of as many bytes: no contestant, but what memory can do"),
    Contestant("copy_kernel", "the same by a kernel in Triton"),
]
OURS = [one.name for one in CONTESTANTS if one.ours]


def table():
    return "\n".join(f"  {one.name:<12}{one.about}" for one in CONTESTANTS)
