# Completion of autotune for fish: autotune completion fish | source, or a file in vendor_completions.d.
function __autotune_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l lines ($words[1] __complete $words[2..-1] 2>/dev/null)
    if test "$lines[1]" = :files
        __fish_complete_path (commandline -ct)
    else
        string join \n -- $lines
    end
end
complete -c autotune -f -a '(__autotune_complete)'
