#!/usr/bin/env python3
"""Row ops, reductions, layout, lists and chains beside what people would use instead, in one run on one card.

  rowops.py --autotune build/release/bin/autotune [--library build/release/lib/libautotune.so.1] [--only softmax]

Tunes each problem (what the database holds already is not searched again; --tuned: nothing is), then launches the
winner through the dispatcher of libautotune.so on PyTorch's tensors and stream, in turns with whatever of these there
is:

CONTESTANTS

Each result is compared with PyTorch's first: one that is wrong is said and not timed. A sample is a graph of about 2 ms
over rotated sets of fresh data, so that L2 is cold; rounds are interleaved in random order. A ratio is the median over
rounds of theirs / ours. Needs PyTorch with CUDA.

  beside/contestants.py  who runs         beside/work.py     one row: an op at a problem, with its tensors
  beside/row_ops.py      rows of ops      beside/contest.py  a row compared and timed
  beside/chain_works.py  rows of chains   beside/tuning.py   the searches before that
  beside/report.py       what is said     beside/launch.py   ours through the C API
"""
import argparse
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time

from beside import contestants
from beside.report import print_row, summarise
from beside.tuning import steps_of, tune

__doc__ = __doc__.replace("CONTESTANTS", contestants.table())


def main():
    options = arguments()
    if options.worker:
        return work_through(options)
    try:
        works = load_works(options)
    except ImportError as error:
        print(f"error: {error}; this needs PyTorch with CUDA", file=sys.stderr)
        return 1
    if options.list:
        for work in works:
            print(f"{work.chain or work.op} {work.problem_text}: {work.bytes / 2 ** 20:.2f} MiB; " +
                  ", ".join(work.contenders()))
        return 0
    if not os.access(options.autotune, os.X_OK) or not os.path.exists(options.library):
        print(f"error: there is no {options.autotune} or no {options.library}: make gpu-build makes them",
              file=sys.stderr)
        return 1
    return contest_of(options, works)


def contest_of(options, works):
    """Tunes, holds and times, the most telling works first, then the others: rows are there when time runs out."""
    from beside import cub
    folder = tempfile.mkdtemp()
    if options.tuned and not options.db:
        print("error: --tuned needs --db", file=sys.stderr)
        return 1
    options.db = options.db or os.path.join(folder, "rowops.db")
    building = cub.begin_build(folder)
    summaries, errors, found, facts, tuning_s, start = {}, {}, {}, {}, 0.0, 0
    for end in sorted({sum(w.quick for w in works), len(works)} - {0}):
        began = time.time()
        summaries_here, errors_here = ({}, {}) if options.tuned else tune(options, works[start:end])
        tuning_s += time.time() - began
        summaries |= summaries_here
        errors |= errors_here
        if building and building.wait() == 0:
            options.cub_library = cub.library_in(folder)
        elif not start:
            why = building.stdout.read()[-500:] if building else "there is no nvcc"
            print(f"note: no CUB: {why}", file=sys.stderr)
        rows, said = watch(options, works, start, end)
        found |= rows
        facts = facts or said
        start = end
    rows = [found[i] for i in sorted(found, key=lambda i: works[i].place)]
    failed = summarise(rows, facts, summaries, tuning_s, options)
    if options.json:
        write_json(options.json, rows, facts, summaries, tuning_s, errors)
    return 1 if failed or errors else 0


def write_json(path, rows, facts, summaries, tuning_s, errors):
    for row in rows:
        summary = summaries.get((row["op"], row["problem"]), {})
        row["tuning"] = {k: summary.get(k) for k in ("elapsed_s", "tried", "valid", "gpu_idle_share")}
    with open(path, "w") as file:
        json.dump({"facts": facts, "tuning_s": tuning_s, "errors": errors, "rows": rows}, file, indent=1)


# -- what is compared

def load_works(options):
    """Needs PyTorch, and no GPU yet."""
    from beside import chain_works, row_ops
    works = row_ops.row_ops(options.kernels, options.liger, options.cub)
    works += chain_works.chains(options.kernels, options.liger)
    for place, work in enumerate(works):
        work.place = place
    works = [w for w in works if not options.only or w.op in options.only or ("chains" in options.only and w.chain)]
    # The most telling of each op first, in case time runs out.
    works.sort(key=lambda w: not w.quick)
    return [w for w in works if w.quick] if options.quick else works


def beside_modules():
    kernels = liger = None
    try:
        from beside import triton_kernels as kernels
    except Exception as error:
        print(f"note: no Triton: {error}", file=sys.stderr)
    try:
        import liger_kernel.ops as liger
    except Exception as error:
        print(f"note: no Liger-Kernel: {error}", file=sys.stderr)
    return kernels, liger


# -- the process that holds the GPU

