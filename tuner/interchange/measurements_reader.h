#ifndef AUTOTUNE_INTERCHANGE_MEASUREMENTS_READER_H
#define AUTOTUNE_INTERCHANGE_MEASUREMENTS_READER_H

#include <initializer_list>
#include <string>
#include <vector>

#include "tuner/interchange/json_text.h"
#include "tuner/interchange/measurements.h"

// Inside of tuner/interchange: what the readers of results have in common.

namespace autotune {

/// Collects configurations from a file's JSON. Whatever it refuses is an Error{usage} that names the file and the
/// place.
class MeasurementsReader {
public:
    /// Both must outlive it.
    MeasurementsReader(const ForeignJson& root, const std::string& file) : root_{root}, file_{file} {}

protected:
    [[noreturn]] void refuse(const std::string& where, const std::string& what) const;

    static std::string text_or_nothing(const ForeignJson& object, const char* name);
    /// The same of what must be a word where it is there at all.
    std::string word_or_nothing(const ForeignJson& object, const char* name, const std::string& where) const;
    /// unit: milliseconds
    double time_of(const ForeignJson& json, double unit, const std::string& where) const;
    /// Of the first spelling that is there, else 0.
    double time_or_nothing(const ForeignJson& object, std::initializer_list<const char*> spellings, double unit,
                           const std::string& where) const;
    std::vector<double> times(const ForeignJson& object, const char* name, double unit, const std::string& where) const;
    Value value_of(const ForeignJson& json, const std::string& where, const std::string& name) const;
    /// Of `2024-05-01T10:00:00...`, or with a blank for the T; 0: of another spelling.
    static std::int64_t timestamp_of(const std::string& text);

    /// A configuration is complete: one that is neither timed nor failed is a failure.
    void add(MeasuredConfig config);
    Measurements finish();

    const ForeignJson& root_;
    Measurements out_;

private:
    const std::string& file_;
    std::size_t without_time_ = 0;
};

/// Of a root that has `results`.
Measurements measurements_of_t4(const ForeignJson& root, const std::string& file);
/// Of a root that has a `cache`.
Measurements measurements_of_kernel_tuner_cache(const ForeignJson& root, const std::string& file);

}  // namespace autotune
#endif
