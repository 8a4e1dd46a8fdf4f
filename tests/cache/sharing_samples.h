#ifndef AUTOTUNE_TESTS_CACHE_SHARING_SAMPLES_H
#define AUTOTUNE_TESTS_CACHE_SHARING_SAMPLES_H

#include <cstddef>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "cache/sharing/taking_in.h"
#include "cache/store/store.h"
#include "tests/cache/samples.h"
#include "tuner/model/op_set.h"

namespace autotune::samples {

/// An op "scale" of two variants, 'vector' (THREADS, VEC, MODE) and 'naive' (THREADS).
const OpSet& shared_ops();
/// The same GPU with the fingerprint of its figures.
DeviceIdentity with_fingerprint(DeviceIdentity device);
/// A sound record of it, as a search leaves it. `run` names the run, also its uuid.
Record shared_record(std::int64_t n, double time_us, const std::string& run = "a", int rank = 0);
Config shared_config(std::int64_t threads, std::int64_t vec = 1, const std::string& mode = "plain");

/// The bytes of a database with the records.
std::vector<std::byte> database_bytes(const std::vector<Record>& records);
std::vector<std::byte> lines_bytes(const std::vector<Record>& records);
std::vector<std::byte> bytes_of(const std::string& text);
/// Files of either kind with random records that compete for few keys, many of which tie in all but one thing. A run is
/// one and the same in every file that has rows of it.
std::vector<std::vector<std::byte>> random_files(std::mt19937_64& random, std::size_t count);
/// One such record.
Record random_record(std::mt19937_64& random, const std::string& run);
/// All lines that the store exports, in their order.
std::string exported(const Store& store);

}  // namespace autotune::samples
#endif
