#!/bin/sh
# Kernel Tuner's own schema and code judge the T4 that we write. Exit code 77, which ctest calls skipped, where Kernel
# Tuner cannot be installed.
# usage: interop.sh WRITE_T4 FOLDER
set -u
write_t4=$1
folder=$2
venv=$folder/kernel_tuner_venv
if ! "$venv/bin/python" -c 'import kernel_tuner' 2>/dev/null; then
  rm -rf "$venv"
  python3 -m venv "$venv" >/dev/null 2>&1 || { echo "skipped: python3 -m venv does not work here"; exit 77; }
  timeout 300 "$venv/bin/pip" install --quiet kernel_tuner==1.4.0 >"$folder/kernel_tuner_pip.log" 2>&1 ||
    { echo "skipped: pip cannot install kernel_tuner"; tail -2 "$folder/kernel_tuner_pip.log"; exit 77; }
fi
"$write_t4" >"$folder/ours_t4.json" || exit 1
"$venv/bin/python" - "$folder/ours_t4.json" <<'PYTHON'
import json, sys
import jsonschema
from kernel_tuner.file_utils import get_t4_results, output_file_schema

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
print(f"T4 {version}: {len(ours['results'])} results are valid")
PYTHON
