#ifndef AUTOTUNE_CACHE_STORE_KEY_FORM_H
#define AUTOTUNE_CACHE_STORE_KEY_FORM_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace autotune {

/// What the keys of an op's problems have in common: all but their whole numbers. The keys of a few forms are those of
/// every problem, so a row names its form and holds the numbers, some 5 bytes in place of 130.
class KeyForm {
public:
    /// Takes a key apart. layout    the key without the 8 bytes of each whole number; empty: the bytes are no key
    /// numbers   these, each in 1 to 9 bytes, so that they order as the numbers do; of what is no key all its bytes
    static void split(std::span<const std::byte> key, std::string& layout, std::string& numbers);

    KeyForm() = default;
    /// Of any bytes; those that are no layout hold no number.
    explicit KeyForm(std::string_view layout);
    /// The layout of a key, or the empty one.
    bool sound() const noexcept { return sound_; }
    std::string_view layout() const noexcept { return layout_; }

    /// The same as split(), where the key has this form; false: it has another.
    bool take_numbers(std::span<const std::byte> key, std::string& numbers) const;
    /// Puts the key together again, in place of what `key` holds; false: these are no numbers of the form.
    bool put_together(std::string_view numbers, std::vector<std::byte>& key) const;

    /// A field whose value is a whole number.
    struct Hole {
        std::size_t at = 0;  ///< of its 8 bytes in a key
        std::string name{};
    };
    const std::vector<Hole>& holes() const noexcept { return holes_; }
    /// The numbers in the order of holes; false: there are not that many.
    bool read_numbers(std::string_view numbers, std::vector<std::int64_t>& values) const;

private:
    std::string layout_;
    std::vector<std::byte> key_;  ///< with zeros for numbers
    std::vector<Hole> holes_;
    bool sound_ = true;
};

}  // namespace autotune
#endif
