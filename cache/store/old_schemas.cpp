#include "cache/store/old_schemas.h"

namespace autotune {

const char* const tune_schema_1 = R"sql(
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE device (
    id INTEGER PRIMARY KEY,
    fp TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    vendor TEXT NOT NULL,
    cc INTEGER NOT NULL,
    sm INTEGER NOT NULL,
    core_khz INTEGER NOT NULL,
    bw_gbs INTEGER NOT NULL,
    l2 INTEGER NOT NULL,
    smem_block INTEGER NOT NULL,
    smem_sm INTEGER NOT NULL,
    regs_sm INTEGER NOT NULL,
    threads_sm INTEGER NOT NULL,
    mem_gib REAL NOT NULL,
    mig TEXT NOT NULL,
    ecc INTEGER NOT NULL,
    pci_id TEXT NOT NULL,
    attrs_json TEXT NOT NULL
) STRICT;
CREATE TABLE env (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    nvrtc_major INTEGER NOT NULL,
    nvrtc_minor INTEGER NOT NULL,
    driver TEXT NOT NULL,
    runtime INTEGER NOT NULL,
    emulator INTEGER NOT NULL,
    tool_version TEXT NOT NULL,
    os TEXT NOT NULL
) STRICT;
CREATE TABLE template (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    op TEXT NOT NULL,
    variant TEXT NOT NULL,
    source_hash TEXT NOT NULL,
    space_hash TEXT NOT NULL,
    abi INTEGER NOT NULL,
    manifest_json TEXT NOT NULL
) STRICT;
CREATE TABLE problem (
    id INTEGER PRIMARY KEY,
    op TEXT NOT NULL,
    key BLOB NOT NULL,
    d0 INTEGER, d1 INTEGER, d2 INTEGER, d3 INTEGER, d4 INTEGER, d5 INTEGER, d6 INTEGER, d7 INTEGER,
    text_json TEXT NOT NULL,
    UNIQUE (op, key)
) STRICT;
CREATE TABLE config (
    id INTEGER PRIMARY KEY,
    op TEXT NOT NULL,
    variant TEXT NOT NULL,
    hash TEXT NOT NULL,
    body_json TEXT NOT NULL,
    UNIQUE (op, variant, hash)
) STRICT;
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    uuid TEXT NOT NULL UNIQUE,
    device INTEGER NOT NULL REFERENCES device,
    env INTEGER NOT NULL REFERENCES env,
    problem INTEGER NOT NULL REFERENCES problem,
    started INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    strategy TEXT NOT NULL,
    seed INTEGER NOT NULL,
    budget TEXT NOT NULL,
    effort TEXT NOT NULL,
    clock_policy TEXT NOT NULL,
    locked_mhz INTEGER NOT NULL,
    power_w REAL NOT NULL,
    temp_max REAL NOT NULL,
    l2_policy TEXT NOT NULL,
    graph_mode TEXT NOT NULL,
    tolerance TEXT NOT NULL,
    reference TEXT NOT NULL,
    host_hash TEXT NOT NULL,
    origin TEXT NOT NULL,
    predicted INTEGER NOT NULL
) STRICT;
CREATE INDEX run_by_subject ON run (device, problem);
CREATE TABLE record (
    device INTEGER NOT NULL REFERENCES device,
    template INTEGER NOT NULL REFERENCES template,
    problem INTEGER NOT NULL REFERENCES problem,
    nvrtc_major INTEGER NOT NULL,
    nvrtc_minor INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    config INTEGER NOT NULL REFERENCES config,
    time_ns INTEGER NOT NULL,
    lo_ns INTEGER NOT NULL,
    hi_ns INTEGER NOT NULL,
    samples INTEGER NOT NULL,
    default_ns INTEGER,
    evaluated INTEGER NOT NULL,
    space_size INTEGER NOT NULL,
    effort INTEGER NOT NULL,
    verified INTEGER NOT NULL,
    max_err REAL NOT NULL,
    run INTEGER NOT NULL REFERENCES run,
    tuned_at INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    PRIMARY KEY (device, template, problem, nvrtc_major, nvrtc_minor, rank)
) STRICT, WITHOUT ROWID;
CREATE TABLE negative (
    device INTEGER NOT NULL REFERENCES device,
    template INTEGER NOT NULL REFERENCES template,
    config INTEGER NOT NULL REFERENCES config,
    problem INTEGER NOT NULL,
    env INTEGER NOT NULL REFERENCES env,
    outcome TEXT NOT NULL,
    run INTEGER,
    PRIMARY KEY (device, template, config, problem, env)
) STRICT, WITHOUT ROWID;
CREATE TABLE predicted (
    device_model TEXT NOT NULL,
    template INTEGER NOT NULL REFERENCES template,
    problem INTEGER NOT NULL REFERENCES problem,
    model_version TEXT NOT NULL,
    rank INTEGER NOT NULL,
    config INTEGER NOT NULL REFERENCES config,
    time_ns INTEGER NOT NULL,
    checked INTEGER NOT NULL,
    run INTEGER NOT NULL REFERENCES run,
    PRIMARY KEY (device_model, template, problem, model_version, rank)
) STRICT, WITHOUT ROWID;
CREATE TABLE import_log (
    id INTEGER PRIMARY KEY,
    source_uuid TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    "when" INTEGER NOT NULL,
    policy TEXT NOT NULL,
    rows_in INTEGER NOT NULL,
    accepted INTEGER NOT NULL,
    rejected_json TEXT NOT NULL
) STRICT;
)sql";

