"""What benchmarks/rowops.py is made of: the works, the kernels beside ours, how both are launched and timed."""