def work_through(options):
    """Writes a line of JSON for each work, on what was stdout; all else goes to stderr."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(**what):
        out.write(json.dumps(what) + "\n")
        out.flush()

    import torch
    from beside import contest, launch
    torch.set_grad_enabled(False)
    torch.backends.cuda.matmul.allow_tf32 = False
    works = load_works(options)
    say(event="started", works=len(works), gpu=torch.cuda.get_device_name(0), torch=torch.__version__)
    torch.zeros(1, device="cuda")
    library = launch.Library(options.library)
    chains = sorted({w.chain for w in works if w.chain} | {s.chain for s in steps_of(works)})
    tuned = launch.Dispatcher(library, options.db, chains)
    untuned = launch.Dispatcher(library, None, chains)
    for index in range(options.start, options.end):
        work = works[index]
        row = {"op": work.op, "problem": work.problem_text}
        if time.time() > options.until:
            say(event="row", index=index, row=row | {"error": "there was no time left"})
            continue
        say(event="begins", index=index)
        began = time.time()
        try:
            row = row_of(contest, work, tuned, untuned, options)
        except Exception as error:  # one problem's trouble must not cost the others' rows
            row["error"] = contest.one_line(error)
        row["took_s"] = time.time() - began
        say(event="row", index=index, row=row)
        torch._dynamo.reset()
        torch.cuda.synchronize()  # a broken context ends the process here, and another one goes on behind this work
        torch.cuda.empty_cache()
    say(event="done")


def row_of(contest, work, tuned, untuned, options):
    sets = contest.sets_of(work)
    ours, default = contest.Ours(tuned, work, sets), contest.Ours(untuned, work, sets)
    steps = contest.Steps(tuned, work, sets) if work.steps and not options.no_steps else None
    apart = None
    if options.apart and not work.small:
        apart = contest.Ours(tuned, work, contest.sets_of(work, apart=True))
    row = contest.hold(work, ours, default, sets, options.kernels, steps, apart, options.rounds)
    if steps:
        row["step_bytes"] = work.step_bytes
    return row


def watch(options, works, start, end):
    """Runs that process for works from `start` on, and another one behind the work at which one died or hung. Returns
    rows by number, and what it said of itself."""
    rows, facts = {}, {}
    while start < end:
        child, said = begin_worker(options, start, end), {}
        at, why = listen(child, options.limit, start, rows, said)
        child.wait()
        facts = said or facts
        if not why:
            break
        if not said:
            print(f"error: the process that holds the GPU does not start (exit code {child.returncode})",
                  file=sys.stderr)
            break
        if at < end and at not in rows:
            why = why if why != "ended" else f"ended its process with {child.returncode}"
            rows[at] = {"op": works[at].op, "problem": works[at].problem_text, "error": why}
            print_row(rows[at])
        start = at + 1 if at in rows else at
    return rows, facts


def begin_worker(options, start, end):
    command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--worker", "--start", str(start),
               "--end", str(end), "--db", options.db, "--until", str(options.until),
               "--cub-library", options.cub_library or ""]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def listen(child, limit_s, at, rows, said):
    """Takes rows, and what it says of itself, in as they come. Returns the work that it is at, and why no more come: ''
    where it is through, 'ended', or that it hung, when it was killed."""
    lines = queue.Queue()
    threading.Thread(target=lambda: [lines.put(line) for line in child.stdout] + [lines.put(None)], daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=limit_s)
        except queue.Empty:
            child.kill()
            return at, f"hung for {limit_s} s"
        if line is None:
            return at, "ended"
        event = json.loads(line)
        if event["event"] == "started":
            said.update(event)
        elif event["event"] == "begins":
            at = event["index"]
        elif event["event"] == "row":
            rows[event["index"]] = event["row"]
            at = event["index"] + 1
            print_row(event["row"])
        elif event["event"] == "done":
            return at, ""


# -- words

def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--autotune", required=True)
    parser.add_argument("--library", help="libautotune.so.1; in lib/ beside bin/ without it")
    parser.add_argument("--budget", help="of a problem's search: 4s, quick 1s")
    parser.add_argument("--db", default="")
    parser.add_argument("--tuned", action="store_true", help="search nothing: --db has it")
    parser.add_argument("--only", default="", help="ops, with commas between; chains: all chains")
    parser.add_argument("--quick", action="store_true", help="one or two problems an op")
    parser.add_argument("--no-steps", action="store_true", help="no steps of chains one by one")
    parser.add_argument("--apart", action="store_true", help="ours also where no two tensors lie a power of two apart")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float, default=1e6, help="begin no more problems after so long")
    parser.add_argument("--limit", type=float, default=90, help="seconds that a problem may take")
    parser.add_argument("--tune-flags", default="", help="more words for autotune tune")
    parser.add_argument("--list", action="store_true", help="print what would be compared, and end")
    parser.add_argument("--json", help="a file for all rows")
    # What one process of this says to the other.
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--start", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--end", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--cub-library", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.autotune = os.path.abspath(options.autotune)
    beside_bin = os.path.join(os.path.dirname(options.autotune), "..", "lib", "libautotune.so.1")
    options.library = options.library or beside_bin
    options.budget = options.budget or ("1s" if options.quick else "4s")
    options.rounds = options.rounds or (5 if options.quick else 9)
    options.only = [name for name in options.only.split(",") if name]
    options.until = options.until or time.time() + options.seconds
    # The process that tunes does not import what might open the GPU.
    options.kernels, options.liger = beside_modules() if options.worker or options.list else (None, None)
    options.cub = None
    if options.cub_library:
        from beside.cub import Cub
        options.cub = Cub(options.cub_library)
    return options


if __name__ == "__main__":
    sys.exit(main())