const char* const tune_schema_2 = R"sql(
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE device (
    id INTEGER PRIMARY KEY,
    fp TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    vendor TEXT NOT NULL,
    cc INTEGER NOT NULL,
    sm INTEGER NOT NULL,
    core_khz INTEGER NOT NULL,
    bw_gbs INTEGER NOT NULL,
    l2 INTEGER NOT NULL,
    smem_block INTEGER NOT NULL,
    smem_sm INTEGER NOT NULL,
    regs_sm INTEGER NOT NULL,
    threads_sm INTEGER NOT NULL,
    mem_gib REAL NOT NULL,
    mig TEXT NOT NULL,
    ecc INTEGER NOT NULL,
    pci_id TEXT NOT NULL,
    attrs_json TEXT NOT NULL
) STRICT;
CREATE TABLE env (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    nvrtc_major INTEGER NOT NULL,
    nvrtc_minor INTEGER NOT NULL,
    driver TEXT NOT NULL,
    runtime INTEGER NOT NULL,
    emulator INTEGER NOT NULL,
    tool_version TEXT NOT NULL,
    os TEXT NOT NULL
) STRICT;
CREATE TABLE template (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    op TEXT NOT NULL,
    variant TEXT NOT NULL,
    source_hash TEXT NOT NULL,
    space_hash TEXT NOT NULL,
    abi INTEGER NOT NULL,
    manifest_json TEXT NOT NULL
) STRICT;
CREATE TABLE problem (
    id INTEGER PRIMARY KEY,
    op TEXT NOT NULL,
    key BLOB NOT NULL,
    d0 INTEGER, d1 INTEGER, d2 INTEGER, d3 INTEGER, d4 INTEGER, d5 INTEGER, d6 INTEGER, d7 INTEGER,
    text_json TEXT NOT NULL,
    UNIQUE (op, key)
) STRICT;
CREATE TABLE config (
    id INTEGER PRIMARY KEY,
    op TEXT NOT NULL,
    variant TEXT NOT NULL,
    hash TEXT NOT NULL,
    body_json TEXT NOT NULL,
    UNIQUE (op, variant, hash)
) STRICT;
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    uuid TEXT NOT NULL UNIQUE,
    device INTEGER NOT NULL REFERENCES device,
    env INTEGER NOT NULL REFERENCES env,
    problem INTEGER NOT NULL REFERENCES problem,
    started INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    strategy TEXT NOT NULL,
    seed INTEGER NOT NULL,
    budget TEXT NOT NULL,
    effort TEXT NOT NULL,
    clock_policy TEXT NOT NULL,
    locked_mhz INTEGER NOT NULL,
    power_w REAL NOT NULL,
    temp_max REAL NOT NULL,
    l2_policy TEXT NOT NULL,
    graph_mode TEXT NOT NULL,
    tolerance TEXT NOT NULL,
    reference TEXT NOT NULL,
    host_hash TEXT NOT NULL,
    origin TEXT NOT NULL,
    predicted INTEGER NOT NULL,
    import INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX run_by_subject ON run (device, problem);
