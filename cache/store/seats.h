#ifndef AUTOTUNE_CACHE_STORE_SEATS_H
#define AUTOTUNE_CACHE_STORE_SEATS_H

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cache/store/database.h"
#include "cache/store/record.h"
#include "cache/store/shared_rows.h"

namespace autotune {

/// A record as its table holds it. The ids are of interned rows.
struct RecordRow {
    RecordKey key{};
    std::int64_t config = 0;
    RunUuid run{};
    SharedRow setting{};
    std::int64_t time_ns = 0, low_ns = 0, high_ns = 0, samples = 0;
    std::int64_t default_ns = -1;  ///< -1: none
    std::int64_t evaluated = 0, space_size = 0, verified = 0, tuned_at = 0;
    double max_error = 0;
    std::uint32_t crc = 0;  ///< of what the record says; the table's is changed by that of its setting
};

struct PredictionKey {
    std::string model{};  ///< model_of(device)
    std::int64_t source = 0;
    ProblemRef problem{};
    std::string model_version{};
    std::int64_t rank = 0;
};
/// A prediction as its table holds it.
struct PredictionRow {
    PredictionKey key{};
    std::int64_t config = 0, time_ns = 0;
    bool checked = false;
    RunUuid run{};
};

inline std::string text_of_blob(std::span<const std::byte> blob) {
    return {reinterpret_cast<const char*>(blob.data()), blob.size()};
}

/// The statements of a table of rows that compete, and of that beside it, out of its columns: the key's first, then who
/// brought the row, then the others.
template <class Seats>
struct SeatSql {
    static std::string list(std::size_t count) {
        return fmt::format("{}", fmt::join(Seats::columns.begin(), Seats::columns.begin() + count, ", "));
    }
    static std::string table(bool beside) { return fmt::format("{}{}", Seats::table, beside ? "_beside" : ""); }
    static std::string at_key() {
        std::string text;
        for (std::size_t i = 0; i < Seats::key_size; ++i)
            text += fmt::format("{}{} = ?{}", i == 0 ? "" : " AND ", Seats::columns[i], i + 1);
        return text;
    }
    static std::string key_columns() { return list(Seats::key_size); }
    static std::string select(bool beside) {
        return fmt::format("SELECT {} FROM {} WHERE {}", list(Seats::columns.size()), table(beside), at_key());
    }
    static std::string clear(bool beside) { return fmt::format("DELETE FROM {} WHERE {}", table(beside), at_key()); }
    static std::string insert(std::string_view or_what, bool beside, std::string_view otherwise) {
        std::string marks;
        for (std::size_t i = 0; i < Seats::columns.size(); ++i) marks += i == 0 ? "?" : ",?";
        return fmt::format("INSERT {}INTO {} ({}) VALUES ({}){}", or_what, table(beside), list(Seats::columns.size()),
                           marks, otherwise);
    }
};

struct RecordSeats {
    using Row = RecordRow;
    using Key = RecordKey;
    static constexpr const char* table = "record";
    enum Column {
        device,
        source,
        form,
        numbers,
        nvrtc_major,
        nvrtc_minor,
        rank,
        import,
        config,
        time,
        low,
        high,
        samples,
        default_time,
        evaluated,
        space_size,
        verified,
        max_error,
        run,
        setting,
        tuned_at,
        crc,
        count
    };
    static constexpr std::array<std::string_view, count> columns{
        "device",   "template", "form",  "numbers", "nvrtc_major", "nvrtc_minor", "rank",      "import",
        "config",   "time_ns",  "lo_ns", "hi_ns",   "samples",     "default_ns",  "evaluated", "space_size",
        "verified", "max_err",  "run",   "setting", "tuned_at",    "crc"};
    static constexpr std::size_t key_size = import;

