#ifndef AUTOTUNE_CACHE_SHARING_JUDGE_H
#define AUTOTUNE_CACHE_SHARING_JUDGE_H

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/store/key_form.h"
#include "cache/store/record.h"
#include "tuner/model/op_set.h"

namespace autotune {

/// What the keys of some of an op's problems have in common, judged once. The numbers in them are a row's.
struct JudgedForm {
    std::string op{};
    KeyForm form{};
    std::vector<std::string> names{};  ///< of the op's fields, in its order
    /// What a number may be, for each hole.
    struct Rule {
        std::int64_t least = 0, most = 0;
        bool power_of_two = false;
        std::vector<std::int64_t> choices{};  ///< any of these; empty: by the others
    };
    std::vector<Rule> rules{};
};

/// Judges the parts of a record of elsewhere by the ops of here: each answers with the reason to refuse it, or nothing.
/// Config values end up in a compiler's defines, so nothing but the values that the local op declares gets through, and
/// no source, option or path is ever taken from such a record.
class Judge {
public:
    explicit Judge(const OpSet& ops) : ops_{ops} {}

    std::string objection(const DeviceIdentity& device) const;
    /// The same of one that is told in part, as in a program: its fingerprint is not compared with its figures.
    std::string objection_in_part(const DeviceIdentity& device) const;
    std::string objection(const Environment& environment) const;
    /// `hash`: what its file says that it is. The manifest becomes that of the local variant where that is the same.
    std::string objection(TemplateIdentity& source, std::string_view hash) const;
    /// The values come into the op's order.
    std::string objection(std::string_view op, Config& config, std::string_view hash) const;
    std::string objection(const RunInfo& run) const;
    /// Makes a form out of its layout.
    std::string read_form(std::string_view op, std::string_view layout, JudgedForm& form) const;
    /// Whether these are numbers of a problem of the form.
    static std::string objection(const JudgedForm& form, std::string_view numbers);
    /// Makes the problem out of its key, which is all that is taken of it: fields, and JSON.
    std::string read_key(std::string_view op, std::span<const std::byte> key, ProblemIdentity& problem) const;

private:
    const OpSet& ops_;
};

/// Figures of a row, as the database keeps them.
struct RowFigures {
    bool readable = true;  ///< false: one is missing, or of another type than its name says
    int nvrtc_major = 0, nvrtc_minor = 0, rank = 0;
    std::int64_t time_ns = 0, low_ns = 0, high_ns = 0, samples = 0;
    std::int64_t default_ns = -1;  ///< -1: none
    std::int64_t evaluated = 0, space_size = 0, effort = 0, verified = 0, tuned_at = 0;
    double max_error = 0;

    /// Why it is no row that a search leaves; nullptr: it may be one.
    const char* objection() const noexcept;
};

}  // namespace autotune
#endif
