"""Searches for the problems that are compared: before the process that holds the GPU has a context there, which would
taint every measurement."""
import json
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time


def steps_of(works):
    """Every step of a chain once, as (chain, problem)."""
    found = {}
    for work in works:
        for step in work.steps:
            found[(step.chain, tuple(step.problem.items()))] = step
    return list(found.values())


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

    def left(op):
        return [problem for problem in groups[op][0] if (op, problem) not in summaries]

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
        command = [options.autotune, "tune", "--problems", file.name, "--budget", options.budget, "--db", options.db,
                   "--json", "--progress", "none", *chains, *shlex.split(options.tune_flags)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=notices, text=True)
        alarm = threading.Timer(min(until - time.time(), 1e6), lambda: child.send_signal(signal.SIGINT))
        alarm.start()
        for line in child.stdout:
            event = json.loads(line)
            if event["event"] != "summary":
                continue
            problem = match(groups[event["op"]][0], event["problem"])
            summaries[(event["op"], problem)] = event
            print_summary(problem, event)
        child.wait()
        alarm.cancel()
        notices.seek(0)
        said = [line for line in notices.read().splitlines() if line.strip()][-3:]
        return f"exit code {child.returncode}: {' | '.join(said)}"


def print_summary(problem, event):
    best, default = event.get("best"), event.get("default")
    text = f"tuned {event['op']} {problem}: {event['elapsed_s']:.1f} s, "
    text += f"{event['tried']} of {event['valid']:.0f} configs"
    text += f", {best['time_us']:.2f} us" if best else ", none is right"
    text += f", default {default['time_us']:.2f}" if default else ""
    text += f"; not stored: {event['not_stored']}" if event.get("not_stored") else ""
    print(text, flush=True)


def match(texts, problem):
    """Which of the problems that were asked for this is: of those that agree with it, that which says most."""
    said = {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in problem.items()}

    def agrees(text):
        return all(said.get(k) == v for k, v in (pair.split("=") for pair in text.split(",")))

    return max(filter(agrees, texts), key=len, default=",".join(f"{k}={v}" for k, v in said.items()))