CREATE TABLE record (
    device INTEGER NOT NULL REFERENCES device,
    template INTEGER NOT NULL REFERENCES template,
    problem INTEGER NOT NULL REFERENCES problem,
    nvrtc_major INTEGER NOT NULL,
    nvrtc_minor INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    config INTEGER NOT NULL REFERENCES config,
    time_ns INTEGER NOT NULL,
    lo_ns INTEGER NOT NULL,
    hi_ns INTEGER NOT NULL,
    samples INTEGER NOT NULL,
    default_ns INTEGER,
    evaluated INTEGER NOT NULL,
    space_size INTEGER NOT NULL,
    effort INTEGER NOT NULL,
    verified INTEGER NOT NULL,
    max_err REAL NOT NULL,
    run INTEGER NOT NULL REFERENCES run,
    tuned_at INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    import INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (device, template, problem, nvrtc_major, nvrtc_minor, rank)
) STRICT, WITHOUT ROWID;
CREATE TABLE negative (
    device INTEGER NOT NULL REFERENCES device,
    template INTEGER NOT NULL REFERENCES template,
    config INTEGER NOT NULL REFERENCES config,
    problem INTEGER NOT NULL,
    env INTEGER NOT NULL REFERENCES env,
    outcome TEXT NOT NULL,
    run INTEGER,
    PRIMARY KEY (device, template, config, problem, env)
) STRICT, WITHOUT ROWID;
CREATE TABLE predicted (
    device_model TEXT NOT NULL,
    template INTEGER NOT NULL REFERENCES template,
    problem INTEGER NOT NULL REFERENCES problem,
    model_version TEXT NOT NULL,
    rank INTEGER NOT NULL,
    config INTEGER NOT NULL REFERENCES config,
    time_ns INTEGER NOT NULL,
    checked INTEGER NOT NULL,
    run INTEGER NOT NULL REFERENCES run,
    import INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (device_model, template, problem, model_version, rank)
) STRICT, WITHOUT ROWID;
CREATE TABLE import_log (
    id INTEGER PRIMARY KEY,
    source_uuid TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    "when" INTEGER NOT NULL,
    policy TEXT NOT NULL,
    rows_in INTEGER NOT NULL,
    accepted INTEGER NOT NULL,
    rejected_json TEXT NOT NULL
) STRICT;
CREATE TABLE device_beside (
    device INTEGER NOT NULL REFERENCES device,
    import INTEGER NOT NULL REFERENCES import_log,
    name TEXT NOT NULL,
    vendor TEXT NOT NULL,
    core_khz INTEGER NOT NULL,
    mig TEXT NOT NULL,
    ecc INTEGER NOT NULL,
    pci_id TEXT NOT NULL,
    attrs_json TEXT NOT NULL,
    PRIMARY KEY (device, import)
) STRICT, WITHOUT ROWID;
CREATE TABLE record_beside (
    device INTEGER NOT NULL REFERENCES device,
    template INTEGER NOT NULL REFERENCES template,
    problem INTEGER NOT NULL REFERENCES problem,
    nvrtc_major INTEGER NOT NULL,
    nvrtc_minor INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    import INTEGER NOT NULL,
    config INTEGER NOT NULL REFERENCES config,
    time_ns INTEGER NOT NULL,
    lo_ns INTEGER NOT NULL,
    hi_ns INTEGER NOT NULL,
    samples INTEGER NOT NULL,
    default_ns INTEGER,
    evaluated INTEGER NOT NULL,
    space_size INTEGER NOT NULL,
    effort INTEGER NOT NULL,
    verified INTEGER NOT NULL,
    max_err REAL NOT NULL,
    run INTEGER NOT NULL REFERENCES run,
    tuned_at INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    PRIMARY KEY (device, template, problem, nvrtc_major, nvrtc_minor, rank, import)
) STRICT, WITHOUT ROWID;
CREATE TABLE predicted_beside (
    device_model TEXT NOT NULL,
    template INTEGER NOT NULL REFERENCES template,
    problem INTEGER NOT NULL REFERENCES problem,
    model_version TEXT NOT NULL,
    rank INTEGER NOT NULL,
    import INTEGER NOT NULL,
    config INTEGER NOT NULL REFERENCES config,
    time_ns INTEGER NOT NULL,
    checked INTEGER NOT NULL,
    run INTEGER NOT NULL REFERENCES run,
    PRIMARY KEY (device_model, template, problem, model_version, rank, import)
) STRICT, WITHOUT ROWID;
)sql";

}  // namespace autotune
