#!/usr/bin/env python3
"""Row ops, reductions, layout, lists and chains beside what people would use instead, in one run on one card.

  rowops.py --autotune build/release/bin/autotune [--library build/release/lib/libautotune.so.1] [--only softmax] [--quick]

Tunes each problem (what the database holds already is not searched again), then launches the winner through the
dispatcher of libautotune.so on PyTorch's tensors and stream, beside eager PyTorch, torch.compile, kernels in Triton,
Liger-Kernel and CUB where they are there, and a copy of as many bytes. Each result is compared with PyTorch's first: one
that is wrong is said and not timed. A sample is a graph of about 2 ms over rotated sets of fresh data, so that L2 is cold;
rounds are interleaved in random order. A ratio is the median over rounds of theirs / ours. Needs PyTorch with CUDA.
"""
import argparse
import json
import math
import os
import queue
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))


# -- what is compared

def load_works(options):
    """Needs PyTorch, and no GPU yet."""
    from beside import chain_works, row_ops
    works = row_ops.row_ops(options.kernels, options.liger, options.cub) + chain_works.chains(options.kernels, options.liger)
    for place, work in enumerate(works):
        work.place = place
    works = [w for w in works if not options.only or w.op in options.only or ("chains" in options.only and w.chain)]
    # The most telling of each op first, in case time runs out.
    works.sort(key=lambda w: not w.quick)
    return [w for w in works if w.quick] if options.quick else works


def steps_of(works):
    """Every step of a chain once, as (chain, problem)."""
    found = {}
    for work in works:
        for step in work.steps:
            found[(step.chain, tuple(step.problem.items()))] = step
    return list(found.values())


# -- tuning: before this job has a context on the GPU, which would taint every measurement

def tune(options, works):
    """Tunes all in one process, and what that has left, one process for each op. Returns (op, problem) -> summary, and
    op -> what went wrong."""
    groups = {}
    for work in works + ([] if options.no_steps else steps_of(works)):
        text = ",".join(f"{k}={v}" for k, v in work.problem.items())
        lines, chain = groups.setdefault(work.op, ([], work.chain))
        if text not in lines:
            lines.append(text)
    summaries, errors = {}, {}
    until = time.time() + 0.6 * (options.until - time.time())  # what is not tuned by then runs its default
    left = lambda op: [p for p in groups[op][0] if (op, p) not in summaries]
    said = run_tune(options, groups, summaries, until) if time.time() < until else "there was no time left"
    for op in groups:
        if left(op) and time.time() < until:
            said = run_tune(options, {op: (left(op), groups[op][1])}, summaries, until)
        if left(op):
            errors[op] = said
            print(f"error: {op} {'; '.join(left(op))} was not tuned: {said}", file=sys.stderr, flush=True)
    return summaries, errors


