#ifndef AUTOTUNE_CACHE_STORE_FOREIGN_DATABASE_H
#define AUTOTUNE_CACHE_STORE_FOREIGN_DATABASE_H

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/store/database.h"

namespace autotune {

/// A file of elsewhere, read whole: what is judged, hashed and used is one and the same, whoever writes to it
/// meanwhile. Throws Error{usage} for a link, a folder, a pipe, an empty file, one above `most` bytes, one that cannot
/// be read.
std::vector<std::byte> read_foreign_file(const std::filesystem::path& path, std::size_t most);

/// A database of elsewhere, as hostile as a file can be. It is opened from memory, without locks, journals or write
/// access; nothing in it runs: no trigger, view, virtual table or function, by limits, by an authorizer, and because a
/// schema that is not ours to the letter is refused. Never attached to another.
class ForeignDatabase {
public:
    struct Limits {
        std::size_t bytes = std::size_t{2} << 30;
        std::chrono::seconds time{120};  ///< that SQLite may work on it, in all
    };

    /// Throws Error{usage} for a file whose last writes lie beside it: before its bytes are read, since a log that goes
    /// meanwhile goes into the file.
    static void require_settled(const std::filesystem::path& path);
    /// Throws Error{usage} for what is no sound database of ours, by the name that stands for the bytes, and the cause.
    static ForeignDatabase of(std::vector<std::byte> bytes, std::string name, const Limits& limits);

    Database& database() noexcept { return database_; }
    const std::string& name() const noexcept { return name_; }
    const std::string& sha256() const noexcept { return sha256_; }  ///< of the whole file
    /// The time that SQLite may take counts from here anew, and a thread of its own begins to check the file's
    /// structure while its rows are read, since that takes as long as reading them. What it finds ends the reading.
    void begin_checks();
    /// Waits for what begin_checks began; throws Error{usage} where the file is damaged: then nothing that was read
    /// counts.
    void require_soundness() const;
    const std::string& uuid() const noexcept { return uuid_; }  ///< as it says of itself
    int schema() const noexcept { return schema_; }
    /// What reads it, with a failure of SQLite, also the time limit's, as an Error{usage}.
    template <class Question>
    auto ask(const Question& question) {
        try {
            return question();
        } catch (const DatabaseFailure& failure) {
            throw_unreadable(failure);
        }
    }

private:
    struct Deadline;  ///< what both connections' progress handlers look at
    /// What the thread finds; damage: empty where there is none.
    struct Checks {
        std::string damage{};
        bool timed_out = false;
    };
    ForeignDatabase(std::vector<std::byte> bytes, std::string name, const Limits& limits);
    static Database guarded(std::span<const std::byte> bytes, Deadline& deadline);
    static Checks checked(std::span<const std::byte> bytes, const std::shared_ptr<Deadline>& deadline);
    void require_our_schema(int version);
    [[noreturn]] void throw_unreadable(const DatabaseFailure& failure) const;

    std::vector<std::byte> bytes_;        ///< SQLite reads them where they are
    std::shared_ptr<Deadline> deadline_;  ///< SQLite holds its address
    std::string name_, sha256_, uuid_;
    int schema_ = 0;
    Database database_;
    std::shared_future<Checks> checks_;  ///< behind the bytes, so that it is waited for before they go
    /// Ends the check of a file that nobody wants any more; goes first.
    struct Stop {
        std::shared_ptr<Deadline> deadline;
        explicit Stop(std::shared_ptr<Deadline> of) : deadline{std::move(of)} {}
        Stop(Stop&&) = default;
        Stop& operator=(Stop&&) = default;
        ~Stop();
    } stop_;
};

}  // namespace autotune
#endif
