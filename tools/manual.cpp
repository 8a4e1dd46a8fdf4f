#include "tools/manual.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/help.h"
#include "tools/request.h"
#include "tools/subcommands.h"
#include "tools/version.h"

namespace autotune {
namespace {

/// Text as roff takes it: nothing in it is a request or an escape, and hyphens can be pasted.
std::string roff(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const bool line_start = out.empty() || out.back() == '\n';
        if (line_start && (c == '.' || c == '\'')) out += "\\&";
        if (c == '\\')
            out += "\\e";
        else if (c == '-')
            out += "\\-";
        else
            out += c;
    }
    return out;
}

std::string page_name(std::string_view command) {
    std::string name{command.empty() ? "autotune" : fmt::format("autotune-{}", command)};
    std::ranges::replace(name, ' ', '-');
    return name;
}

std::string head(const std::string& name, std::string_view about) {
    return fmt::format(".TH {} 1 \"\" \"autotune {}\" \"autotune\"\n.SH NAME\n{} \\- {}\n", roff(name), version(),
                       roff(name), roff(about));
}

std::string item(std::string_view term, std::string_view text) {
    return fmt::format(".TP\n.B {}\n{}\n", roff(term), roff(text));
}

std::string example(std::string_view line) { return fmt::format(".PP\n.nf\n    {}\n.fi\n", roff(line)); }

std::string foot(std::string_view see_also) {
    return fmt::format(".SH EXIT STATUS\n{}\n.SH SEE ALSO\n{}\n", roff(exit_codes_text()), see_also);
}

std::string general_page(const std::vector<CommandRow>& all) {
    std::string text = head("autotune", "finds, checks and stores the fastest config of a CUDA kernel");
    text += ".SH SYNOPSIS\n.B autotune\n.I SUB\n[\\fIOP\\fR [\\fIPROBLEM\\fR]] [\\fIflags\\fR]\n.SH SUBCOMMANDS\n";
    std::string pages;
    for (const CommandRow& row : all) {
        text += item(row.name, row.about);
        pages += fmt::format("{}.BR {} (1)", pages.empty() ? "" : ",\n", roff(page_name(row.name)));
    }
    text += ".SH TOPICS\nWhat\n.B autotune help\n.I TOPIC\ntells of:\n";
    for (const HelpPage& page : help_pages()) text += item(page.topic, page.about());
    text += ".SH EXAMPLES\n";
    for (const CommandRow& row : all)
        if (row.name == "tune" || row.name == "query") text += example(row.example);
    return text + foot(pages);
}

std::string page_of(const CommandRow& row) {
    std::string text = head(page_name(row.name), row.about);
    text += fmt::format(".SH SYNOPSIS\n.B autotune {}\n{}[\\fIflags\\fR]\n.SH OPTIONS\n", roff(row.name),
                        row.takes & takes_problem  ? "[\\fIOP\\fR [\\fIPROBLEM\\fR]] "
                        : row.takes & takes_op     ? "[\\fIOP\\fR] "
                        : row.takes & takes_folder ? "\\fIDIR\\fR "
                        : row.takes & takes_replay ? "\\fIFILE\\fR "
                        : row.takes & takes_shell  ? "\\fISHELL\\fR "
                                                   : "");
    for (const FlagRow& flag : row.flags) text += item(fmt::format("{}", fmt::join(flag.names, ", ")), flag.about);
    return text + ".SH EXAMPLE\n" + example(row.example) + foot(".BR autotune (1)");
}

}  // namespace

std::string manual_page(std::string_view command) {
    const std::vector<CommandRow> all = commands();
    if (command.empty()) return general_page(all);
    const auto row = std::ranges::find(all, command, &CommandRow::name);
    if (row == all.end())
        throw usage(fmt::format("there is no subcommand '{}', so there is no page of it", command), "autotune help");
    return page_of(*row);
}

std::string manual_pages() {
    std::string text;
    for (const CommandRow& row : commands()) text += row.name + '\n';
    return text;
}

}  // namespace autotune
