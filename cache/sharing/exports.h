#ifndef AUTOTUNE_CACHE_SHARING_EXPORTS_H
#define AUTOTUNE_CACHE_SHARING_EXPORTS_H

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

#include "cache/sharing/record_filter.h"

namespace autotune {

struct ExportOptions {
    RecordFilter filter{};
    bool anonymise = false;  ///< see anonymise.h
    Today today{};           ///< for what tells whether a record is stale
};

/// JSON lines, a record each, with full provenance but for a template's manifest, which whoever has the op has too, and
/// for which import a record came by. Equal records give equal bytes, in one order. Returns how many there are.
std::size_t export_lines(const Store& store, const ExportOptions& options,
                         const std::function<void(const std::string& line)>& sink);

/// A database of the records and of the configs that must not be used, without free pages, in rollback mode: for
/// another machine, read-only media, Options::databases. The file appears whole or not at all. Returns how many records
/// it holds. Throws Error{usage} where the file exists or cannot be made, Error{store} where the disk is full.
std::size_t export_database(const Store& store, const ExportOptions& options, const std::filesystem::path& to);

/// Plain tables for viewers, in a file that is no database of autotune: `record`, `trial` and `outcome`, and for each
/// op `record_OP`, with its fields and parameters as columns. Throws as export_database does.
std::size_t export_flat(const Store& store, const ExportOptions& options, const std::filesystem::path& to);

/// The table `record` of export_flat as comma-separated values with a head, by RFC 4180.
std::size_t export_csv(const Store& store, const ExportOptions& options,
                       const std::function<void(const std::string& line)>& sink);

/// A C++ header with a table for Dispatcher::Options::embedded_records. `name`: of the table, a C++ name.
std::string export_cpp(const Store& store, const ExportOptions& options, const std::string& name);

}  // namespace autotune
#endif