    /// Tells `out` a column's value: a number, a real one, bytes, or nothing at all.
    template <class Out>
    static void give(const Row& r, std::int64_t brought_by, int column, const Out& out) {
        switch (static_cast<Column>(column)) {
            case device:
                return out(r.key.device);
            case source:
                return out(r.key.source);
            case form:
                return out(r.key.problem.form);
            case numbers:
                return out(r.key.problem.blob());
            case nvrtc_major:
                return out(std::int64_t{r.key.nvrtc_major});
            case nvrtc_minor:
                return out(std::int64_t{r.key.nvrtc_minor});
            case rank:
                return out(std::int64_t{r.key.rank});
            case import:
                return out(brought_by);
            case config:
                return out(r.config);
            case time:
                return out(r.time_ns);
            case low:
                return out(r.low_ns);
            case high:
                return out(r.high_ns);
            case samples:
                return out(r.samples);
            case default_time:
                if (r.default_ns >= 0) out(r.default_ns);
                return;
            case evaluated:
                return out(r.evaluated);
            case space_size:
                return out(r.space_size);
            case verified:
                return out(r.verified);
            case max_error:
                return out(r.max_error);
            case run:
                return out(std::span<const std::byte>{r.run});
            case setting:
                return out(r.setting.id);
            case tuned_at:
                return out(r.tuned_at);
            case crc:
                return out(std::int64_t{short_crc(r.crc ^ r.setting.crc)});
            case count:
                return;
        }
    }
    static void bind_key(Query& query, const Key& k) {
        query.bind(k.device, k.source, k.problem.form, k.problem.blob(), k.nvrtc_major, k.nvrtc_minor, k.rank);
    }
    static Key key_of(const Query& row) {
        return {.device = row.integer(device),
                .source = row.integer(source),
                .problem = {.form = row.integer(form), .numbers = text_of_blob(row.blob(numbers))},
                .nvrtc_major = static_cast<int>(row.integer(nvrtc_major)),
                .nvrtc_minor = static_cast<int>(row.integer(nvrtc_minor)),
                .rank = static_cast<int>(row.integer(rank))};
    }
    /// With the setting's id alone, and the table's crc.
    static Row row_of(const Query& row) {
        return {.key = key_of(row),
                .config = row.integer(config),
                .run = uuid_or_none(row.blob(run)),
                .setting = {.id = row.integer(setting)},
                .time_ns = row.integer(time),
                .low_ns = row.integer(low),
                .high_ns = row.integer(high),
                .samples = row.integer(samples),
                .default_ns = row.null(default_time) ? -1 : row.integer(default_time),
                .evaluated = row.integer(evaluated),
                .space_size = row.integer(space_size),
                .verified = row.integer(verified),
                .tuned_at = row.integer(tuned_at),
                .max_error = row.real(max_error),
                .crc = static_cast<std::uint32_t>(row.integer(crc))};
    }

private:
    static RunUuid uuid_or_none(std::span<const std::byte> blob) noexcept {
        RunUuid uuid{};
        if (blob.size() == uuid.size()) std::ranges::copy(blob, uuid.begin());
        return uuid;
    }
    friend struct PredictionSeats;
};

struct PredictionSeats {
    using Row = PredictionRow;
    using Key = PredictionKey;
    static constexpr const char* table = "predicted";
    enum Column { model, source, form, numbers, model_version, rank, import, config, time, checked, run, count };
    static constexpr std::array<std::string_view, count> columns{"device_model",  "template", "form",   "numbers",
                                                                 "model_version", "rank",     "import", "config",
                                                                 "time_ns",       "checked",  "run"};
    static constexpr std::size_t key_size = import;

    template <class Out>
    static void give(const Row& r, std::int64_t brought_by, int column, const Out& out) {
        switch (static_cast<Column>(column)) {
            case model:
                return out(std::string_view{r.key.model});
            case source:
                return out(r.key.source);
            case form:
                return out(r.key.problem.form);
            case numbers:
                return out(r.key.problem.blob());
            case model_version:
                return out(std::string_view{r.key.model_version});
            case rank:
                return out(r.key.rank);
            case import:
                return out(brought_by);
            case config:
                return out(r.config);
            case time:
                return out(r.time_ns);
            case checked:
                return out(std::int64_t{r.checked});
            case run:
                return out(std::span<const std::byte>{r.run});
            case count:
                return;
        }
    }
    static void bind_key(Query& query, const Key& k) {
        query.bind(k.model, k.source, k.problem.form, k.problem.blob(), k.model_version, k.rank);
    }
    static Key key_of(const Query& row) {
        return {.model = std::string{row.text(model)},
                .source = row.integer(source),
                .problem = {.form = row.integer(form), .numbers = text_of_blob(row.blob(numbers))},
                .model_version = std::string{row.text(model_version)},
                .rank = row.integer(rank)};
    }
    static Row row_of(const Query& row) {
        return {.key = key_of(row),
                .config = row.integer(config),
                .time_ns = row.integer(time),
                .checked = row.integer(checked) != 0,
                .run = RecordSeats::uuid_or_none(row.blob(run))};
    }
};

}  // namespace autotune
#endif
