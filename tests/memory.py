"""How much memory a process has had at once, asked by itself.

`getrusage` and `wait4` would not do: they begin with what its starter has, which the kernel keeps over `exec`.
"""

# For the beginning of a program that a test starts. What it opens, it opens here.
PEAK_KB = """
import os
status = os.open("/proc/self/status", os.O_RDONLY)
def peak_kb():
    return int(os.pread(status, 4096, 0).partition(b"VmHWM:")[2].split()[0])
"""
