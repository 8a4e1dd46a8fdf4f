#!/bin/sh
# Kernel Tuner's own schema and code judge the T4 that we write, it searches the cache that we write, and we read the T4
# and the cache that it writes. Exit code 77, which ctest calls skipped, where Kernel Tuner cannot be installed.
# usage: interop.sh WRITE_T4 FOLDER
set -u
write_t4=$1
folder=$2
venv=$folder/kernel_tuner_venv
if ! "$venv/bin/python" -c 'import kernel_tuner' 2>/dev/null; then
  rm -rf "$venv"
  python3 -m venv "$venv" >/dev/null 2>&1 || { echo "skipped: python3 -m venv does not work here"; exit 77; }
  timeout 500 "$venv/bin/pip" install --quiet kernel_tuner==1.4.0 >"$folder/kernel_tuner_pip.log" 2>&1 ||
    { echo "skipped: pip cannot install kernel_tuner"; tail -2 "$folder/kernel_tuner_pip.log"; exit 77; }
fi
"$write_t4" >"$folder/ours_t4.json" || exit 1
"$write_t4" --cache >"$folder/ours_cache.json" || exit 1
"$venv/bin/python" - "$folder/ours_t4.json" "$write_t4" "$folder" <<'PYTHON'
import json, subprocess, sys
import jsonschema
from kernel_tuner import util
from kernel_tuner.file_utils import get_t4_results, output_file_schema, store_output_file

ours = json.load(open(sys.argv[1]))
version, schema = output_file_schema("results")
jsonschema.validate(ours, schema)
assert ours["schema_version"] == version, version
kinds = {result["invalidity"] for result in ours["results"]}
assert kinds == {"timeout", "compile", "runtime", "correctness", "constraints", "correct"}, kinds

# What Kernel Tuner writes of one result has no key that ours lacks.
row = {"x": 1, "time": 1.5, "times": [1.5], "compile_time": 1.0, "benchmark_time": 1.0, "framework_time": 0.0,
       "strategy_time": 0.0, "verification_time": 0.0, "timestamp": "2024-05-01T10:00:00+00:00"}
theirs = get_t4_results([row], {"x": [1]})
assert set(theirs) <= set(ours), set(theirs) - set(ours)
assert theirs["metadata"]["timeunit"] == ours["metadata"]["timeunit"]
for result in ours["results"]:
    assert set(theirs["results"][0]) <= set(result), result
    assert set(theirs["results"][0]["times"]) <= set(result["times"]), result
timed = [r for r in ours["results"] if r["measurements"]]
assert [m["value"] for r in timed for m in r["measurements"] if m["name"] == r["objectives"][0]] == [1.6]

def reread(path):
    run = subprocess.run([sys.argv[2], path], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)["results"]

# What Kernel Tuner writes reads as what it meant.
folder = sys.argv[3]
failed = dict(row, x=2, __error__=util.CompilationFailedConfig())
del failed["time"]
store_output_file(folder + "/theirs_t4.json", [row, failed], {"x": [1, 2]})
theirs = reread(folder + "/theirs_t4.json")
assert [(r["configuration"]["x"], r["invalidity"]) for r in theirs] == [(1, "correct"), (2, "compile")], theirs
assert theirs[0]["measurements"] == [{"name": "time", "value": 1.5, "unit": "ms"}], theirs
assert theirs[0]["timestamp"] == row["timestamp"] and theirs[0]["times"]["runtimes"] == [1.5], theirs

with open(folder + "/theirs_cache.json", "w") as out:
    out.write(json.dumps({"device_name": "d", "kernel_name": "k", "problem_size": "1", "tune_params_keys": ["x"],
                          "tune_params": {"x": [1, 2]}, "objective": "time", "cache": {}})[:-2])
for key, entry in (("1", row), ("2", failed)):
    util.store_cache(key, entry, folder + "/theirs_cache.json", {})
cached = reread(folder + "/theirs_cache.json")
assert [(r["configuration"]["x"], r["invalidity"]) for r in cached] == [(1, "correct"), (2, "compile")], cached
# Kernel Tuner searches ours in place of a GPU, and finds the times and the failures.
import kernel_tuner
ours_cache = json.load(open(folder + "/ours_cache.json"))
results, _ = kernel_tuner.tune_kernel(
    "softmax", "__global__ void softmax() {}", ours_cache["problem_size"], [], ours_cache["tune_params"], lang="C",
    simulation_mode=True, cache=folder + "/ours_cache.json", strategy="brute_force", quiet=True)
times = {r["THREADS"]: r["time"] for r in results if "__error__" not in r}
assert times == {32: 3.125, 256: 0.390625}, results
failed = {r["THREADS"]: type(r["__error__"]) for r in results if "__error__" in r}
assert failed == {64: util.CompilationFailedConfig, 128: util.RuntimeFailedConfig}, results

print(f"T4 {version}: {len(ours['results'])} results are valid")
PYTHON