def run_tune(options, groups, summaries, until):
    """One process for these, interrupted when its time is over. Adds to the summaries, and returns how it ended."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file, tempfile.TemporaryFile("w+") as notices:
        file.write("".join(f"{op} {p}\n" for op, (problems, _) in groups.items() for p in problems))
        file.flush()
        chains = [word for _, chain in groups.values() if chain for word in ("--chain", chain)]
        command = [options.autotune, "tune", "--problems", file.name, "--budget", options.budget, "--db", options.db, "--json",
                   "--progress", "none", *chains, *shlex.split(options.tune_flags)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=notices, text=True)
        alarm = threading.Timer(min(until - time.time(), 1e6), lambda: child.send_signal(signal.SIGINT))
        alarm.start()
        for line in child.stdout:
            event = json.loads(line)
            if event["event"] != "summary":
                continue
            op, best, default = event["op"], event.get("best"), event.get("default")
            problem = match(groups[op][0], event["problem"])
            summaries[(op, problem)] = event
            print(f"tuned {op} {problem}: {event['elapsed_s']:.1f} s, {event['tried']} of {event['valid']:.0f} configs" +
                  (f", {best['time_us']:.2f} us" if best else ", none is right") +
                  (f", default {default['time_us']:.2f}" if default else ""), flush=True)
        child.wait()
        alarm.cancel()
        notices.seek(0)
        said = [line for line in notices.read().splitlines() if line.strip()][-3:]
        return f"exit code {child.returncode}: {' | '.join(said)}"


def match(texts, problem):
    """Which of the problems that were asked for this is: of those that agree with it, that which says most."""
    said = {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in problem.items()}
    agreeing = [text for text in texts if all(said.get(k) == v for k, v in (pair.split("=") for pair in text.split(",")))]
    return max(agreeing, key=len, default=",".join(f"{k}={v}" for k, v in said.items()))


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
        if time.time() > options.until:
            say(event="row", index=index, row={"op": work.op, "problem": work.problem_text, "error": "there was no time left"})
            continue
        say(event="begins", index=index)
        began = time.time()
        try:
            sets = contest.sets_of(work)
            ours, default = contest.Ours(tuned, work, sets), contest.Ours(untuned, work, sets)
            steps = contest.Steps(tuned, work, sets) if work.steps and not options.no_steps else None
            apart = contest.Ours(tuned, work, contest.sets_of(work, apart=True)) if options.apart and not work.small else None
            row = contest.hold(work, ours, default, sets, options.kernels, steps, apart, options.rounds)
            if steps:
                row["step_bytes"] = work.step_bytes
        except Exception as error:  # one problem's trouble must not cost the others' rows
            row = {"op": work.op, "problem": work.problem_text, "error": contest.one_line(error)}
        row["took_s"] = time.time() - began
        say(event="row", index=index, row=row)
        sets = ours = default = steps = apart = None
        torch._dynamo.reset()
        torch.cuda.synchronize()  # a broken context ends the process here, and another one goes on behind this work
        torch.cuda.empty_cache()
    say(event="done")


def watch(options, works, start, end):
    """Runs that process for works from `start` on, and another one behind the work at which one died or hung. Returns rows
    by number, and what it said."""
    rows, facts = {}, {}
    while start < end:
        command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--worker", "--start", str(start), "--end", str(end), "--db", options.db,
                   "--until", str(options.until), "--cub-library", options.cub_library or ""]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        lines = queue.Queue()
        threading.Thread(target=lambda: [lines.put(line) for line in child.stdout] + [lines.put(None)], daemon=True).start()
        at, started, done, hung = start, False, False, False
        while True:
            try:
                line = lines.get(timeout=options.limit)
            except queue.Empty:
                hung = True
                child.kill()
                break
            if line is None:
                break
            event = json.loads(line)
            if event["event"] == "started":
                facts, started = event, True
            elif event["event"] == "begins":
                at = event["index"]
            elif event["event"] == "row":
                rows[event["index"]] = event["row"]
                at = event["index"] + 1
                print_row(event["row"])
            done = done or event["event"] == "done"
        child.wait()
        if done:
            break
        if not started:
            print(f"error: the process that holds the GPU does not start (exit code {child.returncode})", file=sys.stderr)
            break
        if at < end and at not in rows:
            why = f"hung for {options.limit} s" if hung else f"ended its process with {child.returncode}"
            rows[at] = {"op": works[at].op, "problem": works[at].problem_text, "error": why}
            print_row(rows[at])
        start = at + 1 if at in rows else at
    return rows, facts


# -- what is said

def print_row(row):
    if row.get("error") or row.get("wrong"):
        print(f"{row['op']} {row['problem']}: {row.get('error') or 'WRONG: ' + row['wrong']}", flush=True)
        return
    beside = ", ".join(f"{name} {b['us']:.2f} ({b['ratio']:.2f})" for name, b in row["beside"].items())
    print(f"{row['op']} {row['problem']}: {row['us']:.2f} us, copy {row['copy_us']:.2f}; {beside} [{row['took_s']:.1f} s]", flush=True)
    if row["small"]:
        print("    a call: " + ", ".join(f"{name} {us:.2f}" for name, us in row["call_us"].items()), flush=True)
    for name, note in row["notes"].items():
        print(f"    {name}: {note}", flush=True)


def best_other(row):
    others = {name: b for name, b in row["beside"].items() if name not in ("default", "steps", "apart")}
    return min(others.items(), key=lambda item: item[1]["us"]) if others else None


def geometric_mean(values):
    return math.exp(statistics.mean(math.log(v) for v in values)) if values else float("nan")


def summarise(rows, facts, summaries, tuning_s, options):
    timed = [r for r in rows if "us" in r]
    print(f"\n{facts.get('gpu', 'no GPU')}, PyTorch {facts.get('torch', '?')}; cold L2; share: of what a copy of as many bytes reaches; ratio: theirs / "
          f"ours, median [5 %, 95 %] of {options.rounds} rounds; gain: default / ours")
    print(f"{'op':<19}{'problem':<58}{'us':>9} {'share':>6}  {'best other':<20}{'ratio':>6} {'':<15}{'gain':>5} {'tuned in':>8}")
    for row in rows:
        if "us" not in row:
            print(f"{row['op']:<19}{shorter(row['problem']):<58}{row.get('error') or 'WRONG: ' + row['wrong']}")
            continue
        other = best_other(row)
        text = f"{other[0] + ' ' + format(other[1]['us'], '.2f'):<20}{other[1]['ratio']:>6.2f} [{other[1]['interval'][0]:.2f}, {other[1]['interval'][1]:.2f}]" if other else " " * 40
        gain = row["beside"].get("default", {}).get("ratio", float("nan"))
        took = summaries.get((row["op"], row["problem"]), {}).get("elapsed_s", float("nan"))
        print(f"{row['op']:<19}{shorter(row['problem']):<58}{row['us']:>9.2f} {row['copy_us'] / row['us']:>6.3f}  {text:<41}{gain:>5.2f} {took:>6.1f} s")
    small = [r for r in timed if r["small"]]
    if small:
        print("\nsmall ones, one call from Python after the other, us")
        for row in small:
            print(f"{row['op']:<19}{shorter(row['problem']):<58}" + "  ".join(f"{n} {us:.2f}" for n, us in row["call_us"].items() if n not in ("steps", "default")))
    fused = [r for r in timed if "steps" in r["beside"]]
    if fused:
        print("\nchains: how much more time and how many more bytes their steps take, one kernel each, beside the fused one")
        for row in fused:
            times, moved = row["beside"]["steps"]["ratio"], row["step_bytes"] / row["bytes"]
            eager = row["beside"].get("eager", {}).get("ratio", float("nan"))
            print(f"{row['op']:<19}{row['chain'].split(' = ')[1]:<40}time {times:.2f}, bytes {moved:.2f}, the one by the other {times / moved:.2f}; eager PyTorch's time {eager:.2f}")
    large = [r for r in timed if not r["small"]]
    for name, some in (("large", large), ("small", small)):
        ratios = [(best_other(r)[1]["ratio"], r) for r in some if best_other(r)]
        shares = [(r["copy_us"] / r["us"], r) for r in some]
        gains = [r["beside"]["default"]["ratio"] for r in some if "default" in r["beside"]]
        if not ratios:
            continue
        worst, least = min(ratios, key=lambda x: x[0]), min(shares, key=lambda x: x[0])
        text = f"{name}: {len(some)} problems; ratio to the best other: geometric mean {geometric_mean([r for r, _ in ratios]):.3f}, worst {worst[0]:.3f} ({worst[1]['op']} {shorter(worst[1]['problem'])})"
        if name == "large":
            text += f"; share of copy: geometric mean {geometric_mean([s for s, _ in shares]):.3f}, worst {least[0]:.3f} ({least[1]['op']} {shorter(least[1]['problem'])}), {sum(s >= 0.94 for s, _ in shares)} at 0.94 or more"
        print(text + f"; gain over the default: geometric mean {geometric_mean(gains):.3f}, most {max(gains, default=float('nan')):.2f}")
    apart = [(r["beside"]["apart"]["ratio"], r) for r in timed if "apart" in r["beside"]]
    if apart:
        least = min(apart, key=lambda x: x[0])
        print(f"where no two tensors lie a power of two apart ours takes {geometric_mean([a for a, _ in apart]):.3f} of the time, at least {least[0]:.3f} "
              f"({least[1]['op']} {shorter(least[1]['problem'])})")
    failed = [r for r in rows if "us" not in r]
    print(f"{len(timed)} timed, {sum('wrong' in r and bool(r['wrong']) for r in rows)} wrong, {len(failed)} without a time; tuning took {tuning_s:.0f} s for {len(summaries)} problems, budget {options.budget} each")
    return bool(failed) or not timed


def shorter(problem):
    return problem.replace("dtype=", "").replace("=true", "").replace(",causal=false", "").replace("batch=1,", "")[:57]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--autotune", required=True)
    parser.add_argument("--library", help="libautotune.so.1; in lib/ beside bin/ without it")
    parser.add_argument("--budget", help="of a problem's search: 4s, quick 1s")
    parser.add_argument("--db", default="")
    parser.add_argument("--only", "--ops-only", default="", help="ops, with commas between; chains: all chains")
    parser.add_argument("--quick", action="store_true", help="one or two problems an op")
    parser.add_argument("--no-steps", action="store_true", help="no steps of chains one by one")
    parser.add_argument("--apart", action="store_true", help="ours also where no two tensors lie a power of two apart")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float, default=1e6, help="begin no more problems after so long")
    parser.add_argument("--limit", type=float, default=90, help="seconds that a problem may take")
    parser.add_argument("--tune-flags", default="", help="more words for autotune tune")
    parser.add_argument("--list", action="store_true", help="print what would be compared, and end")
    parser.add_argument("--json", help="a file for all rows")
    for hidden in ("--worker",):
        parser.add_argument(hidden, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--start", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--end", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--cub-library", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.autotune = os.path.abspath(options.autotune)
    options.library = options.library or os.path.join(os.path.dirname(options.autotune), "..", "lib", "libautotune.so.1")
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
            print(f"{work.chain or work.op} {work.problem_text}: {work.bytes / 2 ** 20:.2f} MiB; " + ", ".join(work.contenders()))
        return 0
    if not os.access(options.autotune, os.X_OK) or not os.path.exists(options.library):
        print(f"error: there is no {options.autotune} or no {options.library}: make gpu-build makes them", file=sys.stderr)
        return 1
    from beside import cub
    folder = tempfile.mkdtemp()
    options.db = options.db or os.path.join(folder, "rowops.db")
    building = cub.begin_build(folder)
    summaries, errors, found, facts, tuning_s, start = {}, {}, {}, {}, 0.0, 0
    # The most telling ones first, tuned and timed, then the others: rows are there when time runs out.
    for end in sorted({sum(w.quick for w in works), len(works)} - {0}):
        began = time.time()
        summaries_here, errors_here = tune(options, works[start:end])
        tuning_s += time.time() - began
        summaries |= summaries_here
        errors |= errors_here
        if building and building.wait() == 0:
            options.cub_library = cub.library_in(folder)
        elif not start:
            print("note: no CUB: " + (building.stdout.read()[-500:] if building else "there is no nvcc"), file=sys.stderr)
        rows, said = watch(options, works, start, end)
        found |= rows
        facts = facts or said
        start = end
    rows = [found[i] for i in sorted(found, key=lambda i: works[i].place)]
    failed = summarise(rows, facts, summaries, tuning_s, options)
    if options.json:
        for row in rows:
            row["tuning"] = {k: summaries.get((row["op"], row["problem"]), {}).get(k) for k in ("elapsed_s", "tried", "valid", "gpu_idle_share")}
        with open(options.json, "w") as file:
            json.dump({"facts": facts, "tuning_s": tuning_s, "errors": errors, "rows": rows}, file, indent=1)
    return 1 if failed or errors else 0


if __name__ == "__main__":
    sys.exit(main())
