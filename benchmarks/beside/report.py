"""What is said of rows: a line each as they come, and the tables in the end."""
import math
import statistics

from .contestants import OURS

GOOD_SHARE = 0.94  # of what a copy of as many bytes reaches


def geometric_mean(values):
    return math.exp(statistics.mean(math.log(v) for v in values)) if values else float("nan")


def shorter(problem):
    for word, instead in (("dtype=", ""), ("=true", ""), (",causal=false", ""), ("batch=1,", "")):
        problem = problem.replace(word, instead)
    return problem[:57]


def name_of(row):
    return f"{row['op']} {shorter(row['problem'])}"


def trouble_of(row):
    """Why a row has no time; '': it has one."""
    return row.get("error") or ("WRONG: " + row["wrong"] if row.get("wrong") else "")


def best_other(row):
    """The fastest of those that are not ours, as (name, what is known of it); None: nothing ran beside ours."""
    others = {name: b for name, b in row["beside"].items() if name not in OURS}
    return min(others.items(), key=lambda item: item[1]["us"]) if others else None


def print_row(row):
    if trouble_of(row):
        print(f"{row['op']} {row['problem']}: {trouble_of(row)}", flush=True)
        return
    beside = ", ".join(f"{name} {b['us']:.2f} ({b['ratio']:.2f})" for name, b in row["beside"].items())
    print(f"{row['op']} {row['problem']}: {row['us']:.2f} us, copy {row['copy_us']:.2f}; {beside} "
          f"[{row['took_s']:.1f} s]", flush=True)
    if row["small"]:
        print("    a call: " + ", ".join(f"{name} {us:.2f}" for name, us in row["call_us"].items()), flush=True)
    for name, note in row["notes"].items():
        print(f"    {name}: {note}", flush=True)


def summarise(rows, facts, summaries, tuning_s, options):
    """Prints the tables. Whether a row failed, or none has a time."""
    timed = [row for row in rows if "us" in row]
    print_table(rows, facts, summaries, options)
    print_calls([row for row in timed if row["small"]])
    print_chains([row for row in timed if "steps" in row["beside"]])
    print_means("large", [row for row in timed if not row["small"]])
    print_means("small", [row for row in timed if row["small"]])
    print_apart([row for row in timed if "apart" in row["beside"]])
    wrong = sum(bool(row.get("wrong")) for row in rows)
    print(f"{len(timed)} timed, {wrong} wrong, {len(rows) - len(timed)} without a time; tuning took {tuning_s:.0f} s "
          f"for {len(summaries)} problems, budget {options.budget} each")
    return len(timed) < len(rows) or not timed


def print_table(rows, facts, summaries, options):
    print(f"\n{facts.get('gpu', 'no GPU')}, PyTorch {facts.get('torch', '?')}; cold L2; share: of what a copy of "
          f"as many bytes reaches; ratio: theirs / ours, median [5 %, 95 %] of {options.rounds} rounds; "
          "gain: default / ours")
    print(f"{'op':<19}{'problem':<58}{'us':>9} {'share':>6}  {'best other':<20}{'ratio':>6} {'':<15}{'gain':>5} "
          f"{'tuned in':>8}")
    for row in rows:
        start = f"{row['op']:<19}{shorter(row['problem']):<58}"
        if "us" not in row:
            print(start + trouble_of(row))
            continue
        gain = row["beside"].get("default", {}).get("ratio", float("nan"))
        took = summaries.get((row["op"], row["problem"]), {}).get("elapsed_s", float("nan"))
        print(f"{start}{row['us']:>9.2f} {row['copy_us'] / row['us']:>6.3f}  {other_text(row):<41}{gain:>5.2f} "
              f"{took:>6.1f} s")


def other_text(row):
    other = best_other(row)
    if not other:
        return ""
    name, b = other
    said = f"{name} {b['us']:.2f}"
    return f"{said:<20}{b['ratio']:>6.2f} [{b['interval'][0]:.2f}, {b['interval'][1]:.2f}]"


def print_calls(rows):
    if rows:
        print("\nsmall ones, one call from Python after the other, us")
    for row in rows:
        calls = "  ".join(f"{n} {us:.2f}" for n, us in row["call_us"].items() if n not in ("steps", "default"))
        print(f"{row['op']:<19}{shorter(row['problem']):<58}{calls}")


def print_chains(rows):
    if rows:
        print("\nchains: how much more time and how many more bytes their steps take, one kernel each, beside the "
              "fused one")
    for row in rows:
        times, moved = row["beside"]["steps"]["ratio"], row["step_bytes"] / row["bytes"]
        eager = row["beside"].get("eager", {}).get("ratio", float("nan"))
        print(f"{row['op']:<19}{row['chain'].split(' = ')[1]:<40}time {times:.2f}, bytes {moved:.2f}, the one by the "
              f"other {times / moved:.2f}; eager PyTorch's time {eager:.2f}")


def print_means(kind, rows):
    held = [row for row in rows if best_other(row)]
    if not held:
        return
    ratio = lambda row: best_other(row)[1]["ratio"]
    share = lambda row: row["copy_us"] / row["us"]
    worst, least = min(held, key=ratio), min(rows, key=share)
    text = (f"{kind}: {len(rows)} problems; ratio to the best other: geometric mean "
            f"{geometric_mean([ratio(row) for row in held]):.3f}, worst {ratio(worst):.3f} ({name_of(worst)})")
    if kind == "large":
        good = sum(share(row) >= GOOD_SHARE for row in rows)
        text += (f"; share of copy: geometric mean {geometric_mean([share(row) for row in rows]):.3f}, worst "
                 f"{share(least):.3f} ({name_of(least)}), {good} at {GOOD_SHARE} or more")
    gains = [row["beside"]["default"]["ratio"] for row in rows if "default" in row["beside"]]
    print(text + f"; gain over the default: geometric mean {geometric_mean(gains):.3f}, "
          f"most {max(gains, default=float('nan')):.2f}")


def print_apart(rows):
    if not rows:
        return
    ratio = lambda row: row["beside"]["apart"]["ratio"]
    least = min(rows, key=ratio)
    mean = geometric_mean([ratio(row) for row in rows])
    print(f"where no two tensors lie a power of two apart ours takes {mean:.3f} of the time, at least "
          f"{ratio(least):.3f} ({name_of(least)})")
