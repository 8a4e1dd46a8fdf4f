#ifndef AUTOTUNE_LOADER_SECTION_H
#define AUTOTUNE_LOADER_SECTION_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/loader/document.h"
#include "tuner/loader/format.h"

namespace autotune {

/// One table of an op file, checked against the rows of its section: no unknown keys, the required ones there, each
/// of the right type. After that its values may be taken without further ado.
class Section {
public:
    /// section: as in `format_keys`. Throws Error{usage} at the key.
    Section(const Document& document, const Node& table, std::string_view section);

    const Document& document() const noexcept { return *document_; }
    const Node& node() const noexcept { return *table_; }
    /// nullptr: not given.
    const Node* find(std::string_view key) const noexcept { return table_->find(key); }
    bool has(std::string_view key) const noexcept { return find(key) != nullptr; }
    /// The key must be there.
    const Node& at(std::string_view key) const { return *find(key); }

    std::string text(std::string_view key, std::string_view fallback = {}) const;
    bool flag(std::string_view key, bool fallback) const;
    std::vector<std::string> texts(std::string_view key) const;

private:
    void check(const Node& value, const KeyRow& row) const;

    const Document* document_;
    const Node* table_;
};

/// `an integer`, `a string`: what a value of the file is.
std::string_view kind_of(const Node& node) noexcept;

/// Letters, digits and _, not starting with a digit, at most 64.
bool is_name(std::string_view text) noexcept;

}  // namespace autotune
#endif
